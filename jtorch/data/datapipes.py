"""IterDataPipe and MapDataPipe: datasets whose steps are methods that a decorator registers.

PyTorch keeps these for old programs and adds nothing to them; the steps here are those that need no state of their own.
"""

import contextlib
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator

from .. import errors
from .collate import default_collate
from .dataset import Dataset, IterableDataset
from .sampler import SequentialSampler
from .worker import get_worker_info

__all__ = [
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]

# Steps of PyTorch's that are not here, and what does their work.
_ELSEWHERE = {
    "shuffle": "DataLoader(shuffle=True) or RandomSampler", "fork": "itertools.tee", "demux": "filter",
    "mux": "an IterableDataset of your own", "groupby": "an IterableDataset of your own",
    "list_files": "pathlib.Path.rglob", "open_files": "open", "read_from_stream": "open", "routed_decode": "map",
    "trace_as_dataframe": "a dataframe library",
}  # fmt: skip


class _Steps:
    """What both kinds of pipe share: registered functions are methods, and how a pipe prints."""

    functions: dict[str, Callable] = {}

    def __getattr__(self, name):
        if name in self.functions:
            return functools.partial(self.functions[name], self)
        if name in _ELSEWHERE:
            raise errors.unsupported(f"the data pipe step {name}", _ELSEWHERE[name])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Make `function(pipe, ...)` a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register, enable_df_api_tracing=False) -> None:
        """Make the class, called with a pipe first, a method of all pipes."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        @functools.wraps(cls_to_register, updated=())
        def step(source, *args, **kwargs):
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = step

    def __repr__(self):
        return type(self).__qualname__

    __str__ = __repr__

    def __dir__(self):
        return sorted({*super().__dir__(), *self.functions})


class _One:
    """The iterator of a pipe: another one of the same pipe ends it."""

    def __init__(self, pipe, samples):
        self._keep = pipe
        self._samples = samples
        pipe.__dict__["_latest"] = weakref.ref(self)

    def __iter__(self):
        return self

    def __next__(self):
        latest = self._keep.__dict__.get("_latest")
        if latest is None or latest() is not self:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
                f"{self._keep!r}\nThis may be caused by multiple references to the same IterDataPipe: make one pipe for each."
            )
        return next(self._samples)


class IterDataPipe(_Steps, IterableDataset):
    """Samples one after the other; steps such as `.map(fn)` and `.batch(n)` give a new pipe.

    Define `__iter__`. Of one pipe only the latest iterator is valid.
    """

    functions: dict[str, Callable] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if own is not None:

            @functools.wraps(own)
            def iterate(self):
                if type(self).__iter__ is not iterate:  # called by a subclass's own: that one is wrapped
                    return own(self)
                return _One(self, iter(own(self)))

            cls.__iter__ = iterate

    def __iter__(self) -> Iterator:
        return self

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "_latest"}

    def reset(self) -> None:
        """Called by programs before a new pass; a pipe that keeps state may define it."""
        self.__dict__.pop("_latest", None)


class MapDataPipe(_Steps, Dataset):
    """Samples by key; steps such as `.map(fn)` and `.batch(n)` give a new pipe. Define `__getitem__` and `__len__`."""

    functions: dict[str, Callable] = {}


class DFIterDataPipe(IterDataPipe):
    """A pipe of rows of dataframes."""

    def _is_dfpipe(self):
        return True


class DataChunk(list):
    """A list that the steps of a pipe treat as one batch."""

    def __init__(self, items):
        self.items = list(items)
        super().__init__(self.items)

    def as_str(self, indent: str = "") -> str:
        """The items, in brackets."""
        return indent + "[" + ", ".join(str(i) for i in iter(self)) + "]"

    def raw_iterator(self) -> Iterator:
        """The items as they are stored."""
        return iter(self.items)


# --- decorators --------------------------------------------------------------------------------------------------------


class functional_datapipe:
    """Registers a pipe's class as a method of all pipes of its kind, under `name`."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False):
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls):
        if isinstance(cls, type) and issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif isinstance(cls, type) and issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


_guaranteed = [False]


class guaranteed_datapipes_determinism(contextlib.ContextDecorator):
    """Inside, making a pipe that is marked `non_deterministic` raises."""

    def __enter__(self):
        self._before, _guaranteed[0] = _guaranteed[0], True

    def __exit__(self, *exc):
        _guaranteed[0] = self._before


class non_deterministic:
    """Marks a class of pipes as not deterministic, always or where a function of its arguments says so."""

    def __new__(cls, arg):
        if isinstance(arg, type) and issubclass(arg, IterDataPipe):
            return _marked(arg, lambda *args, **kwargs: True)
        if not callable(arg) or isinstance(arg, type):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")
        return functools.partial(_marked, says=arg)


def _marked(cls, says):
    if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
        raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {cls.__name__} is found")
    usual = cls.__init__

    @functools.wraps(usual)
    def init(self, *args, **kwargs):
        if _guaranteed[0] and says(*args, **kwargs):
            raise TypeError(
                f"{cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can turn off "
                "determinism for this DataPipe if that is acceptable for your application"
            )
        usual(self, *args, **kwargs)

    cls.__init__ = init
    return cls


def argument_validation(f):
    """The function itself: PyTorch checks only pipes typed by a metaclass that it no longer gives any."""
    return f


def runtime_validation(f):
    """The function itself, for the same reason as `argument_validation`."""
    return f


