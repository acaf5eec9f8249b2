"""The ints of a size given one by one: x.permute(0, 1)."""

import inspect

from .. import errors, errors_arguments
from ..core.spec import Size
from ..ops.registry import VarInts
from ..tracebacks import shorten
from . import override


def varargs_index(record):
    """Where a VarInts parameter stands, or -1."""
    for i, p in enumerate(record.params):
        if p.annotation is VarInts:
            return i
    return -1


def spread(record, fn, function=""):
    """Let the ints of a VarInts parameter be given one by one: x.permute(0, 1). function: the name of one that refuses that."""
    at = varargs_index(record)
    if at < 0:
        return fn
    required = record.params[at].default is inspect.Parameter.empty

    def call(*args, **kwargs):
        try:
            if len(args) > at:
                first = args[at]
                if not isinstance(first, (tuple, list, Size)) and not (first is None and len(args) == at + 1):
                    if function and isinstance(first, int):
                        raise errors_arguments.given_one_by_one(record, function, at, args)
                    args = (*args[:at], args[at:])
            elif required and not kwargs and len(args) == at:
                raise errors.missing_argument(record.name, record.params[at].name)
            return fn(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    override.SPREAD[0] = call.__code__
    call.__name__ = call.__qualname__ = record.name
    call.__doc__ = record.doc
    return call
