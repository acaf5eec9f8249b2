"""Datasets: samples by index, or one after the other, and the ways of joining and splitting them."""

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from ..core import draw, rng

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by key: define `__getitem__`, and `__len__` where a sampler is to know their number.

    One that gets many samples faster at once than one by one may define `__getitems__(indices) -> list`.
    """

    def __getitem__(self, index) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: "Dataset[T]") -> "ConcatDataset[T]":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T], Iterable[T]):
    """Samples one after the other: define `__iter__`."""

    def __add__(self, other: Dataset[T]) -> "ChainDataset":
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """Tensors of one length; a sample is the tuple of their rows.

    Args:
        tensors: the tensors, all of the same first dimension
    """

    def __init__(self, *tensors):
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Datasets of one length, side by side: a sample is a tuple (or, from keywords, a dict) of theirs."""

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        self.datasets = args or kwargs
        parts = self._parts()
        if not parts:
            raise ValueError("At least one dataset should be passed")
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")

    def _parts(self) -> list[Dataset]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _sample(self, values):
        return dict(zip(self.datasets, values)) if isinstance(self.datasets, dict) else tuple(values)

    def __getitem__(self, index):
        return self._sample([part[index] for part in self._parts()])

    def __getitems__(self, indices: list) -> list:
        columns = [_column(part, indices) for part in self._parts()]
        return [self._sample(row) for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length


def _column(dataset, indices) -> Sequence:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset[T]):
    """Datasets end to end.

    Args:
        datasets: the datasets, by key
    """

    @staticmethod
    def cumsum(sequence) -> list[int]:
        """The number of samples up to the end of each dataset."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The name that this had once."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", category=FutureWarning, stacklevel=2
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """Iterable datasets, one after the other.

    Args:
        datasets: the iterable datasets
    """

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = datasets

    def _checked(self) -> Iterator[IterableDataset]:
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield part

    def __iter__(self):
        return itertools.chain.from_iterable(self._checked())

    def __len__(self) -> int:
        return sum(map(len, self._checked()))


class Subset(Dataset[T]):
    """Some samples of a dataset.

    Args:
        dataset: the whole
        indices: the indices of the samples picked
    """

    def __init__(self, dataset: Dataset[T], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__. "
                "When subclassing Subset and overriding __getitem__, you must also override __getitems__ "
                "to ensure DataLoader works correctly with your custom logic.\n"
                "  def __getitems__(self, indices): return [self[i] for i in indices]"
            )

    def __getitem__(self, idx):
        picked = [self.indices[i] for i in idx] if isinstance(idx, list) else self.indices[idx]
        return self.dataset[picked]

    def __getitems__(self, indices: list[int]) -> list[T]:
        picked = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(picked)
        return [self.dataset[i] for i in picked]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: rng.Generator | None = None
) -> list[Subset[T]]:
    """Split a dataset at random into parts that do not overlap.

    Args:
        dataset: the whole
        lengths: the parts' lengths; or fractions that sum to 1, where what rounding leaves over goes to the
            first parts, one sample each
        generator: what to draw from. Default: the default generator
    """
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _from_fractions(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    generator = rng.default_generator if generator is None else generator
    order = draw.randperm(generator, len(dataset)).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths)]


def _from_fractions(total: int, fractions) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return lengths
