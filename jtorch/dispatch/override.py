"""__torch_function__: which calls ask it, and how. Plain tensors pay nothing for any of this.

- Methods and properties of a subclass: `Overridable`, a class of asking attributes, stands before Tensor in its `__mro__`.
- Generated functions: an operand whose class is not in FAST takes them to `slow`, which looks here.
- Functions written by hand have no such check. `publish` lists them; when the first subclass or function mode comes (`arm`), their
  code is exchanged for one that looks first.
- Tensors of another layout (LAYOUTS) are asked the same way by their `__layout_function__`, whatever contexts are active, and after all
  others: nothing else knows what to do with them.
- Function modes see every call: while one is active the code of published functions and the properties of Tensor are exchanged.
"""

import dis
import functools
import sys
import threading
import types

from .. import errors_extend
from ..core.record import tls
from ..ops import registry
from ..tensor import CONSTANTS, HOOKS, Tensor, disabled_torch_function, unusual
from ..tracebacks import shorten
from .dispatched import FROM_HOST, dispatch, dispatch_method, dispatches, has_dispatch
from .plans import FAST
from .view import call_view

_IGNORED = (type(None), bool, int, float, complex, str)

LAYOUTS: set = set()  # classes of tensors without strided memory


class FirstMeeting(Exception):
    """A function that did not look has met the first class that is to be asked: it looks now, and is to be called again."""


def has_override(cls) -> bool:
    """Whether instances of this class are asked before a function runs."""
    if cls in FAST or cls in LAYOUTS:
        return False
    found = getattr(cls, "__torch_function__", None)
    if found is None or found is disabled_torch_function:
        return False
    if not STATE.armed:  # a class that is no subclass of Tensor: this is the first that is seen of it
        arm()
    return True


def _note(found, a):
    cls = type(a)
    if cls in _IGNORED or any(type(x) is cls for x in found) or not (cls in LAYOUTS or has_override(cls)):
        return
    # Subclasses are asked before their bases, layouts last, otherwise the order is that of the arguments.
    later = () if cls in LAYOUTS else LAYOUTS
    at = (k for k, x in enumerate(found) if issubclass(cls, type(x)) or type(x) in later)
    found.insert(next(at, len(found)), a)


def overloaded(args, kwargs=None) -> list:
    """The arguments to be asked, one of each class; lists of tensors are looked into."""
    found = []
    for a in args if not kwargs else (*args, *kwargs.values()):
        if type(a) in (list, tuple):
            for x in a:
                _note(found, x)
        else:
            _note(found, a)
    return found


def asked_now(me, args, kwargs=None):
    """The arguments to be asked in the contexts that are active."""
    if me.overriding == 2:
        return overloaded(args, kwargs)
    return [x for x in overloaded(args, kwargs) if type(x) in LAYOUTS] if LAYOUTS else ()


def override(public, relevant, args, kwargs):
    """Ask the innermost function mode, then the arguments in turn, for the result of a public function."""
    me = tls.me
    modes = me.function_modes
    asked = tuple(type(x) for x in relevant if type(x) not in LAYOUTS)
    if modes and me.overriding:
        me.function_modes = modes[:-1]
        try:
            result = modes[-1].__torch_function__(public, asked, args, kwargs or None)
        finally:
            me.function_modes = modes
        if result is not NotImplemented:
            return result
    for cls in asked:
        if _foreign(cls):
            raise errors_extend.foreign(name_of(public), "jtorch", "PyTorch")
        result = cls.__torch_function__(public, asked, args, kwargs or None)
        if result is not NotImplemented:
            return result
    if len(asked) < len(relevant):
        return type(relevant[-1]).__layout_function__(public, args, kwargs or {})
    raise errors_extend.no_override(name_of(public), asked, modes[-1:])


def _foreign(thing) -> bool:
    """Whether a class or function is PyTorch's own, where that is loaded too: each asks the other without end."""
    home = getattr(getattr(thing, "__objclass__", thing), "__module__", None) or ""
    return home.partition(".")[0] == "torch" and getattr(sys.modules.get("torch"), "Tensor", Tensor) is not Tensor


def name_of(public) -> str:
    """The public name of a function, for messages; `torch.overrides` knows better ones."""
    holder = getattr(public, "__self__", None)
    if isinstance(holder, property) and holder.fget is not None:
        return f"torch.Tensor.{holder.fget.__name__}.{public.__name__}"
    return f"torch.{getattr(public, '__qualname__', public)}"


class disabled:
    """Within it subclasses (level 1), or modes too (level 0), are not asked."""

    level = 1

    def __enter__(self):
        me = tls.me
        self.before = me.overriding
        me.overriding = min(self.before, self.level)

    def __exit__(self, *exc):
        tls.me.overriding = self.before


