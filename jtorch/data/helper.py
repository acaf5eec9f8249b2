"""The helper process seen from the program: started once, when the first loader with workers is made."""

import atexit
import os
import pickle
import socket
import subprocess
import sys
import threading

from . import failures
from .channel import Channel, pair

__all__ = ["available", "helper"]

GRACE = 5.0  # seconds that a worker has to finish what it is doing
# One thread each: there is a process for every core that is to work. jax must not look for an accelerator.
_ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_ALWAYS = {"JAX_PLATFORMS": "cpu", "NPROC": "1"}
_CODE = """import sys
sys.path[:] = {path!r}
from jtorch.data.server import serve
serve({fd}, {environ!r})
"""


def available() -> bool:
    """Whether this platform can run workers."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds") and hasattr(socket, "AF_UNIX")


class Helper:
    """One helper process; a new one is started when it is gone."""

    def __init__(self):
        self._lock = threading.RLock()
        self._forget()

    def _forget(self):
        self._process = self._channel = None
        self._asked = 0  # questions so far; an answer carries the number of its question
        self._answered = False

    def start(self) -> None:
        """Start the process, and do not wait for its imports."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            self.stop()
            ours, theirs = pair()
            restore = {name: os.environ.get(name) for name in _ALONE}
            code = _CODE.format(path=sys.path, fd=theirs.fileno(), environ=restore)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **_ALONE, **_ALWAYS},
                    process_group=0,  # a terminal's Ctrl-C is for the program, which then ends this process
                )
            self._channel = Channel(ours)

    def stop(self, patience: float = GRACE) -> None:
        """Let the process end its workers and itself."""
        with self._lock:
            process, channel, answered = self._process, self._channel, self._answered
            self._forget()
            if process is None:
                return
            channel.close()
            if not answered:  # it may still be importing, and has no workers
                process.kill()
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _ask(self, *message, fds=()):
        """Send a message and return the answer; None if the process is gone."""
        self._asked += 1
        kind, *rest = message
        if self._channel is None or not self._channel.send(pickle.dumps((kind, self._asked, *rest)), fds):
            return None
        while (frame := self._channel.receive()) is not None:
            number, answer = pickle.loads(frame[0])
            self._answered = True
            if number == self._asked:  # others are of questions that Ctrl-C has cut short
                return answer
        return None

    def fork(self) -> tuple[int, Channel]:
        """A new worker: its pid, and the channel to it."""
        ours, theirs = pair()
        with self._lock, theirs:
            for _ in range(2):  # once more if an earlier process has been killed
                self.start()
                pid = self._ask("fork", fds=[theirs.fileno()])
                if pid is not None:
                    return pid, Channel(ours)
                code = self._process.wait(1) if self._process is not None else None
            ours.close()
            raise failures.no_helper(code)

    def status(self, pids: list[int]) -> list[int | None]:
        """How these workers ended; None where that is not known."""
        with self._lock:
            return self._ask("status", pids) or [None] * len(pids)

    def retire(self, pids: list[int]) -> None:
        """End workers whose channels are closed: at once where they wait, else when they look, at last by force."""
        with self._lock:
            if self._channel is not None:
                self._channel.send(pickle.dumps(("retire", 0, pids, GRACE)))

    def leave_to_parent(self):
        """In a forked child: these workers are not ours."""
        if self._channel is not None:
            self._channel.sock.close()
        self.__init__()


helper = Helper()
atexit.register(helper.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helper.leave_to_parent)
