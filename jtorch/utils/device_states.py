"""For whoever computes something twice: the states of the generators of devices, and inputs off the tape."""

from .. import cuda, errors
from ..core.device import accelerator
from ..tensor import Tensor
from ._pytree import tree_leaves


def get_device_states(*args):
    """(device indices, states of their generators) for the accelerators among the tensors of `args`."""
    found = sorted(
        {t.device.index or 0 for t in tree_leaves(args) if isinstance(t, Tensor) and t.device.type == "cuda"}
    )
    return found, [cuda.get_rng_state(k) for k in found]


def set_device_states(devices, states, *, device_type=None) -> None:
    """Put the states of generators back."""
    for k, state in zip(devices, states):
        cuda.set_rng_state(state, k)


def detach_variable(inputs):
    """Tensors of a tuple off the tape, that require grad if they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs):
    """Warn where none of the inputs of a reentrant checkpoint requires grad."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        errors.warn("None of the inputs have requires_grad=True. Gradients will be None")


class DefaultDeviceType:
    """The kind of device whose generators a checkpoint keeps where its arguments name none."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What was set, or the accelerator that is there, or "cpu"."""
        return DefaultDeviceType._default_device_type or accelerator() or "cpu"
