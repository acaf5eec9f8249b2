"""What the Python of a region read and did: watched once while it runs, then stated as guards, or found unprovable.

A replay skips Python, so it must be known that running the Python again would do the same. User code is watched by a
profile function during one recording; code of other packages counts as the user's. jtorch, jax, numpy and what of the standard
library only computes are trusted: they keep their state where the region looks. In user code anything that could leave a trace
outside the region (stores to globals, attributes, items, free variables, unknown C functions, functions of the standard library
that do something) makes the region unprovable: it is then recorded at every call.
"""

import builtins
import functools
import gc
import logging
import os
import random
import sys
import sysconfig
import types

from .. import creation, indexing, methods
from ..autograd import engine, outer_run
from ..core import storage
from ..core.device import Device
from ..core.dtype import dtype
from ..core.spec import Size
from ..dispatch import call as dispatch_call
from ..dispatch import override
from ..dispatch.override import plain_code
from ..tensor import Tensor
from . import codes, reads
from .aside import ASKING
from .effects import Effects
from .findings import Unproven
from .guards import MISSING, Guards, kept
from .places import OWN, Stores, augments
from .stores import augmented, walk

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum")  # whose functions only compute
_STDLIB = tuple({sysconfig.get_path("stdlib") + os.sep, os.path.dirname(random.__file__) + os.sep})
_SITE = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")} | {
    os.path.dirname(os.path.dirname(os.path.abspath(sys.modules[name].__file__))) + os.sep for name in ("jax", "numpy")
})  # fmt: skip
_COMPUTING = tuple(
    site + name for site in _SITE for name in (*(package + os.sep for package in _PACKAGES), "typing_extensions.py")
)
_GENERATED = ("<string>", "<attrs generated")  # files of the methods that are made for a program's own classes
_MADE = ("<frozen ", "<jtorch", "<__array_function__", "<attrs generated")  # files of code that no file holds

# What of the standard library's Python leaves no trace and gives the same each time.
_QUIET = frozenset(
    ("functools", "contextlib", "collections", "abc", "_collections_abc", "typing", "enum", "dataclasses", "copy", "types", "operator",
     "numbers", "fractions", "statistics", "string", "textwrap", "re", "inspect", "weakref", "posixpath", "ntpath", "bisect",
     "keyword", "reprlib", "warnings", "__future__", "dis", "heapq", "_weakrefset", "codecs")
)  # fmt: skip
_CHANGING = frozenset(
    ("update", "subtract", "append", "appendleft", "extend", "insert", "remove", "pop", "popitem", "popleft", "clear", "add",
     "discard", "setdefault", "sort", "reverse", "move_to_end", "__setitem__", "__delitem__", "__setattr__", "__delattr__",
     "__iadd__", "__ior__", "__iand__", "__isub__", "__ixor__", "warn", "warn_explicit", "simplefilter", "heappush", "heappop")
)  # fmt: skip
_FRAMES = frozenset(("currentframe", "stack", "trace", "getouterframes", "getinnerframes"))  # who called
_ASKING = frozenset(("getenv", "__getitem__", "__contains__", "get", "encode", "decode", "check_str", "fspath", "fsdecode", "fsencode", "__iter__", "__len__"))  # fmt: skip

