"""A process group of one: what programs written for several processes call, each a copy or nothing.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

import copy
import datetime
import enum
import os

from .. import errors
from ..tensor import Tensor

__all__ = [
    "Backend", "GroupMember", "P2POp", "ProcessGroup", "ReduceOp", "Work", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather", "gather_object", "get_backend",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "irecv", "is_initialized", "isend", "monitored_barrier", "new_group", "new_subgroups", "recv", "reduce",
    "reduce_op", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
]  # fmt: skip

default_pg_timeout = datetime.timedelta(minutes=30)


class ReduceOp(enum.Enum):
    """How values of several processes become one; of one process they stay as they are."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


reduce_op = ReduceOp


class Backend(str):
    """The name of a backend, in small letters. All are taken: nothing travels."""

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]


class ProcessGroup:
    """A group of processes: this one."""

    def __init__(self, backend="gloo"):
        self._backend = backend

    def size(self) -> int:
        """1."""
        return 1

    def rank(self) -> int:
        """0."""
        return 0

    def name(self) -> str:
        """The backend's name."""
        return self._backend


class GroupMember:
    """What stands for the group of all processes, and for a group that this process is not in."""

    WORLD = None
    NON_GROUP_MEMBER = -100


group = GroupMember


class Work:
    """A collective that has been started: it is done."""

    def __init__(self, result=()):
        self._result = list(result)

    def wait(self, timeout=None) -> bool:
        """True at once."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    is_success = is_completed

    def result(self) -> list:
        """The tensors that have been written."""
        return self._result


# --- the group ---------------------------------------------------------------------------------------------------------


def _from_environment(name, given):
    if given >= 0:
        return given
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
        )
    return int(value)


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None,
    device_id=None,
):  # fmt: skip
    """Make the default group, of this process alone.

    Rank and world size come from the arguments or from RANK and WORLD_SIZE, as torchrun sets them. Raises ValueError where they are
    missing, or at a second call; RuntimeError for more than one process.
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = "gloo" if backend is None else str(backend).lower()
    unknown = [b for b in (part.rpartition(":")[2] for part in name.split(",")) if b not in Backend.backend_list]
    if unknown:
        raise AssertionError(f"Unknown backend type {unknown[0]}")
    rank, world_size = _from_environment("RANK", rank), _from_environment("WORLD_SIZE", world_size)
    if world_size != 1 or rank != 0:
        raise RuntimeError(
            f"jtorch runs as one process, which sees all devices of the host; this is rank {rank} of {world_size}\n"
            "  start one process (torchrun --nproc-per-node=1), and use torch.nn.DataParallel for several devices"
        )
    GroupMember.WORLD = ProcessGroup(name)


def destroy_process_group(group=None) -> None:
    """Forget the default group."""
    if group is None and GroupMember.WORLD is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is GroupMember.WORLD:
        GroupMember.WORLD = None


def is_initialized() -> bool:
    """Whether init_process_group has been called."""
    return GroupMember.WORLD is not None


def _need():
    if GroupMember.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def new_group(ranks=None, timeout=None, backend=None, *args, **options) -> ProcessGroup | int:
    """A group of some ranks: of this process, or GroupMember.NON_GROUP_MEMBER where rank 0 is not among them."""
    _need()
    if ranks is not None and any(r != 0 for r in ranks):
        raise ValueError("the new group's rank should be within the world_size set by `init_process_group`")
    if ranks is not None and not len(ranks):
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(GroupMember.WORLD.name() if backend is None else str(backend))


def new_subgroups(group_size=None, group=None, *args, **options):
    """(this process's subgroup, all of them)."""
    made = new_group()
    return made, [made]


def get_rank(group=None) -> int:
    """0; -1 for a group that this process is not in."""
    _need()
    return -1 if group == GroupMember.NON_GROUP_MEMBER else 0


def get_world_size(group=None) -> int:
    """1; -1 for a group that this process is not in."""
    _need()
    return -1 if group == GroupMember.NON_GROUP_MEMBER else 1


