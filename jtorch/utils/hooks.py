"""torch.utils.hooks: the handle of a registered hook, and the machinery of full backward hooks."""

from ..handles import RemovableHandle
from ..nn.modules.hooks import BackwardHook

__all__ = ["BackwardHook", "RemovableHandle"]
