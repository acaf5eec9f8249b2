"""autocast: inside it matrix products run in half precision and what needs float32 runs in that."""

import contextlib
import functools
import threading

from .. import errors
from ..core import device as devices
from ..core import dtype as dtypes
from ..core.record import tls
from ..dispatch import slow
from ..handles import mutations
from ..tensor import Tensor
from . import cells
from .lists import FLOAT32, LOWER, ONLY_IF, WIDEST

_KINDS = ("cpu", "cuda", "mps", "xla", "tpu", "xpu")
_SUPPORTED = (dtypes.bfloat16, dtypes.float16)
CELLS = {"cpu": {"lstm_cell": cells.lstm_cell, "gru_cell": cells.gru_cell}, "cuda": {}}


class _State(threading.local):
    """What autocast is set to in this thread: {device type: (enabled, dtype)}."""

    def __init__(self):
        self.enabled = {}
        self.dtype = dict.fromkeys(("cuda", "ipu", "mps", "mtia", "xpu"), dtypes.float16)
        self.dtype |= dict.fromkeys(("cpu", "hpu", "maia", "tpu", "xla"), dtypes.bfloat16)
        self.cache = True
        self.depth = 0


_state = _State()


def is_autocast_enabled(device_type=None) -> bool:
    """Whether autocast is on for a device type (by default for the accelerator)."""
    kind = _kind(device_type or "cuda")
    if kind not in _state.dtype:
        devices.device(kind)  # raises where there is no such type at all
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return _state.enabled.get(kind, False)


def is_any_autocast_enabled() -> bool:
    """Whether autocast is on for a device type, whichever."""
    return any(_state.enabled.values())


def set_autocast_enabled(*args) -> None:
    """set_autocast_enabled(device_type, enabled), or (enabled) for the accelerator."""
    device_type, enabled = args if len(args) == 2 else ("cuda", args[0])
    _state.enabled[_kind(device_type)] = bool(enabled)
    _install()


def get_autocast_dtype(device_type):
    """The lower precision of autocast on a device type."""
    kind = _kind(device_type)
    if kind not in _state.dtype:
        devices.device(kind)
        raise RuntimeError("unsupported scalarType")
    return _state.dtype[kind]


def set_autocast_dtype(device_type, dtype) -> None:
    """Set the lower precision of autocast on a device type."""
    _state.dtype[_kind(device_type)] = dtype
    mutations[0] += 1  # compiled regions may have asked for it


def is_autocast_cache_enabled() -> bool:
    """The flag as it was set: casts of one tensor in one graph are merged by XLA with or without it."""
    return _state.cache


def set_autocast_cache_enabled(enabled) -> None:
    """Set the flag that `is_autocast_cache_enabled` gives; nothing else follows from it."""
    _state.cache = bool(enabled)


def clear_autocast_cache() -> None:
    """Accepted: there is no cache."""


def is_autocast_available(device_type) -> bool:
    """Whether autocast knows a device type."""
    return _kind(device_type) in _KINDS


