"""What the Python of a region read and did: watched once while it runs, then stated as guards, or found unprovable.

A replay skips Python, so it must be known that running the Python again would do the same. User code is watched by a
profile function during one recording. Library code (jtorch, the standard library, jax, numpy) is trusted: it keeps its
state where the region looks. In user code anything that could leave a trace outside the region (stores to globals,
attributes, items, free variables, unknown C functions) makes the region unprovable: it is then recorded at every call.
"""

import dis
import enum
import gc
import os
import random
import sys
import sysconfig
import types
import weakref

from ..tensor import Tensor

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_TRUSTED = tuple(
    {_HERE + os.sep, sysconfig.get_path("stdlib") + os.sep, os.path.dirname(os.__file__) + os.sep}
    | {os.path.dirname(os.path.dirname(os.path.abspath(m.__file__))) + os.sep for m in (sys.modules["jax"],)}
)

_STORES = frozenset(
    ("STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_GLOBAL", "DELETE_ATTR", "DELETE_SUBSCR",
     "DELETE_NAME", "STORE_NAME", "YIELD_VALUE", "SEND", "GET_AWAITABLE", "IMPORT_NAME")
)  # fmt: skip

# C functions that read their arguments and change nothing.
_PURE = frozenset(
    ("len", "isinstance", "issubclass", "getattr", "hasattr", "callable", "min", "max", "sum", "abs", "round", "sorted", "any",
     "all", "divmod", "pow", "id", "hash", "repr", "iter", "next", "ord", "chr", "format", "sqrt", "log", "log2", "exp", "ceil",
     "floor", "cos", "sin", "prod", "isnan", "get", "items", "keys", "values", "join", "split", "startswith", "endswith",
     "count", "index", "copy", "numel", "__contains__", "__getitem__", "__len__", "__build_class__", "perf_counter")
) - {"perf_counter"}  # fmt: skip
_DRAWING = frozenset(("random", "secrets", "numpy.random"))  # modules whose functions give something else at each call
_SIMPLE = (int, float, bool, str, bytes, type(None), complex)


def trusted(filename: str) -> bool:
    return filename.startswith(_TRUSTED) or filename.startswith("<")


class Watch:
    """Collects the user's code objects and C calls while the region runs."""

    def __init__(self):
        self.codes = {}  # code -> (globals, closure cells by name)
        self.reason = None
        self.selves = {}
        self.classes = {}

    def __enter__(self):
        self.before = sys.getprofile()
        if self.before is not None:
            self.reason = "another profiler is active"
        else:
            sys.setprofile(self.event)
        return self

    def __exit__(self, *exc):
        if self.before is None:
            sys.setprofile(None)

    def event(self, frame, kind, arg):
        code = frame.f_code
        if kind == "call":
            if code not in self.codes and not trusted(code.co_filename):
                cells = {}
                for name in code.co_freevars:
                    try:
                        cells[name] = frame.f_locals[name]
                    except KeyError:
                        pass
                self.codes[code] = (frame.f_globals, cells)
            if not trusted(code.co_filename) and code.co_argcount:
                owner = frame.f_locals.get(code.co_varnames[0])
                if owner is not None and (code.co_varnames[0] == "self" or hasattr(type(owner), code.co_name)):
                    self.selves[id(owner)] = owner
                elif isinstance(owner, type):
                    self.classes[id(owner)] = owner
            if code.co_filename == random.__file__:
                self.reason = self.reason or f"draws a random number ({code.co_name})"
        elif kind == "c_call" and self.reason is None and not trusted(code.co_filename):
            if not _pure(arg):
                self.reason = f"calls {getattr(arg, '__qualname__', arg)} at {code.co_filename}:{frame.f_lineno}"


def _pure(fn):
    if isinstance(fn, type):
        return True
    name = getattr(fn, "__name__", "")
    return name in _PURE or name.startswith("__")


