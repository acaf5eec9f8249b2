"""Collectives on tensors: what the processes of a group do together. Elements travel between hosts, and are written in place.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

import datetime
import importlib
import time
import warnings

import numpy as np

from .. import errors
from ..autograd.mode import no_grad
from ..convert import as_elements
from ..core import dtype as dtypes
from ..core.record import tls
from ..creation import from_numpy
from ..tensor import Tensor
from .process_group import ReduceOp, Work
from .status import supports_complex
from .world import get_group_rank, member

__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_reduce_coalesced",
    "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter",
    "reduce_scatter_single", "reduce_scatter_tensor", "scatter",
]  # fmt: skip


# --- what goes in and out ------------------------------------------------------------------------------------------------


def checked(name, value):
    """The tensors of an argument; TypeError where there is something else."""
    many = name.endswith("list")
    found = list(value) if many and isinstance(value, (list, tuple)) else [value]
    for t in found:
        if not isinstance(t, Tensor):
            kind = "List[torch.Tensor]" if many else "torch.Tensor"
            raise TypeError(
                f"Invalid function argument. Expected parameter `{name}` of type {kind}\n             but got {type(value)} instead."
            )
    return found


def elements(t, asynchronous=False) -> np.ndarray:
    """The elements of a tensor; a copy where they are read while the program goes on."""
    array = as_elements(t.detach())
    return np.array(array) if asynchronous else array


def write(target, message) -> None:
    """Write the bytes of another tensor into one of this size and dtype. RuntimeError: they are more or fewer."""
    array = np.ascontiguousarray(message).reshape(-1).view(target._spec.dtype.memory)
    if array.size != target.numel():
        raise RuntimeError(f"another process has sent {array.size} elements for a tensor of {target.numel()}")
    target.detach().copy_(from_numpy((array if array.flags.writeable else array.copy()).reshape(tuple(target.shape))))


def root_of(group, rank, of_group, default=0) -> int:
    """The rank in the group of a source or destination, which is given as that in the world or in the group."""
    if of_group is not None:
        if rank is not None:
            raise ValueError("Can't specify both group_src and src")
        if not 0 <= of_group < group.size():
            raise ValueError(f"Group rank {of_group} is not part of group {group}")
        return of_group
    return default if rank is None else get_group_rank(group, rank)


def _run(name, group, collective, sources, targets, asynchronous):
    """Start collective(arrays of the sources), which gives what is to be written into the targets, or None; its Work where asked for.

    Of one process the targets are copies of the sources, for which nothing is read.
    """
    done = noted(name, group, sources or targets)
    if group.size() == 1:
        for target, source in zip(targets, sources, strict=True):
            if target is not source:
                target.detach().copy_(source.detach().reshape(target.shape))
        if done is not None:
            done()
        return Work(written=targets) if asynchronous else None

    def finish(messages):
        for target, message in zip(targets, messages, strict=True) if messages is not None else ():
            write(target, message)
        if done is not None:
            done()

    job = group.start(collective, [elements(t, asynchronous) for t in sources])
    return _work(job, finish, targets, asynchronous)


def _work(job, finish, targets, asynchronous):
    """The Work of what has been started; None, once it is done, where none was asked for."""
    work = Work(job, finish, targets)
    if asynchronous:
        return work
    work.wait()
    return None


def noted(name, group, tensors):
    """What a profile is to be told when a collective has ended; None where none is taken."""
    profile = tls.me.extra.get("profile")
    if profile is None:
        return None
    shapes = [[*t.shape, *[2] * t.is_complex()] for t in tensors] if profile.shapes else ()
    start = time.perf_counter_ns()
    return lambda: profile.add(f"{group.name()}:{name}", start, shapes, apart=True)


def _same(name, targets, like):
    """Refuse results that are not of the size and dtype of what is sent."""
    for k, t in enumerate(targets):
        if t.dtype is not like.dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {t.dtype} and  {like.dtype}")
        if tuple(t.shape) != tuple(like.shape):
            expected, got = (f"({', '.join(map(str, x.shape))})" for x in (like, t))
            raise RuntimeError(f"{name}: invalid tensor size at index {k} (expected {expected}, got {got})")


def _count(group, targets, what):
    if len(targets) != group.size():
        raise ValueError(f"{what}: {len(targets)} tensors for a group of {group.size()} processes")


def _multiple(group, whole, part):
    """Refuse a tensor that does not hold one part for each process."""
    if whole.numel() != part.numel() * group.size() or whole.dtype is not part.dtype:
        raise ValueError(
            f"a tensor of {whole.numel()} elements of {whole.dtype} does not hold those of {group.size()} processes, "
            f"{part.numel()} of {part.dtype} each"
        )


def _kind(name, op, t):
    """Refuse what cannot be reduced so."""
    kind = t.dtype
    if op is ReduceOp.PREMUL_SUM:
        raise errors.unsupported("ReduceOp.PREMUL_SUM", instead="multiply, and reduce with ReduceOp.SUM")
    if kind.is_complex and not supports_complex(op):
        raise ValueError(f"{name} does not support RedOpType.{op.name} on complex tensors")
    exact = not (kind.is_floating_point or kind.is_complex)
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and not exact:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and exact:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtypes.scalar_name(kind)}")


def _deprecated(name, instead):
    warnings.warn(
        f"`torch.distributed.{name}` is deprecated. Please use `torch.distributed.{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


# --- the collectives -----------------------------------------------------------------------------------------------------


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The value of all processes in each of them. All have the same bits, those of the sum in the order of the ranks."""
    [tensor] = checked("tensor", tensor)
    group = member("all_reduce", group)
    if group is None:
        return None
    if tensor.is_sparse:
        return _sparse_sum(tensor, op, group, async_op)
    _kind("all_reduce", op, tensor)
    return _run(
        "all_reduce", group, lambda arrays: [group.reduced(a, op) for a in arrays], [tensor], [tensor], async_op
    )


