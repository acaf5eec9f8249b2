"""Ctrl-C and other signals while a program runs: they are heard once the results are where they belong.

A program takes the memory of its arguments. An exception between that and the moment when its results are known would leave parameters
without a value, and what waits to be run unable to. So the handlers of signals that are there to end something (Ctrl-C, a time limit,
a request to stop) are wrapped by one that, in between, only notes it; a second signal of the same number is heard at once. Python calls
handlers in the main thread, so other threads have nothing to fear. The handler stays, since to exchange it for each program costs a step
of an MLP a thirtieth.
"""

import _signal
import functools
import sys
import threading
from _signal import getsignal, signal  # `signal` makes enums of handlers at each call

_MAIN = threading.main_thread().ident
_ident = threading.get_ident
# Not those of profilers, which are to see where the program is. One costs 15 ns a program.
_SIGNALS = tuple(
    getattr(_signal, name)
    for name in ("SIGINT", "SIGALRM", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if hasattr(_signal, name)
)


class _State:
    """held: whether signals are to wait. asked: {number: the handler that it has come to since}."""

    __slots__ = ("held", "asked")

    def __init__(self):
        self.held = False
        self.asked = {}


_state = _State()


class _Handler:
    """What Python calls in place of the handler that was there."""

    __slots__ = ("before",)

    def __init__(self, before):
        self.before = before

    def __call__(self, number, frame):
        if _state.held and number not in _state.asked:
            _state.asked[number] = self
            return
        _state.asked.pop(number, None)
        self.before(number, frame)


def hold() -> bool:
    """Have signals wait until `release`; False if there is nothing to do."""
    if _state.held or _ident() != _MAIN:
        return False
    handled = False
    for number in _SIGNALS:
        handler = getsignal(number)
        if type(handler) is not _Handler:
            if not callable(handler):  # not Python's
                continue
            try:
                signal(number, _Handler(handler))
            except ValueError:  # a fork has made another thread the main one
                return False
        handled = True
    _state.held = handled
    return handled


def release():
    """Hear them again, and what has come."""
    _state.held = False
    if _state.asked:
        _hear(sys._getframe(1))


def _hear(frame):
    number, handler = _state.asked.popitem()
    try:
        handler.before(number, frame)
    finally:
        if _state.asked:
            _hear(frame)


def uninterrupted(method):
    """A method during which signals wait; its arguments are positional."""

    @functools.wraps(method)
    def whole(*args):
        if not hold():
            return method(*args)
        try:
            return method(*args)
        finally:
            release()

    return whole
