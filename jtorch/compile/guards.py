"""Conditions under which a replay may stand for the Python of a region: each thing that it read is still what it was.

A number or word is compared by type and value, anything else by what it is; of containers and arrays of numpy also what is in them.
"""

import abc
import collections
import types
from itertools import chain, repeat
from operator import attrgetter, call, is_

import numpy as np

from ..handles import Reference
from ..tensor import Tensor

SIMPLE = (int, float, bool, str, bytes, type(None), complex)
FIXED = frozenset((*SIMPLE, np.bool_, *(np.dtype(c).type for c in "bBhHiIlLefdFD")))  # compared by type and value
_MAPPINGS = (collections.OrderedDict, dict, types.MappingProxyType)
_PLAIN = frozenset((list, set, tuple, frozenset, collections.deque, bytearray))
MISSING = object()
FOLLOWED = object()  # stands for a value that may be another one
# What jtorch itself keeps in the `__dict__` of a tensor.
_OF_TENSORS = frozenset(
    ("_acc", "_counted", "_made", "_post_hooks", "_tangent", "_nowhere", "_retains", "_acc_hooks", "_acc_pre_hooks")
)
_NO_NAMES: set = set()
parts_of = attrgetter("__code__", "__defaults__", "__kwdefaults__")
_cell = attrgetter("cell_contents")


def same(found, value) -> bool:
    """Whether what is found may stand for what was read."""
    if found is value:
        return True
    kind = type(value)
    if kind is Reference:
        return found is not None and value() is found
    if kind not in FIXED or type(found) is not kind:
        return value is FOLLOWED
    return found == value and (found != 0 or repr(found) == repr(value))  # 0.0 and -0.0


def kept(value):
    """A thing read, to be compared later: tensors by a weak reference, since a guard must not keep them alive."""
    return Reference(value) if isinstance(value, Tensor) else value


def _alike(found, values) -> bool:
    found = list(found)
    if len(found) != len(values):
        return False
    return all(map(is_, found, values)) or all(map(same, found, values))


def _holds(attributes, values) -> bool:
    """Whether the attributes of a class are what they were."""
    found = attributes.values()
    return all(map(is_, found, values)) or all(map(same, found, values))


def members(container) -> list:
    """What a container has in it, in order, whatever a class of its own says."""
    kind = type(container)
    if kind in _PLAIN:
        return list(container)
    if kind not in _MAPPINGS:
        kind = next(base for base in (*_MAPPINGS, *_PLAIN) if isinstance(container, base))
    found = list(kind.__iter__(container))
    return found + list(kind.values(container)) if kind in _MAPPINGS else found


def bytes_of(array):
    return array.shape, array.dtype.str, array.tobytes()


def settings_of(own, names):
    """The attributes of a module that code may read which names these (None: any), and those that the library reads."""
    return {
        name: value
        for name, value in own.items()
        if names is None or name in names or name[0] == "_" or name == "training"
    }


def is_set_as(own, names, settings, size) -> bool:
    """Whether they are what they were: as `settings_of`, but for tensors by references. size: how many attributes there were."""
    if len(own) == size and all(map(is_, map(own.get, settings), settings.values())):
        return True
    found = settings_of(own, names)
    return found.keys() == settings.keys() and all(same(found[name], value) for name, value in settings.items())


def _registered(*_):
    """How often a class has been registered with an abstract one."""
    return abc.get_cache_token()


def attributes_of(tensor):
    """The names of the attributes that a tensor has been given by the program."""
    own = tensor.__dict__
    return own.keys() - _OF_TENSORS if own else _NO_NAMES