def _sparse_sum(tensor, op, group, asynchronous):
    """all_reduce of sparse tensors: the elements of all processes as one coalesced tensor."""
    if op is not ReduceOp.SUM:
        raise RuntimeError(
            "ProcessGroupGloo::allreduce: unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)"
        )
    made = importlib.import_module("jtorch.sparse.constructors").sparse_coo_tensor
    done = noted("all_reduce", group, [tensor])
    own = tensor.detach().coalesce()
    at, values = (elements(t, asynchronous) for t in (own.indices(), own.values()))

    def collective():
        return group.everywhere(at.T), group.everywhere(values)

    def finish(found):
        where, what = (
            from_numpy(np.concatenate([m.view(like.dtype) for m in messages]).reshape(-1, *like.shape[1:]))
            for messages, like in zip(found, (at.T, values))
        )
        with no_grad():
            tensor.copy_(made(where.T, what, tensor.shape).coalesce())
        if done is not None:
            done()

    return _work(group.start(collective), finish, [tensor], asynchronous)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce of several tensors."""
    found = checked("tensor_list", tensors)
    group = member("all_reduce_coalesced", group)
    if group is None:
        return None
    for t in found:
        _kind("all_reduce", op, t)
    return _run("all_reduce", group, lambda arrays: [group.reduced(a, op) for a in arrays], found, found, async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """The tensor of one process in all of them."""
    [tensor] = checked("tensor", tensor)
    group = member("broadcast", group)
    if group is None:
        return None
    root = root_of(group, src, group_src)

    def collective(arrays):
        found = group.from_one(*arrays, root)
        return None if root == group.rank() else [found]

    return _run("broadcast", group, collective, [tensor], [tensor], async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The value of all processes in one of them."""
    [tensor] = checked("tensor", tensor)
    group = member("reduce", group)
    if group is None:
        return None
    _kind("reduce", op, tensor)
    root = root_of(group, dst, group_dst)

    def collective(arrays):
        found = group.to_one(*arrays, root)
        return None if found is None else [group.combined(found, arrays[0].dtype, op)]

    return _run("reduce", group, collective, [tensor], [tensor], async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """The tensors of all processes, which are of one size."""
    targets, [tensor] = checked("tensor_list", tensor_list), checked("tensor", tensor)
    group = member("all_gather", group)
    if group is None:
        return None
    _count(group, targets, "all_gather")
    _same("ProcessGroupGloo::allgather", targets, tensor)
    return _run("all_gather", group, lambda arrays: group.everywhere(*arrays), [tensor], targets, async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """all_gather of several tensors: one list of results for each process."""
    sources = checked("input_tensor_list", input_tensor_list)
    group = member("all_gather_coalesced", group)
    if group is None:
        return None
    _count(group, output_tensor_lists, "all_gather_coalesced")
    for k, source in enumerate(sources):
        _same("ProcessGroupGloo::allgather", [outputs[k] for outputs in output_tensor_lists], source)
    targets = [outputs[k] for k in range(len(sources)) for outputs in output_tensor_lists]

    def collective(arrays):
        return [message for a in arrays for message in group.everywhere(a)]

    return _run("all_gather", group, collective, sources, targets, async_op)


def all_gather_single(output, input, group=None, async_op=False):
    """The tensors of all processes, one after the other in one tensor."""
    [output], [input] = checked("output_tensor", output), checked("input_tensor", input)
    group = member("all_gather_single", group)
    if group is None:
        return None
    _multiple(group, output, input)
    return _run(
        "all_gather", group, lambda arrays: [np.concatenate(group.everywhere(*arrays))], [input], [output], async_op
    )


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """all_gather_single, under its older name."""
    _deprecated("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """The tensors of all processes in one of them."""
    [tensor] = checked("tensor", tensor)
    targets = checked("gather_list", gather_list) if gather_list else []
    group = member("gather", group)
    if group is None:
        return None
    root = root_of(group, dst, group_dst)
    if root == group.rank():
        if not targets:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _count(group, targets, "gather")
        _same("ProcessGroupGloo::gather", targets, tensor)
    elif targets:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return _run("gather", group, lambda arrays: group.to_one(*arrays, root), [tensor], targets, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """To each process one of the tensors of one of them."""
    [tensor] = checked("tensor", tensor)
    sources = checked("scatter_list", scatter_list) if scatter_list else []
    group = member("scatter", group)
    if group is None:
        return None
    root = root_of(group, src, group_src)
    if root == group.rank():
        if not sources:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _count(group, sources, "scatter")
        _same("ProcessGroupGloo::scatter", sources, tensor)
    elif sources:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return _run("scatter", group, lambda arrays: [group.one_each(arrays, root)], sources, [tensor], async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """The reduced tensors, to each process one of them."""
    [output], sources = checked("output", output), checked("input_list", input_list)
    group = member("reduce_scatter", group)
    if group is None:
        return None
    _kind("reduce_scatter", op, output)
    _count(group, sources, "reduce_scatter")
    for t in sources:
        if t.dtype is not output.dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {output.dtype} and  {t.dtype}")
    return _run("reduce_scatter", group, lambda arrays: [group.reduced_to(arrays, op)], sources, [output], async_op)


def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The same from one tensor, which holds one part for each process."""
    [output], [input] = checked("output", output), checked("input", input)
    group = member("reduce_scatter_single", group)
    if group is None:
        return None
    _kind("reduce_scatter", op, output)
    _multiple(group, input, output)

    def collective(arrays):
        return [group.reduced_to(np.split(arrays[0].reshape(-1), group.size()), op)]

    return _run("reduce_scatter", group, collective, [input], [output], async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """reduce_scatter_single, under its older name."""
    _deprecated("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """From each process a tensor to each process."""
    targets = checked("output_tensor_list", output_tensor_list)
    sources = checked("input_tensor_list", input_tensor_list)
    group = member("all_to_all", group)
    if group is None:
        return None
    _count(group, targets, "all_to_all")
    _count(group, sources, "all_to_all")
    return _run("all_to_all", group, group.exchange, sources, targets, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """From each process a part of a tensor to each process: rows of the first dimension, as many each or of the given numbers."""
    [output], [input] = checked("output", output), checked("input", input)
    group = member("all_to_all_single", group)
    if group is None:
        return None
    n = group.size()
    ends, _ = _ends(n, len(input), input_split_sizes), _ends(n, len(output), output_split_sizes)

    def collective(arrays):
        return [np.concatenate(group.exchange(np.split(arrays[0], ends)))]

    return _run("all_to_all", group, collective, [input], [output], async_op)


def _ends(n, rows, sizes):
    """Where the rows for each of n processes end, but for the last; of one process nothing is checked."""
    if n == 1:
        return []
    if not sizes:
        if rows % n:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return [k * rows // n for k in range(1, n)]
    if len(sizes) != n:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != rows:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return np.cumsum(sizes)[:-1]


def barrier(group=None, async_op=False, device_ids=None):
    """Wait for all processes."""
    group = member("barrier", group)
    if group is None:
        return None

    def collective(arrays):
        group.everywhere(np.zeros(0, np.uint8))

    return _run("barrier", group, collective, (), (), async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False) -> None:
    """Wait for all processes; the error names the rank that does not come, with `wait_all_ranks` all of them. timeout: or seconds."""
    group = member("monitored_barrier", group)
    if group is not None and group.size() > 1:
        timeout = group.timeout if timeout is None else timeout
        if not isinstance(timeout, datetime.timedelta):
            timeout = datetime.timedelta(seconds=timeout)
        group.start(group.all_present, timeout, wait_all_ranks).result()