def default(cls, func, types, args=(), kwargs=None):
    """What Tensor's own `__torch_function__` does: call the function, and give its results the class."""
    for t in types:
        if not issubclass(cls, t):
            return NotImplemented
    if cls in FAST and _foreign(func):
        raise errors_extend.foreign(f"torch.{func.__name__}", "PyTorch", "jtorch")
    me = tls.me
    before = me.overriding
    me.overriding = min(before, 1)
    try:
        if args and dispatches(args[0]):
            handled, result = dispatch_method(getattr(func, "__name__", ""), args, kwargs or {})
        else:
            handled = False
        if not handled:
            result = func(*args, **kwargs) if kwargs else func(*args)
    finally:
        me.overriding = before
    return result if func in NOWRAP else convert(result, cls)


NOWRAP: set = set()  # accessors whose results stay as they are: x.grad


def convert(result, cls):
    """A result, or the tensors of a tuple or list, as instances of a subclass."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        if not isinstance(result, cls):
            result = call_view(registry.VIEWS["alias"], result, ())
            result.__class__ = cls
        return result
    if isinstance(result, (tuple, list)):
        return type(result)(convert(r, cls) for r in result)
    return result


# --- methods and properties of subclasses -------------------------------------------------------------------------------

# The function that an operator stands for.
OPERATORS = {
    "__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div", "__matmul__": "matmul", "__mod__": "remainder",
    "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__ne__": "ne", "__neg__": "neg", "__abs__": "abs",
    "__pos__": "positive", "__radd__": "add", "__rmul__": "mul", "__rand__": "bitwise_and", "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_", "__ipow__": "pow_",
}  # fmt: skip
_REVERSED = {"__r" + n[2:]: n for n in ("__add__", "__sub__", "__mul__", "__truediv__", "__matmul__", "__mod__", "__and__",
    "__or__", "__xor__", "__floordiv__", "__pow__", "__lshift__", "__rshift__")}  # fmt: skip
_BINARY = {*_REVERSED, *_REVERSED.values(), "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"}
_OWN = {
    "__new__", "__init__", "__hash__", "__getattr__", "__setattr__", "__class_getitem__", "__torch_function__",
    "__torch_dispatch__", "__init_subclass__", "__jax_array__", "__dir__", "__iter__", "as_subclass",
}  # fmt: skip
_PRIVATE = {"_version", "_is_view", "_backward_hooks"}


class Overridable:
    """The attributes of Tensor, each asking `__torch_function__` first. Stands before Tensor in a subclass's order."""

    __slots__ = ()


def asking_name(name) -> bool:
    """Whether an attribute of Tensor of this name asks."""
    return name not in _OWN and (not name.startswith("_") or name.startswith("__") or name in _PRIVATE)


def _attribute(name, value):
    """Mirror an attribute of Tensor, made at the first use of its name or there before."""
    if not asking_name(name):
        return
    if STATE.modes:
        _enter({name: value}, True, False)
    if isinstance(value, types.FunctionType):
        setattr(Overridable, name, _binary(name, value) if name in _BINARY else _method(name, value))
    elif isinstance(value, property):
        setattr(Overridable, name, _Property(name, value))


def _method(name, fn):
    @functools.wraps(fn)
    def method(*args, **kwargs):
        me = tls.me
        if me.overriding or LAYOUTS:
            relevant = asked_now(me, args, kwargs)
            if relevant or me.function_modes and me.overriding:
                public = getattr(Tensor, OPERATORS[name]) if name in OPERATORS else fn
                return override(public, relevant, args, kwargs)
        if has_dispatch(type(args[0])):
            handled, result = dispatch_method(name, args, kwargs)
            if handled:
                return result
        return fn(*args, **kwargs)

    return method


def _binary(name, fn):
    """An operator. Python asks a subclass first, with the operands exchanged, where its class has the reflected one."""

    @functools.wraps(fn)
    def operator(self, other):
        me = tls.me
        forward = _REVERSED.get(name) if isinstance(other, Tensor) else None
        args = (self, other) if forward is None else (other, self)
        if me.overriding or LAYOUTS:
            relevant = asked_now(me, args)
            if relevant or me.function_modes and me.overriding:
                if not isinstance(other, (Tensor, *_IGNORED[1:-1])) and not has_override(type(other)):
                    if not hasattr(other, "__array__"):
                        return NotImplemented
                    other = FROM_HOST[0](other)
                    args = (self, other)
                called = forward or name
                try:
                    return override(getattr(Tensor, OPERATORS.get(called, called)), relevant, args, None)
                except TypeError:  # as PyTorch: Python then asks the other operand
                    return NotImplemented
        return fn(self, other) if forward is None else getattr(Tensor, forward)(other, self)

    return operator


