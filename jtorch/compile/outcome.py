"""What a region returns, taken apart: tensors and numbers, and the containers and objects they are in, which a replay makes anew."""

import collections
import types

from ..core.device import Device
from ..core.dtype import dtype
from ..core.spec import Size
from ..tensor import Tensor
from .guards import SIMPLE

_CONTAINERS = (list, tuple, dict)
# Whose instances are what is in them, and their attributes.
_BASES = (tuple, list, collections.OrderedDict, dict, object)
_CONSTANT = (*SIMPLE, dtype, Device, Size)
_HEAP = 1 << 9  # of classes that a program has made


class Outcome:
    """`leaves` and their nesting, `tree`. made: the containers and objects. why: what of them no replay could make."""

    def __init__(self, value, young, given):
        """young: what the run has made. It is asked while the run is being watched. given: the arguments, each the same at each call."""
        self.young = young
        self.given = set(map(id, given))
        self.leaves, self.made = [], []
        self.why = self.tree = None
        try:
            self.tree = self.apart(value)
        except RecursionError:
            self.why = "a result that is nested too deeply"
        self.young = self.given = None

    def apart(self, value):
        """The nesting of one value."""
        kind = type(value)
        if kind in _CONTAINERS:
            self.made.append(value)
            if kind is not dict:
                return (kind, *map(self.apart, value))
            if not all(map(self.stays, value)):
                self.why = "a result with keys that were made for it"
            return (dict, *((k, self.apart(v)) for k, v in value.items()))
        known = isinstance(value, (Tensor, *_CONSTANT)) or id(value) in self.given
        if not known and self.young.has(value):
            base = next((cls for cls in kind.__mro__ if not cls.__flags__ & _HEAP), None)
            if base in _BASES and not hasattr(kind, "__del__") and not any(value is other for other in self.made):
                self.made.append(value)
                return self.object(value, kind, base)
        if not known:
            self.why = "a result that is neither tensor nor number"
        self.leaves.append(value)
        return None

    def stays(self, key) -> bool:
        """Whether a key of a dict is the same at each call."""
        if type(key) is tuple:
            return all(map(self.stays, key))
        return isinstance(key, _CONSTANT) or not isinstance(key, Tensor) and not self.young.has(key)

    def object(self, value, kind, base):
        """The nesting of an object that the run has made: what is in it, then its attributes."""
        own = vars(value) if hasattr(value, "__dict__") else {}
        slots = {name: found for cls in kind.__mro__ for name, found in _in_slots(cls, value)}
        if "_parameters" in own:
            self.why = "a result that is a module"
        self.made.append(own)
        keys = list(base.keys(value)) if issubclass(base, dict) else None
        if keys is not None:
            held = [base.__getitem__(value, k) for k in keys]
        else:
            held = [] if base is object else list(base.__iter__(value))
        parts = [*held, *own.values(), *slots.values()]
        ids = list(map(id, parts))  # what is in a dict may be an attribute too
        first = [ids.index(i) for i in ids]
        shell = _Shell(kind, base, keys, len(held), list(own), list(slots), first)
        return (shell, *(self.apart(part) for k, part in enumerate(parts) if first[k] == k))


def _in_slots(cls, value):
    """What is in the slots that a class has."""
    for name, found in vars(cls).items():
        if type(found) is types.MemberDescriptorType:
            try:
                yield name, found.__get__(value)
            except AttributeError:
                continue


def restore(tree, leaves):
    """A value from its nesting and what is in it."""
    if tree is None:
        return next(leaves)
    kind = tree[0]
    if kind is dict:
        return {k: restore(v, leaves) for k, v in tree[1:]}
    return kind([restore(v, leaves) for v in tree[1:]])


class _Shell:
    """Makes an object of a class out of what was in one like it."""

    __slots__ = ("kind", "base", "keys", "held", "names", "slots", "first")

    def __init__(self, *parts):
        self.kind, self.base, self.keys, self.held, self.names, self.slots, self.first = parts

    def __call__(self, given):
        given = iter(given)
        parts = []
        for k, first in enumerate(self.first):
            parts.append(next(given) if first == k else parts[first])
        held, own = parts[: self.held], parts[self.held :]
        base = self.base
        if base is tuple:
            made = tuple.__new__(self.kind, held)
        else:
            made = base.__new__(self.kind)
            if base is list:
                list.extend(made, held)
            for key, value in zip(self.keys or (), held):
                base.__setitem__(made, key, value)
        if self.names:
            vars(made).update(zip(self.names, own))
        for name, value in zip(self.slots, own[len(self.names) :]):
            object.__setattr__(made, name, value)
        return made


__all__ = ["Outcome", "restore"]
