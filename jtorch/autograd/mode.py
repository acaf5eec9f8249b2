"""Grad modes: per thread, as context managers and decorators."""

import functools
import inspect

from .. import errors
from ..core.record import tls
from ..errors_autograd import inference_saved


class _Mode:
    """A context manager that can decorate functions, generator functions and classes."""

    def _enter(self):
        raise NotImplementedError

    def _leave(self):
        raise NotImplementedError

    def clone(self):
        return type(self)()

    def __enter__(self):
        self._enter()
        return self if isinstance(self, inference_mode) else None

    def __exit__(self, *exc):
        self._leave()

    def __call__(self, fn):
        make = self.clone
        if inspect.isclass(fn):
            errors.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
                "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
                "and nothing else.",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(fn):
            return wrap_generator(make, fn)

        @functools.wraps(fn, updated=() if inspect.isclass(fn) else ("__dict__",))
        def run(*args, **kwargs):
            with make():
                return fn(*args, **kwargs)

        return run


def turn(on):
    """Record history from now on, or not; returns what was set before. In inference mode there is none, whatever is set."""
    me = tls.me
    if me.inference:
        before = bool(me.extra.get("grad_set"))
        me.put("grad_set", on)
    else:
        before = me.grad
        me.grad = on
    return before


def wrap_generator(make, fn):
    """The mode holds while the generator runs, not while its consumer does."""

    @functools.wraps(fn)
    def run(*args, **kwargs):
        generator = fn(*args, **kwargs)
        try:
            with make():
                value = generator.send(None)
            while True:
                try:
                    got = yield value
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    with make():
                        value = generator.throw(error)
                else:
                    with make():
                        value = generator.send(got)
        except StopIteration as stop:
            return stop.value

    return run


class _Optional(_Mode):
    """no_grad and enable_grad also decorate without being called: @torch.no_grad."""

    def __new__(cls, fn=None):
        self = object.__new__(cls)
        return self if fn is None else self(fn)

    def __init__(self, fn=None):
        self.prev = False

    def _enter(self):
        self.prev = turn(self.value)  # one, not a stack: an object entered twice behaves as PyTorch's does

    def _leave(self):
        turn(self.prev)


class no_grad(_Optional):
    """Record no history."""

    value = False


class enable_grad(_Optional):
    """Record history again inside no_grad."""

    value = True


class set_grad_enabled(_Mode):
    """Turn recording of history on or off, at once; as a context manager, until its end."""

    def __init__(self, mode):
        if not isinstance(mode, bool):
            raise errors.argument("set_grad_enabled", "enabled", "bool", mode, 1)
        self.mode = mode
        self.prev = turn(mode)

    def clone(self):
        return set_grad_enabled(self.mode)

    def __call__(self, fn):
        turn(self.prev)
        return super().__call__(fn)

    def _enter(self):
        turn(self.mode)

    def _leave(self):
        turn(self.prev)

    def __repr__(self):
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


BORN = -(1 << 62)  # versions count up from here in storages made in inference mode, and never reach 0


class inference_mode(_Mode):
    """Record no history, now or later: tensors made here can never need gradients."""

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        if not isinstance(mode, bool):
            self.__init__(True)
            return self(mode)
        return self

    def __init__(self, mode=True):
        self.mode = mode
        self._before = []

    def clone(self):
        return inference_mode(self.mode)

    def _enter(self):
        me = tls.me
        self._before.append((me.grad, me.inference, me.born, me.extra.get("grad_set")))
        me.put("grad_set", None)
        me.inference = self.mode
        me.born = BORN if self.mode else 0
        if self.mode:
            me.grad = False
        else:
            me.grad = True if me.inference is False and self._before[-1][1] else me.grad

    def _leave(self):
        me = tls.me
        me.grad, me.inference, me.born, shown = self._before.pop()
        me.put("grad_set", shown)


def is_grad_enabled() -> bool:
    """Whether calls in this thread are recorded for gradients."""
    me = tls.me
    return bool(me.extra.get("grad_set")) if me.inference else me.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in `inference_mode`."""
    return tls.me.inference


def _set_grad_enabled(mode: bool) -> None:
    turn(bool(mode))


def is_anomaly_enabled() -> bool:
    """Whether `autograd.detect_anomaly` is on."""
    return bool(tls.me.extra.get("anomaly"))


def is_anomaly_check_nan_enabled() -> bool:
    """Whether `autograd.detect_anomaly` looks for nan in gradients."""
    return tls.me.extra.get("check_nan", True)


def refuse():
    """An inference tensor is being saved for a backward pass: RuntimeError, but in a function that torch.func differentiates."""
    if "taping" not in tls.me.extra and "transforms" not in tls.me.extra:
        raise inference_saved()