class Guards:
    """Conditions under which the Python of a region would do what it did; `hold()` asks them."""

    __slots__ = ("looked", "tensors", "proxied", "whole", "cells", "functions", "contents", "arrays", "slots", "kinds", "owned", "sizes",
                 "known")  # fmt: skip

    def __init__(self):
        self.looked = [], [], []  # dicts, names, values
        self.tensors = [], [], []  # dicts, names, references to the tensors there
        self.proxied = [], [], []  # `get` of the attributes of classes, names, values
        self.whole = [], []  # attributes of classes, their values
        self.cells = [], []  # closure cells, values
        self.functions = [], []  # functions, and their parts one after the other
        self.contents = []  # (container, what is in it)
        self.arrays = []  # (array of numpy, its bytes)
        self.slots = []  # (object, name, value)
        self.kinds = [], []  # objects, their classes
        self.owned = [], []  # objects, the dicts of their attributes
        self.sizes = [], []  # dicts of attributes, to which no name may come; how many those have
        self.known = set()

    def live(self) -> set:
        """The ids of what can be changed in place without a trace: containers and arrays."""
        return {id(each) for each, _ in (*self.contents, *self.arrays)}

    def look(self, holder, name, value):
        """A name in a dict (globals, attributes of an object) or a class has this value, or none: MISSING."""
        if (id(holder), name) in self.known or value is FOLLOWED:
            return
        self.known.add((id(holder), name))
        if isinstance(holder, type):
            self._add(self.proxied, vars(holder).get, name, kept(value))
        elif isinstance(value, Tensor):
            self._add(self.tensors, holder, name, kept(value))
        else:
            self._add(self.looked, holder, name, value)

    def classes(self):
        """No class may be registered as one that has an abstract class for its base."""
        if _registered not in self.proxied[0]:
            self._add(self.proxied, _registered, None, _registered())

    def all_of(self, kind):
        """All attributes of a class are what they are, in this order."""
        held = vars(kind)
        if id(kind) not in self.known:
            self.known.add(id(kind))
            self.count(held, held)
            self._add(self.whole, held, list(map(kept, held.values())))

    def ask(self, fn, given, value):
        """A function has this value."""
        self._add(self.proxied, lambda name, _: fn(name), given, kept(value))

    def count(self, holder, held):
        """No name may come to a dict of attributes, which held these."""
        self._add(self.sizes, holder, len(held))

    @staticmethod
    def _add(lists, *values):
        for each, value in zip(lists, values):
            each.append(value)

    def hold(self) -> bool:
        """Whether all is as it was."""
        dicts, names, values = self.looked
        if not all(map(is_, map(dict.get, dicts, names, repeat(MISSING)), values)):
            if not all(map(same, map(dict.get, dicts, names, repeat(MISSING)), values)):
                return False
        dicts, names, references = self.tensors
        if dicts:
            found = list(map(dict.get, dicts, names, repeat(MISSING)))
            if any(map(is_, found, repeat(None))) or not all(map(is_, found, map(call, references))):
                return False
        functions, parts = self.functions
        if functions and not all(map(is_, chain.from_iterable(map(parts_of, functions)), parts)):
            return False
        dicts, sizes = self.sizes
        if dicts and list(map(len, dicts)) != sizes:
            return False
        objects, kinds = self.kinds
        if not all(map(is_, map(type, objects), kinds)):
            return False
        objects, dicts = self.owned
        if not all(map(is_, map(vars, objects), dicts)):
            return False
        gets, names, values = self.proxied
        if gets and not all(map(is_, map(call, gets, names, repeat(MISSING)), values)):
            if not all(map(same, map(call, gets, names, repeat(MISSING)), values)):
                return False
        classes, held = self.whole
        if classes and not all(map(_holds, classes, held)):
            return False
        cells, values = self.cells
        if cells:
            try:
                if not _alike(map(_cell, cells), values):
                    return False
            except ValueError:
                return False  # it is empty
        for live, values in self.contents:
            if not _alike(members(live), values):
                return False
        for array, was in self.arrays:
            if bytes_of(array) != was:
                return False
        for owner, name, value in self.slots:
            if not same(getattr(owner, name, MISSING), value):
                return False
        return True


__all__ = [
    "FIXED",
    "FOLLOWED",
    "MISSING",
    "SIMPLE",
    "Guards",
    "attributes_of",
    "bytes_of",
    "is_set_as",
    "kept",
    "members",
    "parts_of",
    "same",
    "settings_of",
]