CONSTANTS["asked"] = dispatch_method


class _Property:
    """A property of Tensor that asks."""

    __slots__ = ("name", "property")

    def __init__(self, name, found):
        self.name = name
        self.property = found

    def __get__(self, instance, owner=None):
        if instance is None:
            return self.property
        if self.name in ("T", "mT", "H", "mH", "data", "real", "imag") and has_dispatch(type(instance)):
            handled, result = dispatch_method(self.name, (instance,), {})
            if handled:
                return result
        return self._ask(self.property.__get__, (instance,))

    def __set__(self, instance, value):
        self._ask(self.property.__set__, (instance, value))

    def __delete__(self, instance):
        self._ask(self.property.__delete__, (instance,))

    @staticmethod
    def _ask(accessor, args):
        me = tls.me
        if me.overriding or LAYOUTS:
            relevant = asked_now(me, args[:1])
            if relevant or me.function_modes and me.overriding:
                return override(accessor, relevant, args, None)
        return accessor(*args)


def _defined(cls):
    """A new subclass of Tensor."""
    if has_dispatch(cls) and getattr(cls.__torch_function__, "__func__", None) is default:
        cls.__torch_function__ = (
            disabled_torch_function  # as PyTorch's: what the one gives is not what the other makes of it
        )
    if not unusual(cls.__mro__):
        FAST.add(cls)
    elif not cls.__module__.startswith("jtorch."):
        arm()


# --- functions: from the slow path of generated ones --------------------------------------------------------------------


def ask(record, public, args, out=None, inplace=False):
    """(handled, result) of a generated function, from the values of its parameters."""
    relevant = asked_now(tls.me, (*args, out) if type(out) is not tuple else (*args, *out))
    if not relevant:
        return dispatch(record, args, inplace)
    args, kwargs = _spelled(record, args, out)
    return True, override(public, relevant, args, kwargs)


def _spelled(record, values, out):
    """Values of parameters as the positional and keyword arguments that the caller wrote.

    The names of the keywords are read from the calling instruction. Where that does not say (`f(*args)`), parameters
    with a default count as keywords. Values equal to their default are left out, unless something follows them.
    """
    names = _keywords_of_caller()
    args, kwargs = [], {}
    skipped = False
    for p, value in zip(record.params, values):
        if p.default is not p.empty and value is p.default:
            if names is None or p.name not in names:
                skipped = True
                continue
        by_name = p.kind is p.KEYWORD_ONLY or (p.name in names if names is not None else p.default is not p.empty)
        if by_name or skipped:
            kwargs[p.name] = value
        else:
            args.append(value)
    if out is not None:
        kwargs["out"] = out
    return tuple(args), kwargs


def _keywords_of_caller():
    """The keyword names in the call of the generated function that is running, or None."""
    frame = sys._getframe(2)
    while frame is not None and not frame.f_code.co_filename.startswith("<jtorch "):
        frame = frame.f_back
    while frame is not None and (frame.f_code.co_filename.startswith("<jtorch ") or frame.f_code is SPREAD[0]):
        frame = frame.f_back
    return None if frame is None else _keywords_at(frame.f_code, frame.f_lasti)


SPREAD: list = [None]  # the code of `spread`'s functions, set by generate


@functools.lru_cache(4096)
def _keywords_at(code, offset):
    """The names are a constant that stands right before the call. `offset` is that of the call or of its inline cache."""
    before = call = None
    for instruction in dis.get_instructions(code):
        if instruction.offset > offset:
            break
        if instruction.opname != "PRECALL":
            before, call = call, instruction
    if call is None or call.opname not in ("CALL", "CALL_KW"):
        return None
    named = before is not None and (call.opname == "CALL_KW" or before.opname == "KW_NAMES")
    return code.co_consts[before.arg] if named else ()


# --- functions: by exchanging their code --------------------------------------------------------------------------------

WATCH: list = []  # while a profile is taken: called with the entry and the arguments in the place of Entry.run


