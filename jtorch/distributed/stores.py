"""Stores of keys and values that processes share: in memory, in a file, behind a socket. A group of one needs none of them;
programs that have several processes for other work (data, logs) do.

Source: https://docs.pytorch.org/docs/stable/distributed.html
"""

import contextlib
import datetime
import json
import socket
import socketserver
import threading
import time
import weakref

from .. import errors
from .status import DistNetworkError, DistStoreError, QueueEmptyError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_OWN = "init/"  # the stores' own keys begin with it: counted, but not listed


# What a store does, on a dict of texts (each character is a byte) and of lists, the queues.


def _add(values, key, amount):
    values[key] = str(int(values.get(key, "0")) + amount)
    return int(values[key])


def _compare_set(values, key, expected, desired):
    if values.get(key, "") == expected:
        values[key] = desired
    return values.get(key, expected)


def _append(values, key, value):
    values[key] = values.get(key, "") + value


def _pop(values, key):
    queue = values.get(key)
    return queue.pop(0) if queue else None


_OPERATIONS = {
    "set": lambda values, pairs: values.update(pairs),
    "get": lambda values, keys: [values.get(key) for key in keys],
    "has": lambda values, keys: all(key in values for key in keys),
    "delete": lambda values, key: values.pop(key, None) is not None,
    "keys": lambda values: [key for key, value in values.items() if isinstance(value, str)],
    "push": lambda values, key, value: values.setdefault(key, []).append(value),
    "length": lambda values, key: len(values.get(key, ())),
    "add": _add, "compare_set": _compare_set, "append": _append, "pop": _pop,
}  # fmt: skip


def _text(value):
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        raise TypeError(
            f"set(): incompatible function arguments: a value is a str or bytes, not {type(value).__name__}"
        )
    return value.decode("latin-1")


def _queue(key):
    return "\0" + key


class Store:
    """Keys with values, which are bytes. Reading a key waits until it is there, or for `timeout`: then it raises."""

    def __init__(self):
        self._timeout = datetime.timedelta(seconds=300)

    def _do(self, operation, *args):
        raise NotImplementedError("a Store of its own needs set, get, add and the rest")

    @property
    def timeout(self) -> datetime.timedelta:
        """How long reading waits."""
        return self._timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Change how long reading waits."""
        self._timeout = timeout

    def _late(self, keys, timeout):
        return DistStoreError("Wait timeout")

    def _until(self, ready, keys, timeout=None):
        """The first result of `ready` that is not None."""
        timeout = self.timeout if timeout is None else timeout
        end, pause = time.monotonic() + timeout.total_seconds(), 0.0005
        while (found := ready()) is None:
            if time.monotonic() > end:
                raise self._late(list(keys), timeout)
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return found

    def set(self, key: str, value: str, /) -> None:
        """Give a key a value."""
        self._do("set", {key: _text(value)})

    def get(self, key: str, /) -> bytes:
        """The value of a key."""
        return self.multi_get([key])[0]

    def multi_set(self, keys, values, /) -> None:
        """Give several keys their values, at once."""
        self._do("set", dict(zip(keys, map(_text, values), strict=True)))

    def multi_get(self, keys, /) -> list[bytes]:
        """The values of several keys."""

        def ready():
            found = self._do("get", list(keys))
            return None if None in found else [value.encode("latin-1") for value in found]

        return self._until(ready, keys)

    def add(self, key: str, amount: int, /) -> int:
        """Add to a counter, which begins at 0; returns what it is then."""
        return self._do("add", key, int(amount))

    def append(self, key: str, value: str, /) -> None:
        """Put something behind the value of a key."""
        self._do("append", key, _text(value))

    def compare_set(self, key: str, expected: str, desired: str, /) -> bytes:
        """Give a key a value where it has the expected one (an empty text: or none); returns what it has then."""
        return self._do("compare_set", key, _text(expected), _text(desired)).encode("latin-1")

    def check(self, keys, /) -> bool:
        """Whether all of the keys are there."""
        return self._do("has", list(keys))

    def wait(self, keys, timeout=None, /) -> None:
        """Wait until all of the keys are there."""
        self._until(lambda: self.check(keys) or None, keys, timeout)

    def delete_key(self, key: str, /) -> bool:
        """Take a key out; whether it was there."""
        return self._do("delete", key)

    def list_keys(self) -> list[str]:
        """The keys, in no particular order."""
        return [key for key in self._do("keys") if not key.startswith(_OWN)]

    def num_keys(self) -> int:
        """How many keys there are; a file and a socket with a world size have one of their own."""
        return len(self._do("keys"))

    def has_extended_api(self) -> bool:
        """Whether there are append, multi_get and multi_set in one step."""
        return True

    def queue_push(self, key: str, value: str, /) -> None:
        """Put a value at the end of a queue."""
        self._do("push", _queue(key), _text(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue; without `block` an empty one raises."""
        if block:
            return self._until(lambda: self._do("pop", _queue(key)), [key]).encode("latin-1")
        found = self._do("pop", _queue(key))
        if found is None:
            raise QueueEmptyError("queue is empty")
        return found.encode("latin-1")

    def queue_len(self, key: str, /) -> int:
        """How many values a queue has."""
        return self._do("length", _queue(key))

    def clone(self) -> "Store":
        """Another store of the same keys, for another thread."""
        return self


class HashStore(Store):
    """A store in the memory of this process, for its threads."""

    def __init__(self):
        super().__init__()
        self._values, self._lock = {}, threading.Lock()

    def _do(self, operation, *args):
        with self._lock:
            return _OPERATIONS[operation](self._values, *args)


