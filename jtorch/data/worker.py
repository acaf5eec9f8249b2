"""A worker process: gets a dataset, then indices, and sends batches. It never touches the accelerator."""

import dataclasses
import importlib
import os
import pickle
import random
import select
import signal
import sys
import time
import traceback

import numpy as np

from .. import config, random_tensors
from ..core import dtype as dtypes
from . import collate, fetch, handover, onhost
from .channel import Channel
from .datapipes import IterDataPipe, MapDataPipe
from .datapipes.graph_settings import apply_sharding, reseed
from .failures import Failure
from .segments import Arena, NoRoom, private

__all__ = ["WorkerInfo", "get_worker_info", "main"]

_LOOK = 0.02  # seconds between looks at whether the reader is still there


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows about itself: its number, how many there are, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: object
    rng: object = None
    worker_method: str = "multiprocessing"


_worker_info: WorkerInfo | None = None  # a worker that a program starts by itself sets it from outside


def get_worker_info() -> WorkerInfo | None:
    """In a worker, what it knows about itself; in the program's own process None."""
    return _worker_info


class _Gone(BaseException):
    """The reader is not there any more."""


def main(sock) -> int:
    """Serve one reader until it closes the channel; the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the reader
    try:
        worker = _Worker(Channel(sock))
        if worker.begin():
            worker.run()
    except _Gone:
        return 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _settle(place):
    """Make this process look like the program's: its folder, its environment, its settings."""
    sys.path[:] = place["path"]
    sys.argv[:] = place["argv"]
    keep = {name: os.environ[name] for name in ("JAX_PLATFORMS", "NPROC") if name in os.environ}
    os.environ.clear()
    os.environ.update(place["environ"])
    os.environ.update(keep)
    try:
        os.chdir(place["cwd"])
    except OSError:  # it has been removed since
        pass
    dtypes.default.dtype = dtypes.ALL[place["dtype"]]
    dtypes.default.complex = dtypes.default.dtype.to_complex()
    if place["swapped"]:
        importlib.import_module("jtorch.swap").install_as_torch()


def seed(base_seed: int, number: int) -> int:
    """Seed Python, numpy and the default generator as PyTorch does in the worker of this number; its seed."""
    own = base_seed + number
    random.seed(own)
    random_tensors.manual_seed(own)
    np.random.seed(_generate_state(base_seed, number))
    return own


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """numpy's seed in the worker of this number."""
    words = np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4)
    return words.tolist()


class _Worker:
    """The loop: a frame in, a frame out."""

    def __init__(self, channel: Channel):
        self.channel = channel
        self.looked = 0.0

    def begin(self) -> bool:
        """Take the dataset; False if the reader has gone."""
        frame = self.channel.receive()
        if frame is None:
            return False
        setup, fds = pickle.loads(frame[0]), frame[1]
        _settle(setup["place"])
        self.where = f"in DataLoader worker process {setup['number']}"
        self.arena = Arena(config.shared_bytes())
        collate.allocate = self.arena.empty
        onhost.install()
        number, base_seed = setup["number"], setup["seed"]
        own = seed(base_seed, number)
        self.failure = None
        self.fetch = None
        try:
            job = handover.loads(*self._payload(setup, fds))
            self.job = job
            collate.default_collate_fn_map.update(job["collate_fn_map"])
            globals()["_worker_info"] = WorkerInfo(number, setup["num_workers"], own, job["dataset"])
            if isinstance(job["dataset"], (IterDataPipe, MapDataPipe)):
                apply_sharding(job["dataset"], setup["num_workers"], number)
            if job["worker_init_fn"] is not None:
                job["worker_init_fn"](number)
            self._open()
        except Exception:
            self.failure = self._failed()
        return True

    def _payload(self, setup, fds):
        if not fds:
            return setup["job"], setup["buffers"]
        whole = private(fds[0], setup["size"])
        os.close(fds[0])
        parts = [whole[start : start + n] for start, n in setup["spans"]]
        return parts[0], parts[1:]

    def _open(self):
        """Start a pass over the dataset."""
        job = self.job
        if job["iterable"]:
            self.fetch = fetch.create_fetcher(
                True, job["dataset"], job["batched"], job["collate_fn"], job["drop_last"]
            ).fetch
        else:
            self.fetch = fetch.from_map(job["dataset"], job["batched"], job["collate_fn"], self.look)

    def run(self) -> None:
        """Answer until the channel closes."""
        while (frame := self.channel.receive()) is not None:
            kind, *rest = pickle.loads(frame[0])
            if kind == "again":
                self._again(*rest)
                continue
            task, index, freed = rest
            self.arena.given_back(freed)
            self.answer(task, index)

    def _again(self, shared_seed):
        self.failure = None
        try:
            if shared_seed is not None:
                reseed(self.job["dataset"], shared_seed)
            self._open()
        except Exception:
            self.failure = self._failed()

    def answer(self, task, index):
        """Fetch one batch and send it, or what went wrong."""
        self.arena.begin()
        failure, self.failure = self.failure, None
        if failure is None:
            if self.fetch is None:
                # told once why; the reader may ask on
                failure = Failure(RuntimeError, "error: this worker could not start", self.where)
                return self._send_plain(task, "failed", failure)
            try:
                batch = self.fetch(pickle.loads(index))
            except StopIteration:
                if self.job["iterable"]:
                    return self._send_plain(task, "ended", None)
                failure = self._failed()
            except Exception:
                failure = self._failed()
        if failure is None:
            try:
                return self._send_batch(task, batch)
            except Exception:
                failure = self._failed()
        self.arena.give_up()
        self._send_plain(task, "failed", failure)

    def _failed(self):
        kind, error, trace = sys.exc_info()
        return Failure(kind, "".join(traceback.format_exception(kind, error, trace)), self.where)

    def _send_batch(self, task, batch):
        beside: list[memoryview] = []
        body = handover.dumps(batch, beside)
        fds, room, placed, inline = [], True, None, ()
        if beside:
            try:
                number, size, fd, starts = self.arena.place(beside)
                placed = (number, size, [(s, b.nbytes) for s, b in zip(starts, beside)])
                if fd is not None:
                    fds = [fd]
            except NoRoom:
                room = False
                inline = [pickle.PickleBuffer(b) for b in beside]
        else:
            self.arena.give_up()
        dropped, self.arena.dropped = self.arena.dropped, []
        self._send((task, "batch", body, placed, inline, dropped, room), fds)
        for fd in fds:
            os.close(fd)

    def _send_plain(self, task, kind, value):
        try:
            body = handover.dumps(value)
        except Exception:  # an exception of a class that cannot leave this process
            body = handover.dumps(Failure(RuntimeError, value.text, value.where))
        self._send((task, kind, body, None, (), [], True))

    def _send(self, message, fds=()):
        if not self.channel.send(pickle.dumps(message, 5), fds):
            raise _Gone

    def look(self):
        """Between two samples: stop when nobody waits for them any more."""
        now = time.monotonic()
        if now - self.looked < _LOOK:
            return
        self.looked = now
        poll = select.poll()
        poll.register(self.channel, 0)
        if poll.poll(0):
            raise _Gone
