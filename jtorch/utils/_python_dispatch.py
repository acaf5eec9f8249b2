"""torch.utils._python_dispatch: modes that see every op below autograd.

The ops seen are those of the op table, views among them; products and convolutions as PyTorch's dispatcher has them
(`dispatch/parts.py`); factories are not seen.
"""

import contextlib
import functools
from types import MappingProxyType

from .. import errors_extend
from ..core.record import tls
from ..dispatch import dispatched
from ..dispatch.parts import PARTS
from ..tensor import Tensor

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """A context in which every op goes to `__torch_dispatch__(self, func, types, args, kwargs)`.

    While that runs the mode is off; what it calls goes to the modes around it. `func` is an operator such as
    torch.ops.aten.add.Tensor. What func(*args, **kwargs) gives is on the tape as always.
    """

    def __init__(self, _dispatch_key=None):
        self._outer = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        if getattr(self.__torch_dispatch__, "__self__", None) is type(self):
            raise errors_extend.mode_of_class("__torch_dispatch__")
        me = tls.me
        self.__dict__.setdefault("_outer", []).append(me.special)
        me.special = self._handle
        me.extra["dispatch_modes"] = (*me.extra.get("dispatch_modes", ()), self)
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        me = tls.me
        me.special = self._outer.pop()
        *rest, _ = me.extra["dispatch_modes"]
        me.put("dispatch_modes", tuple(rest))

    def _handle(self, op, args, out=None, inplace=False):
        if op.name in PARTS and out is None and not inplace:
            found = PARTS[op.name](self._part, *args)
            if found is not None:
                return True, found
        func = dispatched.overload_of(op, args, inplace)
        given, kwargs = dispatched.schema_form(op, args)
        if out is not None:
            kwargs["out"] = out
        return True, dispatched.as_result(self.see(func, given, kwargs))

    _handle.sees_views = True

    def _part(self, name, *args):
        name, _, overload = name.partition(".")
        return self.see(getattr(dispatched.packet_of(name, None), overload or "default"), args, {})

    def see(self, func, args, kwargs, registered=MappingProxyType({})):
        """What this mode makes of a call of an operator. registered: functions for classes of modes, asked in its place."""
        own = registered.get(type(self))
        ask = self.__torch_dispatch__ if own is None else functools.partial(own, self)
        me = tls.me
        entered = sum(m is self for m in me.extra["dispatch_modes"])  # the same mode may be inside of itself
        with _outside(me, self._outer[entered - 1]):
            classes = dispatched._classes(args)
            result = ask(func, classes, args, kwargs)
            return dispatched._ask(func, classes, args, kwargs, self) if result is NotImplemented else result

    @classmethod
    def push(cls, *args, **kwargs):
        """Deprecated by PyTorch: an instance."""
        return cls(*args, **kwargs)


@contextlib.contextmanager
def _outside(me, outer):
    """The state around the innermost mode."""
    special, modes = me.special, me.extra.get("dispatch_modes", ())
    me.special = outer
    me.put("dispatch_modes", modes[:-1])
    try:
        yield
    finally:
        me.special = special
        me.put("dispatch_modes", modes)


@contextlib.contextmanager
def _DisableTorchDispatch():
    """A context in which modes are not asked."""
    me = tls.me
    special, modes = me.special, me.extra.get("dispatch_modes", ())
    if modes:
        me.special = modes[0]._outer[0]
    try:
        yield
    finally:
        me.special = special


@contextlib.contextmanager
def _disable_current_modes():
    """A context without the modes that are active; gives them."""
    me = tls.me
    modes = me.extra.get("dispatch_modes", ())
    with _DisableTorchDispatch():
        me.put("dispatch_modes", ())
        try:
            yield list(modes)
        finally:
            me.put("dispatch_modes", modes)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every op pass."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode():
    modes = tls.me.extra.get("dispatch_modes", ())
    return modes[-1] if modes else None


def _get_current_dispatch_mode_stack() -> list:
    return list(tls.me.extra.get("dispatch_modes", ()))


def _len_torch_dispatch_stack() -> int:
    return len(tls.me.extra.get("dispatch_modes", ()))


def is_in_torch_dispatch_mode(include_infra_modes=True) -> bool:
    """Whether a dispatch mode is active."""
    return _len_torch_dispatch_stack() > 0


def any_torch_dispatch_mode_on_stack(*args, **kwargs) -> bool:
    """Whether a dispatch mode is active."""
    return _len_torch_dispatch_stack() > 0


def is_traceable_wrapper_subclass_type(cls) -> bool:
    """Whether a class is a wrapper that can be taken apart and put together again."""
    return (
        isinstance(cls, type)
        and issubclass(cls, Tensor)
        and cls is not Tensor
        and hasattr(cls, "__tensor_flatten__")
        and hasattr(cls, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t) -> bool:
    """Whether a tensor is of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """The same wrapper around callback(name, inner) of each of its inner tensors."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(
        inner,
        context,
        t.size() if outer_size is None else outer_size,
        t.stride() if outer_stride is None else outer_stride,
    )


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a `__torch_dispatch__` returns: for an op that writes to its first argument that argument, else `out`."""
    return args[0] if func.overloadpacket.__name__.endswith("_") and args else out
