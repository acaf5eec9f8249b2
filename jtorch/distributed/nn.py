"""torch.distributed.nn: collectives that return their result, on the tape.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

from .. import functions as torch
from ..autograd.function import Function
from . import collectives
from .collectives import root_of
from .process_group import ReduceOp
from .world import group_of

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter",
]  # fmt: skip


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        made = tensor.clone()
        collectives.all_reduce(made, op, group)
        return made

    @staticmethod
    def backward(ctx, g):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, root, group, tensor):
        ctx.root, ctx.group = root, group
        made = tensor.clone()
        collectives.broadcast(made, group=group, group_src=root)
        return made

    @staticmethod
    def backward(ctx, g):
        return None, None, _Reduce.apply(ctx.root, ReduceOp.SUM, ctx.group, g)


class _Reduce(Function):
    """The others have zeros, which their gradients pass by."""

    @staticmethod
    def forward(ctx, root, op, group, tensor):
        ctx.root, ctx.group = root, group
        made = tensor.clone()
        collectives.reduce(made, op=op, group=group, group_dst=root)
        return made if root == group.rank() else torch.zeros_like(made)

    @staticmethod
    def backward(ctx, g):
        return None, None, None, _Broadcast.apply(ctx.root, ctx.group, g)


class _AllToAll(Function):
    """From each process a tensor to each: the gradients go the same way back."""

    @staticmethod
    def forward(ctx, group, like, *tensors):
        ctx.group, ctx.like = group, [t.detach() for t in tensors]
        made = [torch.empty_like(t, memory_format=torch.contiguous_format) for t in like]
        collectives.all_to_all(made, [t.contiguous() for t in tensors], group)
        return tuple(made)

    @staticmethod
    def backward(ctx, *gs):
        return None, None, *_AllToAll.apply(ctx.group, ctx.like, *gs)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The value of all processes, in each of them."""
    return _AllReduce.apply(op, group_of(group), tensor)


def broadcast(tensor, src, group=None):
    """The tensor of the process `src`, in each of them."""
    group = group_of(group)
    return _Broadcast.apply(root_of(group, src, None), group, tensor)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """The value of all processes in the process `dst`, zeros in the others."""
    group = group_of(group)
    return _Reduce.apply(root_of(group, dst, None), op, group, tensor)


def all_gather(tensor, group=None) -> tuple:
    """The tensors of all processes."""
    group = group_of(group)
    each = [tensor] * group.size()
    return _AllToAll.apply(group, each, *each)


def gather(tensor, dst=0, group=None) -> tuple:
    """The tensors of all processes in the process `dst`, zeros in the others."""
    group = group_of(group)
    root, zeros = root_of(group, dst, None), torch.zeros_like(tensor)
    return _AllToAll.apply(
        group, [tensor] * group.size(), *(tensor if r == root else zeros for r in range(group.size()))
    )


def scatter(tensors, src=0, group=None):
    """That of the tensors of the process `src` which is this process's."""
    group = group_of(group)
    return _AllToAll.apply(group, [tensors[0]] * group.size(), *tensors)[root_of(group, src, None)]


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """The value of all processes of that of the tensors which is this process's. `output` says of which shape it is."""
    group = group_of(group)
    found = torch.stack(_AllToAll.apply(group, [output] * group.size(), *input_list))
    return {
        ReduceOp.SUM: lambda x: x.sum(0), ReduceOp.AVG: lambda x: x.mean(0), ReduceOp.PRODUCT: lambda x: x.prod(0),
        ReduceOp.MIN: lambda x: x.amin(0), ReduceOp.MAX: lambda x: x.amax(0),
    }[op](found)  # fmt: skip


def all_to_all(output_tensor_list, input_tensor_list, group=None) -> tuple:
    """From each process a tensor to each process. `output_tensor_list` says of which shapes they are."""
    return _AllToAll.apply(group_of(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """From each process some rows of a tensor to each process, as many each or of the given numbers."""
    group = group_of(group)
    n = group.size()
    there = output.split(output_split_sizes or len(output) // n)
    return torch.cat(_AllToAll.apply(group, list(there), *input.split(input_split_sizes or len(input) // n)))
