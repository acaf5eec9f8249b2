"""Numbers of calls that have a plan already: those whose size matters are looked at in each call."""

import copy

from ..core import dtype as dtypes
from .plans import bind, check_numbers, key_spec

_MOST_PASSED = 64


def check_again(op, call):
    """Look at the numbers of a call as is done once per plan for others, and wrap ints beyond int64.

    A mask's -1e30 comes at each step: what has passed is kept.
    """
    asked = call.key, call.numbers
    passed = op.passed.get(asked)
    if passed is not None:
        call.numbers = passed
        return
    _check(op, call)
    if len(op.passed) < _MOST_PASSED:
        op.passed[asked] = call.numbers


def refuses_numbers(op, call):
    """Whether this call, which has passed, would be refused with large numbers: so it is where they have to fit narrow integers."""
    specs = [t._spec for t in call.tensors if t is not None]
    if not call.numbers or not any(s.dtype.category == dtypes.INT and s.dtype.itemsize < 8 for s in specs):
        return False
    large = copy.copy(call)
    large.numbers = tuple(type(x)(2**62) if type(x) in (int, float) else x for x in call.numbers)
    try:
        _check(op, large)
    except RuntimeError:
        return True
    return False


def _check(op, call):
    slots, target = bind(op, call)
    check_numbers(op, call, slots, [t._spec if t is not None else key_spec() for t in call.tensors], target)
