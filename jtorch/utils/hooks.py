"""torch.utils.hooks: handles of hooks."""

from ..copying import warn_if_has_hooks
from ..handles import RemovableHandle
from ..nn.modules.hooks import BackwardHook

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f):
    """Mark a hook that need not be warned of when its tensor is saved."""
    f.__torch_unserializable__ = True
    return f
