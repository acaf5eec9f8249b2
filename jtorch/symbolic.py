"""torch.sym_*: arithmetic on sizes. Sizes are Python numbers here, whatever runs, so this is Python's arithmetic."""

import math

from . import errors_extend

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_constrain_range", "sym_constrain_range_for_size", "sym_float", "sym_fresh_size", "sym_int",
    "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


class SymInt:
    """The class of symbolic sizes, for isinstance: there are none here."""


class SymFloat:
    """The class of symbolic floats, for isinstance: there are none here."""


class SymBool:
    """The class of symbolic truth values, for isinstance: there are none here."""


def sym_int(a) -> int:
    """`a` without its fraction, as an int."""
    return int(a)


def sym_float(a) -> float:
    """`a` as a float."""
    return float(a)


def sym_not(a) -> bool:
    """Whether `a` is false."""
    return not a


def sym_ite(b, t, f):
    """`t` if `b`, else `f`; both of one type."""
    if not (isinstance(b, bool) and type(t) is type(f)):
        raise AssertionError(f"expected bool and two values of one type, got {type(b)}, {type(t)}, {type(f)}")
    return t if b else f


def _extreme(choose, a, b):
    result = choose(a, b)
    return float(result) if isinstance(a, float) or isinstance(b, float) else result


def sym_max(a, b):
    """The larger; a float if one of them is."""
    return _extreme(max, a, b)


def sym_min(a, b):
    """The smaller; a float if one of them is."""
    return _extreme(min, a, b)


def sym_sum(args):
    """The sum of a sequence of numbers."""
    return sum(args)


def sym_sqrt(a) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_constrain_range(size, *, min=None, max=None) -> None:
    """RuntimeError unless min <= size <= max."""
    low = -math.inf if min is None else min
    high = math.inf if max is None else max
    if not low <= size <= high:
        raise errors_extend.size_range(size, min, max)


def sym_constrain_range_for_size(size, *, min=None, max=None) -> None:
    """sym_constrain_range for a number that is a size: from 0 up where no `min` is given."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def sym_fresh_size(size) -> int:
    """`size` as an int: no size here is without a value."""
    return int(size)
