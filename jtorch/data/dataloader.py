"""DataLoader: a dataset, in batches."""

import math
import multiprocessing
import os
from typing import Generic, TypeVar

from .. import errors
from . import failures, fetch
from .collate import default_collate, default_convert
from .datapipes import IterDataPipe
from .datapipes.graph_settings import apply_shuffle_settings
from .dataset import IterableDataset
from .helper import available, helper
from .iterators import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .varying import varying_of
from .worker import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T = TypeVar("T", covariant=True)


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """What fetches the batches of a dataset of this kind."""
        return fetch.create_fetcher(kind != _DatasetKind.Map, dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """None without end: an iterable dataset chooses its own order."""

    def __iter__(self):
        while True:
            yield None


_FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))


class DataLoader(Generic[T]):
    """Iterates over a dataset in batches.

    Args:
        dataset: a Dataset, or anything with `__getitem__` and `__len__`, or an IterableDataset
        batch_size: samples in a batch; None: each sample by itself, as it is. Default: 1
        shuffle: draw the order anew in each epoch. Default: False
        sampler: the indices in their order, instead of `shuffle`
        batch_sampler: lists of indices, instead of `batch_size`, `shuffle`, `sampler` and `drop_last`
        num_workers: processes to load with. Default: 0, load in this process
        collate_fn: joins a list of samples. Default: `default_collate`
        pin_memory: start moving each batch to the accelerator while the step before it runs. Default: False
        drop_last: leave out the last batch if it is smaller. Default: False
        timeout: seconds to wait for a worker. Default: 0, without end
        worker_init_fn: called in each worker with its number
        multiprocessing_context: checked as PyTorch does; workers are always forked from a process of their own, in
            which jax has not started
        generator: what a random order is drawn from. Default: the default generator
        prefetch_factor: batches that each worker loads ahead. Default: 2
        persistent_workers: keep the workers from one epoch to the next. Default: False
        pin_memory_device: the accelerator to move to. Default: the current one
        in_order: give batches in the order of the sampler. Default: True
    """

    _ready = False

    def __init__(
        self,
        dataset,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler=None,
        batch_sampler=None,
        num_workers: int = 0,
        collate_fn=None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        iterable = isinstance(dataset, IterableDataset)
        if isinstance(dataset, IterDataPipe):
            apply_shuffle_settings(dataset, shuffle)  # a step that it adds has no effect, in PyTorch too
            _check_iterable(None, sampler, batch_sampler)
            shuffle = False
        elif iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called = None  # of an iterable dataset, once somebody has asked
        self._iterator = None
        self._varying = varying_of(dataset)
        self._ready = True
        if num_workers > 0:
            if available():
                helper.start()  # its imports take a second, which the program's own preparations may cover
            else:
                errors.warn(failures.no_platform())
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self):
        """How workers are started."""
        return self._multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        self._multiprocessing_context = _checked_context(context, self.num_workers)

    def __setattr__(self, name, value):
        if self._ready and name in _FIXED:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0 or not available():
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers > 0 and available()):
            return self._get_iterator()
        if self._iterator is None or self._iterator._failed:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than cores for them."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if self.num_workers > (cores or self.num_workers):
            errors.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of "
                f"worker in current system is {cores}, which is smaller than what this DataLoader is going to create. "
                "Please be aware that excessive worker creation might get DataLoader running slow or even freeze, lower "
                "the worker number to avoid potential slowness/freeze if necessary."
            )

    def __len__(self) -> int:
        """The number of batches; of an iterable dataset, what its own length makes one expect."""
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)


# ---- arguments, in the order in which PyTorch looks at them ----


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle, sampler, batch_sampler):
    head = "DataLoader with IterableDataset: expected unspecified"
    if shuffle not in (False, None):
        raise ValueError(f"{head} shuffle option, but got shuffle={shuffle}")
    if sampler is not None:
        raise ValueError(f"{head} sampler option, but got sampler={sampler}")
    if batch_sampler is not None:
        raise ValueError(f"{head} batch_sampler option, but got batch_sampler={batch_sampler}")


def _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last):
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _checked_context(context, num_workers):
    if context is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
            f"but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        valid = multiprocessing.get_all_start_methods()
        if context not in valid:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {valid!r}, "
                f"but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying "
            f"the start method, but got multiprocessing_context={context}"
        )
    return context
