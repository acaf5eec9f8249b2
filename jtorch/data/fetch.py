"""From indices to a batch: what a DataLoader does with each item of its sampler."""

import itertools

import numpy as np

from .. import creation
from ..convert import as_elements
from ..core.storage import on_host
from . import collate, tensors
from .collate import collate_tensor_fn, default_collate, default_collate_fn_map
from .dataset import Subset, TensorDataset

__all__ = ["create_fetcher", "from_map"]


def from_map(dataset, batched: bool, collate_fn, look=None):
    """A function from an index (a list of them if `batched`) to what the loader yields.

    `look`, if given, is called before each sample that is fetched by itself.
    """
    if not batched:
        return lambda index: collate_fn(dataset[index])
    gather = _rows(dataset) if collate_fn is default_collate else None

    def fetch(indices):
        if gather is not None:
            batch = gather(indices)
            if batch is not None:
                return batch
        if getattr(dataset, "__getitems__", None):
            return collate_fn(dataset.__getitems__(indices))
        if look is None:
            return collate_fn([dataset[i] for i in indices])
        samples = []
        for i in indices:
            look()
            samples.append(dataset[i])
        return collate_fn(samples)

    return fetch


class _BaseDatasetFetcher:
    """A dataset and how its samples become what a loader yields; the names are those that PyTorch's loader uses."""

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool):
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index):
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Samples by index."""

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self._read = from_map(dataset, auto_collation, collate_fn)

    def fetch(self, possibly_batched_index):
        return self._read(possibly_batched_index)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Samples in their own order: the index is a placeholder, or a list of as many as are wanted."""

    def __init__(self, dataset, auto_collation: bool, collate_fn, drop_last: bool):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        wanted = len(possibly_batched_index)
        # `next` alone: an iterator may be its dataset, whose `__iter__` begins again
        batch = list(map(next, itertools.repeat(self.dataset_iter, wanted)))
        self.ended = len(batch) < wanted
        if not batch or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(batch)


def create_fetcher(iterable: bool, dataset, auto_collation: bool, collate_fn, drop_last: bool) -> _BaseDatasetFetcher:
    """What fetches the batches of a dataset."""
    kind = _IterableDatasetFetcher if iterable else _MapDatasetFetcher
    return kind(dataset, auto_collation, collate_fn, drop_last)


def _rows(dataset):
    """One index op a tensor, where a dataset is the rows of tensors; None where it is anything else.

    The same result as stacking the samples one by one, in as many ops as there are tensors, not samples.
    """
    subsets = []
    while isinstance(dataset, Subset) and _has_own(dataset, Subset):
        subsets.append(dataset.indices)
        dataset = dataset.dataset
    if not (isinstance(dataset, TensorDataset) and _has_own(dataset, TensorDataset)):
        return None
    columns = dataset.tensors
    if not columns or not all(type(t) is tensors.Tensor for t in columns):
        return None

    def gather(indices):
        if default_collate_fn_map.get(tensors.Tensor) is not collate_tensor_fn:
            return None  # somebody joins tensors in another way
        for picked in subsets:
            indices = [picked[i] for i in indices]
        index = np.asarray(indices)
        if index.ndim != 1 or index.dtype.kind != "i" or not index.size:
            return None
        if on_host.always:
            return [_taken(t, index) for t in columns]
        index = tensors.from_numpy(index)
        return [t[index] for t in columns]

    return gather


def _taken(t, index):
    """The rows of a tensor, gathered by numpy straight to where the batch is wanted."""
    rows = as_elements(t)
    out = collate.allocate((len(index), *rows.shape[1:]), rows.dtype)
    wrapped = np.where(index < 0, index + len(rows), index)
    if ((wrapped < 0) | (wrapped >= len(rows))).any():
        bad = index[(wrapped < 0) | (wrapped >= len(rows))][0]
        raise IndexError(f"index {bad} is out of bounds for dimension 0 with size {len(rows)}")
    return creation.lent(np.take(rows, wrapped, 0, out=out, mode="clip"))


def _has_own(dataset, base: type) -> bool:
    """Whether this dataset reads its samples as `base` does, not in a way of a subclass."""
    return all(
        getattr(type(dataset), name, None) is getattr(base, name, None) for name in ("__getitem__", "__getitems__")
    )
