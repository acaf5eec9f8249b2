"""Shared memory that has no name in any file system: when the last process that sees it is gone, so is the memory."""

import ctypes
import mmap
import os
import sys
import tempfile
import weakref

import numpy as np

__all__ = ["Arena", "NoRoom", "Segment", "create"]

ALIGNMENT = 64  # XLA takes host memory as it is from this alignment on
_NAME = "jtorch-data"  # how it shows in /proc/PID/maps
_PAGE = mmap.ALLOCATIONGRANULARITY
_SHARED = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
_KEEP_FREE = 4
# Before Python 3.13 a mapping keeps a descriptor of its own open as long as it lives.
_NO_DESCRIPTOR = {"trackfd": False} if sys.version_info >= (3, 13) else {}


class NoRoom(Exception):
    """The system has no such amount of shared memory."""


def aligned(n: int) -> int:
    """The next offset at which an array may start."""
    return -(-n // ALIGNMENT) * ALIGNMENT


def create(size: int) -> int:
    """A file descriptor of so many bytes of memory, which are there: writing to them cannot fail any more."""
    if size > _free():  # asked for all the same, Linux would end processes to make room
        raise NoRoom(f"{size} bytes")
    try:
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create(_NAME, os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile(prefix=_NAME) as file:
                fd = os.dup(file.fileno())
    except OSError as error:
        raise NoRoom(str(error)) from error
    try:
        os.ftruncate(fd, size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(fd, 0, size)
    except OSError as error:
        os.close(fd)
        raise NoRoom(str(error)) from error
    return fd


def _free() -> float:
    """Bytes of memory that the system can give."""
    try:
        with open("/proc/meminfo") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return float("inf")


class _Lease(weakref.ref):
    """Calls `returned` with itself. A method of C's (list.append) runs no Python, in which a Ctrl-C would be lost."""

    __slots__ = ("number",)


class Segment:
    """A mapping of shared memory, lent out as one block at a time.

    The block is lent as long as any array over it lives; `returned` is called when the last one has gone,
    with an object that has the segment's `number`.
    """

    __slots__ = ("number", "size", "address", "_map", "_lease")

    def __init__(self, number: int, fd: int, size: int):
        self.number = number
        self.size = size
        self._map = mmap.mmap(fd, size, _SHARED, **_NO_DESCRIPTOR)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._lease = None

    def lend(self, returned=None) -> memoryview:
        """The memory, as bytes."""
        block = (ctypes.c_char * self.size).from_buffer(self._map)
        self._lease = _Lease(block, returned)
        self._lease.number = self.number
        return memoryview(block).cast("B")

    @property
    def lent(self) -> bool:
        """Whether an array in this process still refers to it."""
        return self._lease is not None and self._lease() is not None


def private(fd: int, size: int) -> memoryview:
    """The memory behind a descriptor, writable here without anybody else seeing it; shared until it is written to."""
    return memoryview(mmap.mmap(fd, size, mmap.MAP_PRIVATE, **_NO_DESCRIPTOR))


class Arena:
    """A worker's segments: the next batch is written into one that the reader has given back.

    Args:
        limit: the bytes that all segments together may have; 0: what the system gives
    """

    def __init__(self, limit: int = 0):
        self.limit = limit
        self.total = 0
        self.segments: dict[int, Segment] = {}
        self.free: list[int] = []
        self.dropped: list[int] = []  # the reader must be told to forget these
        self._next = 0
        self._hint = 0
        self.begin()

    def begin(self) -> None:
        """Start a batch."""
        self._current = None
        self._block = None
        self._used = 0
        self._new_fd = None

    def empty(self, shape, dtype) -> np.ndarray:
        """An array to write a batch into: in shared memory, as soon as an earlier batch has told how much it takes."""
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not size or self._used + size > self._hint:
            return np.empty(shape, dtype)
        if self._current is None:
            try:
                self._take(self._hint)
            except NoRoom:
                self._hint = 0
                return np.empty(shape, dtype)
        start, self._used = self._used, aligned(self._used + size)
        return np.frombuffer(self._block[start : start + size], dtype).reshape(shape)

    def _take(self, size):
        fits = [n for n in self.free if size <= self.segments[n].size and not self.segments[n].lent]
        if fits:
            number = min(fits, key=lambda n: self.segments[n].size)
            self.free.remove(number)
        else:
            number = self._make(size)
        self._current = self.segments[number]
        self._block = self._current.lend()

    def _make(self, size):
        size = -(-size // _PAGE) * _PAGE
        while self.free and (len(self.free) >= _KEEP_FREE or (self.limit and self.total + size > self.limit)):
            self._drop(min(self.free, key=lambda n: self.segments[n].size))
        if self.limit and self.total + size > self.limit:
            raise NoRoom("limit")
        fd = create(size)
        number, self._next = self._next, self._next + 1
        try:
            self.segments[number] = Segment(number, fd, size)
        except OSError as error:
            os.close(fd)
            raise NoRoom(str(error)) from error
        self.total += size
        self._new_fd = fd
        return number

    def _drop(self, number):
        self.free.remove(number)
        self.total -= self.segments.pop(number).size
        self.dropped.append(number)

    def given_back(self, numbers) -> None:
        """The reader needs these segments no longer."""
        self.free += [n for n in numbers if n in self.segments]

    def place(self, buffers: list[memoryview]):
        """Bring buffers into one segment: (its number, its size, its descriptor if it is new, where each buffer starts).

        Raises NoRoom; then `begin` gives up what was taken.
        """
        arrays = [np.frombuffer(b, np.uint8) for b in buffers]
        starts, used = [], self._used
        here = self._current
        for a in arrays:
            offset = -1 if here is None else a.ctypes.data - here.address
            if here is not None and 0 <= offset <= here.size - a.nbytes:
                starts.append(offset)
            else:
                starts.append(None)
                used = aligned(used) + a.nbytes
        if here is None or used > here.size:
            used = sum(aligned(a.nbytes) for a in arrays)
            self.give_up()
            self._used, starts = 0, [None] * len(arrays)
            self._take(used)
        whole = np.frombuffer(self._block, np.uint8)
        for k, a in enumerate(arrays):
            if starts[k] is None:
                starts[k] = self._used
                whole[self._used : self._used + a.nbytes] = a
                self._used = aligned(self._used + a.nbytes)
        self._hint = max(self._used, self._hint - self._hint // 8)
        return self._current.number, self._current.size, self._new_fd, starts

    def give_up(self) -> None:
        """Take back the segment of a batch that was not sent in it."""
        if self._current is None:
            return
        self.free.append(self._current.number)
        if self._new_fd is not None:  # the reader has not seen it: without a descriptor it never will
            self.free.remove(self._current.number)
            self.total -= self.segments.pop(self._current.number).size
            os.close(self._new_fd)
        self._current = self._block = self._new_fd = None
        self._used = 0