class Entry:
    """One function, and the code that looks first."""

    __slots__ = ("fn", "public", "real", "plain", "asking", "factory", "seen")
    shorten = staticmethod(shorten)

    def __init__(self, fn, factory, public=None):
        self.public = fn if public is None else public
        self.fn = fn
        self.factory = factory
        self.plain, self.seen = fn.__code__, None if self.public.__name__ in _TWO_TENSORS else 1
        self.real = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
        self.real.__kwdefaults__ = fn.__kwdefaults__
        vars(self.real).update(vars(fn))
        template = _look.__code__
        self.asking = template.replace(
            co_consts=tuple(self if c == "entry" else c for c in template.co_consts),
            co_freevars=fn.__code__.co_freevars,
            co_filename="<jtorch override>",
            co_name=fn.__code__.co_name,
        )

    def exchange(self, on):
        self.fn.__code__ = self.asking if on else self.plain
        # What `inspect` is led to has the function's signature and source.
        wrapped = self.real if on else vars(self.real).get("__wrapped__")
        if wrapped is not None:
            self.fn.__wrapped__ = wrapped
        elif "__wrapped__" in vars(self.fn):
            del self.fn.__wrapped__

    def __call__(self, args, kwargs):
        me = tls.me
        if me.overriding or LAYOUTS:
            relevant = () if self.factory else asked_now(me, args, kwargs)
            if relevant or me.function_modes and me.overriding:
                return override(self.public, relevant, args, kwargs)
        if any(map(dispatches, args[: self.seen])):
            if (found := dispatch_method(self.public.__name__, args, kwargs))[0]:
                return found[1]
        return WATCH[0](self, args, kwargs) if WATCH else self.run(args, kwargs)

    def run(self, args, kwargs):
        """The function itself."""
        if self.factory:
            with disabled():
                return self.real(*args, **kwargs)
        return self.real(*args, **kwargs)


def _look(*args, **kwargs):
    entry = "entry"
    try:
        return entry(args, kwargs)
    except Exception as error:
        entry.shorten(error)
        raise


_TWO_TENSORS = ("copy_", "equal", "type_as", "reshape_as", "map_", "__setitem__")  # methods written by hand


class _State:
    __slots__ = ("armed", "modes", "entries", "waiting", "lock")

    def __init__(self):
        self.armed = False
        self.modes = 0  # active function modes in all threads
        self.entries = {}  # id of a function -> (entry, whether it is generated, and so looks by itself)
        self.waiting = []  # dicts and functions published before anything was armed
        self.lock = threading.RLock()


STATE = _State()


def publish(functions, generated=False, factory=False):
    """Say that these are public functions: {name: function}, or functions."""
    if STATE.armed:
        _enter(functions, generated, factory)
    else:
        STATE.waiting.append((functions, generated, factory))


def _enter(functions, generated, factory, publics=None):
    for fn in list(functions.values()) if isinstance(functions, dict) else functions:
        if isinstance(fn, types.FunctionType) and id(fn) not in STATE.entries:
            entry = Entry(fn, factory, None if publics is None else publics.get(fn))
            STATE.entries[id(fn)] = (entry, generated)
            entry.exchange(bool(STATE.modes) or not generated)


def plain_code(fn):
    """The code of a function, whatever stands in its place."""
    entry = STATE.entries.get(id(fn))
    return fn.__code__ if entry is None else entry[0].plain


def real(fn):
    """A function that runs without looking, whether or not one is published that looks."""
    entry = STATE.entries.get(id(fn))
    return fn if entry is None else entry[0].real


def arm():
    """From now on functions written by hand look for arguments to ask."""
    with STATE.lock:
        if not STATE.armed:
            STATE.armed = True
            HOOKS["attribute"] = _attribute
            NOWRAP.add(Tensor.grad.__get__)
            for name, value in list(vars(Tensor).items()):
                _attribute(name, value)
            _enter([vars(Tensor)[n] for n in _TWO_TENSORS], False, False)
            for each in STATE.waiting:
                _enter(*each)
            STATE.waiting.clear()


def modes_changed(by):
    """A function mode is entered (1) or left (-1): all public functions look while there is one."""
    arm()
    with STATE.lock:
        before, STATE.modes = STATE.modes, STATE.modes + by
        if bool(before) == bool(STATE.modes):
            return
        on = bool(STATE.modes)
        if on:
            publics = {getattr(Tensor, n): getattr(Tensor, f) for n, f in OPERATORS.items()}
            _enter([f for n, f in list(vars(Tensor).items()) if asking_name(n)], True, False, publics)
        for entry, generated in STATE.entries.values():
            if generated:
                entry.exchange(on)
        if on:
            for name, value in list(vars(Tensor).items()):
                mirrored = Overridable.__dict__.get(name)
                if isinstance(value, property) and type(mirrored) is _Property:
                    type.__setattr__(Tensor, name, mirrored)
        else:
            for name, value in list(vars(Tensor).items()):
                if type(value) is _Property:
                    type.__setattr__(Tensor, name, value.property)


def install():
    """Called when Tensor has all its attributes."""
    Tensor.__torch_function__ = classmethod(default)
    HOOKS["overridable"], HOOKS["defined"] = Overridable, _defined
