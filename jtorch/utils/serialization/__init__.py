"""torch.utils.serialization: the settings of loading and saving."""

from . import config

__all__ = ["config"]
