"""The pipes behind a data pipe, as a graph, and what a loader says to all of them: their share, their order, their seed."""

import enum
import inspect
from collections.abc import Callable, Mapping

from .. import errors
from ..core import rng
from .datapipes import IterDataPipe, MapDataPipe
from .sampler import random_seed

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
    "traverse",
    "traverse_dps",
]

DataPipe = IterDataPipe | MapDataPipe
DataPipeGraph = dict[int, tuple[DataPipe, "DataPipeGraph"]]


class SHARDING_PRIORITIES(enum.IntEnum):
    """Which shares are made first."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _SerializationWrapper:
    """Holds a pipe for a loader."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __len__(self):
        return len(self._datapipe)


class _IterDataPipeSerializationWrapper(_SerializationWrapper, IterDataPipe):
    """An iterable pipe, held."""

    def __iter__(self):
        return iter(self._datapipe)


class _MapDataPipeSerializationWrapper(_SerializationWrapper, MapDataPipe):
    """A pipe by key, held."""

    def __getitem__(self, idx):
        return self._datapipe[idx]


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """The pipe and those that its attributes hold, in collections too: `{id: (pipe, graph of what it holds)}`."""
    return _graph(datapipe, frozenset())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """traverse_dps by its old name."""
    words = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    if not only_datapipe:
        words += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    errors.warn(words, FutureWarning)
    return traverse_dps(datapipe)


def _graph(pipe, above: frozenset) -> DataPipeGraph:
    if not isinstance(pipe, DataPipe):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in above:
        return {}
    above |= {id(pipe)}
    below: DataPipeGraph = {}
    for held in _held(pipe.__getstate__(), set()):
        below.update(_graph(held, above))
    return {id(pipe): (pipe, below)}


def _held(value, seen: set):
    """The pipes in a collection, at any depth, each once."""
    if id(value) in seen or isinstance(value, str | bytes):
        return
    seen.add(id(value))
    if isinstance(value, DataPipe):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _held(key, seen)
            yield from _held(item, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _held(item, seen)


def get_all_graph_pipes(graph: DataPipeGraph) -> list[DataPipe]:
    """All pipes of a graph, each once, those nearest to its end first in each branch."""
    pipes: dict[int, DataPipe] = {}
    _collect(graph, pipes)
    return list(pipes.values())


def _collect(graph, pipes):
    for number, (pipe, below) in graph.items():
        if number not in pipes:
            pipes[number] = pipe
            _collect(below, pipes)


def _with(datapipe, *methods: str) -> list[DataPipe]:
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    return [p for p in pipes if all(inspect.ismethod(getattr(p, name, None)) for name in methods)]


def apply_sharding(
    datapipe: DataPipe, num_of_instances: int, instance_id: int, sharding_group=SHARDING_PRIORITIES.DEFAULT
) -> DataPipe:
    """Tell the pipe of each branch that shares samples out which share it is to give; the pipe itself."""
    _share(traverse_dps(datapipe), None, (num_of_instances, instance_id), sharding_group)
    return datapipe


def _share(graph, before, share, group):
    for pipe, below in graph.values():
        apply: Callable | None = getattr(pipe, "apply_sharding", None)
        if not inspect.ismethod(apply):
            _share(below, before, share, group)
            continue
        if before is not None:
            raise RuntimeError(
                "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                f"Sharding already applied to {before} while trying to apply to {pipe}"
            )
        if len(inspect.signature(apply).parameters) < 3:
            apply(*share)
        else:
            apply(*share, sharding_group=group)
        _share(below, pipe, share, group)


def apply_shuffle_settings(datapipe: DataPipe, shuffle: bool | None = None) -> DataPipe:
    """Turn the pipes that shuffle on or off; where there is none to turn on, one is put at the end."""
    if shuffle is None:
        return datapipe
    shufflers = _with(datapipe, "set_shuffle", "set_seed")
    if not shufflers and shuffle:
        errors.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. "
            "Be aware that the default buffer size might not be sufficient for your task."
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: DataPipe, rng: rng.Generator) -> DataPipe:
    """Give each pipe that takes a seed one of its own from the generator; the pipe itself."""
    for pipe in _with(datapipe, "set_seed"):
        pipe.set_seed(random_seed(rng))
    return datapipe


def apply_shuffle_seed(datapipe: DataPipe, rng) -> DataPipe:
    """apply_random_seed by its old name."""
    errors.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. "
        "Please use `apply_random_seed` instead.",
        FutureWarning,
    )
    return apply_random_seed(datapipe, rng)
