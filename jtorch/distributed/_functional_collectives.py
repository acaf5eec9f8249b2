"""torch.distributed._functional_collectives: collectives that return their result, of a group of one process: copies, on the tape."""

from .. import functions as torch
from ..aten import namespace
from ..dispatch.dispatched import OpOverloadPacket
from ..tensor import Tensor
from ..unavailable import refusing

__all__ = [
    "AsyncCollectiveTensor", "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce", "all_reduce_coalesced",
    "all_to_all_single", "all_to_all_single_autograd", "broadcast", "permute_tensor", "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd", "wait_tensor",
]  # fmt: skip

_KINDS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor")


class AsyncCollectiveTensor(Tensor):
    """The class of results that have not arrived: there are none. For isinstance."""


def _dim(self, dim):
    if not -self.ndim <= dim < max(self.ndim, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-self.ndim}, {self.ndim - 1}], but got {dim})"
        )


def _kind(reduceOp):
    if str(reduceOp).lower().rpartition(".")[2] not in _KINDS:
        raise ValueError(f"Unsupported reduce op {reduceOp!r}: one of {', '.join(_KINDS)}")


def wait_tensor(tensor):
    """The tensor: nothing is on its way."""
    return tensor


def all_reduce(self, reduceOp, group, tag=""):
    """A copy. ValueError: no such reduction."""
    _kind(reduceOp)
    return self.clone()


def all_reduce_coalesced(self, reduceOp, group, tag=""):
    """A list of copies."""
    return [all_reduce(x, reduceOp, group, tag) for x in self]


def broadcast(self, src, group, tag=""):
    """A copy. ValueError: there is no process of this rank."""
    if src != 0:
        raise ValueError(f"broadcast: src is {src}, and the group has rank 0 alone")
    return self.clone()


def all_gather_tensor(self, gather_dim, group, tag=""):
    """A copy: the parts of one process along `gather_dim`."""
    _dim(self, gather_dim)
    return self.clone(memory_format=torch.contiguous_format)


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    """A copy: the one part of what one process has."""
    _kind(reduceOp)
    _dim(self, scatter_dim)
    return self.clone(memory_format=torch.contiguous_format)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """A copy. ValueError: the sizes are not that of the whole."""
    for sizes in (output_split_sizes, input_split_sizes):
        if sizes is not None and list(sizes) != [self.shape[0]]:
            raise ValueError(f"all_to_all_single: split sizes {list(sizes)}, and one process sends all {self.shape[0]}")
    return self.clone(memory_format=torch.contiguous_format)


def permute_tensor(self, src_dst, group, tag=""):
    """A copy. ValueError: the process sends to another rank than 0."""
    if list(src_dst) != [0]:
        raise ValueError(f"permute_tensor: destinations {list(src_dst)}, and the group has rank 0 alone")
    return self.clone()


all_gather_tensor_autograd, reduce_scatter_tensor_autograd = all_gather_tensor, reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single


# --- the same as operators, for tables that are keyed by them ---------------------------------------------------------


def _operators(space, found):
    made = namespace(space)
    for name, fn in found.items():
        setattr(made, name, OpOverloadPacket(space, name, fn))
    return made


_RETURNING = {
    "all_gather_into_tensor": lambda input, group_size, group_name: all_gather_tensor(input, 0, group_name),
    "all_reduce": all_reduce,
    "all_reduce_coalesced": all_reduce_coalesced,
    "all_to_all_single": all_to_all_single,
    "broadcast": broadcast,
    "reduce_scatter_tensor": lambda input, reduce_op, group_size, group_name: reduce_scatter_tensor(
        input, reduce_op, 0, group_name
    ),
    "wait_tensor": wait_tensor,
    "_wrap_tensor_autograd": wait_tensor,
}
_c10d_functional, c10d_functional = (_operators(space, _RETURNING) for space in ("_c10d_functional", "c10d_functional"))
_WRITING = (
    "_allgather_base_ _reduce_scatter_base_ allgather_ allgather_into_tensor_coalesced_ allreduce_ allreduce_coalesced_ alltoall_ "
    "alltoall_base_ barrier broadcast_ gather_ reduce_ reduce_scatter_ reduce_scatter_tensor_coalesced_ scatter_ send recv_"
)
c10d = _operators(
    "c10d",
    {
        n: refusing(f"ops.c10d.{n}", "process groups of PyTorch's C++", "torch.distributed's functions")
        for n in _WRITING.split()
    },
)
