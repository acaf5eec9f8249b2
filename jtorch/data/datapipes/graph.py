"""The graph of pipes that one pipe draws on."""

import io
import pickle
import warnings
from collections.abc import Collection

from .datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

_PIPES = (IterDataPipe, MapDataPipe)


def _left_out():
    """What stands in the pickle for what is not gone into."""


class _Finder(pickle.Pickler):
    """Pickles one pipe to nowhere, and notes the pipes that it meets on the way."""

    def __init__(self, pipe, seen):
        super().__init__(io.BytesIO())
        self.pipe = pipe
        self.seen = seen
        self.found = []

    def reducer_override(self, thing):
        if thing is self.pipe:
            return NotImplemented
        if isinstance(thing, _PIPES):
            if id(thing) not in self.seen:
                self.seen.add(id(thing))
                self.found.append(thing)
            return _left_out, ()
        if callable(thing) and hasattr(thing, "__code__") and thing is not _left_out:
            return _left_out, ()  # a function holds no pipe, and a local one cannot be pickled
        return NotImplemented


def _of_pipes(state):
    """What of a pipe's state may hold pipes: pipes themselves, and collections."""
    kinds = (*_PIPES, Collection)
    if isinstance(state, dict):
        return {k: v for k, v in state.items() if isinstance(v, kinds)}
    if isinstance(state, (tuple, list)):
        return [v for v in state if isinstance(v, kinds)]
    return state if isinstance(state, kinds) else None


def _connected(pipe, only_pipes, seen):
    finder = _Finder(pipe, seen)
    hook = _of_pipes if only_pipes else None
    try:
        for kind in _PIPES:
            kind.set_getstate_hook(hook)
        finder.dump(pipe)
    finally:
        for kind in _PIPES:
            kind.set_getstate_hook(None)
    return finder.found


def _traverse(pipe, only_pipes, above):
    if not isinstance(pipe, _PIPES):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in above:
        return {}
    above = above | {id(pipe)}
    below = {}
    for found in _connected(pipe, only_pipes, set(above)):
        below.update(_traverse(found, only_pipes, above))
    return {id(pipe): (pipe, below)}


def traverse_dps(datapipe) -> dict:
    """`{id: (pipe, the same of the pipes that it draws on)}`, of pipes that are attributes, or in collections that are."""
    return _traverse(datapipe, True, frozenset())


def traverse(datapipe, only_datapipe: bool | None = None) -> dict:
    """`traverse_dps`, which goes through all attributes unless `only_datapipe`. Deprecated."""
    words = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    if not only_datapipe:
        words += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(words, FutureWarning, stacklevel=2)
    return _traverse(datapipe, bool(only_datapipe), frozenset())
