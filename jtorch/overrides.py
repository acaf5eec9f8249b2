"""torch.overrides: `__torch_function__` of subclasses, of objects that look like tensors, and of modes.

How a call finds its way there is in `dispatch/override.py`. https://docs.pytorch.org/docs/stable/notes/extending.html
"""

import contextlib
import functools
import importlib
import inspect
import threading
import types
from types import FunctionType

from . import errors_extend, functions
from .core.record import tls
from .dispatch import override
from .tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip

override.name_of = lambda public: resolve_name(public) or str(public)


# --- asking -------------------------------------------------------------------------------------------------------------


def has_torch_function(relevant_args) -> bool:
    """Whether one of these arguments, or an active mode, has a `__torch_function__` to be asked."""
    me = tls.me
    if not me.overriding:
        return False
    if getattr(_once, "skip", False):
        _once.skip = False
        return False
    return bool(me.function_modes) or me.overriding == 2 and any(override.has_override(type(a)) for a in relevant_args)


def has_torch_function_unary(arg) -> bool:
    """has_torch_function of one argument."""
    return has_torch_function((arg,))


def has_torch_function_variadic(*args) -> bool:
    """has_torch_function of the arguments."""
    return has_torch_function(args)


def _get_overloaded_args(relevant_args, get_type_fn=type):
    """The arguments to be asked, one of each class, subclasses before their bases. Plain tensors are among them."""
    found = []
    if tls.me.overriding != 2:
        return found
    for a in relevant_args:
        cls = get_type_fn(a)
        if any(get_type_fn(x) is cls for x in found) or not (cls is Tensor or override.has_override(cls)):
            continue
        at = next((k for k, x in enumerate(found) if issubclass(cls, get_type_fn(x))), len(found))
        found.insert(at, a)
    return found


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Ask modes and arguments for the result of `public_api(*args, **kwargs)`.

    TypeError: nobody knows it. A function of one's own calls this where has_torch_function is True.
    """
    asked = _get_overloaded_args(relevant_args)
    classes = tuple(map(type, asked))
    me = tls.me
    if me.function_modes and me.overriding:
        with _pop_mode_temporarily() as mode:
            result = mode.__torch_function__(public_api, classes, args, kwargs)
        if result is not NotImplemented:
            return result
    for a in asked:
        result = a.__torch_function__(public_api, classes, args, kwargs)
        if result is not NotImplemented:
            return result
    modes = me.function_modes if me.overriding else ()
    raise errors_extend.no_implementation(f"{public_api.__module__}.{public_api.__name__}", classes, modes[-1:])


def wrap_torch_function(dispatcher):
    """Decorate a function so that it asks: `dispatcher`, called like it, returns the arguments that matter."""

    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def redispatch_function(func, types, args, kwargs):
    """Call a function from a `__torch_function__` without asking for that call again: what a program's own function calls is asked."""
    if isinstance(func, FunctionType) and (func.__module__ or "").partition(".")[0] != "jtorch":
        _once.skip = True
        try:
            return func(*args, **(kwargs or {}))
        finally:
            _once.skip = False
    with _Nobody():
        return func(*args, **(kwargs or {}))


class _Nobody(override.disabled):
    level = 0


_once = threading.local()  # skip: whether the next has_torch_function says no