class FileStore(Store):
    """A store in a file, for the processes of a host. `world_size` is not needed; the file stays."""

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        if fcntl is None:
            raise errors.unsupported("FileStore on this system", instead="TCPStore")
        self.path = file_name
        self._do("set", {_OWN: "1"})

    def _do(self, operation, *args):
        with open(self.path, "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            file.seek(0)
            text = file.read()
            values = json.loads(text) if text else {}
            found = _OPERATIONS[operation](values, *args)
            if operation not in ("get", "has", "keys"):
                file.truncate(0)
                json.dump(values, file)
            return found

    def has_extended_api(self) -> bool:
        """False."""
        return False

    def _no_queues(self, *args, **kwargs):
        raise NotImplementedError("queue support is not implemented.")

    queue_push = queue_pop = queue_len = _no_queues

    def _late(self, keys, timeout):
        return RuntimeError("Wait timeout")


class PrefixStore(Store):
    """A part of another store: all keys have a prefix there."""

    def __init__(self, prefix: str, store: Store):
        self.underlying_store, self._prefix = store, prefix + "/"

    @property
    def _underlying_non_prefix_store(self):
        below = self.underlying_store
        return below._underlying_non_prefix_store if isinstance(below, PrefixStore) else below

    @property
    def timeout(self) -> datetime.timedelta:
        """How long reading waits: as in the other store."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Change how long reading waits, of the other store too."""
        self.underlying_store.set_timeout(timeout)

    def _do(self, operation, *args):
        below, prefix = self.underlying_store, self._prefix
        if operation == "keys":
            return below._do("keys")
        first, *rest = args
        if isinstance(first, dict):
            first = {prefix + key: value for key, value in first.items()}
        elif isinstance(first, list):
            first = [prefix + key for key in first]
        else:
            first = _queue(prefix + first[1:]) if first.startswith(_queue("")) else prefix + first
        return below._do(operation, first, *rest)

    def _late(self, keys, timeout):
        return self.underlying_store._late([self._prefix + key for key in keys], timeout)

    def list_keys(self) -> list[str]:
        """The keys, without the prefix."""
        return [key[len(self._prefix) :] for key in self.underlying_store.list_keys() if key.startswith(self._prefix)]

    def has_extended_api(self) -> bool:
        """As of the other store."""
        return self.underlying_store.has_extended_api()


class _Server(socketserver.ThreadingTCPServer):
    """Keeps the values, and answers lines of JSON."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self, address):
        super().__init__(address, _Answers)
        self.store = HashStore()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()


class _Answers(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            try:
                answer = [True, self.server.store._do(*json.loads(line))]
            except ValueError as error:
                answer = [False, str(error)]
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _close(*parts):
    for part in parts:
        with contextlib.suppress(OSError):
            part.close()


class TCPStore(Store):
    """A store behind a socket: the process with `is_master` keeps it, and waits for `world_size` processes to join."""

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: datetime.timedelta = datetime.timedelta(seconds=300), wait_for_workers: bool = True,
        multi_tenant: bool = False, master_listen_fd: int | None = None, use_libuv: bool = True,
    ):  # fmt: skip
        super().__init__()
        self._timeout, self.libuvBackend = timeout, use_libuv
        self.host, self.port, self._lock = host_name, port, threading.Lock()
        if is_master:
            self._serve(multi_tenant)
        self._socket = self._connect()
        self._file = self._socket.makefile("rwb")
        weakref.finalize(self, _close, self._file, self._socket)
        if world_size and world_size > 0:
            joined = self.add(_OWN, 1)
            if is_master and wait_for_workers:
                self._join(world_size, joined)

    def _serve(self, multi_tenant):
        try:
            server = _Server((self.host, self.port))
        except OSError as error:
            if multi_tenant:  # another store of this process keeps it
                return
            raise DistNetworkError(
                f"The server socket has failed to listen on {self.host}:{self.port}: {error}"
            ) from None
        self.port = server.server_address[1]
        weakref.finalize(self, server.stop)

    def _connect(self):
        def ready():
            with contextlib.suppress(OSError):
                return socket.create_connection((self.host, self.port), max(self._timeout.total_seconds(), 0.001))

        try:
            found = self._until(ready, [])
        except DistStoreError:
            after = f"{self._timeout / datetime.timedelta(milliseconds=1):.0f}ms"
            raise DistNetworkError(
                f"The client socket has timed out after {after} while trying to connect to ({self.host}, {self.port})."
            ) from None
        found.settimeout(None)
        return found

    def _join(self, world_size, joined):
        def ready():
            nonlocal joined
            joined = self.add(_OWN, 0)
            return True if joined >= world_size else None

        try:
            self._until(ready, [])
        except DistStoreError:
            raise DistStoreError(
                f"Timed out after {self._timeout.total_seconds():.0f} seconds waiting for clients. "
                f"{joined}/{world_size} clients joined."
            ) from None

    def _do(self, operation, *args):
        with self._lock:
            try:
                self._file.write(json.dumps([operation, *args]).encode() + b"\n")
                self._file.flush()
                line = self._file.readline()
            except OSError:
                line = b""
        if not line:
            raise DistNetworkError("Connection was closed. Did the remote server shut down or crash?")
        fine, found = json.loads(line)
        if not fine:
            raise ValueError(found)
        return found

    def _late(self, keys, timeout):
        after = f"{timeout / datetime.timedelta(milliseconds=1):.0f}ms"
        return DistStoreError(f"wait timeout after {after}, keys: " + ", ".join("/" + key for key in keys))

    def clone(self) -> "TCPStore":
        """Another connection to the same keys."""
        return TCPStore(self.host, self.port, timeout=self._timeout)
