"""Stores: keys and bytes that the threads of this process share, by an object, a port, or the name of a file."""

import collections
import datetime
import os
import socket
import threading
import time
import weakref

from .. import errors
from .status import DistNetworkError, DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_BY_PORT: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_BY_PATH: dict = {}


class _Shelf:
    """What several stores may show: the values, and the condition that those wait for who miss one."""

    def __init__(self):
        self.values: dict[str, bytes] = {}
        self.queues: dict[str, collections.deque] = collections.defaultdict(collections.deque)
        self.changed = threading.Condition()


def _bytes(function, name, value) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise errors.argument(function, name, "str", value)


def _key(function, key) -> str:
    if not isinstance(key, str):
        raise errors.argument(function, "key", "str", key)
    return key


class Store:
    """The operations of all stores; what waits for a key waits `timeout` for another thread to set it."""

    def __init__(self):
        self._shelf, self.timeout = _Shelf(), datetime.timedelta(minutes=5)

    def set_timeout(self, timeout) -> None:
        """How long the operations wait that wait."""
        self.timeout = timeout

    def set(self, key, value) -> None:
        """Write a value."""
        key, value = _key("set", key), _bytes("set", "value", value)
        with self._shelf.changed:
            self._shelf.values[key] = value
            self._shelf.changed.notify_all()

    def get(self, key) -> bytes:
        """The value, once there is one."""
        self.wait([_key("get", key)])
        return self._shelf.values[key]

    def add(self, key, amount) -> int:
        """Add to a number, which is 0 before, and give the sum."""
        with self._shelf.changed:
            before = self._shelf.values.get(_key("add", key), b"0")
            try:
                total = int(before) + int(amount)
            except ValueError:
                raise ValueError("stoll: the value of this key is no number") from None
            self._shelf.values[key] = str(total).encode()
            self._shelf.changed.notify_all()
        return total

    def append(self, key, value) -> None:
        """Write a value behind the one that is there."""
        value = _bytes("append", "value", value)
        with self._shelf.changed:
            self._shelf.values[_key("append", key)] = self._shelf.values.get(key, b"") + value
            self._shelf.changed.notify_all()

    def compare_set(self, key, expected_value, desired_value) -> bytes:
        """Write a value where another is (nothing, if that is empty), and give the one that is there then."""
        expected, desired = (_bytes("compare_set", "value", v) for v in (expected_value, desired_value))
        with self._shelf.changed:
            have = self._shelf.values.get(_key("compare_set", key))
            if have is None and expected:
                return expected
            if have is None or have == expected:
                self._shelf.values[key] = have = desired
                self._shelf.changed.notify_all()
            return have

    def check(self, keys) -> bool:
        """Whether all keys have a value."""
        return all(k in self._shelf.values for k in keys)

    def wait(self, keys, timeout=None) -> None:
        """Return when all keys have a value. Raises DistStoreError when that takes too long."""
        seconds = (self.timeout if timeout is None else timeout).total_seconds()
        with self._shelf.changed:
            if not self._shelf.changed.wait_for(lambda: self.check(keys), seconds):
                raise self._late(keys, seconds)

    def _late(self, keys, seconds) -> Exception:
        return DistStoreError(f"Wait timeout\n  after {round(seconds * 1000)} ms, for {', '.join(keys)}")

    def delete_key(self, key) -> bool:
        """Forget a value; whether there was one."""
        with self._shelf.changed:
            return self._shelf.values.pop(_key("delete_key", key), None) is not None

    def num_keys(self) -> int:
        """How many keys have a value."""
        return len(self._shelf.values)

    def list_keys(self) -> list[str]:
        """The keys that have a value."""
        return list(self._shelf.values)

    def multi_get(self, keys) -> list[bytes]:
        """The values, once there are all."""
        self.wait(keys)
        return [self._shelf.values[k] for k in keys]

    def multi_set(self, keys, values) -> None:
        """Write several values."""
        for k, v in zip(keys, values, strict=True):
            self.set(k, v)

    def queue_push(self, key, value) -> None:
        """Put a value at the end of a queue."""
        with self._shelf.changed:
            self._shelf.queues[key].append(_bytes("queue_push", "value", value))
            self._shelf.changed.notify_all()

    def queue_pop(self, key, block=True) -> bytes:
        """Take the first value of a queue."""
        with self._shelf.changed:
            if not self._shelf.queues[key] and not block:
                raise QueueEmptyError("queue is empty")
            if not self._shelf.changed.wait_for(lambda: self._shelf.queues[key], self.timeout.total_seconds()):
                raise self._late([key], self.timeout.total_seconds())
            return self._shelf.queues[key].popleft()

    def queue_len(self, key) -> int:
        """How many values wait in a queue."""
        return len(self._shelf.queues[key])

    def barrier(self, key, world_size, timeout=None) -> None:
        """Return when so many have come here."""
        if self.add(f"{key}/count", 1) == world_size:
            self.set(f"{key}/done", "1")
        self.wait([f"{key}/done"], timeout)

    def has_extended_api(self) -> bool:
        """Whether it appends and takes several keys at once."""
        return True

    def clone(self) -> "Store":
        """Another store of the same values."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


class HashStore(Store):
    """Values that whoever has the object sees."""


class FileStore(Store):
    """Values that whoever names the same file sees, in this process: nothing is written there.

    Args: file_name, and the number of processes, 1 or -1.
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self.path = file_name
        self._shelf = _BY_PATH.setdefault(os.path.abspath(file_name), self._shelf)

    def has_extended_api(self) -> bool:
        """False, as PyTorch's."""
        return False


