"""torch.distributed.elastic.utils: ports."""

from . import distributed

__all__ = ["distributed"]
