"""The process that workers are forked from: it has imported what they need, runs no threads and never starts jax.

Its parent sends a socket for each worker, and asks how workers ended. When the parent is gone, it ends them all.
"""

import ctypes
import gc
import os
import pickle
import select
import signal
import socket
import sys
import time

from . import worker
from .channel import Channel

__all__ = ["serve"]

_PARENT_DEATH_SIGNAL = 1  # prctl's number


class _Server:
    """Forks, waits for and ends the workers of one program."""

    def __init__(self, channel: Channel):
        self.channel = channel
        self.alive: set[int] = set()
        self.ended: dict[int, int] = {}  # exit status of workers nobody has asked about yet
        self.retiring: dict[int, float] = {}  # when they are to be killed

    def run(self) -> None:
        """Serve until the parent closes its end."""
        wake, woken = socket.socketpair()
        for s in (wake, woken):
            s.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then lets go of us
        try:
            while not self.channel.ended:
                select.select([self.channel, wake], [], [], self._patience())
                try:
                    wake.recv(4096)
                except BlockingIOError:
                    pass
                self.reap()
                self.channel.feed()
                while self.channel.frames:
                    self.answer(*self.channel.frames.popleft(), (wake, woken))
        finally:
            self.end_all()

    def _patience(self):
        return max(0.0, min(self.retiring.values()) - time.monotonic()) if self.retiring else None

    def answer(self, frame, fds, own):
        """Do what one message of the parent asks for."""
        kind, number, *rest = pickle.loads(frame)
        if kind == "fork":
            pid = self.fork(fds[0], own)
            os.close(fds[0])
            self.channel.send(pickle.dumps((number, pid)))
        elif kind == "status":
            self.channel.send(pickle.dumps((number, [self.status(pid) for pid in rest[0]])))
        elif kind == "retire":
            pids, grace = rest
            for pid in pids:
                self.ended.pop(pid, None)
                if pid in self.alive:
                    self.retiring[pid] = time.monotonic() + grace
            self.reap()

    def fork(self, fd, own):
        server = os.getpid()
        pid = os.fork()
        if pid:
            self.alive.add(pid)
            return pid
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _end_with(server)
            self.channel.close()
            for s in own:
                s.close()
            code = worker.main(socket.socket(fileno=fd))
        finally:
            # whatever happens, the server's own code must not go on in here
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (OSError, ValueError):
                    code = code or 1
            os._exit(code)

    def reap(self):
        """Note who has ended, and kill those whose time is over."""
        while self.alive:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            self._note(pid, status)
        now = time.monotonic()
        for pid, deadline in self.retiring.items():
            if now >= deadline and pid in self.alive:
                os.kill(pid, signal.SIGKILL)  # ours and not waited for yet: the number cannot be another's
                self.retiring[pid] = now + 1

    def _note(self, pid, status):
        self.alive.discard(pid)
        if self.retiring.pop(pid, None) is None:
            self.ended[pid] = os.waitstatus_to_exitcode(status)

    def status(self, pid):
        """The exit status of a worker whose socket has ended; None if it lives all the same."""
        deadline = time.monotonic() + 1
        while pid in self.alive and time.monotonic() < deadline:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._note(pid, status)
            else:
                time.sleep(0.002)
        return self.ended.get(pid)

    def end_all(self):
        """Nobody is left to work for."""
        for pid in self.alive:
            os.kill(pid, signal.SIGKILL)
        for pid in self.alive:
            os.waitpid(pid, 0)


def _end_with(server):
    """Die when the server does (Linux): a worker in the middle of a computation would not notice otherwise."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def serve(fd: int, environ: dict) -> None:
    """The whole life of the process. `environ`: what to put back that was set for the imports alone."""
    for name, value in environ.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    gc.collect()
    gc.freeze()  # what is there now is never collected, and its pages stay shared with all workers
    _Server(Channel(socket.socket(fileno=fd))).run()
