"""Messages between processes over a Unix socket: frames of bytes, and file descriptors with them."""

import collections
import select
import socket
import struct

from . import failures

__all__ = ["Channel", "pair"]

_HEADER = struct.Struct("<QB")  # bytes that follow, file descriptors that come with them
_CHUNK = 1 << 18
_MAX_FDS = 16
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


class Channel:
    """One end. Frames that have arrived wait in `frames`, as (bytes, list of file descriptors).

    Sending never blocks for good: while the other side does not read, what it sends is taken in.
    """

    __slots__ = ("sock", "frames", "ended", "_buffer", "_fds")

    def __init__(self, sock: socket.socket):
        sock.setblocking(False)
        self.sock = sock
        self.frames: collections.deque = collections.deque()
        self.ended = False
        self._buffer = bytearray()
        self._fds: list[int] = []

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        """Close this end; the other one reads the end of the stream."""
        self.ended = True
        self.sock.close()

    def send(self, payload, fds=()) -> bool:
        """Send one frame; False if nobody is there to get it."""
        data = memoryview(_HEADER.pack(len(payload), len(fds)) + payload)
        try:
            while data:
                try:
                    # the descriptors travel with the first byte that leaves
                    sent = socket.send_fds(self.sock, [data], fds) if fds else self.sock.send(data)
                    data, fds = data[sent:], ()
                except BlockingIOError:
                    self._until_writable()
        except (BrokenPipeError, ConnectionResetError):
            return False
        except OSError as error:
            if self.ended:
                return False
            raise failures.out_of_files(error) from error
        return True

    def _until_writable(self):
        if self.ended:
            select.select([], [self.sock], [], 1)
            return
        readable, _, _ = select.select([self.sock], [self.sock], [])
        if readable:
            self.feed()

    def feed(self) -> bool:
        """Take in what has arrived, without waiting; False at the end of the stream."""
        try:
            data, fds, flags, _ = socket.recv_fds(self.sock, _CHUNK, _MAX_FDS, _CLOSE_ON_EXEC)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            data, fds, flags = b"", [], 0
        if flags & socket.MSG_CTRUNC:
            raise failures.out_of_files()
        if not data:
            self.ended = True
            return False
        self._fds += fds
        self._buffer += data
        self._cut()
        return True

    def _cut(self):
        buffer, start = self._buffer, 0
        while len(buffer) - start >= _HEADER.size:
            length, n = _HEADER.unpack_from(buffer, start)
            end = start + _HEADER.size + length
            if len(buffer) < end:
                break
            self.frames.append((bytes(memoryview(buffer)[start + _HEADER.size : end]), self._fds[:n]))
            del self._fds[:n]
            start = end
        if start:
            del buffer[:start]

    def receive(self):
        """The next frame, waiting for it; None at the end of the stream."""
        while not self.frames:
            if self.ended:
                return None
            select.select([self.sock], [], [])
            self.feed()
        return self.frames.popleft()
