"""What the Python of a region has read, as conditions that a replay asks (`guards.py`).

What can change in place (containers, arrays of numpy, objects, classes, functions) is followed as far as the names go that the region's
code reads attributes by.
"""

import abc
import collections
import contextvars
import enum
import functools
import logging
import operator
import os
import pathlib
import random
import re
import sys
import threading
import types
import weakref

import numpy as np

from ..tensor import Tensor
from .guards import FIXED, FOLLOWED, MISSING, attributes_of, bytes_of, kept, members, parts_of, settings_of

_IMMUTABLE = (range, slice, type(...), type(NotImplemented), re.Pattern, np.dtype, np.generic, pathlib.PurePath)  # fmt: skip
_CONTAINERS = (list, dict, set, tuple, frozenset, collections.deque, bytearray, types.MappingProxyType)
# modules whose classes read attributes that no code of the user's names, and whose objects keep what they hold in C
_WHOLE = frozenset(("collections", "weakref", "types", "contextlib", "string", "textwrap", "reprlib", "statistics"))
_HIDING = frozenset(("_ctypes", "_io", "_thread"))
_SURROUNDINGS = (contextvars.ContextVar, logging.Logger, logging.RootLogger)
_WEAK = (weakref.ref, *weakref.ProxyTypes)
_PARAMETRIC = ("jtorch.distributions", "torch.distributions")  # the same of modules with these beginnings
_SETTABLE = frozenset(("distributions", "optim", "data", "utils"))  # where the library has objects with settings
_MOST = 4096  # things that are followed
_ARRAY = 1 << 16  # bytes of an array of numpy that is compared
# By these an attribute is read whose name is nowhere in the code.
ANY_NAME = frozenset(("getattr", "hasattr", "vars", "__dict__", "attrgetter", "asdict", "astuple", "replace", "fields", "copy", "deepcopy",
    "repr", "format", "__getattribute__", "methodcaller", "reduce", "singledispatch", "AttributeError", "Exception",
    "BaseException"))  # fmt: skip
# By these an attribute is read that an instance, or a class derived from it, has hidden.
_PAST = frozenset(("super", "type", "__class__", "__mro__", "mro", "__base__", "__bases__", "getattr_static"))
# By these it is asked whether there is an attribute.
_ASKING = frozenset(("getattr", "hasattr", "vars", "__dict__", "AttributeError"))
# By these the code or the defaults of a function are seen that is not called.
_INSPECTING = frozenset(("signature", "getfullargspec", "__defaults__", "__kwdefaults__", "__code__"))


