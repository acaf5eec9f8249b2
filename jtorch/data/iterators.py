"""One epoch of a DataLoader: in this process, or with workers that load ahead."""

import collections
import itertools
import time
import warnings

from ..core import ledger
from . import fetch
from .datapipes import IterDataPipe, MapDataPipe
from .datapipes.graph_settings import apply_sharding, reseed
from .distributed import world
from .pin import pinned
from .pool import Pool
from .sampler import random_seed
from .varying import varying_of

__all__ = ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"]


def _seeded(loader):
    """The number that the pipes of a loader draw their seeds of this pass from, and give all workers; None: no pipes."""
    if not isinstance(loader.dataset, IterDataPipe):
        return None
    shared = random_seed(loader.generator)
    reseed(loader.dataset, shared)
    return shared


class _BaseDataLoaderIter:
    """What both kinds share: the order, the seed, the count, and the clock that says how long the loop waited."""

    def __init__(self, loader):
        self._loader = loader
        self._dataset = loader.dataset
        self._shared_seed = _seeded(loader)
        self._dataset_kind = loader._dataset_kind  # 0: by index, 1: iterable
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._world_size, self._rank = world()
        self._pin = pinned(loader)
        self._pin_memory = self._pin is not None
        self._pin_memory_device = loader.pin_memory_device if self._pin_memory else None
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        # PyTorch seeds the workers of each epoch with this draw, and makes it without workers too
        self._base_seed = random_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._begin(loader)

    def _begin(self, loader):
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._last = None

    def _reset(self, loader, first_iter=False):
        self._sampler_iter = iter(self._index_sampler)
        self._shared_seed = _seeded(loader)
        self._begin(loader)

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __iter__(self):
        return self

    def __next__(self):
        asked = time.perf_counter()
        try:
            batch = self._next_data()
        finally:
            now = time.perf_counter()
            ledger.fed(now - asked, now - (asked if self._last is None else self._last))
            self._last = now
        self._num_yielded += 1
        expected = self._IterableDataset_len_called
        if expected is not None and self._num_yielded > expected and self._dataset_kind:
            self._warn_of_length(expected)
        return batch

    next = __next__

    def _warn_of_length(self, expected):
        words = (
            f"Length of IterableDataset {self._loader.dataset} was reported to be {expected}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._loader.num_workers > 0:
            words += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker: see get_worker_info()."
            )
        warnings.warn(words, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads a batch when it is asked for."""

    def __init__(self, loader):
        super().__init__(loader)
        if loader.num_workers == 0 and loader.timeout:  # after the draw, as in PyTorch
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
            apply_sharding(loader.dataset, 1, 0)
        self._varying = getattr(loader, "_varying", None) or varying_of(self._dataset)
        self._dataset_fetcher = fetch.create_fetcher(
            self._dataset_kind != 0, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self):
        batch = self._varying.fetch(self._dataset_fetcher.fetch, self._next_index())
        return batch if self._pin is None else self._pin(batch)


class _Task:
    """A batch that a worker was asked for, and its answer once it is there."""

    __slots__ = ("worker", "message")

    def __init__(self, worker):
        self.worker = worker
        self.message = None


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Keeps `prefetch_factor` tasks at each worker, and gives their batches in the order of the tasks (or as they come)."""

    def __init__(self, loader):
        super().__init__(loader)
        assert loader.prefetch_factor > 0, "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
        self._pool = Pool(loader, self._base_seed)
        _seeded(loader)  # PyTorch draws once more when the workers have their copies
        self._workers = self._pool.workers
        self._epoch = 0
        self._prime(loader)

    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
        self._epoch += 1  # answers to tasks of an epoch that was left are let go of
        self._pool.again(self._shared_seed)
        self._prime(loader)

    @property
    def _failed(self) -> bool:
        return self._pool.closed

    def _prime(self, loader):
        n = loader.num_workers
        self._in_order = loader.in_order
        self._active = [True] * n
        self._turns = itertools.cycle(range(n))
        self._tasks: dict[int, _Task] = {}
        self._arrived: collections.deque = collections.deque()  # where the order does not matter
        self._sent = self._received = 0
        for _ in range(loader.prefetch_factor * n):
            self._put()

    def _put(self):
        """Give the next item of the sampler to the worker whose turn it is."""
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._next_worker()
        if worker is None:
            return
        self._tasks[self._sent] = _Task(worker)
        self._pool.put(worker, (self._epoch, self._sent), index)
        self._sent += 1

    def _next_worker(self):
        n = len(self._active)
        active = [w for w in itertools.islice(self._turns, n) if self._active[w]]
        if not active:
            return None
        chosen = active[0] if self._in_order else min(active, key=lambda w: self._workers[w].tasks)
        while next(self._turns) != chosen:  # the next search starts behind it
            continue
        return chosen

    def _next_data(self):
        if self._pool.closed:
            raise StopIteration
        while True:
            message = self._ready()
            if message is not None:
                return self._give(message)
            if not self._tasks:
                if not self._loader.persistent_workers:
                    self._pool.close()
                raise StopIteration
            self._take(self._pool.get())

    def _ready(self):
        """The next answer in the order asked for, if it has come."""
        if not self._in_order:
            return self._arrived.popleft() if self._arrived else None
        while self._received < self._sent:
            task = self._tasks.get(self._received)
            if task is not None:
                if task.message is not None:
                    del self._tasks[self._received]
                    self._received += 1
                    return task.message
                if self._active[task.worker]:
                    return None
                del self._tasks[self._received]  # asked of a worker that had nothing more
            self._received += 1
        return None

    def _take(self, messages):
        for message in messages:
            epoch, number = message.task
            if epoch != self._epoch:
                continue
            if message.kind == "ended":
                self._has_ended(message.worker, number)
            elif self._in_order:
                self._tasks[number].message = message
            else:
                del self._tasks[number]
                self._arrived.append(message)

    def _has_ended(self, worker, number):
        self._tasks.pop(number, None)
        if not self._in_order:
            for k in [k for k, task in self._tasks.items() if task.worker == worker]:
                del self._tasks[k]
        if self._active[worker]:
            self._active[worker] = False
            self._put()

    def _give(self, message):
        self._put()
        value = message.open()
        if message.kind == "failed":
            value.reraise()
        if self._pin is not None:
            value = self._pin(value)
            self._ahead()
        return value

    def _ahead(self):
        """Take in what has come meanwhile and start the next batch's transfer, for while this one is worked on."""
        self._take(self._pool.get(wait=False))
        following = self._tasks.get(self._received) if self._in_order else None
        message = following.message if following is not None else self._arrived[0] if self._arrived else None
        if message is not None and message.kind == "batch":
            self._pin(message.open())
