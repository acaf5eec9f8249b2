"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper: modules that recompute their activations in backward."""

import enum
import functools
import types

from ...nn import Module
from ...utils.checkpoint import checkpoint

__all__ = ["CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing", "checkpoint_wrapper"]

# the packages that this module is in: an import puts what it finds on them
algorithms = types.ModuleType("torch.distributed.algorithms")
algorithms_checkpoint = types.ModuleType("torch.distributed.algorithms._checkpoint")

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_PREFIX = f"{_CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(enum.Enum):
    """How activations are computed again."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(Module):
    """A module around another; attributes, items and the names in the state are those of the inner one."""

    def __init__(self, mod):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(self._without_prefix)
        self.register_load_state_dict_pre_hook(self._with_prefix)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        """(name, parameter), named as in the inner module."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), param

    @staticmethod
    def _without_prefix(module, state, prefix, *_args):
        _renamed(state, f"{prefix}{_PREFIX}", prefix)

    @staticmethod
    def _with_prefix(module, state, prefix, *_args):
        _renamed(state, prefix, f"{prefix}{_PREFIX}")


def _renamed(state, before, after):
    """Put the keys that begin with `before` under `after`."""
    for key in [k for k in state if k.startswith(before)]:
        state[after + key.removeprefix(before)] = state.pop(key)


class CheckpointWrapper(ActivationWrapper):
    """A module whose forward is under torch.utils.checkpoint."""

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reentrant = {"use_reentrant": checkpoint_impl is CheckpointImpl.REENTRANT}
        options = checkpoint_fn_kwargs if checkpoint_fn else {**reentrant, **checkpoint_fn_kwargs}
        self.checkpoint_fn = functools.partial(checkpoint_fn or checkpoint, **options)

    def forward(self, *args, **kwargs):
        """The inner module's result, its activations not kept."""
        inner = self._checkpoint_wrapped_module
        if kwargs and self.checkpoint_impl is CheckpointImpl.REENTRANT:  # which takes positional arguments alone
            n, names = len(args), tuple(kwargs)
            return self.checkpoint_fn(lambda *a: inner(*a[:n], **dict(zip(names, a[n:]))), *args, *kwargs.values())
        return self.checkpoint_fn(inner, *args, **kwargs)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs):
    """CheckpointWrapper(module, ...)."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None
):
    """Wrap, in place, the modules inside `model` for which check_fn (or the policy) is true, innermost first."""
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn, auto_wrap_policy)
        if auto_wrap_policy is None:
            wanted = check_fn(child)
        else:
            size = sum(p.numel() for p in child.parameters())
            wanted = auto_wrap_policy(module=child, recurse=False, nonwrapped_numel=size)
        if wanted and not isinstance(child, ActivationWrapper):
            setattr(model, name, checkpoint_wrapper_fn(child))