class Reader:
    """Follows what a region read and guards it.

    names: attributes that its code reads; None: any. words: the names in its code; quoted: the words there that might be names. Of what is
    followed, `tensors` are the ids of tensors met, `of_modules` those of parameters and buffers. any_name: something was met that reads
    attributes by names of its own. identity: it may see which tensor an argument is; compares: which list or dict. accumulates: it adds to
    gradients. asks: it may ask whether there is an attribute.
    past: it may read attributes of a class that others hide. effects: what the region does to places outside (`effects.py`).
    """

    def __init__(self, guards, names, words, trusted, pure, effects=None):
        self.effects = effects
        self.guards = guards
        self.names = names
        self.words = words
        self.trusted = trusted
        self.pure = pure
        self.past = not _PAST.isdisjoint(words)
        self.asks = not _ASKING.isdisjoint(words)
        self.any_name = self.identity = self.compares = self.accumulates = False
        self.seen = {}  # id -> the object, which keeps the id its own
        self.tensors = set()
        self.of_modules = set()
        self.modules = []  # (attributes, names that code reads or None, those as they are, how many there are)

    def was(self, holder):
        """What a dict held before the region ran."""
        return holder if self.effects is None else self.effects.earlier.get(id(holder), holder)

    def read(self, value):
        """Guard what can change in a value; a reason if that cannot be done."""
        if type(value) in FIXED or value is FOLLOWED:
            return None
        if id(value) in self.seen:
            return None
        if len(self.seen) > _MOST:
            return "which leads to more than can be guarded"
        self.seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors.add(id(value))
            return self.read_own(value)
        owner = getattr(value, "__self__", None) if type(value) in _BOUND else None
        if isinstance(value, random.Random) or isinstance(owner, random.Random) or _of_numpy_random(value, owner):
            return "which is random"
        if owner is not None and not isinstance(owner, types.ModuleType):
            return self.read(owner)
        if isinstance(value, type):
            return self.read_type(value)
        if isinstance(value, types.FunctionType):
            if not _INSPECTING.isdisjoint(self.words):
                return guard_functions(self.guards, self, [value])
            if self.names is None and not self.trusted(value):
                self.guards.count(vars(value), vars(value))
            if not value.__dict__:
                return None
            dispatching = value.__globals__ is vars(functools)  # by a registry that is one of its attributes
            return self.read_names(vars(value), vars(value) if dispatching else ())
        if isinstance(value, types.ModuleType):
            if self.trusted(value):
                return None
            if self.names is None or "__getattr__" in vars(value):
                self.guards.count(vars(value), self.was(vars(value)))
            if self.asks and self.names is None:  # for names that it has made
                for name, each in self.was(vars(value)).items():
                    if type(each) in FIXED:
                        self.guards.look(vars(value), name, each)
            return self.read_names(vars(value), self.words)
        if isinstance(value, (types.BuiltinFunctionType, operator.attrgetter, operator.methodcaller)):
            self.any_name |= getattr(value, "__name__", "attrgetter") in ANY_NAME
            return None
        if isinstance(value, (property, staticmethod, classmethod)):
            return None
        if isinstance(value, _WEAK):
            return "which does not keep alive what it leads to"
        if isinstance(value, enum.Enum):
            own = vars(value)
            asked = {"_value_"} if self.wanted("value") else set()
            return self.read_names(own, asked.union(filter(self.wanted, own))) or self.read_class(type(value), own)
        if isinstance(value, _IMMUTABLE):
            return None
        if isinstance(value, functools.partial):
            if type(value.func) is types.BuiltinFunctionType and not self.pure(value.func):
                return f"which calls {value.func.__name__}"
            return self.read_all((value.func, value.args, value.keywords))
        if isinstance(value, np.ndarray):
            if value.nbytes > _ARRAY or value.dtype.hasobject:
                return "an array that is too large to be compared at each call"
            self.guards.arrays.append((value, bytes_of(value)))
            return None
        if isinstance(value, _CONTAINERS):
            return self.read_container(value)
        return self.read_object(value) if type(value) not in _SURROUNDINGS else self.read_surroundings(value)

    def read_surroundings(self, value):
        """Guard what a logger or a variable of the context says."""
        if type(value) is contextvars.ContextVar:
            self.guards.ask(value.get, MISSING, value.get(MISSING))
            return self.read(value.get(None))
        # A logger's methods are seen when they are called.
        return self.read_names(vars(value), [name for name, own in vars(value).items() if type(own) in FIXED])

    def read_type(self, value):
        """Guard the attributes of a class that is used as such, and those of its metaclass."""
        if value.__module__ in _AMBIENT:
            return _AMBIENT[value.__module__]
        if isinstance(value, abc.ABCMeta):
            self.guards.classes()
        own = self.read_class(value, _NO_ATTRIBUTES)
        if own is not None or self.trusted(type(value)):
            return own
        return self.read_class(type(value), _NO_ATTRIBUTES, before=value.__mro__)

    def read_all(self, values):
        """The first reason among those of some values."""
        for value in values:
            reason = self.read(value)
            if reason is not None:
                return reason
        return None

    def read_container(self, value):
        """Guard what is in a list, dict, set, tuple or deque, and in what is in it."""
        held = members(self.was(value))
        if len(held) > _MOST:
            return f"a {type(value).__name__} with more in it than can be guarded"
        if type(value).__module__ != "builtins":
            self.guards.kinds[0].append(value)
            self.guards.kinds[1].append(type(value))
        if not isinstance(value, (tuple, frozenset)):
            self.guards.contents.append((value, list(map(kept, held))))
        if isinstance(value, (dict, set, frozenset)) and any(isinstance(key, Tensor) for key in value):
            self.identity = True
        reason = self.read_all(held)
        if reason is None and isinstance(value, collections.defaultdict):
            self.guards.slots.append((value, "default_factory", value.default_factory))
            reason = self.read(value.default_factory)
        if reason is None and type(value).__module__ != "builtins":
            own = hasattr(value, "__dict__")
            reason = self.read_object(value) if own else self.read_class(type(value), _NO_ATTRIBUTES)
        if reason is not None and not reason.startswith(("which", "an it")):
            return f"a {type(value).__name__} whose contents cannot be guarded"
        return reason

    def read_object(self, value):
        """Guard the attributes of an object, those of its class, and what they lead to."""
        kind = type(value)
        if hasattr(kind, "__next__"):
            return "an iterator, which gives something else each time"
        if isinstance(value, threading.local):
            return "which is another one in each thread"
        own = getattr(value, "__dict__", None)
        if type(own) is dict and "_parameters" in own and "_modules" in own:
            return self.read_module(value, own)
        if type(own) is dict and "param_groups" in own:
            return self.read_optimizer(own) or self.read_class(kind, own)
        package = kind.__module__.split(".", 2)
        if package[0] in ("jtorch", "torch") and (type(own) is not dict or package[1] not in _SETTABLE):
            return None  # the import swap renames classes
        slots = [name for cls in kind.__mro__ for name in _slots(cls)]
        if type(own) is not dict and not slots:
            return None if callable(value) and own is None else f"a {kind.__name__} that cannot be guarded"
        if kind is functools._lru_cache_wrapper or any(cls.__module__ in _HIDING for cls in kind.__mro__):
            return f"a {kind.__name__} that cannot be guarded"
        self.guards.kinds[0].append(value)
        self.guards.kinds[1].append(kind)
        for name in slots:
            if name not in ("__dict__", "__weakref__") and self.wanted(name):
                found = getattr(value, name, MISSING)
                self.guards.slots.append((value, name, kept(found)))
                reason = self.read(found) if found is not MISSING else None
                if reason is not None:
                    return reason
        if isinstance(value, BaseException):
            self.guards.slots.append((value, "args", value.args))
        if type(own) is not dict:
            return self.read_class(kind, _NO_ATTRIBUTES)
        self.guards.owned[0].append(value)
        self.guards.owned[1].append(own)
        if self.names is None or hasattr(kind, "__getattr__"):
            self.guards.count(own, self.was(own))
        whole = any(cls.__module__ in _WHOLE or cls.__module__.startswith(_PARAMETRIC) for cls in kind.__mro__)
        return self.read_names(own, own if whole else ()) or self.read_class(kind, own)

    def read_module(self, value, own):
        """As `read_object`, of an nn.Module: what is set is counted for all modules, so only what changes in place is guarded."""
        tensors = [
            t for name in ("_parameters", "_buffers") for t in self.was(own[name]).values() if isinstance(t, Tensor)
        ]
        self.of_modules.update(map(id, tensors))
        self.note_settings(own, type(value).__mro__)
        # An empty registry is seldom filled but by the functions that register hooks, which count that.
        self.guards.contents += [(own[name], members(own[name])) for name in _HOOKS if own.get(name)]
        reason = self.read_all(child for child in own["_modules"].values() if child is not None)
        for tensor in tensors:
            named = self.words.intersection(attributes_of(tensor))
            reason = reason or named and self.read_names(vars(tensor), named) or None
        if reason is None and not self.trusted(type(value)):
            inner = [v for name, v in self.was(own).items() if self.wanted(name) and name not in _MODULES_OWN]
            reason = self.read_all(inner) or self.read_class(type(value), own, counted=True)
        return reason

    def note_settings(self, own, classes):
        """Note what of a module's attributes decides here, for when others are set; of a library's layer all may."""
        base = next(cls for cls in classes if cls.__name__ == "Module" and self.trusted(cls))
        names = None if any(map(self.trusted, set(classes).difference(base.__mro__))) else self.names
        before = self.was(own)
        settings = {name: kept(value) for name, value in settings_of(before, names).items()}
        self.modules.append((own, names, settings, len(before)))

    def read_optimizer(self, own):
        """Guard what of an optimizer the code may read by itself; the replay looks after what a step reads."""
        named = {n for n in own.keys() - _OPTIMIZERS_OWN if n in self.words or n[0] != "_" and self.wanted(n)}
        reason = self.read_names(own, named) if named else None
        if reason is None and "state" in self.words:
            reason = self.read(own["state"])
        if reason is not None:
            return reason
        if self.names is not None and self.names.isdisjoint(("param_groups", "defaults")):
            return None
        self.guards.contents.append((own["param_groups"], list(own["param_groups"])))
        everything = not self.words.isdisjoint(("items", "values"))
        for group in (*own["param_groups"], own["defaults"]):
            for name, value in group.items():
                if everything or name in self.words:
                    self.guards.look(group, name, value)
                    reason = self.read(value)
                    if reason is not None:
                        return reason
        return None

    def read_own(self, tensor):
        """A reason if a tensor has attributes of its own that the code may read."""
        if any(map(self.wanted, attributes_of(tensor))):
            return "a tensor with attributes of its own"
        return None

    def read_names(self, own, names=()):
        """Guard those attributes that the code may read, and those of these names, and what they lead to."""
        for name, value in list(self.was(own).items()):
            if self.wanted(name) if not names else name in names:
                self.guards.look(own, name, value)
                reason = self.read(value)
                if reason is not None:
                    return reason
        return None

    def wanted(self, name):
        """Whether the region's code may read an attribute of this name."""
        return self.names is None or name in self.names

    def read_class(self, cls, own, counted=False, before=()):
        """Guard the attributes of a user's class that the code may read, where `own`, an instance's, do not hide them.

        counted: what is set on the instance is noticed otherwise. before: classes whose attributes come first.
        """
        before = list(before)
        for kind in cls.__mro__:
            if kind is object or self.trusted(kind):
                continue
            whole = self.names is None  # then no name may come to an instance either
            if whole:
                self.guards.all_of(kind)
            elif not counted and hasattr(cls, "__getattr__"):
                self.guards.count(vars(kind), vars(kind))
            for name, value in list(vars(kind).items()):
                special = name[0] == "_" and name[-1] == "_" or name == "_abc_impl"
                if name not in self.words if special else not self.wanted(name):
                    continue
                hidden = name in self.was(own) or any(name in vars(holder) for holder in before)
                if hidden and not self.past:
                    continue
                if not hidden and not whole and not counted and own is not _NO_ATTRIBUTES:
                    self.guards.look(own, name, MISSING)
                for holder in before:
                    if not hidden and not whole:
                        self.guards.look(holder, name, MISSING)
                if not whole:
                    self.guards.look(kind, name, value)
                reason = self.read_of_class(name, value)
                if reason is not None:
                    return reason
            before.append(kind)
        return None

    def read_of_class(self, name, value):
        """Guard what can change in an attribute of a class."""
        if isinstance(value, types.FunctionType) and not value.__dict__:
            self.seen.setdefault(id(value), value)
            return None
        if type(value) is functools._lru_cache_wrapper:
            return f"has {name}, a _lru_cache_wrapper that cannot be guarded"
        if type(value) is property:
            value = value.fget
        elif type(value) is functools.singledispatchmethod:
            value = value.dispatcher
        elif type(value) is functools.partialmethod:
            return self.read_all((value.func, value.args, value.keywords))
        elif (
            hasattr(type(value), "__get__") and self.trusted(type(value)) and not isinstance(value, types.FunctionType)
        ):
            self.any_name |= isinstance(value, operator.attrgetter)
            return None
        return self.read(value)

    def follow(self, value, path):
        """Guard what is read of a module or class by name after name; a reason if that cannot be done."""
        for name in path:
            if isinstance(value, types.ModuleType):
                if value.__name__ in _AMBIENT:
                    return _AMBIENT[value.__name__]
                if name == "__dict__":
                    return self.read(value)
                if value is sys and name == "modules":
                    return "to which every import adds"
                holders = [vars(value)]
            elif isinstance(value, enum.EnumType) and name in value.__members__:
                return self.read(value.__members__[name])
            elif isinstance(value, type):
                holders = value.__mro__
            else:
                return None
            at = next((k for k, holder in enumerate(holders) if name in self.was(_names(holder))), None)
            if at is None:
                for holder in holders if not self.trusted(value) else ():
                    self.guards.look(holder, name, MISSING)
                return None
            found = self.was(_names(holders[at]))[name]
            if isinstance(found, abc.ABCMeta):
                self.guards.classes()
            library = self.trusted(value)
            if not library or isinstance(value, types.ModuleType):
                for holder in holders[:at]:
                    self.guards.look(holder, name, MISSING)
                self.guards.look(holders[at], name, found)
            if (not library or value is sys and isinstance(found, _CONTAINERS)) and not isinstance(found, _DESCRIPTORS):
                reason = self.read(found)
                if reason is not None:
                    return reason
            value = found
        return None