class TCPStore(Store):
    """Values that whoever names the same port sees, in this process. The first is the master, and its port may be 0 for any.

    Args: host_name, port, world_size, is_master, timeout, and PyTorch's others, which change nothing here.
    """

    libuvBackend = True

    def __init__(
        self, host_name, port, world_size=None, is_master=False, timeout=datetime.timedelta(minutes=5), wait_for_workers=True,
        multi_tenant=False, master_listen_fd=None, use_libuv=True,
    ):  # fmt: skip
        super().__init__()
        self.host, self.port, self.timeout = host_name, port, timeout
        if is_master:
            if not multi_tenant or port not in _BY_PORT:
                self._listen(port)
            self._shelf = _BY_PORT.setdefault(self.port, self._shelf)
            return
        end = time.monotonic() + timeout.total_seconds()
        while port not in _BY_PORT:
            if time.monotonic() > end:
                late = round(timeout.total_seconds() * 1000)
                raise DistNetworkError(
                    f"The client socket has timed out after {late}ms while trying to connect to ({host_name}, {port}).\n"
                    "  stores are this process's own: its threads share them, other processes do not"
                )
            time.sleep(0.01)
        self._shelf = _BY_PORT[port]

    def _listen(self, port):
        """Hold the port, so that nobody else gets it."""
        held = socket.socket()
        try:
            held.bind(("", port))
        except OSError as error:
            held.close()
            raise DistNetworkError(f"The server socket has failed to bind to port {port}: {error}") from None
        self.port = held.getsockname()[1]
        weakref.finalize(self._shelf, held.close)

    def _late(self, keys, seconds):
        return DistStoreError(f"wait timeout after {round(seconds * 1000)}ms, keys: {', '.join('/' + k for k in keys)}")


class PrefixStore(Store):
    """Another store, whose keys begin with `prefix` and a slash."""

    def __init__(self, prefix, store):
        self.prefix, self.underlying_store = prefix, store

    timeout = property(lambda self: self.underlying_store.timeout)
    _shelf = property(lambda self: self.underlying_store._shelf)

    def set_timeout(self, timeout) -> None:
        """That of the store behind it."""
        self.underlying_store.set_timeout(timeout)

    def has_extended_api(self) -> bool:
        """What the store behind it says."""
        return self.underlying_store.has_extended_api()


def _prefixed(name, several):
    operation = getattr(Store, name)

    def call(self, keys, *args, **kwargs):
        given = [f"{self.prefix}/{k}" for k in keys] if several else f"{self.prefix}/{_key(name, keys)}"
        return getattr(self.underlying_store, name)(given, *args, **kwargs)

    call.__name__, call.__doc__ = name, operation.__doc__
    setattr(PrefixStore, name, call)


for _name in (
    "set",
    "get",
    "add",
    "append",
    "compare_set",
    "delete_key",
    "queue_push",
    "queue_pop",
    "queue_len",
    "barrier",
):
    _prefixed(_name, False)
for _name in ("check", "wait", "multi_get", "multi_set"):
    _prefixed(_name, True)
