"""torch.utils.serialization.config: `load` and `save` hold the settings, `patch` changes some for a while."""

from jtorch.files.options import load, patch, save

__all__ = ["load", "patch", "save"]
