"""From indices to a batch: what a DataLoader does with each item of its sampler."""

import itertools

import numpy as np

from .. import creation
from ..convert import as_elements
from ..core.storage import on_host
from . import collate, tensors
from .collate import collate_tensor_fn, default_collate, default_collate_fn_map
from .dataset import Subset, TensorDataset

__all__ = ["from_iterable", "from_map"]


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


def from_iterable(dataset, batched: bool, collate_fn, drop_last: bool):
    """The same where the samples come in their own order, and the index is a placeholder."""
    samples = iter(dataset)
    if not batched:
        return lambda index: collate_fn(next(samples))
    ended = False

    def fetch(indices):
        nonlocal ended
        if ended:
            raise StopIteration
        batch = list(itertools.islice(samples, len(indices)))
        ended = len(batch) < len(indices)
        if not batch or (ended and drop_last):
            raise StopIteration
        return collate_fn(batch)

    return fetch


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
