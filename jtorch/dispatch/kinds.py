"""What kinds of arguments a composite is given: asked before it runs, as PyTorch's functions in C do, by its annotations."""

import functools
import inspect
import sys

from .. import errors
from ..ops.registry import LIST, OPTIONAL, TENSOR
from ..tensor import Tensor
from ..tracebacks import shorten
from . import override
from .plans import FAST
from .statics import check_statics, is_method, static

# A condition in source for each kind: whether an argument may be of another. It is cheap; `check_kinds` then looks closely.
_OF_ROLE = {
    TENSOR: "type({0}) not in fast",
    OPTIONAL: "{0} is not None and type({0}) not in fast",
    LIST: "type({0}) is not tuple and type({0}) is not list or not fast.issuperset(map(type, {0}))",
}
_OF_KIND = {
    bool: "type({0}) is not bool", int: "type({0}) is not int", str: "type({0}) is not str",
    bool | None: "{0} is not None and type({0}) is not bool",
    int | None: "{0} is not None and type({0}) is not int",
    str | None: "{0} is not None and type({0}) is not str",
}  # fmt: skip
_VARIOUS = "not fast.issuperset(map(type, {0}))"


def asked_kinds(record) -> list[str]:
    """The conditions for a record, in source; none for parameters whose annotation says no kind. Functions that PyTorch has in Python
    ask for tensors alone."""
    found = []
    for p, role in zip(record.params, record.roles):
        asked = _OF_ROLE.get(role) or (_OF_KIND.get(p.annotation) if record.strict else None)
        if asked is not None:
            found.append((_VARIOUS if p.kind is p.VAR_POSITIONAL else asked).format(p.name))
    return found


def check_kinds(record, values) -> None:
    """Raise a TypeError for the first argument that is not of its parameter's kind. Called by generated functions.

    Raises `override.FirstMeeting` where nobody was to be asked until now: the call is to be made again.
    """
    armed = override.STATE.armed
    method = is_method(sys._getframe(1))
    for at, (p, role, a) in enumerate(zip(record.params, record.roles, values)):
        if p.annotation is p.empty:
            continue
        if p.kind is p.VAR_POSITIONAL:
            listed = role != TENSOR and len(a) == 1 and isinstance(a[0], (list, tuple))  # they may come as one list
            _check_list(a[0] if listed else a, 0)
        elif role in (TENSOR, OPTIONAL):
            if not (_serves(a) or a is None and role == OPTIONAL):
                record.ask_first(p.name, a)
                position = None if p.kind is p.KEYWORD_ONLY else at + 1 - method
                raise errors.argument(record.shown, p.name, "Tensor", a, position)
        elif role == LIST:
            if not isinstance(a, (list, tuple)):
                raise errors.argument(record.shown, p.name, "tuple of Tensors", a, at + 1 - method)
            _check_list(a, at)
        elif record.strict:
            check_statics(record, [(at, static(a))], method=method, given=values)
    if override.STATE.armed and not armed:
        raise override.FirstMeeting


def of_tensor(fn, name):
    """A function written by hand, of a tensor first: called with anything else it raises the error that PyTorch's in C do."""

    def first_meeting(input):
        armed = override.STATE.armed
        if not _serves(input):
            raise errors.argument(name, "input", "Tensor", input, 1)
        return override.STATE.armed and not armed

    def alone(input):
        try:
            if type(input) not in FAST and first_meeting(input):
                return call(input)
            return fn(input)
        except Exception as error:
            shorten(error)
            raise

    def among(input, *args, **kwargs):
        try:
            if type(input) not in FAST and first_meeting(input):
                return call(input, *args, **kwargs)
            return fn(input, *args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    code = fn.__code__
    single = code.co_argcount == 1 and not code.co_kwonlyargcount and not code.co_flags & inspect.CO_VARARGS
    call = functools.wraps(fn)(alone if single else among)
    call.__name__ = call.__qualname__ = name
    return call


def _check_list(tensors, position):
    for k, x in enumerate(tensors):
        if not _serves(x):
            raise errors.list_element(k, x, position)


def _serves(a) -> bool:
    return isinstance(a, Tensor) or override.has_override(type(a))
