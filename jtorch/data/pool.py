"""The workers of one iterator, from the reader's side: tasks out, messages in, and how all of it ends."""

import mmap
import os
import pickle
import select
import sys
import time
import weakref

import numpy as np

from .. import errors
from ..core import dtype as dtypes
from . import collate, failures, handover, segments
from .helper import helper

__all__ = ["Message", "Pool"]

_said: set[str] = set()  # warnings of which one is enough


class Message:
    """What a worker sent for a task: kind is "batch", "failed" or "ended"."""

    __slots__ = ("task", "kind", "worker", "_body", "_buffers", "_value")

    def __init__(self, task, kind, worker, body, buffers):
        self.task = task
        self.kind = kind
        self.worker = worker
        self._body = body
        self._buffers = buffers

    def open(self):
        """The object; its arrays lie where the worker wrote them."""
        if self._body is not None:
            self._value = handover.loads(self._body, self._buffers)
            self._body = self._buffers = None
        return self._value


class _Worker:
    """One worker's process number, channel and segments."""

    __slots__ = ("number", "pid", "channel", "segments", "freed", "tasks")

    def __init__(self, number, pid, channel):
        self.number = number
        self.pid = pid
        self.channel = channel
        self.segments: dict[int, segments.Segment] = {}
        self.freed: list = []  # leases of segments that the worker may write to again
        self.tasks = 0  # sent and not answered


class Pool:
    """Workers for one loader.

    Args:
        loader: the DataLoader
        base_seed: what the workers' seeds count from
    """

    def __init__(self, loader, base_seed: int):
        self.workers: list[_Worker] = []
        self.timeout = loader.timeout
        self._poll = select.poll()
        self._by_fd: dict[int, _Worker] = {}
        self._dead: list[_Worker] = []
        setup, fds = _setup(loader, base_seed)
        # Bound to the list alone: the pool itself must be free to go.
        self._end = weakref.finalize(self, _close, self.workers)
        try:
            for number in range(loader.num_workers):
                worker = _Worker(number, *helper.fork())
                self.workers.append(worker)
                self._by_fd[worker.channel.fileno()] = worker
                self._poll.register(worker.channel, select.POLLIN)
                self._send(worker, pickle.dumps({**setup, "number": number}, 5), fds)
        except BaseException:
            self.close()
            raise
        finally:
            for fd in fds:
                os.close(fd)

    def close(self) -> None:
        """Let the workers go. Batches that are still in use stay."""
        self._end()

    @property
    def closed(self) -> bool:
        return not self._end.alive

    def again(self, shared_seed: int | None = None) -> None:
        """Have all workers start another pass over the dataset, its pipes seeded from a number."""
        for worker in self.workers:
            self._send(worker, pickle.dumps(("again", shared_seed)))

    def put(self, number: int, task, index) -> None:
        """Give a worker a task."""
        worker = self.workers[number]
        worker.tasks += 1
        freed = []
        while worker.freed:
            freed.append(worker.freed.pop().number)
        self._send(worker, pickle.dumps(("task", task, _index(index), freed)))

    def _send(self, worker, payload, fds=()):
        if not worker.channel.send(payload, fds) and worker not in self._dead:
            self._dead.append(worker)

    def get(self, wait: bool = True) -> list[Message]:
        """Messages that have come, at least one if `wait`. Raises when a worker is gone, or after the timeout."""
        messages = self._waiting()
        if not messages:
            self._look(wait)
            messages = self._waiting()
        if not messages and self._dead and wait:
            self._raise_dead()
        return messages

    def _look(self, wait):
        """Take in what has come; if `wait`, until there is something."""
        deadline = time.monotonic() + self.timeout if self.timeout else None
        while True:
            left = None
            if not wait or self._dead:
                left = 0
            elif deadline is not None:
                left = max(0.0, deadline - time.monotonic()) * 1000
            for fd, _ in self._poll.poll(left):
                worker = self._by_fd[fd]
                if not worker.channel.feed():
                    self._poll.unregister(fd)
                    if worker not in self._dead:
                        self._dead.append(worker)
            if not wait or self._dead or any(w.channel.frames for w in self.workers):
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise failures.timed_out(self.timeout)

    def _waiting(self):
        made = []
        for worker in self.workers:
            while worker.channel.frames:
                frame, fds = worker.channel.frames.popleft()
                made.append(self._message(worker, frame, fds))
        return made

    def _message(self, worker, frame, fds):
        task, kind, body, placed, inline, dropped, room = pickle.loads(frame)
        worker.tasks -= 1
        for number in dropped:
            worker.segments.pop(number, None)
        if not room:
            _say_once(failures.no_shared_memory())
        buffers = inline
        if placed is not None:
            number, size, spans = placed
            if fds:
                worker.segments[number] = _mapped(number, fds[0], size)
            memory = worker.segments[number].lend(worker.freed.append)
            buffers = [memory[start : start + n] for start, n in spans]
        return Message(task, kind, worker.number, body, buffers)

    def _raise_dead(self):
        pids = [w.pid for w in self._dead]
        why = [failures.how(*both) for both in zip(pids, helper.status(pids))]
        self.close()
        raise failures.died(pids) from next((w for w in why if w is not None), None)


