"""IterDataPipe and MapDataPipe: datasets whose steps are methods that a decorator registers."""

import functools
import importlib
import importlib.util
import pickle
from collections.abc import Callable, Iterator

from ... import errors
from ..dataset import Dataset, IterableDataset, T
from .passes import SnapshotState, checked_iter, checked_next, counted_reset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

# Steps of PyTorch's that are not here, and what does their work.
_ELSEWHERE = {"routed_decode": "map", "trace_as_dataframe": "a dataframe library"}


class _Steps:
    """What both kinds of pipe share: registered functions are methods, how a pipe prints, and hooks of its state."""

    functions: dict[str, Callable] = {}
    reduce_ex_hook: Callable | None = None
    getstate_hook: Callable | None = None
    str_hook: Callable | None = None
    repr_hook: Callable | None = None

    def __getattr__(self, name):
        if name in self.functions:
            function = self.functions[name]
            step = functools.partial(function, self)
            step.__doc__ = function.__doc__
            return step
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

    @classmethod
    def _root(cls):
        return IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe

    @classmethod
    def set_getstate_hook(cls, hook_fn) -> None:
        """Have `hook_fn(state)` say what of a pipe's state is pickled; None: all."""
        if cls._root().getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls._root().getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn) -> None:
        """Have `hook_fn(pipe)` say how a pipe is pickled; where it raises NotImplementedError, or is None: as always."""
        if cls._root().reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls._root().reduce_ex_hook = hook_fn

    def __getstate__(self):
        return self._hooked(self.__dict__)

    def _hooked(self, state):
        hook = self._root().getstate_hook
        return state if hook is None else hook(state)

    def __reduce_ex__(self, protocol):
        hook = self._root().reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    def __repr__(self):
        return type(self).__qualname__ if self.repr_hook is None else self.repr_hook(self)

    def __str__(self):
        return type(self).__qualname__ if self.str_hook is None else self.str_hook(self)

    def __dir__(self):
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Steps, IterableDataset[T]):
    """Samples one after the other; steps such as `.map(fn)` and `.batch(n)` give a new pipe.

    Define `__iter__`. Of one pipe only the latest iterator is valid, and a new one calls `reset()` first.
    """

    functions: dict[str, Callable] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0
    _snapshot_state = SnapshotState.NotStarted
    _fast_forward_iterator: Iterator | None = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "__iter__" in own:
            if "__next__" in own:
                cls.__next__ = checked_next(own["__next__"])
            cls.__iter__ = checked_iter(own["__iter__"], "__next__" in own)
        if "reset" in own:
            cls.reset = counted_reset(own["reset"])

    def __iter__(self) -> Iterator[T]:
        return self

    @counted_reset
    def reset(self) -> None:
        """Called before each pass; a pipe that keeps state may define it."""


IterDataPipe.__iter__ = checked_iter(IterDataPipe.__iter__, False)


class MapDataPipe(_Steps, Dataset[T]):
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


class _DataPipeSerializationWrapper:
    """A pipe that goes to workers as bytes, of dill's where pickle cannot write it and dill is there."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __getstate__(self):
        try:
            return pickle.dumps(self._datapipe), False
        except Exception:
            if importlib.util.find_spec("dill") is None:
                raise
            return importlib.import_module("dill").dumps(self._datapipe), True

    def __setstate__(self, state):
        written, by_dill = state
        self._datapipe = (importlib.import_module("dill") if by_dill else pickle).loads(written)

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except Exception as error:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from error


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    def __init__(self, datapipe):
        super().__init__(datapipe)
        self._datapipe_iter = None

    def __iter__(self):
        self._datapipe_iter = iter(self._datapipe)
        return self

    def __next__(self):
        if self._datapipe_iter is None:
            raise AssertionError("Iterator has not been initialized; call __iter__() before __next__()")
        return next(self._datapipe_iter)


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    def __getitem__(self, idx):
        return self._datapipe[idx]
