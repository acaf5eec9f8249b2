"""Steps that change which samples come, and when: shuffle, a sampler's order, shares of several readers."""

import enum
import random

from ...sampler import SequentialSampler, random_seed
from ..common import length_of
from ..datapipe import IterDataPipe
from ..decorators import functional_datapipe

__all__ = [
    "SHARDING_PRIORITIES",
    "SamplerIterDataPipe",
    "ShardingFilterIterDataPipe",
    "ShufflerIterDataPipe",
]


class SamplerIterDataPipe(IterDataPipe):
    """The order of a sampler, by default that of the pipe's own length."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return length_of(self, self.sampler)


class Random(IterDataPipe):
    """What both ways of shuffling share: a generator of their own, seeded from the default one before each pass."""

    def __init__(self, datapipe):
        self.datapipe = datapipe
        self._enabled = True
        self._seed = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True):
        """Whether to shuffle at all; the pipe itself."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int):
        """The seed of the next pass; the pipe itself."""
        self._seed = seed
        return self

    def _sow(self):
        if self._enabled and self._seed is None:
            self._seed = random_seed()
        self._rng.seed(self._seed)
        self._seed = None

    def __len__(self):
        return length_of(self, self.datapipe)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Random):
    """Samples in a random order, each drawn from `buffer_size` that wait; lists are taken apart first by `unbatch_level`."""

    def __init__(self, datapipe, *, buffer_size: int = 10000, unbatch_level: int = 0):
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level))
        self.buffer_size = buffer_size
        self._buffer: list = []

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        waiting = self._buffer
        for sample in self.datapipe:
            if len(waiting) < self.buffer_size:
                waiting.append(sample)
                continue
            place = self._rng.randint(0, len(waiting) - 1)
            sample, waiting[place] = waiting[place], sample
            yield sample
        while waiting:
            yield waiting.pop(self._rng.randint(0, len(waiting) - 1))

    def reset(self):
        self._buffer = []
        if self._enabled:
            self._sow()


class SHARDING_PRIORITIES(enum.IntEnum):
    """Who shares samples out: a group of a higher number does so within each share of the lower."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class Sharding(IterDataPipe):
    """A pipe that can be told to give a share of its samples only."""

    def apply_sharding(self, num_of_instances, instance_id, sharding_group):
        """Give the share `instance_id` of `num_of_instances`."""
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(Sharding):
    """The share of the samples that `apply_sharding` says: every n-th. DataLoader says it to each worker."""

    def __init__(self, source_datapipe, sharding_group_filter=None):
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self._count()

    def apply_sharding(self, num_of_instances, instance_id, sharding_group=SHARDING_PRIORITIES.DEFAULT):
        """Give the share `instance_id` of `num_of_instances`, among those of the same group."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        usual = SHARDING_PRIORITIES.DEFAULT
        if any((group == usual) != (sharding_group == usual) for group in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self._count()

    def _count(self):
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                number, place = self.groups[group]
                self.instance_id += self.num_of_instances * place
                self.num_of_instances *= number

    def __iter__(self):
        for i, sample in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self):
        n = length_of(self, self.source_datapipe)
        return n // self.num_of_instances + (self.instance_id < n % self.num_of_instances)
