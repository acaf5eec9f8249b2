"""The collectives as methods of a ProcessGroup, which start them and return their Work. Options or plain arguments say what is asked.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

from . import collectives, messages
from .process_group import ProcessGroup, ReduceOp

__all__ = [
    "AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions", "BroadcastOptions",
    "GatherOptions", "ReduceOptions", "ReduceScatterOptions", "ScatterOptions",
]  # fmt: skip


class Options:
    """What a method is asked for: how values become one, and the rank in the group of a source or destination."""

    reduceOp = ReduceOp.SUM
    rootRank = rootTensor = -1
    timeout = None
    asyncOp = True


AllToAllOptions = AllgatherOptions = AllreduceCoalescedOptions = AllreduceOptions = BarrierOptions = (
    BroadcastOptions
) = Options
GatherOptions = ReduceOptions = ReduceScatterOptions = ScatterOptions = Options


def _op(given):
    return given.reduceOp if isinstance(given, Options) else given


def _root(given):
    return given.rootRank if isinstance(given, Options) else given


def _one(tensors):
    """The tensor of a list of one. ValueError: it has more."""
    if not isinstance(tensors, (list, tuple)):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"one tensor was expected for a process, {len(tensors)} were given")
    return tensors[0]


def _flat(tensors):
    """The tensors of a list, or of the one list in it."""
    return tensors[0] if tensors and isinstance(tensors[0], (list, tuple)) else tensors


def allreduce(self, tensors, op=ReduceOp.SUM, timeout=None):
    """all_reduce."""
    tensors = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
    return collectives.all_reduce_coalesced(tensors, _op(op), self, True)


def broadcast(self, tensors, root=0, timeout=None):
    """broadcast, from a rank of the group."""
    return collectives.broadcast(_one(tensors), group=self, async_op=True, group_src=max(_root(root), 0))


def reduce(self, tensors, root=0, op=ReduceOp.SUM, timeout=None):
    """reduce, to a rank of the group."""
    op = _op(root) if isinstance(root, Options) else op
    return collectives.reduce(_one(tensors), op=op, group=self, async_op=True, group_dst=max(_root(root), 0))


def allgather(self, output_tensors, input_tensors, timeout=None):
    """all_gather."""
    return collectives.all_gather(list(_flat(output_tensors)), _one(input_tensors), self, True)


def gather(self, output_tensors, input_tensors, root=0, timeout=None):
    """gather, to a rank of the group."""
    targets = list(_flat(output_tensors)) or None
    return collectives.gather(_one(input_tensors), targets, group=self, async_op=True, group_dst=max(_root(root), 0))


def scatter(self, output_tensors, input_tensors, root=0, timeout=None):
    """scatter, from a rank of the group."""
    sources = list(_flat(input_tensors)) or None
    return collectives.scatter(_one(output_tensors), sources, group=self, async_op=True, group_src=max(_root(root), 0))


def reduce_scatter(self, output_tensors, input_tensors, op=ReduceOp.SUM, timeout=None):
    """reduce_scatter."""
    return collectives.reduce_scatter(_one(output_tensors), list(_flat(input_tensors)), _op(op), self, True)


def alltoall(self, output_tensors, input_tensors, opts=None):
    """all_to_all."""
    return collectives.all_to_all(list(output_tensors), list(input_tensors), self, True)


def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts=None):
    """all_to_all_single."""
    return collectives.all_to_all_single(output, input, output_split_sizes, input_split_sizes, self, True)


def _allgather_base(self, output, input, opts=None):
    """all_gather_single."""
    return collectives.all_gather_single(output, input, self, True)


def _reduce_scatter_base(self, output, input, op=ReduceOp.SUM):
    """reduce_scatter_single."""
    return collectives.reduce_scatter_single(output, input, _op(op), self, True)


def barrier(self, timeout=None):
    """barrier."""
    return collectives.barrier(self, True)


def monitored_barrier(self, timeout=None, wait_all_ranks=False):
    """monitored_barrier, which has ended when this returns."""
    collectives.monitored_barrier(self, timeout, wait_all_ranks)


def send(self, tensors, dstRank, tag):
    """isend, to a rank of the group."""
    return messages.isend(_one(tensors), group=self, tag=tag, group_dst=dstRank)


def recv(self, tensors, srcRank, tag):
    """irecv, from a rank of the group."""
    return messages.irecv(_one(tensors), group=self, tag=tag, group_src=srcRank)


def recv_anysource(self, tensors, tag):
    """irecv, from any process."""
    return messages.irecv(_one(tensors), group=self, tag=tag)


for _method in (
    allreduce, broadcast, reduce, allgather, gather, scatter, reduce_scatter, alltoall, alltoall_base, _allgather_base,
    _reduce_scatter_base, barrier, monitored_barrier, send, recv, recv_anysource,
):  # fmt: skip
    setattr(ProcessGroup, _method.__name__, _method)
ProcessGroup.allreduce_coalesced = allreduce
ProcessGroup.all_gather_single, ProcessGroup.reduce_scatter_single = _allgather_base, _reduce_scatter_base
