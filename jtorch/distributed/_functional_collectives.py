"""torch.distributed._functional_collectives: collectives that return their result, on the tape; of a group of one process, copies."""

from .. import errors
from .. import functions as torch
from ..aten import namespace
from ..dispatch.dispatched import OpOverloadPacket
from ..tensor import Tensor
from ..unavailable import refusing
from . import nn
from .process_group import GroupMember, ProcessGroup, ReduceOp

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
    name = str(reduceOp).lower().rpartition(".")[2]
    if name not in _KINDS:
        raise ValueError(f"Unsupported reduce op {reduceOp!r}: one of {', '.join(_KINDS)}")
    return ReduceOp[name.upper()]


def _several(group) -> ProcessGroup | None:
    """The group, where it has several processes. Raises NotImplementedError for the names and lists that PyTorch's compiler gives."""
    world = GroupMember.WORLD
    found = group if isinstance(group, ProcessGroup) else world
    if found is None or found.size() == 1:
        return None
    if (
        found is not group
        and group is not None
        and list(group if isinstance(group, (list, tuple)) else ()) != found.ranks
    ):
        raise errors.unsupported(f"a group given as {group!r}", instead="the group itself, or None for all processes")
    return found


def wait_tensor(tensor):
    """The tensor: nothing is on its way."""
    return tensor


def all_reduce(self, reduceOp, group, tag=""):
    """The value of all processes. ValueError: no such reduction."""
    kind, several = _kind(reduceOp), _several(group)
    return self.clone() if several is None else nn.all_reduce(self, kind, several)


def all_reduce_coalesced(self, reduceOp, group, tag=""):
    """A list of the values of all processes."""
    return [all_reduce(x, reduceOp, group, tag) for x in self]


def broadcast(self, src, group, tag=""):
    """The tensor of one process. ValueError: there is no process of this rank."""
    several = _several(group)
    if several is not None:
        return nn.broadcast(self, src, several)
    if src != 0:
        raise ValueError(f"broadcast: src is {src}, and the group has rank 0 alone")
    return self.clone()


def all_gather_tensor(self, gather_dim, group, tag=""):
    """The parts of all processes along `gather_dim`."""
    _dim(self, gather_dim)
    several = _several(group)
    if several is not None:
        return torch.cat(nn.all_gather(self, several), gather_dim)
    return self.clone(memory_format=torch.contiguous_format)


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    """The part along `scatter_dim` that is this process's, of the value of all. ValueError: there are not as many parts."""
    kind, several = _kind(reduceOp), _several(group)
    _dim(self, scatter_dim)
    if several is not None:
        if self.shape[scatter_dim] % several.size():
            raise ValueError(f"dimension {scatter_dim} of {tuple(self.shape)} has no {several.size()} equal parts")
        parts = list(self.chunk(several.size(), scatter_dim))
        return nn.reduce_scatter(parts[0], parts, kind, several)
    return self.clone(memory_format=torch.contiguous_format)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """From each process some rows. ValueError, of one process: the sizes are not that of the whole."""
    several = _several(group)
    if several is not None:
        rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
        there = self.new_empty((rows, *self.shape[1:]))
        return nn.all_to_all_single(there, self, output_split_sizes, input_split_sizes, several)
    for sizes in (output_split_sizes, input_split_sizes):
        if sizes is not None and list(sizes) != [self.shape[0]]:
            raise ValueError(f"all_to_all_single: split sizes {list(sizes)}, and one process sends all {self.shape[0]}")
    return self.clone(memory_format=torch.contiguous_format)


def permute_tensor(self, src_dst, group, tag=""):
    """The tensor of the process that sends here; of one process a copy. ValueError: another rank than there is."""
    several = _several(group)
    if several is not None:
        if sorted(src_dst) != list(range(several.size())):
            raise ValueError(f"permute_tensor: destinations {list(src_dst)} of {several.size()} processes")
        zeros = torch.zeros_like(self)
        own, n = several.rank(), several.size()
        found = nn.all_to_all([self] * n, [self if r == src_dst[own] else zeros for r in range(n)], several)
        return found[list(src_dst).index(own)]
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
