"""Ctrl-C while a program runs: it is heard once the results are where they belong.

A program takes the memory of its arguments. An exception between that and the moment when its results are known would leave parameters
without a value, and what waits to be run unable to. So the handler of the signal is wrapped by one that, in between, only notes it; a
second Ctrl-C is heard at once. Python calls handlers in the main thread, so other threads have nothing to fear. The handler stays, since
to exchange it for each program costs a step of an MLP a thirtieth.
"""

import functools
import sys
import threading
from _signal import SIGINT, getsignal, signal  # `signal` makes enums of handlers at each call

_MAIN = threading.main_thread().ident
_ident = threading.get_ident


class _State:
    """held: whether a signal is to wait. asked: the handler that one has come to since."""

    __slots__ = ("held", "asked")

    def __init__(self):
        self.held = False
        self.asked = None


_state = _State()


class _Handler:
    """What Python calls in place of the handler that was there."""

    __slots__ = ("before",)

    def __init__(self, before):
        self.before = before

    def __call__(self, number, frame):
        if _state.held and _state.asked is None:
            _state.asked = self
            return
        _state.asked = None
        self.before(number, frame)


def hold() -> bool:
    """Have Ctrl-C wait until `release`; False if there is nothing to do."""
    if _state.held or _ident() != _MAIN:
        return False
    handler = getsignal(SIGINT)
    if type(handler) is not _Handler:
        if not callable(handler):  # not Python's
            return False
        try:
            signal(SIGINT, _Handler(handler))
        except ValueError:  # a fork has made another thread the main one
            return False
    _state.held = True
    return True


def release():
    """Hear it again, and what has come."""
    _state.held = False
    asked = _state.asked
    if asked is not None:
        _state.asked = None
        asked.before(SIGINT, sys._getframe(1))


def uninterrupted(method):
    """A method during which Ctrl-C waits; its arguments are positional."""

    @functools.wraps(method)
    def whole(*args):
        if not hold():
            return method(*args)
        try:
            return method(*args)
        finally:
            release()

    return whole
