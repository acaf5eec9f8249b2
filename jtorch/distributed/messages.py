"""Objects that processes give each other, and messages from one process to another.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

import pickle

import numpy as np

from .collectives import checked, elements, noted, root_of, write
from .process_group import Work
from .world import get_group_rank, group_of, member

__all__ = [
    "P2POp", "all_gather_object", "batch_isend_irecv", "broadcast_object_list", "gather_object", "irecv", "isend", "recv",
    "recv_object_list", "scatter_object_list", "send", "send_object_list",
]  # fmt: skip


def _packed(obj) -> np.ndarray:
    return np.frombuffer(pickle.dumps(obj), np.uint8)


# --- objects: as trusted as the processes themselves, since they are pickled ----------------------------------------------


def all_gather_object(object_list, obj, group=None) -> None:
    """The objects of all processes; each is pickled."""
    group = member("all_gather_object", group)
    if group is not None:
        found = group.start(group.everywhere, _packed(obj)).result()
        object_list[: len(found)] = map(pickle.loads, found)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None) -> None:
    """The objects of all processes in one of them."""
    group = member("gather_object", group)
    if group is None:
        return
    root = root_of(group, dst, group_dst)
    if root == group.rank() and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    found = group.start(group.to_one, _packed(obj), root).result()
    if found is not None:
        object_gather_list[: len(found)] = map(pickle.loads, found)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None) -> None:
    """The objects of one process in all of them."""
    group = member("broadcast_object_list", group)
    if group is None:
        return
    root = root_of(group, src, group_src)
    found = group.start(group.from_one, _packed(list(object_list)), root).result()
    if root != group.rank():
        object_list[:] = pickle.loads(found)


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
) -> None:
    """To each process one of the objects of one of them."""
    group = member("scatter_object_list", group)
    if group is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root, packed = root_of(group, src, group_src), []
    if root == group.rank():
        if scatter_object_input_list is None or len(scatter_object_input_list) != group.size():
            raise ValueError(f"source rank {root} has to give a list of {group.size()} objects, one for each process")
        packed = [_packed(obj) for obj in scatter_object_input_list]
    scatter_object_output_list[0] = pickle.loads(group.start(group.one_each, packed, root).result())


# --- from one process to another ---------------------------------------------------------------------------------------------


def _peer(group, rank, of_group, what):
    """The rank in the group of another process."""
    peer = root_of(group, rank, of_group, None)
    if peer is None:
        raise TypeError(f"{what} needs the rank of the other process")
    if peer == group.rank():
        kind = {"send": "destination", "recv": "source"}[what]
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    return peer


class _Receipt(Work):
    """A message that `irecv` waits for. Those of one sender and tag are taken in the order in which they were asked for."""

    def __init__(self, group, ranks, tag, tensor, of_any=False):
        self._group, self._ranks, self._tag, self._tensor = group, tuple(ranks), tag, tensor
        self._before = group.receipts.setdefault((self._ranks, tag), [])
        self._before.append(self)
        self._sender = None
        self._done = noted("recvAnySource" if of_any else "recv", group, [tensor])

    def wait(self, timeout=None) -> bool:
        """True, as soon as the message is in the tensor."""
        while self._sender is None:
            first = self._before[0]
            links = self._group.links
            first._sender, message = links.receive(
                first._ranks, self._group.number, first._tag, timeout or self._group.timeout
            )
            self._before.pop(0)
            write(first._tensor, message)
            if first._done is not None:
                first._done()
        return True

    def is_completed(self) -> bool:
        """Whether the message is in the tensor, or waits to be put there."""
        group = self._group
        return self._sender is not None or (
            self._before[0] is self and group.links.there(self._ranks, group.number, self._tag) and self.wait()
        )

    def is_success(self) -> bool:
        """is_completed."""
        return self.is_completed()

    def result(self) -> list:
        """The tensor."""
        self.wait()
        return [self._tensor]

    def source_rank(self) -> int:
        """The rank in the world of the sender."""
        self.wait()
        return self._sender

    _source_rank = source_rank


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send a tensor to another process; the message waits there until it is asked for."""
    [tensor] = checked("tensor", tensor)
    group = member("isend", group)
    if group is None:
        return None
    peer = _peer(group, dst, group_dst, "send")
    done = noted("send", group, [tensor])
    group.links.send(group.ranks[peer], group.number, tag, elements(tensor))
    if done is not None:
        done()
    return Work(written=[tensor])


def send(tensor, dst=None, group=None, tag=0, group_dst=None) -> None:
    """Send a tensor to another process, which receives it with the same tag."""
    isend(tensor, dst, group, tag, group_dst)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive a tensor of another process (None: of any), when `wait` of what is returned says so."""
    [tensor] = checked("tensor", tensor)
    group = member("irecv", group)
    if group is None:
        return None
    return _Receipt(group, _senders(group, src, group_src), tag, tensor, src is None and group_src is None)


def _senders(group, src, group_src):
    """The ranks in the world of those that a message may come from."""
    if src is None and group_src is None and group.size() > 1:
        return [r for k, r in enumerate(group.ranks) if k != group.rank()]
    return [group.ranks[_peer(group, src or 0 if group_src is None else None, group_src, "recv")]]


def recv(tensor, src=None, group=None, tag=0, group_src=None) -> int:
    """Receive a tensor of another process (None: of any); returns the rank of the sender, -1 outside the group."""
    work = irecv(tensor, src, group, tag, group_src)
    return -1 if work is None else work.source_rank()


class P2POp:
    """A send or a receive for batch_isend_irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        checked("tensor", tensor)
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.group_peer = get_group_rank(group, peer) if group_peer is None else group_peer
        self.peer = group_of(group).ranks[self.group_peer]

    def __repr__(self):
        kind = f"{tuple(self.tensor.shape)}, {self.tensor.dtype}"
        return f"P2POp({self.op.__name__} of {kind}, peer {self.peer})"


def batch_isend_irecv(p2p_op_list):
    """Start several sends and receives; returns what is to be waited for, of each."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    return [
        p.op(p.tensor, group=p.group, tag=p.tag, **{"group_dst" if p.op is isend else "group_src": p.group_peer})
        for p in p2p_op_list
    ]


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None) -> None:
    """Send objects to another process."""
    group = member("send_object_list", group)
    if group is not None:
        peer = _peer(group, dst, group_dst, "send")
        group.links.send(group.ranks[peer], group.number, 0, _packed(list(object_list)))


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None) -> int:
    """Receive objects of another process (None: of any); returns the rank of the sender."""
    group = member("recv_object_list", group)
    if group is None:
        return -1
    sender, message = group.links.receive(_senders(group, src, group_src), group.number, 0, group.timeout)
    object_list[:] = pickle.loads(message)
    return sender
