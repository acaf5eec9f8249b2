"""torch.utils.dlpack."""

from jtorch.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