def _kind(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return device_type.partition(":")[0]


def remembered():
    """A function that gives contexts in which autocast is set to what it is set to in this thread now."""
    then = dict(_state.enabled), dict(_state.dtype), _state.cache

    @contextlib.contextmanager
    def again():
        before = _state.enabled, _state.dtype, _state.cache
        _state.enabled, _state.dtype, _state.cache = dict(then[0]), dict(then[1]), then[2]
        _install()
        try:
            yield
        finally:
            _state.enabled, _state.dtype, _state.cache = before
            _install()

    return again


def _install():
    """Route this thread's ops through `_cast_call` while autocast is on anywhere, and only then."""
    me = tls.me
    here = me.special
    casts = here is _cast_call or type(here) is _Before
    if is_any_autocast_enabled():
        if not casts:
            me.special = _cast_call if here is None else _Before(here)
    elif casts:
        me.special = None if here is _cast_call else here.other


def _cast_call(op, args, out=None, inplace=False):
    """The recorder's hook: run an op on operands in the dtype that its list says."""
    return _cast_before(None, op, args, out, inplace)


class _Before:
    """The hook where there is another one already, of a dispatch mode or of forward mode: that gets what was cast."""

    def __init__(self, other):
        self.other = other
        self.sees_views = getattr(other, "sees_views", False)
        self.around = _Before

    def __call__(self, op, args, out=None, inplace=False):
        return _cast_before(self.other, op, args, out, inplace)


_cast_call.other, _cast_call.around = None, _Before  # what forward mode asks for, to come after the casts


def _cast_before(other, op, args, out, inplace):
    """(handled, result) of an op: on operands in the dtype that its list says, or what the other hook makes of it."""
    name = op.name
    kind = None if out is not None or inplace else next((_kind_of(t) for t in _tensors(args)), None)
    if _state.enabled.get(kind, False):
        lists = "cpu" if kind == "cpu" else "cuda"
        if name in CELLS[lists] and args[0]._spec.ndim == 2:
            return True, CELLS[lists][name](*args)
        target = _target(name, args, kind, lists)
        if target is not None:
            me = tls.me
            here, me.special = me.special, other
            try:
                return True, slow(op, tuple(_cast(a, target, kind) for a in args))
            finally:
                me.special = here
    return (False, None) if other is None else other(op, args, out, inplace)


def _target(name, args, kind, lists):
    """The dtype that an op runs in; None: as it is."""
    if name in ONLY_IF and not ONLY_IF[name](*args):
        return None
    low = get_autocast_dtype(kind)
    if name in WIDEST[lists] or name == "lstm_layer" and lists == "cpu" and _of_lengths(args):
        return dtypes.float32 if any(t._spec.dtype is dtypes.float32 for t in _starts(name, args)) else low
    return low if name in LOWER[lists] else dtypes.float32 if name in FLOAT32[lists] else None


def _of_lengths(args):
    """Whether an LSTM layer runs over sequences of several lengths: its state keeps its dtype, as that of a cell."""
    return len(args) > 8 and args[8] is not None


def _starts(name, args):
    return _tensors(args[1:3] if name == "lstm_layer" else args)


def _tensors(args):
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from (x for x in a if isinstance(x, Tensor))


def _kind_of(t):
    return t._spec.device.type


def _cast(a, target, kind):
    if isinstance(a, Tensor):
        d = a._spec.dtype
        if d.is_floating_point and d is not dtypes.float64 and d is not target and _kind_of(a) == kind:
            return a.to(target)
        return a
    if isinstance(a, (list, tuple)) and any(isinstance(x, Tensor) for x in a):
        return type(a)(_cast(x, target, kind) for x in a)
    return a


class autocast:
    """Context manager and decorator: ops in it choose their dtype.

    Args:
        device_type: "cpu" or "cuda"
        dtype: the lower precision. Default: bfloat16 on the CPU, float16 on an accelerator
        enabled: False makes it the region where ops keep their dtypes. Default: True
        cache_enabled: accepted
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = _kind(device_type)
        if self.device not in _KINDS:
            get_autocast_dtype(self.device)  # raises where PyTorch has no autocast either
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'\n  supported: {', '.join(_KINDS)}"
            )
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache = _state.cache if cache_enabled is None else cache_enabled
        if enabled and self.device == "cuda" and devices.accelerator() is None:
            errors.warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            enabled = False
        if enabled and self.fast_dtype not in _SUPPORTED:
            name = "CPU" if self.device == "cpu" else self.device.upper()
            supported = ", ".join(map(str, _SUPPORTED))
            errors.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtype of {supported} currently."
            )
            enabled = False
        self._enabled = bool(enabled)

    def __enter__(self):
        self._before = (_state.enabled.get(self.device, False), get_autocast_dtype(self.device), _state.cache)
        self._set(self._enabled, self.fast_dtype, self._cache)
        return self

    def __exit__(self, *exc):
        self._set(*self._before)
        return False

    def _set(self, enabled, dtype, cache):
        _state.enabled[self.device] = enabled
        _state.dtype[self.device] = dtype
        _state.cache = cache
        _install()

    def __call__(self, fn):
        if not callable(fn):
            return self

        @functools.wraps(fn)
        def decorated(*args, **kwargs):
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache):
                return fn(*args, **kwargs)

        return decorated


def _map_tensors(value, fn):
    if isinstance(value, Tensor):
        return fn(value)
    if isinstance(value, dict):
        return {k: _map_tensors(v, fn) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(v, fn) for v in value)
    return value


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorate `forward` of an autograd Function: its backward will run under the same autocast.

    cast_inputs: cast floating-point inputs to this dtype, and run without autocast.
    """
    _kind(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        context = args[0]
        context._dtype = get_autocast_dtype(device_type)
        if cast_inputs is None or not is_autocast_enabled(device_type):
            context._fwd_used_autocast = cast_inputs is None and is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        context._fwd_used_autocast = False

        def cast(t):
            return _cast(t, cast_inputs, device_type)

        with autocast(device_type, enabled=False):
            return fwd(*_map_tensors(args, cast), **_map_tensors(kwargs, cast))

    return decorated


def custom_bwd(bwd=None, *, device_type):
    """Decorate `backward` of an autograd Function whose forward has `custom_fwd`."""
    _kind(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
