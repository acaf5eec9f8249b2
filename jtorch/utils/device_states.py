"""The states of the generators of devices, for whoever computes something twice."""

from .. import cuda
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