def _mapped(number, fd, size):
    try:
        return segments.Segment(number, fd, size)
    except OSError as error:
        raise failures.out_of_files(error) from error
    finally:
        os.close(fd)


def _close(workers):
    for worker in workers:
        worker.channel.close()
        worker.segments.clear()
    helper.retire([w.pid for w in workers])


def _index(index) -> bytes:
    """What the sampler gave, as bytes."""
    if type(index) is int or (type(index) is list and all(type(i) is int for i in index)):
        return pickle.dumps(index)
    return handover.dumps(index)


def _say_once(words):
    if words not in _said:
        _said.add(words)
        errors.warn(words)


def _setup(loader, base_seed):
    """What all workers are told, and the descriptors that go with it: the dataset lies in memory once for all of them."""
    job = {
        "dataset": loader.dataset,
        "collate_fn": loader.collate_fn,
        "worker_init_fn": loader.worker_init_fn,
        "iterable": loader._dataset_kind != 0,
        "batched": loader._auto_collation,
        "drop_last": loader.drop_last,
        "collate_fn_map": collate.own_entries(),
    }
    beside: list[memoryview] = []
    body = _pickled(job, beside)
    setup = {
        "place": {
            "path": list(sys.path),
            "argv": list(getattr(sys, "argv", [""])),
            "environ": dict(os.environ),
            "cwd": _folder(),
            "dtype": dtypes.default.dtype.name,
            "swapped": _swapped(),
        },
        "seed": base_seed,
        "num_workers": loader.num_workers,
    }
    parts = [memoryview(body), *beside]
    size = sum(segments.aligned(p.nbytes) for p in parts)
    if size > handover.SMALL:
        try:
            fd, spans = _share(parts, size)
        except segments.NoRoom:
            pass
        else:
            return {**setup, "size": size, "spans": spans}, [fd]
    return {**setup, "job": body, "buffers": [pickle.PickleBuffer(b) for b in beside]}, []


def _swapped():
    """Whether the program says torch and means jtorch: so must what it sends."""
    hook = sys.modules.get("jtorch.swap.hook")
    return hook is not None and hook.used()


def _folder():
    try:
        return os.getcwd()
    except FileNotFoundError:  # removed
        return ""


def _pickled(job, beside):
    try:
        return handover.dumps(job, beside)
    except Exception as error:
        for name in ("dataset", "collate_fn", "worker_init_fn"):
            try:
                handover.dumps(job[name])
            except Exception:
                error.add_note(
                    f"DataLoader workers are given a copy of {name}, which could not be made: define __getstate__ there, "
                    "or open files, sockets and locks when a worker first needs them, or use num_workers=0."
                )
                break
        raise


def _share(parts, size):
    fd = segments.create(size)
    try:
        whole = np.frombuffer(mmap.mmap(fd, size), np.uint8)
    except OSError as error:
        os.close(fd)
        raise segments.NoRoom(str(error)) from error
    spans, start = [], 0
    for part in parts:
        whole[start : start + part.nbytes] = np.frombuffer(part, np.uint8)
        spans.append((start, part.nbytes))
        start += segments.aligned(part.nbytes)
    return fd, spans
