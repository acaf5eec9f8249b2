"""Decorators of classes of pipes: the name of a step, and what is not deterministic."""

import contextlib
import functools

from .datapipe import IterDataPipe, MapDataPipe

__all__ = [
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]


class functional_datapipe:
    """Registers a pipe's class as a method of all pipes of its kind, under `name`."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False):
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls):
        if isinstance(cls, type) and issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        elif isinstance(cls, type) and issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


_guaranteed = [False]


class guaranteed_datapipes_determinism(contextlib.ContextDecorator):
    """Inside, making a pipe that is marked `non_deterministic` raises."""

    def __enter__(self):
        self._before, _guaranteed[0] = _guaranteed[0], True

    def __exit__(self, *exc):
        _guaranteed[0] = self._before


class non_deterministic:
    """Marks a class of pipes as not deterministic, always or where a function of its arguments says so."""

    def __new__(cls, arg):
        if isinstance(arg, type) and issubclass(arg, IterDataPipe):
            return _marked(arg, lambda *args, **kwargs: True)
        if not callable(arg) or isinstance(arg, type):
            raise TypeError(f"{arg} can not be decorated by non_deterministic")
        return functools.partial(_marked, says=arg)


def _marked(cls, says):
    if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
        raise TypeError(f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {cls.__name__} is found")
    usual = cls.__init__

    @functools.wraps(usual)
    def init(self, *args, **kwargs):
        if _guaranteed[0] and says(*args, **kwargs):
            raise TypeError(
                f"{cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can turn off "
                "determinism for this DataPipe if that is acceptable for your application"
            )
        usual(self, *args, **kwargs)

    cls.__init__ = init
    return cls


def argument_validation(f):
    """The function itself: PyTorch checks only pipes typed by a metaclass that it no longer gives any."""
    return f


def runtime_validation(f):
    """The function itself, for the same reason as `argument_validation`."""
    return f


class runtime_validation_disabled(contextlib.ContextDecorator):
    """A context in which `runtime_validation` checks nothing, as it does outside."""

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return None