class Guards:
    """Conditions under which the Python of a region would do what it did; `hold()` checks them."""

    __slots__ = ("globals", "cells", "contents")

    def __init__(self):
        self.globals = []  # (dict, name, value)
        self.cells = []  # (cell, value)
        self.contents = []  # (mutable, shallow copy)

    def hold(self):
        for scope, name, value in self.globals:
            found = scope.get(name, _MISSING)
            if found is not value and not _same(found, value):
                return False
        for cell, value in self.cells:
            try:
                found = cell.cell_contents
            except ValueError:
                return False
            if found is not value and not _same(found, value):
                return False
        for live, copy in self.contents:
            if live != copy:
                return False
        return True


_MISSING = object()


def _same(found, value) -> bool:
    """Whether two simple values are interchangeable."""
    return type(value) in _SIMPLE and type(found) is type(value) and found == value


def state(watch):
    """(guards, None) for a watched run, or (None, why it cannot be proven)."""
    if watch.reason is not None:
        return None, watch.reason
    guards = Guards()
    closures = [code for code, (_, cells) in watch.codes.items() if cells]
    functions = [fn for fn in gc.get_referrers(*closures) if type(fn) is types.FunctionType] if closures else ()
    for code, (scope, cells) in watch.codes.items():
        reason = _stores(code)
        if reason is not None:
            return None, reason
        for name in _global_names(code):
            if name in scope:
                value = scope[name]
                reason = _value(guards, value)
                if reason is not None:
                    return None, f"reads {name}, {reason} ({code.co_filename}:{code.co_firstlineno})"
                guards.globals.append((scope, name, value))
        for first, path in _chains(code):
            reason = _follow(guards, cells.get(first, scope.get(first)), path)
            if reason is not None:
                return None, f"reads {'.'.join([first, *path])}, {reason} ({code.co_filename}:{code.co_firstlineno})"
        for name, value in cells.items():
            reason = _value(guards, value)
            if reason is not None:
                return None, f"reads {name}, {reason} ({code.co_filename}:{code.co_firstlineno})"
            found = _cells(functions, code, name, value)
            if not found:
                return None, f"reads {name}, a free variable that cannot be found again"
            guards.cells += [(cell, value) for cell in found]
    for owner in watch.classes.values():
        _class_numbers(guards, owner, {})
    for owner in watch.selves.values():
        _class_numbers(guards, type(owner), getattr(owner, "__dict__", {}))
        for name, value in vars(owner).items() if hasattr(owner, "__dict__") else ():
            if name.startswith("_"):
                continue
            reason = _value(guards, value)
            if reason is not None:
                return None, f"reads {type(owner).__name__}.{name}, {reason}"
        if not hasattr(owner, "_parameters") and hasattr(owner, "__dict__"):
            simple = {k: v for k, v in vars(owner).items() if type(v) in _SIMPLE}
            guards.contents.append((_Attributes(owner, tuple(simple)), simple))
    return guards, None


def _cells(functions, code, name, value):
    """The closure cells in which those of the functions that have this code hold `value` under `name`."""
    at = code.co_freevars.index(name)
    cells = []
    for fn in functions:
        if fn.__code__ is code and fn.__closure__:
            cell = fn.__closure__[at]
            try:
                if cell.cell_contents is value:
                    cells.append(cell)
            except ValueError:
                continue
    return cells


class _Attributes:
    """Some attributes of an object, comparable with a dict of them."""

    __slots__ = ("owner", "names")

    def __init__(self, owner, names):
        self.owner = owner
        self.names = names

    def __eq__(self, other):
        now = vars(self.owner)
        return all(now.get(n, _MISSING) == v for n, v in other.items())

    def __ne__(self, other):
        return not self == other

    __hash__ = None


def _chains(code):
    """(a global or free name, the attributes read from it one after the other) for each such expression."""
    first, path = None, []
    for op in dis.get_instructions(code):
        if first is not None and op.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path.append(op.argval)
            continue
        if path:
            yield first, path
        first = op.argval if op.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") else None
        path = []


def _follow(guards, value, path):
    """Guard what is read of a user's module or class; a reason if that cannot be done, or gives something else each time."""
    for name in path:
        if isinstance(value, types.ModuleType):
            if value.__name__ in _DRAWING:
                return "which is random"
            holders = [vars(value)]
        elif isinstance(value, type) and not isinstance(value, enum.EnumType):
            holders = [vars(cls) for cls in value.__mro__]
        else:
            return None
        at = next((k for k, holder in enumerate(holders) if name in holder), None)
        if at is None:
            return None
        found = holders[at][name]
        if not _of_library(value):
            guards.globals += [(holder, name, _MISSING) for holder in holders[:at]]
            guards.globals.append((holders[at], name, found))
            if not isinstance(found, (staticmethod, classmethod, property)):
                reason = _value(guards, found)
                if reason is not None:
                    return reason
        value = found
    return None