class runtime_validation_disabled(contextlib.ContextDecorator):
    """A context in which `runtime_validation` checks nothing, as it does outside."""

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return None


# --- steps -------------------------------------------------------------------------------------------------------------


class IterableWrapperIterDataPipe(IterDataPipe):
    """A pipe of any iterable; a copy of it where it can be copied by iterating."""

    def __init__(self, iterable, deepcopy: bool = True):
        self.iterable = list(iterable) if deepcopy and isinstance(iterable, list) else iterable

    def __iter__(self):
        return iter(self.iterable)

    def __len__(self):
        return len(self.iterable)


class SequenceWrapperMapDataPipe(MapDataPipe):
    """A pipe of any sequence or mapping."""

    def __init__(self, sequence, deepcopy: bool = True):
        self.sequence = list(sequence) if deepcopy and isinstance(sequence, list) else sequence

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


class _From(IterDataPipe):
    """A step on one pipe."""

    def __init__(self, datapipe):
        self.datapipe = datapipe

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("map")
class MapperIterDataPipe(_From):
    """`fn` of each sample."""

    def __init__(self, datapipe, fn: Callable):
        super().__init__(datapipe)
        self.fn = fn

    def __iter__(self):
        return map(self.fn, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches joined, by default as DataLoader does."""

    def __init__(self, datapipe, collate_fn: Callable = default_collate):
        super().__init__(datapipe, collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(_From):
    """The samples for which `filter_fn` holds."""

    def __init__(self, datapipe, filter_fn: Callable):
        super().__init__(datapipe)
        self.filter_fn = filter_fn

    def __iter__(self):
        return filter(self.filter_fn, self.datapipe)

    def __len__(self):
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("batch")
class BatcherIterDataPipe(_From):
    """Samples in DataChunks of `batch_size`."""

    def __init__(self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk):
        assert batch_size > 0, "Batch size is required to be larger than 0!"
        super().__init__(datapipe)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self):
        samples = iter(self.datapipe)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self):
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(FilterIterDataPipe):
    """Takes `unbatch_level` levels of lists apart; -1: all of them."""

    def __init__(self, datapipe, unbatch_level: int = 1):
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        IterDataPipe.__init__(self)
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self):
        for element in self.datapipe:
            yield from self._apart(element, self.unbatch_level)

    def _apart(self, element, level):
        if level == 0 or (level == -1 and not isinstance(element, list)):
            yield element
        elif isinstance(element, list):
            for item in element:
                yield from self._apart(item, level - 1 if level > 0 else -1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """Pipes, one after the other."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __iter__(self):
        return itertools.chain.from_iterable(self.datapipes)

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(ConcaterIterDataPipe):
    """Tuples of one sample of each pipe, as long as the shortest."""

    def __iter__(self):
        return zip(*self.datapipes)

    def __len__(self):
        return min(map(len, self.datapipes))


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_From):
    """Its share of the samples, every n-th: what `apply_sharding` said, or else that of the worker it runs in."""

    _applied = None

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group=None) -> None:
        """Give every `num_of_instances`-th sample from number `instance_id` on."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self._applied = instance_id, num_of_instances

    def _share(self):
        if self._applied is not None:
            return self._applied
        info = get_worker_info()
        return (0, 1) if info is None else (info.id, info.num_workers)

    def __iter__(self):
        first, step = self._share()
        return itertools.islice(self.datapipe, first, None, step)

    def __len__(self):
        first, step = self._share()
        return len(range(first, len(self.datapipe), step))


class SamplerIterDataPipe(_From):
    """The order of a sampler, by default that of the pipe's own length."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        super().__init__(datapipe)
        self.sampler = sampler(*(sampler_args or ()), **{"data_source": datapipe, **(sampler_kwargs or {})})

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return len(self.sampler)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """`fn` of each sample."""

    def __init__(self, datapipe, fn: Callable):
        self.datapipe = datapipe
        self.fn = fn

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Samples 0 to n-1 in DataChunks of `batch_size`."""

    def __init__(self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk):
        assert batch_size > 0, "Batch size is required to be larger than 0!"
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        start = index * self.batch_size
        return self.wrapper_class(
            [self.datapipe[i] for i in range(start, min(start + self.batch_size, len(self.datapipe)))]
        )

    def __len__(self):
        n = len(self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """Pipes end to end."""

    def __init__(self, *datapipes):
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

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
class ZipperMapDataPipe(ConcaterMapDataPipe):
    """Tuples of one sample of each pipe, as long as the shortest."""

    def __getitem__(self, index):
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self):
        return min(map(len, self.datapipes))


# PyTorch's short names, as its modules datapipes.iter and datapipes.map have them
ITER = {
    cls.__name__.removesuffix("IterDataPipe"): cls
    for cls in (
        BatcherIterDataPipe, CollatorIterDataPipe, ConcaterIterDataPipe, FilterIterDataPipe, IterableWrapperIterDataPipe,
        MapperIterDataPipe, SamplerIterDataPipe, ShardingFilterIterDataPipe, UnBatcherIterDataPipe, ZipperIterDataPipe,
    )
}  # fmt: skip
MAP = {
    cls.__name__.removesuffix("MapDataPipe"): cls
    for cls in (
        BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe, SequenceWrapperMapDataPipe, ZipperMapDataPipe,
    )
}  # fmt: skip