# Of jtorch, by file: what the user's code calls for what it does or says besides its tensors. Names, or None for all.
_STATE = {
    "settings.py": None, "random.py": None, "serialization.py": None, "hub.py": None, "monitor.py": None, "cuda.py": None, "printing.py": None,
    "data": None, "files": None, "utils": frozenset(("tensorboard",)), "optim": frozenset(("lr_scheduler.py", "schedules", "swa_utils.py")),
    "amp": frozenset(("grad_scaler.py",)), "distributed": None, "profiler": None, "multiprocessing": None,
}  # fmt: skip
_SEEDS = frozenset(("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "get_state", "set_state", "clone_state"))  # fmt: skip

# numpy's functions that write to an array, of which Python says nothing while they run.
_WRITING = frozenset(("copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal", "at", "out"))

# C functions that read their arguments and change nothing: no `id` or `hash`, which are others for the next call's tensors.
_PURE = frozenset(
    ("len", "isinstance", "issubclass", "getattr", "hasattr", "callable", "min", "max", "sum", "abs", "round", "sorted", "any",
     "all", "divmod", "pow", "repr", "iter", "next", "ord", "chr", "format", "sqrt", "log", "log2", "exp", "ceil",
     "floor", "cos", "sin", "prod", "isnan", "get", "items", "keys", "values", "join", "split", "startswith", "endswith",
     "count", "index", "copy", "numel", "__build_class__")
)  # fmt: skip
_DOING = frozenset(("__import__", "__next__", "__enter__", "__exit__", "__call__", "__setstate__", "__set__", "__delete__", "__subclasses__"))  # fmt: skip
# Of numpy's files those whose functions read and write files, or go by settings for errors and printing.
_NUMPYS_STATE = ("npyio", "arrayprint", "ufunc_config")
_LOGGING = frozenset(
    f"Logger.{name}" for name in ("debug", "info", "warning", "error", "critical", "log", "isEnabledFor")
)
_CHECKS = frozenset(("__instancecheck__", "__subclasscheck__"))
# An optimizer's step that a schedule has been made for: all that it keeps is that there has been one.
_NOTING = frozenset(("noted_step",))
_IMPORTING = frozenset(("_handle_fromlist", "_lock_unlock_module"))  # what is there: `Stores` looks


def trusted(code) -> bool:
    """Whether code is the library's: jtorch, what only computes, the standard library."""
    name = code.co_filename
    if name.startswith("<"):
        # "<string>": what dataclasses and namedtuples make
        return name.startswith(_MADE) or name == "<string>" and code.co_name[:2] == "__"
    return trusted_file(name)


def trusted_file(name) -> bool:
    """As `trusted`, by the file."""
    return (
        name.startswith(_HERE) or name.startswith(_COMPUTING) or name.startswith(_STDLIB) and not name.startswith(_SITE)
    )


def _does_something(code):
    """Why a trusted function that the user's code called may do more than compute; None if it does not."""
    name, does = code.co_filename, code.co_name
    if name.startswith(_HERE):
        first, _, rest = name[len(_HERE) :].partition(os.sep)
        parts = _STATE.get(first, ())
        if (parts is None or rest.partition(os.sep)[0] in parts) and does not in _NOTING:
            return f"calls {does}, which has a state of its own"
        return f"asks for the state of random numbers ({does})" if does in _SEEDS else None
    if name.startswith(_COMPUTING):
        return f"calls {does}" if any(map(name.__contains__, _NUMPYS_STATE)) else None
    if name.startswith("<frozen ") or not name.startswith("<"):
        module = name[8:-1] if name[0] == "<" else name[len(next(filter(name.startswith, _STDLIB))) :]
        module = module.removesuffix(".py").partition(os.sep)[0].partition(".")[0]
        if module == "random":
            return f"draws a random number ({does})"
        if code is _CACHING:
            return "computes a property that is kept from then on"
        if module == "logging" and code.co_qualname in _LOGGING:
            return None  # whether it is heard is asked
        if module == "os":
            return None if does in _ASKING else f"calls {module}.{does}"
        if does in _IMPORTING and module == "importlib":
            return None
        if module not in _QUIET or does in _CHANGING or does in _FRAMES:
            return f"calls {module}.{does}"
    return None


class Watch:
    """Collects the user's code objects and C calls while the region runs."""

    def __init__(self, scope=None, given=()):
        self.scope = scope
        self.stores = Stores(_of_library, given)
        self.young = self.stores.young
        self.runs = {}  # by id, since code made of the same words is equal: (code, its globals)
        self.cells = {}  # (id of code, ids of the values of its free variables) -> (code, those by name)
        self.reason = None
        self.owners = {}
        self.made = set()  # code of methods that the standard library has made for the user's classes
        self.any_name = False  # an attribute was read whose name the code may not have
        self.augmented = {}  # code -> its local variables that it changes in place, and by which method
        self.environment = False
        self.heard = []  # (logger, level) of what it would have logged
        self.layers = {}  # id -> a layer of the library's that ran
        self.accumulates = False  # a backward pass gave leaves their gradients

    def __enter__(self):
        self.before = sys.getprofile()
        if self.before is not None:
            self.reason = "another profiler is active"
        else:
            self.collecting = gc.isenabled()
            gc.disable()  # what a collection calls (gc.callbacks, finalizers) is not the region's
            gc.collect(0)  # what is young from now on has been made by the region
            self.stores.begin()
            sys.setprofile(self.event)
        return self

    def __exit__(self, *exc):
        if self.before is None:
            sys.setprofile(None)
            self.stores.end()
            self.young.close()
            if self.collecting:
                gc.enable()

    @property
    def codes(self):
        """The code objects of the user's that ran."""
        return [code for code, _ in self.runs.values()]

    def event(self, frame, kind, arg):
        """The profile function."""
        code = frame.f_code
        if kind == "call":
            if not trusted(code):
                self.called(frame, code)
            else:
                if code.co_filename.startswith(_GENERATED):
                    self.made.add(code)
                if code.co_name in _CHECKS and not code.co_filename.startswith(_HERE):
                    self.any_name = True  # of protocols: whether there are the attributes that it has
                if frame.f_back is not None and not trusted(frame.f_back.f_code) and self.reason is None:
                    self.reason = _does_something(code)
            if code in _READING and self.reason is None and frame.f_back.f_code is not _CHECKING:
                self.reason = "reads a value, which may be another at the next call"
            if (code is _HEARD or code is _LOG) and _asked_by_user(frame.f_back):
                self.heard.append((frame.f_locals["self"], frame.f_locals["level"]))
                self.reason = self.reason or ("logs" if code is _LOG else None)
            if code.co_filename == _OS:
                self.environment = True
            if code.co_name == "forward" and "self" in frame.f_locals:
                self.layers[id(frame.f_locals["self"])] = frame.f_locals["self"]
            if code in _BACKWARD and frame.f_locals["accumulate"]:
                self.accumulates = True
            if self.scope is not None and self.scope.aside is not None:
                self.asked(frame, code)
        elif self.reason is not None:
            return
        elif kind == "return":
            if code in _LITERAL and isinstance(arg, Tensor):
                self.literal(frame, arg)
            if self.augmented.get(code):
                self.reason = augments(frame, self.augmented[code], self.young)
        elif kind == "c_call" and not trusted(code):
            self.any_name |= getattr(arg, "__name__", None) in reads.ANY_NAME
            if not _pure(arg) and not self.own(arg):
                self.reason = f"calls {getattr(arg, '__qualname__', arg)} at {code.co_filename}:{frame.f_lineno}"

    def own(self, method) -> bool:
        """Whether a C function is the method of a container that the run has made: what that does to it is seen by nobody else.

        Or of what does not change.
        """
        owner = getattr(method, "__self__", None)
        return type(owner) in _UNCHANGING or type(owner) in OWN and self.young.has(owner)

    def literal(self, frame, made):
        """Note a tensor of numbers that follow from what the code has read."""
        data = frame.f_locals["data"]
        asking = frame.f_back
        while asking.f_code.co_filename in _LOOKING:
            asking = asking.f_back
        asked = asking.f_code
        if (asked in _LITERALS_ASKED or not trusted(asked)) and (
            type(data) in _LITERALS or frame.f_code is _LITERAL[0]
        ):
            if not isinstance(data, Tensor) and self.scope is not None:
                self.scope.literals.append((made._storage.value, made._storage.spec))

    def asked(self, frame, code):
        """Give arguments that lie elsewhere their own memory before somebody sees it."""
        if (
            code in ASKING
            and self.scope.aside.knows(frame.f_locals.values())
            or "_base" in code.co_names
            and not trusted(code)
        ):
            self.scope.aside.end(
                f"asks for the memory of an argument that is a view, or shares it with numpy ({code.co_name})"
            )

    def called(self, frame, code):
        """A function of the user's begins."""
        run = id(code), id(frame.f_globals)
        if run not in self.runs:
            self.runs[run] = code, frame.f_globals
            self.augmented[code] = augmented(code)
        self.stores.follow(frame, code)
        if code.co_freevars:
            here = frame.f_locals
            cells = {name: here[name] for name in code.co_freevars if name in here}
            made_for = cells.pop("__class__", None)  # of a method, which nobody changes
            if made_for is not None:
                self.owners[id(made_for)] = made_for
            self.cells[id(code), *map(id, cells.values())] = code, cells
        if code.co_argcount:
            first = code.co_varnames[0]
            owner = frame.f_locals.get(first)
            kind = type(owner)  # `isinstance` would ask the object
            if issubclass(kind, Tensor):
                owner = kind
            if (
                issubclass(kind, (type, Tensor))
                or owner is not None
                and (first == "self" or hasattr(kind, code.co_name))
            ):
                self.owners[id(owner)] = owner


_OS = os.getenv.__code__.co_filename
# Where a value comes to Python, or decides over the shape of a result; checks of values decide over nothing else.
_READING = frozenset(fn.__code__ for fn in (Tensor._item, storage.numpy_of, storage.host_view, dispatch_call._dynamic))
_CHECKING = dispatch_call.checkable.__code__
# Functions that make a tensor of numbers, and those of the library that hand them the program's own.
_LITERAL = plain_code(creation.tensor), plain_code(creation.as_tensor)
_LITERALS = frozenset((int, float, bool, complex, list, tuple))
_LITERALS_ASKED = frozenset(map(plain_code, (creation.scalar_tensor, methods.new_tensor, indexing._index_tensor)))
# What looks for classes and modes to ask, before the function itself runs.
_LOOKING = frozenset((override.__file__, "<jtorch override>"))
_CACHING = functools.cached_property.__get__.__code__
_HEARD, _LOG = logging.Logger.isEnabledFor.__code__, logging.Logger._log.__code__
_BACKWARD = frozenset((engine.backward.__code__, outer_run.backward.__code__))


def _asked_by_user(frame) -> bool:
    """Whether a logger's method was called by the user's code: the library's say what they say of themselves."""
    if trusted(frame.f_code) and frame.f_code.co_qualname in _LOGGING:
        frame = frame.f_back
    return not trusted(frame.f_code)


def _pure(fn):
    if isinstance(fn, type):
        return True
    name = getattr(fn, "__name__", "")
    return name in _PURE or name.startswith("__") and name not in _CHANGING and name not in _DOING


def _of_library(value) -> bool:
    """Whether a module or class is the library's: it keeps its state where the region looks."""
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(value.__module__)
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return trusted_file(file)
    return getattr(module, "__name__", "__main__") in sys.builtin_module_names


def state(watch, leaves=(), fn=None):
    """(guards, the Reader that made them, None) for a watched run, or (None, None, why it cannot be proven).

    leaves: the arguments of the call. fn: what was called.
    """
    reason = watch.reason or watch.stores.reason or next(filter(None, map(codes.stores, watch.codes)), None)
    if reason is not None:
        return None, None, reason
    names = {name for code in watch.codes for name in (*code.co_names, code.co_name)}
    names.update(name for code in watch.made for name in code.co_names)
    quoted = {word for code in watch.codes for word in codes.words(code)}
    given = (*leaves, fn)  # a library's method, or a partial: no code of the user's has met what they hold
    any_name = watch.any_name or bool(names & reads.ANY_NAME) or any(map(codes.reads_any_name, watch.codes))
    read = frozenset().union(*(walk(code).reads for code in watch.codes), *(code.co_names for code in watch.made))
    try:
        for asked in (None,) if any_name else (names, None):
            effects = Effects(watch.stores, None if asked is None else read)
            reader = reads.Reader(Guards(), asked, names | quoted, _of_library, _pure, effects)
            reason = _read(watch, reader.guards, reader, given)
            if not reader.any_name:
                break
    except Unproven as error:
        reason = str(error)
    except RecursionError:
        reason = "reads what is nested too deeply"
    except Exception as error:  # of an object's own way of answering, which no program has asked for here
        reason = f"reads what raises {type(error).__name__} when it is looked at"
    if reason is not None:
        return None, None, reason
    reader.identity = reader.identity or any(map(codes.tells_apart, watch.codes))
    reader.accumulates = watch.accumulates
    if not watch.layers.keys() <= reader.seen.keys():
        reader.modules = None  # one that was come to by a way that is not followed
    reader.compares = any(codes.compares(code, scope) for code, scope in watch.runs.values())
    effects.guard(reader.guards)
    if reader.guards.arrays and not _WRITING.isdisjoint(names | quoted):
        return None, None, "may write to an array of numpy"
    return reader.guards, reader, None


def _read(watch, guards, reader, leaves):
    """Guard all that a watched run has read; a reason if that cannot be done."""
    if watch.environment:
        reads.guard_environment(guards)
    for code, scope in watch.runs.values():
        where = f"({code.co_filename}:{code.co_firstlineno})"
        bare, handed_on = codes.bare(code), codes.handed_on(code)
        for name in codes.global_names(code):
            value = reader.was(scope).get(name, MISSING)
            guards.look(scope, name, value)
            made = vars(builtins).get(name)
            if value is MISSING and name in handed_on and type(made) is types.BuiltinFunctionType and not _pure(made):
                return f"hands on {name}, which C code calls without a trace {where}"
            if value is MISSING or isinstance(value, types.ModuleType) and name not in bare:
                continue  # of modules what their names lead to is read below
            reason = reader.read(value)
            if reason is not None:
                return f"reads {name}, {reason} {where}"
        for first, path in codes.chains(code):
            reason = reader.follow(reader.was(scope).get(first), path)
            if reason is not None:
                return f"reads {'.'.join([first, *path])}, {reason} {where}"
    for logger, level in watch.heard:
        guards.ask(logger.isEnabledFor, level, logger.isEnabledFor(level))
    for name, module in watch.stores.imports.items():
        guards.look(sys.modules, name, module)
        reason = reader.read(module)
        if reason is not None:
            return f"imports {name}, {reason}"
    functions = [fn for fn in gc.get_referrers(*watch.codes) if type(fn) is types.FunctionType]
    reason = _read_cells(watch, guards, reader, functions)
    if reason is not None:
        return reason
    for owner in watch.owners.values():
        reason = reader.read(type(owner) if watch.young.has(owner) else owner)
        if reason is not None:
            return f"reads a {type(owner).__name__}, {reason}"
    for leaf in leaves:
        reason = reader.read_own(leaf) if type(leaf) is Tensor else reader.read(leaf)
        if reason is not None:
            return f"is given a {type(leaf).__name__}, {reason}"
    # What gc.freeze() has hidden from `get_referrers` has been met by its name.
    ran = set(map(id, watch.codes))
    met = [fn for fn in reader.seen.values() if type(fn) is types.FunctionType and id(fn.__code__) in ran]
    own = {id(fn): fn for fn in (*functions, *met) if not fn.__closure__ and not watch.young.has(fn)}
    return reads.guard_functions(guards, reader, own.values())


def _read_cells(watch, guards, reader, functions):
    """Guard the free variables of the functions that ran; a reason if that cannot be done."""
    for code, cells in watch.cells.values():
        where = f"({code.co_filename}:{code.co_firstlineno})"
        ran = [fn for fn in functions if fn.__code__ is code and _has(fn, code, cells)]
        # What they read that the run has made follows from what the code has read that made them.
        made = ran and all(map(watch.young.has, ran))
        ran = [] if made else ran
        found = ran or not cells
        if not found and not made and not _of_the_run(watch, code, cells):
            return f"reads {next(iter(cells))}, a free variable that cannot be found again {where}"
        for name, value in cells.items() if found else ():
            reason = reader.read(value)
            if reason is not None:
                return f"reads {name}, {reason} {where}"
        for first, path in codes.chains(code):
            reason = reader.follow(cells.get(first), path)
            if reason is not None:
                return f"reads {'.'.join([first, *path])}, {reason} {where}"
        for fn in ran:
            for cell, name in zip(fn.__closure__, code.co_freevars):
                if name in cells:
                    guards.cells[0].append(cell)
                    guards.cells[1].append(kept(cells[name]))
        reason = reads.guard_functions(guards, reader, ran)
        if reason is not None:
            return reason
    return None


def _of_the_run(watch, code, cells) -> bool:
    """Whether a function was made by code that ran too, and is gone (a comprehension's, an inner one): nothing is to be found again then.

    Its free variables follow from what that code has read, like that code's own variables.
    """
    made = any(code is const for c in watch.codes for const in c.co_consts)
    return made and (
        gc.get_freeze_count() == 0 or all(type(v) in _FIXED for v in cells.values())
    )  # not one that is hidden


_UNCHANGING = (str, bytes, int, float, complex, tuple, range)
_FIXED = frozenset((int, float, complex, bool, str, bytes, type(None), Size, dtype, Device))


def _has(fn, code, cells):
    """Whether a function's free variables have these values."""
    try:
        return all(
            cell.cell_contents is cells[name] for cell, name in zip(fn.__closure__, code.co_freevars) if name in cells
        )
    except ValueError:
        return False  # one has no value
