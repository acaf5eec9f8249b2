"""torch.typing: the names of torch.types."""

from .types import Device, FileLike, Number, Storage

__all__ = ["Device", "FileLike", "Number", "Storage"]