def get_node_local_rank(fallback_rank=None) -> int:
    """LOCAL_RANK, or the fallback; RuntimeError without either."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")
    return int(fallback_rank)


def get_backend(group=None) -> str:
    """The name that the group was made with."""
    _need()
    return (GroupMember.WORLD if group is None else group).name()


def get_process_group_ranks(group=None) -> list[int]:
    """[0]."""
    _need()
    return [0]


def get_global_rank(group, group_rank) -> int:
    """0; ValueError for another rank."""
    _check_ranks(group_rank)
    return 0


get_group_rank = get_global_rank


# --- collectives ---------------------------------------------------------------------------------------------------------


def _check_ranks(*ranks):
    for rank in ranks:
        if rank not in (None, 0):
            raise ValueError(f"Global rank {rank} is not part of group")


def _tensors(name, value):
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


def _done(asynchronous, written=()):
    return Work(written) if asynchronous else None


def _copied(targets, sources, asynchronous):
    if len(targets) != len(sources):
        raise ValueError(f"{len(sources)} tensor for a group of one process, got {len(targets)}")
    for target, source in zip(targets, sources):
        if target.numel() != source.numel() or target.dtype is not source.dtype:
            raise ValueError("output tensor must have the same type and as many elements as the input of one process")
        target.detach().copy_(source.detach().reshape(target.shape))
    return _done(asynchronous, targets)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The value of all processes in each of them: the tensor stays as it is."""
    found = _tensors("tensor", tensor)
    _need()
    return _done(async_op, found)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce of several tensors."""
    found = _tensors("tensor_list", tensors)
    _need()
    return _done(async_op, found)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """The tensor of one process in all of them: it stays as it is."""
    found = _tensors("tensor", tensor)
    _need()
    _check_ranks(src, group_src)
    return _done(async_op, found)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The value of all processes in one of them: the tensor stays as it is."""
    return broadcast(tensor, dst, group, async_op, group_dst)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """The tensors of all processes: a copy of this one."""
    found = _tensors("tensor_list", tensor_list), _tensors("tensor", tensor)
    _need()
    return _copied(*found, async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The tensors of all processes, one after the other in one tensor."""
    found = _tensors("output_tensor", output_tensor), _tensors("input_tensor", input_tensor)
    _need()
    return _copied(*found, async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """The tensors of all processes in one of them."""
    _check_ranks(dst, group_dst)
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    return all_gather(gather_list, tensor, group, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """To each process one of the tensors."""
    _check_ranks(src, group_src)
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    return reduce_scatter(tensor, scatter_list, ReduceOp.SUM, group, async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """The reduced tensors, to each process one of them."""
    found = _tensors("output", output), _tensors("input_list", input_list)
    _need()
    return _copied(*found, async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The same from one tensor."""
    return all_gather_into_tensor(output, input, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """From each process a tensor to each process."""
    found = _tensors("output_tensor_list", output_tensor_list), _tensors("input_tensor_list", input_tensor_list)
    _need()
    return _copied(*found, async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """From each process a part of a tensor to each process."""
    return all_gather_into_tensor(output, input, group, async_op)


def barrier(group=None, async_op=False, device_ids=None):
    """Wait for all processes: for none."""
    _need()
    return _done(async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False) -> None:
    """Wait for all processes: for none."""
    _need()


# --- objects -----------------------------------------------------------------------------------------------------------


def all_gather_object(object_list, obj, group=None) -> None:
    """The objects of all processes: a copy of this one's."""
    _need()
    object_list[0] = copy.deepcopy(obj)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None) -> None:
    """The objects of all processes in one of them."""
    _check_ranks(dst, group_dst)
    if not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    all_gather_object(object_gather_list, obj, group)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None) -> None:
    """The objects of one process in all of them: they stay as they are."""
    _need()
    _check_ranks(src, group_src)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
) -> None:
    """To each process one of the objects."""
    _check_ranks(src, group_src)
    all_gather_object(scatter_object_output_list, scatter_object_input_list[0], group)


# --- from one process to another: there is none ----------------------------------------------------------------------------


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Raises ValueError: there is no other process."""
    _need()
    raise ValueError(
        "Invalid destination rank: destination rank should not be the same as the rank of the current process."
    )


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Raises ValueError: there is no other process."""
    _need()
    raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")


isend, irecv = send, recv


class P2POp:
    """A send or a receive for batch_isend_irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list):
    """Raises: there is no other process."""
    raise errors.unsupported("messages between processes", instead="one process, which sees all devices")
