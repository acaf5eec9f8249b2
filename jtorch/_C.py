"""What programs take from torch._C: the switches of `__torch_function__` and of autograd."""

from .autograd import mode
from .core.record import tls
from .dispatch.override import disabled
from .errors import LinAlgError as _LinAlgError
from .tensor import disabled_torch_function as _disabled_torch_function_impl

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_LinAlgError",
    "_disabled_torch_function_impl",
]


class DisableTorchFunctionSubclass(disabled):
    """A context in which subclasses are like plain tensors; function modes go on."""


class DisableTorchFunction(disabled):
    """A context in which neither subclasses nor function modes are asked."""

    level = 0


class _AutoDispatchBelowAutograd(mode.no_grad):
    """A context for implementations of operators, whose derivative is taken care of outside."""


def _is_torch_function_enabled() -> bool:
    return tls.me.overriding == 2


def _is_torch_function_all_disabled() -> bool:
    return tls.me.overriding == 0


def _get_tracing_state():
    """The state of the torch.jit.trace that runs in this thread, or None."""
    return tls.me.extra.get("trace")


def _set_grad_enabled(value) -> None:
    tls.me.grad = bool(value)