def _class_numbers(guards, cls, own):
    """Guard the numbers and words among the attributes of a user's class, where `own`, an instance's, do not hide them."""
    hiding = [own]
    for kind in cls.__mro__:
        if _of_library(kind):
            continue
        for name, value in vars(kind).items():
            if type(value) in _SIMPLE and name[:2] != "__" and not any(name in holder for holder in hiding):
                guards.globals += [(holder, name, _MISSING) for holder in hiding]
                guards.globals.append((vars(kind), name, value))
        hiding.append(vars(kind))


def _of_library(value) -> bool:
    """Whether a module or class is the library's: it keeps its state where the region looks."""
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(value.__module__)
    file = getattr(module, "__file__", None)
    return trusted(file) if file else getattr(module, "__name__", "__main__") in sys.builtin_module_names


def _value(guards, value):
    """Guard the contents of something read; a reason if that cannot be done."""
    owner = getattr(value, "__self__", None) if callable(value) else None
    if isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random"):
        return "which is random"
    if isinstance(value, _SIMPLE) or isinstance(value, (Tensor, type, types.ModuleType, types.FunctionType)):
        return None
    if isinstance(value, (types.BuiltinFunctionType, types.MethodType, types.MappingProxyType)):
        return None
    if hasattr(value, "_parameters") or hasattr(value, "param_groups"):
        return None
    if isinstance(value, tuple):
        for v in value:
            reason = _value(guards, v)
            if reason:
                return reason
        return None
    if isinstance(value, (list, dict, set)):
        items = value.values() if isinstance(value, dict) else value
        if all(isinstance(v, (*_SIMPLE, Tensor, types.FunctionType, type)) or hasattr(v, "_parameters") for v in items):
            if any(isinstance(v, Tensor) for v in items):
                guards.contents.append((_Identities(value), _Identities(value).now()))
            else:
                guards.contents.append((value, value.copy()))
            return None
        return f"a {type(value).__name__} whose contents cannot be guarded"
    if callable(value) and not hasattr(value, "__dict__"):
        return None
    if hasattr(value, "__dict__"):
        parts = vars(value)
        if all(
            isinstance(v, (*_SIMPLE, Tensor, types.FunctionType, type)) or hasattr(v, "_parameters")
            for v in parts.values()
        ):
            simple = {k: v for k, v in parts.items() if isinstance(v, _SIMPLE)}
            guards.contents.append((_Attributes(value, tuple(simple)), simple))
            return None
    if type(value).__module__.partition(".")[0] in ("jtorch", "torch"):  # the import swap renames classes
        return None
    return f"a {type(value).__name__} that cannot be guarded"


class _Identities:
    """A container of tensors, compared by what its members are, not by their values."""

    __slots__ = ("container",)

    def __init__(self, container):
        self.container = container

    def members(self):
        c = self.container
        return [*c, *c.values()] if isinstance(c, dict) else list(c)

    def now(self):
        """What the container's members are: weak references, since an id is used again once its object has died."""
        return [weakref.ref(v) if isinstance(v, Tensor) else (lambda v=v: v) for v in self.members()]

    def __eq__(self, other):
        members = self.members()
        return len(members) == len(other) and all(known() is v for known, v in zip(other, members))

    def __ne__(self, other):
        return not self == other

    __hash__ = None


def _stores(code):
    for op in dis.get_instructions(code):
        if op.opname in _STORES:
            return f"{op.opname.lower().replace('_', ' ')} {op.argval} at {code.co_filename}:{code.co_firstlineno}"
        if op.opname == "STORE_DEREF" and op.argval in code.co_freevars:
            return f"assigns the outer variable {op.argval} at {code.co_filename}:{code.co_firstlineno}"
    return None


def _global_names(code):
    return {op.argval for op in dis.get_instructions(code) if op.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
