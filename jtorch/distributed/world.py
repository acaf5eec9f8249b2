"""The processes of a run: how they find each other, and their groups.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

import datetime
import os
import urllib.parse
import warnings

from .links import Links
from .process_group import Backend, GroupMember, ProcessGroup
from .status import default_pg_timeout
from .stores import FileStore, PrefixStore, TCPStore

__all__ = [
    "destroy_process_group", "get_backend", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "is_initialized", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration",
]  # fmt: skip

_count = [0, 0]  # worlds that have been, groups of this one: both the same in all processes
_groups = []


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
    """Make the default group, of all processes of the run.

    Rank and world size come from the arguments, from the address or from RANK and WORLD_SIZE, as torchrun sets them. The processes
    find each other by `store`, or by the address `init_method`: "env://" (MASTER_ADDR and MASTER_PORT; the default), "tcp://host:port"
    or "file:///path". Raises ValueError where something is missing, or at a second call; DistNetworkError where the others do not come.
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    name = "gloo" if backend is None else str(backend).lower()
    unknown = [b for b in (part.rpartition(":")[2] for part in name.split(",")) if b not in Backend.backend_list]
    if unknown:
        raise AssertionError(f"Unknown backend type {unknown[0]}")
    timeout = default_pg_timeout if timeout is None else timeout
    if not isinstance(timeout, datetime.timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    address = urllib.parse.urlparse(init_method or "env://")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    elif address.scheme == "env":
        rank, world_size = _from_environment("RANK", rank), _from_environment("WORLD_SIZE", world_size)
    else:
        asked = dict(urllib.parse.parse_qsl(address.query))
        rank, world_size = (
            given if given >= 0 else int(asked.get(k, -1)) for k, given in (("rank", rank), ("world_size", world_size))
        )
        for what, value in (("rank", rank), ("world size", world_size)):
            if value < 0:
                raise ValueError(
                    f"Error initializing torch.distributed using {address.scheme}:// rendezvous: {what} parameter missing"
                )
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} of {world_size} processes: it must be from 0 to {world_size - 1}")
    _count[:] = _count[0] + 1, 0
    links = None
    if world_size > 1:
        store = _store(address, rank, world_size, timeout) if store is None else store
        links = Links(PrefixStore(f"world{_count[0]}", store), rank, world_size, timeout)
    GroupMember.WORLD = ProcessGroup(name, range(world_size), links, 0, timeout)
    _groups[:] = [GroupMember.WORLD]


def _store(address, rank, size, timeout):
    """The store that an address names."""
    if address.scheme == "file":
        return FileStore(address.path, size)
    if address.scheme not in ("env", "tcp"):
        raise RuntimeError(f"No rendezvous handler for {address.scheme}://")
    host, port = address.hostname, address.port
    if address.scheme == "env":
        values = {name: os.environ.get(name) for name in ("MASTER_ADDR", "MASTER_PORT")}
        for name, value in values.items():
            if value is None:
                raise ValueError(
                    f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set"
                )
        host, port = values["MASTER_ADDR"], int(values["MASTER_PORT"])
    elif port is None:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    return TCPStore(host, port, size, rank == 0, timeout)


def destroy_process_group(group=None) -> None:
    """Forget the default group and all others, or one of them."""
    if group is None and GroupMember.WORLD is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is GroupMember.WORLD:
        for each in _groups:
            each.close()
        links = GroupMember.WORLD.links
        if links is not None:
            links.close()
        GroupMember.WORLD = None
        _groups.clear()
    elif group in _groups:
        group.close()
        _groups.remove(group)
    elif group != GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified or has been destroyed.")


def is_initialized() -> bool:
    """Whether init_process_group has been called."""
    return GroupMember.WORLD is not None


def _get_default_group() -> ProcessGroup:
    """The group of all processes. ValueError: init_process_group has not been called."""
    return group_of(None)


def group_of(group) -> ProcessGroup:
    """A group; None is all processes. ValueError: init_process_group has not been called."""
    if GroupMember.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return GroupMember.WORLD if group is None else group


def member(name, group) -> ProcessGroup | None:
    """The group of a collective; None, with a warning, where this process is not in it."""
    group = group_of(group)
    if group == GroupMember.NON_GROUP_MEMBER:
        where = f"global rank {GroupMember.WORLD.rank()}"
        warnings.warn(f"Running {name} on {where} which does not belong to the given group.", stacklevel=3)
        return None
    return group


def new_group(ranks=None, timeout=None, backend=None, *args, **options) -> ProcessGroup | int:
    """A group of some of the ranks (default: all). All processes call it; one that is not among them gets GroupMember.NON_GROUP_MEMBER."""
    world = group_of(None)
    _count[1] += 1
    ranks = list(range(world.size())) if ranks is None else sorted(ranks)
    if len(ranks) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if any(not 0 <= r < world.size() for r in ranks):
        raise ValueError("the new group's rank should be within the world_size set by `init_process_group`")
    if world.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(
        world.name() if backend is None else str(backend).lower(),
        ranks,
        world.links,
        _count[1],
        world.timeout if timeout is None else timeout,
    )
    _groups.append(made)
    return made


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(this process's subgroup, all of them): `group_size` neighbours each, by default those of one host."""
    world = group_of(group)
    size = int(os.environ.get("LOCAL_WORLD_SIZE", world.size())) if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    if world.size() < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({world.size()})")
    if world.size() % size:
        raise ValueError(f"The world size ({world.size()}) must be divisible by 'group_size={size}'")
    return new_subgroups_by_enumeration(
        [world.ranks[k : k + size] for k in range(0, world.size(), size)], timeout, backend
    )


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(this process's subgroup, all of them) of lists of ranks, in none of which a rank comes twice."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    listed = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if len({*listed}) < len(listed):
        raise ValueError(f"Rank {max(listed, key=listed.count)} has appeared in both subgroups")
    own, made = None, []
    for ranks in ranks_per_subgroup_list:
        made.append(new_group(ranks, timeout, backend))
        if group_of(None).rank() in ranks:
            own = made[-1]
    return own, made


def get_rank(group=None) -> int:
    """The number of this process; -1 for a group that it is not in."""
    group = group_of(group)
    return -1 if group == GroupMember.NON_GROUP_MEMBER else group.rank()


def get_world_size(group=None) -> int:
    """How many processes there are; -1 for a group that this process is not in."""
    group = group_of(group)
    return -1 if group == GroupMember.NON_GROUP_MEMBER else group.size()


def get_node_local_rank(fallback_rank=None) -> int:
    """LOCAL_RANK, or the fallback; RuntimeError without either."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")
    return int(fallback_rank)


def get_backend(group=None) -> str:
    """The name that the group was made with. ValueError: this process is not in the group."""
    group = group_of(group)
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return group.name()


def get_pg_count() -> int:
    """How many groups there are."""
    return len(_groups)


def get_process_group_ranks(group=None) -> list[int]:
    """The ranks of a group's processes in the world."""
    return list(_ranks(group))


def _ranks(group):
    group = group_of(group)
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("this process is not in the group, and does not know its ranks")
    return group.ranks


def get_global_rank(group, group_rank) -> int:
    """The rank in the world of the one with a rank in the group. ValueError: there is none."""
    ranks = _ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group, global_rank) -> int:
    """The rank in the group of one of the world. ValueError: it is not in the group."""
    ranks = _ranks(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)