def _names(holder):
    return vars(holder) if isinstance(holder, type) else holder


def _slots(cls):
    slots = vars(cls).get("__slots__", ())
    own = cls.__name__.lstrip("_")
    private = f"_{own}" if own else ""  # what the compiler makes of names with two underscores
    return [
        private + name if name[:2] == "__" and name[-2:] != "__" else name
        for name in ((slots,) if isinstance(slots, str) else slots)
    ]


def _of_numpy_random(value, owner):
    return any(type(v).__module__.startswith("numpy.random") for v in (value, owner) if v is not None)


_NO_ATTRIBUTES: dict = {}
_BOUND = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
_DESCRIPTORS = (staticmethod, classmethod, property)
# Modules whose functions and classes give something else at each call, or by a state of the thread's.
_AMBIENT = dict.fromkeys(("random", "secrets", "numpy.random"), "which is random") | {
    "decimal": "which goes by a context"
}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OPTIMIZERS_OWN = frozenset(("param_groups", "state", "defaults", "step"))  # those that a replay looks after
_MODULES_OWN = frozenset(
    ("_parameters", "_buffers", "_modules", "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks",
     "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called", "_state_dict_hooks",
     "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_non_persistent_buffers_set",
     "_is_full_backward_hook", "__dict__")
)  # fmt: skip


def guard_functions(guards, reader, functions):
    """Guard the code and the defaults of functions, and what changes in place in those; a reason if that cannot be done."""
    live, parts = guards.functions
    for fn in functions:
        live.append(fn)
        parts += parts_of(fn)
        if fn.__kwdefaults__:
            reason = reader.read(fn.__kwdefaults__)
            if reason is not None:
                return f"has a default of {fn.__name__}, {reason}"
        reason = reader.read_all(fn.__defaults__ or ()) or (reader.read_names(vars(fn)) if fn.__dict__ else None)
        if reason is not None:
            return f"has a default or attribute of {fn.__name__}, {reason}"
    return None


def guard_environment(guards):
    """Guard os.environ."""
    data = os.environ._data
    guards.contents.append((data, members(data)))


__all__ = ["ANY_NAME", "Reader", "guard_environment", "guard_functions"]
