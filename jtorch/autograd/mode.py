"""Grad modes: per thread, as context managers and decorators."""

import functools
import inspect

from ..core.record import tls


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
            raise TypeError(f"Cannot decorate classes with {type(self).__name__}: decorate their methods")
        if inspect.isgeneratorfunction(fn):
            return _wrap_generator(make, fn)

        @functools.wraps(fn)
        def run(*args, **kwargs):
            with make():
                return fn(*args, **kwargs)

        return run


def _wrap_generator(make, fn):
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
        me = tls.me
        self.prev = me.grad  # one, not a stack: an object entered twice behaves as PyTorch's does
        me.grad = self.value

    def _leave(self):
        tls.me.grad = self.prev


class no_grad(_Optional):
    """Record no history."""

    value = False


class enable_grad(_Optional):
    """Record history again inside no_grad."""

    value = True


class set_grad_enabled(_Mode):
    """Turn recording of history on or off, at once; as a context manager, until its end."""

    def __init__(self, mode):
        self.mode = bool(mode)
        me = tls.me
        self.prev = me.grad
        me.grad = self.mode

    def clone(self):
        return set_grad_enabled(self.mode)

    def __call__(self, fn):
        tls.me.grad = self.prev
        return super().__call__(fn)

    def _enter(self):
        tls.me.grad = self.mode

    def _leave(self):
        tls.me.grad = self.prev


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
        self._before.append((me.grad, me.inference, me.born))
        me.inference = self.mode
        me.born = BORN if self.mode else 0
        if self.mode:
            me.grad = False
        else:
            me.grad = True if me.inference is False and self._before[-1][1] else me.grad

    def _leave(self):
        me = tls.me
        me.grad, me.inference, me.born = self._before.pop()


def is_grad_enabled() -> bool:
    return tls.me.grad


def is_inference_mode_enabled() -> bool:
    return tls.me.inference


def _set_grad_enabled(mode: bool) -> None:
    tls.me.grad = bool(mode)


def is_anomaly_enabled() -> bool:
    return bool(tls.me.extra.get("anomaly"))


def is_anomaly_check_nan_enabled() -> bool:
    return bool(tls.me.extra.get("check_nan"))
