"""torch.distributed.tensor: classes of which nothing is, since tensors are not spread over processes."""

import contextlib
from typing import NamedTuple

from .. import errors

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
]


class DTensor:
    """A tensor spread over processes: there is none."""


class DeviceMesh:
    """An arrangement of processes: there is none."""


class DTensorSpec:
    """The arrangement of one of them: there is none."""


class TensorMeta(NamedTuple):
    """Size, strides and dtype of a tensor that is spread."""

    shape: object
    stride: tuple
    dtype: object


class Placement:
    """How one dimension of a mesh holds a tensor."""


class Replicate(Placement):
    """The whole tensor everywhere."""


class Partial(Placement):
    """Parts that add up."""


class Shard(Placement):
    """A slice of dimension `dim` each."""

    def __init__(self, dim):
        self.dim = dim


def distribute_tensor(*args, **kwargs):
    """Raises: tensors are not spread over processes."""
    raise errors.unsupported("tensors spread over processes", instead="jax.sharding in one process")


distribute_module = local_map = register_sharding = distribute_tensor


@contextlib.contextmanager
def implicit_replication():
    """Context: accepted, every tensor is whole."""
    yield
