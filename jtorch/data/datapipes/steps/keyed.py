"""Pipes whose samples are found by key, and their steps: map, batch, concat, zip, shuffle."""

import copy
import warnings
from collections.abc import Callable

from ..common import Batches, check_function
from ..datapipe import MapDataPipe
from ..decorators import functional_datapipe
from .ordering import Random

__all__ = [
    "BatcherMapDataPipe",
    "ConcaterMapDataPipe",
    "MapperMapDataPipe",
    "SequenceWrapperMapDataPipe",
    "ShufflerIterDataPipe",
    "ZipperMapDataPipe",
    "default_fn",
]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """A pipe of a sequence or mapping: of a deep copy of it, unless `deepcopy` is false or none can be made."""

    def __init__(self, sequence, deepcopy: bool = True):
        if deepcopy:
            try:
                sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification would affect "
                    "source data",
                    stacklevel=2,
                )
        self.sequence = sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


def default_fn(data):
    """The sample as it is."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """`fn` of each sample."""

    def __init__(self, datapipe, fn: Callable = default_fn):
        self.datapipe = datapipe
        check_function(fn)
        self.fn = fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(Batches, MapDataPipe):
    """Samples 0 to n-1 in lists of `batch_size`, made by `wrapper_class`."""

    def __getitem__(self, index):
        batch = []
        try:
            for i in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[i])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)


class _Several(MapDataPipe):
    """A step of several pipes."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
            raise TypeError("Expected all inputs to be `Sized`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_Several):
    """Pipes end to end."""

    def __getitem__(self, index):
        offset = index
        for pipe in self.datapipes:
            if offset < len(pipe):
                return pipe[offset]
            offset -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(_Several):
    """Tuples of one sample of each pipe, as long as the shortest."""

    def __getitem__(self, index):
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(found)

    def __len__(self):
        return min(map(len, self.datapipes))


class ShufflerIterDataPipe(Random):
    """The samples of a pipe by key, in a random order of `indices`, by default 0 to its length."""

    def __init__(self, datapipe, *, indices: list | None = None):
        super().__init__(datapipe)
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._shuffled_indices = self.indices

    def __iter__(self):
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self):
        self._sow()
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
