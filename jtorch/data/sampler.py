"""Samplers: the order in which a DataLoader asks for samples. The numbers are drawn as PyTorch draws them."""

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Generic, TypeVar

import numpy as np

from ..core import draw, rng
from . import tensors

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)


def random_seed(generator: rng.Generator | None = None) -> int:
    """A number of 63 bits from a generator, the default one if None."""
    generator = rng.default_generator if generator is None else generator
    return int(draw.random(generator, ()))


class Sampler(Generic[T]):
    """Indices, or lists of indices: define `__iter__`, and `__len__` where the length is known."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All samples in their order.

    Args:
        data_source: the dataset; only its length matters
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Samples in random order.

    Args:
        data_source: the dataset; only its length matters
        replacement: whether a sample may come twice. Default: False
        num_samples: how many to draw. Default: the length of the dataset
        generator: what to draw from. Default: a new one, seeded by the default generator in each epoch
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: rng.Generator | None = None,
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many are drawn; follows the dataset's length unless given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = rng.Generator().manual_seed(random_seed())
        n, wanted = len(self.data_source), self.num_samples
        if self.replacement:  # in blocks of 32, each drawn when it is reached: the generator may be shared
            for start in range(0, wanted, 32):
                yield from draw.randint(generator, 0, n, (min(32, wanted - start),)).tolist()
            return
        for _ in range(wanted // n):
            yield from draw.randperm(generator, n).tolist()
        # PyTorch draws this order even where no sample of it is wanted
        yield from draw.randperm(generator, n).tolist()[: wanted % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    Args:
        indices: the indices
        generator: what to draw from. Default: the default generator
    """

    def __init__(self, indices: Sequence[int], generator: rng.Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        generator = rng.default_generator if self.generator is None else self.generator
        for i in draw.randperm(generator, len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn by weight.

    Args:
        weights: the weight of each index; they need not sum to one
        num_samples: how many to draw
        replacement: whether an index may come twice. Default: True
        generator: what to draw from. Default: the default generator
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: rng.Generator | None = None,
    ):
        if not _is_count(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self._weights = np.asarray(weights).astype(np.float64)
        if self._weights.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {self._weights.shape}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    @property
    def weights(self):
        """The weights as a tensor, float64."""
        return tensors.from_numpy(self._weights)

    def __iter__(self) -> Iterator[int]:
        draw.check_multinomial(self._weights, self.num_samples, self.replacement)
        generator = rng.default_generator if self.generator is None else self.generator
        yield from draw.multinomial(generator, self._weights, self.num_samples, self.replacement).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists.

    Args:
        sampler: the sampler, or any iterable of indices
        batch_size: the length of a list
        drop_last: leave out the last list if it is shorter
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool):
        if not _is_count(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _is_count(n) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n > 0
