"""Messages between processes: each has a connection to each other, and threads that take in whatever comes, so that sending never waits
for the receiver."""

import collections
import contextlib
import datetime
import hmac
import json
import secrets
import socket
import struct
import threading
import time

import numpy as np

from .status import DistNetworkError

_HEAD = struct.Struct("!qqq")  # group, tag, bytes
_HELLO = struct.Struct("!q32s")  # rank, token
_GREETING = 30.0  # seconds in which who has connected says who it is
_TOGETHER = 1 << 14  # bytes of a message that is sent in one piece with its head
COLLECTIVE, PRESENT = -1, -2  # tags of what collectives and monitored barriers send; those of `send` are not negative


class Links:
    """The connections of a process to all others of its world.

    Args:
        store: where the processes tell each other their addresses
        rank, size: the number of this process, and how many there are
        timeout: how long the others may take to come
    """

    def __init__(self, store, rank: int, size: int, timeout: datetime.timedelta):
        self.rank, self.size = rank, size
        self._sockets, self._locks = {}, {}
        self._mail = collections.defaultdict(collections.deque)  # (sender, group, tag) -> messages
        self._gone = set()
        self._changed = threading.Condition()
        store.set_timeout(timeout)
        host, token = _own_address(store), secrets.token_hex(16)
        with socket.create_server((host, 0), family=_family(host), backlog=size) as server:
            store.set(f"links/{rank}", json.dumps((host, server.getsockname()[1], token)))
            for other in range(rank):
                self._add(other, self._called(store, other, timeout))
            server.settimeout(timeout.total_seconds())
            while len(self._sockets) < size - 1:
                self._answer(server, token, timeout)

    def _called(self, store, other, timeout):
        host, port, token = json.loads(store.get(f"links/{other}"))
        try:
            found = socket.create_connection((host, port), timeout.total_seconds())
        except OSError as error:
            raise DistNetworkError(f"rank {self.rank} cannot reach rank {other} at {host}:{port}: {error}") from None
        found.sendall(_HELLO.pack(self.rank, token.encode()))
        return found

    def _answer(self, server, token, timeout):
        try:
            found, _ = server.accept()
        except TimeoutError:
            missing = sorted({*range(self.rank + 1, self.size)} - {*self._sockets})
            raise DistNetworkError(f"Timed out after {timeout} waiting for the ranks {missing}") from None
        found.settimeout(min(timeout.total_seconds(), _GREETING))
        with contextlib.suppress(OSError):
            rank, said = _HELLO.unpack(_exactly(found, _HELLO.size).tobytes())
            if hmac.compare_digest(said, token.encode()) and self.rank < rank < self.size:
                self._add(rank, found)
                return
        found.close()  # somebody else's

    def _add(self, rank, found):
        found.settimeout(None)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets[rank], self._locks[rank] = found, threading.Lock()
        threading.Thread(target=self._read, args=(rank, found), daemon=True, name=f"jtorch-rank-{rank}").start()

    def _read(self, rank, found):
        with contextlib.suppress(OSError):
            while True:
                group, tag, size = _HEAD.unpack(_exactly(found, _HEAD.size).tobytes())
                message = _exactly(found, size)
                with self._changed:
                    self._mail[rank, group, tag].append(message)
                    self._changed.notify_all()
        with self._changed:
            self._gone.add(rank)
            self._changed.notify_all()
        found.close()

    def send(self, rank: int, group: int, tag: int, message) -> None:
        """Send the bytes of an array, or bytes. DistNetworkError: that process has gone."""
        message = memoryview(bytes_of(message) if isinstance(message, np.ndarray) else message)
        head = _HEAD.pack(group, tag, len(message))
        try:
            with self._locks[rank]:
                if len(message) <= _TOGETHER:  # the receiver may be gone as soon as it has all of the message
                    self._sockets[rank].sendall(head + message)
                else:
                    self._sockets[rank].sendall(head)
                    self._sockets[rank].sendall(message)
        except OSError:
            raise self._lost(rank) from None

    def receive(self, ranks, group: int, tag: int, timeout: datetime.timedelta) -> tuple[int, np.ndarray]:
        """(sender, bytes) of the first message of one of these processes.

        DistNetworkError: all of them have gone, or none has sent anything for so long.
        """
        end = time.monotonic() + timeout.total_seconds()
        with self._changed:
            while True:
                for rank in ranks:
                    waiting = self._mail.get((rank, group, tag))
                    if waiting:
                        return rank, waiting.popleft()
                if self._gone.issuperset(ranks):
                    raise self._lost(ranks[0])
                left = end - time.monotonic()
                if left <= 0:
                    after = f"{timeout / datetime.timedelta(milliseconds=1):.0f}ms"
                    raise DistNetworkError(
                        f"rank {self.rank}: Timed out waiting {after} for a message of {_named(ranks)}: that process may have failed, be "
                        "slower, or take part in other collectives than this one"
                    )
                self._changed.wait(left)

    def there(self, ranks, group: int, tag: int) -> bool:
        """Whether a message waits."""
        with self._changed:
            return any(self._mail.get((rank, group, tag)) for rank in ranks)

    def _lost(self, rank):
        return DistNetworkError(
            f"Connection closed by rank {rank}: that process has ended or failed; what it printed says why"
        )

    def close(self) -> None:
        """Say that nothing more will come; what is on its way still arrives."""
        for found in self._sockets.values():
            with contextlib.suppress(OSError):
                found.shutdown(socket.SHUT_WR)


def bytes_of(array) -> np.ndarray:
    """The elements of an array as bytes, in their order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _named(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"one of the ranks {list(ranks)}"


def _exactly(found, size) -> np.ndarray:
    """That many bytes of a socket; ConnectionError at its end."""
    made = np.empty(size, np.uint8)
    left = memoryview(made)
    while left:
        got = found.recv_into(left)
        if not got:
            raise ConnectionError
        left = left[got:]
    return made


def _family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _own_address(store):
    """The address under which the others reach this host: the one that it reaches the store from."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    found = getattr(store, "_socket", None)
    return found.getsockname()[0] if found is not None else "127.0.0.1"
