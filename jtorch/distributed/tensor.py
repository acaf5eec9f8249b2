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

    @staticmethod
    def local_shard_size_and_offset(curr_local_size, num_chunks, rank) -> tuple[int, int]:
        """(size, offset) of a slice: all are as large as the first, but for the last ones."""
        chunk = -(-curr_local_size // num_chunks)
        offset = min(chunk * rank, curr_local_size)
        return min(chunk, curr_local_size - offset), offset


class _StridedShard(Shard):
    """A slice each, of a dimension that is sliced already. For isinstance."""


def distribute_tensor(*args, **kwargs):
    """Raises: tensors are not spread over processes."""
    raise errors.unsupported("tensors spread over processes", instead="jax.sharding in one process")


distribute_module = local_map = register_sharding = compute_local_shape_and_global_offset = distribute_tensor


@contextlib.contextmanager
def implicit_replication():
    """Context: accepted, every tensor is whole."""
    yield