def is_tensor_like(inp) -> bool:
    """Whether something is a tensor, or has a `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


# --- modes --------------------------------------------------------------------------------------------------------------


class TorchFunctionMode:
    """A context in which every call of the public API goes to `__torch_function__(self, func, types, args, kwargs)`.

    While that runs the mode is off; what it calls goes to the modes around it.
    """

    inner: "TorchFunctionMode"

    def __init__(self):
        """Nothing to keep: a subclass may take arguments."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        if getattr(self.__torch_function__, "__self__", None) is type(self):
            raise errors_extend.mode_of_class("__torch_function__")
        _push_mode(self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        _pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """Deprecated by PyTorch: an instance."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call pass."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _push_mode(mode):
    override.modes_changed(1)
    tls.me.function_modes = (*tls.me.function_modes, mode)


def _pop_mode():
    *outer, mode = tls.me.function_modes
    tls.me.function_modes = tuple(outer)
    override.modes_changed(-1)
    return mode


def _get_current_function_mode():
    return tls.me.function_modes[-1] if tls.me.function_modes else None


def _get_current_function_mode_stack():
    return list(tls.me.function_modes)


def _len_torch_function_stack() -> int:
    return len(tls.me.function_modes)


def _is_torch_function_mode_enabled() -> bool:
    return bool(tls.me.function_modes) and tls.me.overriding > 0


@contextlib.contextmanager
def _pop_mode_temporarily():
    me = tls.me
    before = me.function_modes
    me.function_modes = before[:-1]
    try:
        yield before[-1]
    finally:
        me.function_modes = before


class _EnableTorchFunction:
    """Asks subclasses and modes again, inside a context in which they are not."""

    def __enter__(self):
        self.before, tls.me.overriding = tls.me.overriding, 2

    def __exit__(self, *exc):
        tls.me.overriding = self.before


@contextlib.contextmanager
def enable_reentrant_dispatch():
    """Inside a `__torch_dispatch__`: classes and modes are asked again."""
    with _EnableTorchFunction():
        yield


# --- what there is to override ------------------------------------------------------------------------------------------

_SPACES = ("torch", "torch.functional", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
_NOT = {
    "arange", "as_strided", "as_tensor", "asarray", "bartlett_window", "blackman_window", "can_cast", "empty",
    "empty_permuted", "empty_strided", "eye", "fill", "finfo", "iinfo", "from_numpy", "frombuffer", "full", "get_default_dtype",
    "get_rng_state", "hamming_window", "hann_window", "initial_seed", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "is_storage", "is_tensor", "kaiser_window", "linspace", "logspace",
    "manual_seed", "normal", "ones", "promote_types", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "randperm", "range", "result_type", "scalar_tensor", "seed", "set_rng_state", "tensor", "tril_indices", "triu_indices",
    "vander", "zeros", "broadcast_shapes", "fftfreq", "rfftfreq", "upsample", "upsample_nearest", "upsample_bilinear", "from_jax",
    "no_grad", "enable_grad", "set_grad_enabled", "inference_mode",
}  # fmt: skip


def _module(space):
    return importlib.import_module("jtorch" + space.removeprefix("torch"))


def _names(space):
    if space == "torch":
        return dir(functions)
    if space == "torch.functional":
        return _module(space).__all__
    if space == "torch.nn.functional":
        return [n for n, f in vars(_module(space)).items() if isinstance(f, types.FunctionType)]
    return functions.names(space.removeprefix("torch."))


def _each(space):
    """(name, function) of a namespace."""
    holder = functions if space == "torch" else None
    for name in _names(space):
        if holder is None:
            small = space.removeprefix("torch.")
            found = functions.lookup(small, name) or getattr(_module(space), name, None)
        else:
            found = getattr(holder, name)
        if isinstance(found, types.FunctionType) and not name.startswith("_"):
            yield name, found


def _methods():
    """(name, method or property) of Tensor, all made."""
    for name in dir(Tensor):
        if override.asking_name(name):
            found = getattr(Tensor, name, None)
            if isinstance(found, (types.FunctionType, property)):
                yield name, found


@functools.cache
def get_overridable_functions() -> dict:
    """All functions that ask `__torch_function__`: {namespace: [functions]}. Properties come as their accessors."""
    found = {}
    for space in _SPACES:
        own = set(_module("torch.functional").__all__) if space == "torch" else set()
        found[_module(space)] = [f for n, f in _each(space) if n not in _NOT and n not in own]
    found[Tensor] = [m for _, m in _methods() if not isinstance(m, property)]
    for _, m in _methods():
        if isinstance(m, property):
            found[m] = [m.__get__] if m.fset is None else [m.__get__, m.__set__]
    return found


@functools.cache
def get_ignored_functions() -> set:
    """Public functions that do not ask, since no argument of theirs is a tensor, or for want of a meaning."""
    found = {f for space in _SPACES for n, f in _each(space) if n in _NOT}
    found |= {Tensor.as_subclass, Tensor._make_subclass, Tensor._make_wrapper_subclass, Tensor.__new__, Tensor.__hash__}
    return found | {handle_torch_function, has_torch_function}


@functools.cache
def get_testing_overrides() -> dict:
    """{overridable function: a function of the same signature that returns -1}."""
    return {f: _testing(f) for functions_ in get_overridable_functions().values() for f in functions_}


def _testing(fn):
    def override_of(*args, **kwargs):
        return -1

    with contextlib.suppress(TypeError, ValueError):
        override_of.__signature__ = inspect.signature(fn)
    return override_of


def get_default_nowrap_functions() -> set:
    """Functions whose results the default `__torch_function__` returns as they are."""
    override.arm()
    return set(override.NOWRAP)


def is_tensor_method_or_property(func) -> bool:
    """Whether a function passed to `__torch_function__` is a method of Tensor, or the accessor of a property."""
    holder = getattr(func, "__self__", None)
    if isinstance(holder, property):
        return any(m is holder for m in vars(Tensor).values())
    return any(m is func for m in vars(Tensor).values())


def resolve_name(f) -> str | None:
    """The public name of an overridable function, such as "torch.Tensor.add" or "torch.nn.functional.relu"; else None."""
    holder = getattr(f, "__self__", None)
    if isinstance(holder, property):
        name = next((n for n, m in vars(Tensor).items() if m is holder or getattr(m, "property", None) is holder), None)
        return None if name is None else f"torch.Tensor.{name}.{f.__name__}"
    if isinstance(f, types.FunctionType):
        for name, m in vars(Tensor).items():
            if m is f:
                return f"torch.Tensor.{name}"
        own = set(_module("torch.functional").__all__)
        for (space, name), made in functions.made():
            if made is f and space != "Tensor":
                space = "functional" if space == "torch" and name in own else space
                return f"torch.{name}" if space == "torch" else f"torch.{space}.{name}"
        for space in _SPACES:
            if space in ("torch", "torch.nn.functional"):
                name = next(
                    (n for n, g in vars(_module(space) if space != "torch" else functions).items() if g is f), None
                )
                if name is not None:
                    return f"torch.functional.{name}" if space == "torch" and name in own else f"{space}.{name}"
    return str(f) if hasattr(f, "overloadpacket") else None
