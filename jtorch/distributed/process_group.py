"""Groups of processes, and what they do together with arrays of the host."""

import concurrent.futures
import datetime
import enum
import queue
import threading
import time

import numpy as np

from ..futures import Future
from .links import COLLECTIVE, PRESENT, bytes_of
from .status import DEFAULT_BACKENDS, DistNetworkError, default_pg_timeout

__all__ = ["Backend", "GroupMember", "ProcessGroup", "ReduceOp", "Work", "group", "reduce_op"]

_MILLISECOND = datetime.timedelta(milliseconds=1)
_LITTLE = 1 << 16  # bytes of an array that each process sends whole to all, rather than a part to each


class ReduceOp(enum.Enum):
    """How values of several processes become one; of one process they stay as they are."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


ReduceOp.RedOpType = reduce_op = ReduceOp

_REDUCTIONS = {
    ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum,
    ReduceOp.BAND: np.bitwise_and, ReduceOp.BOR: np.bitwise_or, ReduceOp.BXOR: np.bitwise_xor,
}  # fmt: skip


class Backend(str):
    """The name of a backend, in small letters. All are taken: arrays travel from host to host whatever it is called."""

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = DEFAULT_BACKENDS
    backend_capability = {
        GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"], FAKE: ["cpu", "cuda"],
    }  # fmt: skip


class Work:
    """A collective that has been started. `wait` writes its results where they belong."""

    def __init__(self, job=None, finish=None, written=()):
        self._job, self._finish, self._result = job, finish, list(written)
        self._lock = threading.Lock()

    def wait(self, timeout=None) -> bool:
        """True, as soon as it is done; raises what it raised."""
        with self._lock:
            if self._job is not None:
                found = self._job.result()
                self._job = None
                if self._finish is not None:
                    self._finish(found)
        return True

    def is_completed(self) -> bool:
        """Whether it is done."""
        return self._job is None or self._job.done() and self.wait()

    def is_success(self) -> bool:
        """Whether it is done, and raised nothing."""
        return self._job is None or self._job.done() and self._job.exception() is None

    def result(self) -> list:
        """The tensors that have been written."""
        self.wait()
        return self._result

    def get_future(self) -> Future:
        """A future of the tensors that are written."""
        made = Future()
        try:
            made.set_result(self.result())
        except Exception as error:
            made.set_exception(error)
        return made


class ProcessGroup:
    """Some processes, by their ranks in the world.

    Args:
        backend: its name
        ranks: the processes, of which the n-th has the rank n in the group
        links: their connections; None where there is one process
        number: the same in all processes, and of no other group
        timeout: how long a process waits for another
    """

    def __init__(self, backend="gloo", ranks=(0,), links=None, number=0, timeout=default_pg_timeout):
        self._backend, self.ranks, self.links, self.number, self.timeout = backend, list(ranks), links, number, timeout
        self._own = self.ranks.index(links.rank) if links is not None else 0
        self._jobs = None  # for the thread in which the group's collectives run, one after the other
        self._barriers = 0  # monitored ones that have been
        self.receipts = {}  # (ranks, tag) -> what `irecv` waits for, in its order

    def size(self) -> int:
        """How many processes it has."""
        return len(self.ranks)

    def rank(self) -> int:
        """The number of this process in it."""
        return self._own

    def name(self) -> str:
        """The backend's name."""
        return self._backend

    def start(self, collective, *args) -> concurrent.futures.Future:
        """Run a collective after those that have been started before."""
        job = concurrent.futures.Future()
        if self.size() == 1:
            _run(job, collective, args)
            return job
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            # Not a pool's: the interpreter's end would wait for it, which may wait for a process that is no more.
            threading.Thread(target=_work, args=(self._jobs,), daemon=True, name=f"jtorch-group-{self.number}").start()
        self._jobs.put((job, collective, args))
        return job

    def close(self) -> None:
        """End the thread, after what it has been given."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = None

    # Collectives on arrays of the host. All processes of a group call the same in the same order.

    def _send(self, to, array):
        self.links.send(self.ranks[to], self.number, COLLECTIVE, array)

    def _receive(self, sender):
        return self.links.receive([self.ranks[sender]], self.number, COLLECTIVE, self.timeout)[1]

    def _others(self):
        return [r for r in range(self.size()) if r != self._own]

    def exchange(self, arrays) -> list:
        """The bytes that each process has for this one, which has an array for each of them."""
        for r in self._others():
            self._send(r, arrays[r])
        found = {r: self._receive(r) for r in self._others()}
        found[self._own] = bytes_of(arrays[self._own])
        return [found[r] for r in range(self.size())]

    def everywhere(self, array) -> list:
        """The bytes of the array of each process."""
        return self.exchange([array] * self.size())

    def from_one(self, array, root) -> np.ndarray:
        """The bytes of one process's array."""
        if root != self._own:
            return self._receive(root)
        for r in self._others():
            self._send(r, array)
        return bytes_of(array)

    def to_one(self, array, root) -> list | None:
        """The bytes of the array of each process, in one of them; None in the others."""
        if root != self._own:
            self._send(root, array)
            return None
        return [bytes_of(array) if r == root else self._receive(r) for r in range(self.size())]

    def one_each(self, arrays, root) -> np.ndarray:
        """The bytes that one process has for this one."""
        if root != self._own:
            return self._receive(root)
        for r in self._others():
            self._send(r, arrays[r])
        return bytes_of(arrays[root])

    def reduced(self, array, op) -> np.ndarray:
        """The values of all processes as one: in the order of the ranks, so that all have the same bits."""
        flat = np.ascontiguousarray(array).reshape(-1)
        n = self.size()
        if flat.nbytes <= _LITTLE or n == 2:
            return self.combined(self.everywhere(flat), flat.dtype, op).reshape(array.shape)
        parts = np.array_split(flat, n)
        own = self.combined(self.exchange(parts), flat.dtype, op)
        return np.concatenate([b.view(flat.dtype) for b in self.everywhere(own)]).reshape(array.shape)

    def reduced_to(self, arrays, op) -> np.ndarray:
        """The value of all processes of that of the arrays which is this process's."""
        own = arrays[self._own]
        return self.combined(self.exchange(arrays), own.dtype, op).reshape(own.shape)

    def all_present(self, timeout, wait_all_ranks) -> None:
        """Return when all processes have come here. RuntimeError: in the group's first process of the ranks that have not, in others of it."""
        self._barriers += 1
        own, now = self.links.rank, np.array([self._barriers])
        if self._own:
            self.links.send(self.ranks[0], self.number, PRESENT, now)
            try:
                self._present(0, timeout)
            except DistNetworkError as error:
                raise RuntimeError(
                    f"Rank {own} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please "
                    f"check rank 0 logs for faulty rank.\n Original exception: \n{error}"
                ) from None
            return
        end, after, missing, why = time.monotonic() + timeout.total_seconds(), timeout // _MILLISECOND, [], ""
        for r in self._others():
            left = end - time.monotonic()
            if left <= 0 and not missing:
                raise RuntimeError(f"[Rank {own}]: Rank {own} timed out in monitoredBarrier after {after} ms.")
            try:
                self._present(r, datetime.timedelta(seconds=max(left, 0)))
            except DistNetworkError as error:
                missing.append(self.ranks[r])
                why = error
                if not wait_all_ranks:
                    break
        if missing:
            raise RuntimeError(
                f"[Rank {own}]: Rank{'s' * wait_all_ranks} {', '.join(map(str, missing))} failed to pass monitoredBarrier in {after} ms"
                f"\n Original exception: \n{why}"
            )
        for r in self._others():
            self.links.send(self.ranks[r], self.number, PRESENT, now)

    def _present(self, r, timeout):
        """Wait for what a process says at this monitored barrier; what it said late at those that failed is not heard."""
        while True:
            _, message = self.links.receive([self.ranks[r]], self.number, PRESENT, timeout)
            if message.view(np.int64)[0] == self._barriers:
                return

    def combined(self, messages, dtype, op) -> np.ndarray:
        """The values of all processes as one, in the order of the ranks."""
        values = [m.view(dtype) for m in messages]
        if len({len(v) for v in values}) > 1:
            raise RuntimeError(f"the processes reduce tensors of other sizes: {[len(v) for v in values]} elements")
        made, reduce = values[0], _REDUCTIONS[op]
        for value in values[1:]:
            made = reduce(made, value)
        return (made / self.size()).astype(dtype) if op is ReduceOp.AVG else made


def _run(job, collective, args):
    try:
        job.set_result(collective(*args))
    except Exception as error:
        job.set_exception(error)


def _work(jobs):
    while (given := jobs.get()) is not None:
        _run(*given)


class GroupMember:
    """What stands for the group of all processes, and for a group that this process is not in."""

    WORLD = None
    NON_GROUP_MEMBER = -100


group = GroupMember
