"""make_tensor: random tensors of any dtype for tests."""

import math
import warnings
from collections.abc import Sequence

from .. import functions as torch
from ..core import dtype as dtypes

_SMALL = (dtypes.float8_e4m3fn, dtypes.float8_e5m2, dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz)
_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_COMPLEX = (dtypes.complex32, dtypes.complex64, dtypes.complex128)


def make_tensor(
    *shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
    memory_format=None,
):  # fmt: skip
    """A tensor filled with values drawn evenly from [low, high): for a seed, PyTorch's.

    Args:
        shape: ints, or one sequence of them
        low, high: default: 0, 2 for bool, 0, 10 for unsigned integers, -9, 10 for others, -9, 9 for floats and complex numbers
        noncontiguous: every other element of the last dimension of a larger one
        exclude_zero: zeros become the smallest positive value (1 for integers)

    Raises ValueError where low is not below high, or requires_grad is asked of integers.
    """
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    differentiable = dtype in _FLOATS or dtype in _COMPLEX
    whole = isinstance(dtype, dtypes.dtype) and dtype.category <= dtypes.INT
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}"
        )
    if requires_grad and whole:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    apart = noncontiguous and math.prod(shape) > 1
    full = (*shape[:-1], 2 * shape[-1]) if apart else shape
    if not (differentiable or whole or dtype in _SMALL):
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). "
            "To request support, file an issue at: https://github.com/pytorch/pytorch/issues"
        )
    low, high = _bounds(low, high, dtype, whole, differentiable)
    if whole:
        made = torch.randint(math.ceil(low), math.ceil(high), full, device=device, dtype=dtype)
    elif dtype in _COMPLEX:
        made = torch.view_as_complex(_uniform((*full, 2), device, dtype.to_real(), low, high))
    else:
        made = _uniform(full, device, torch.float32 if dtype in _SMALL else dtype, low, high).to(dtype)
    if apart:
        made = made[..., 1::2]  # an offset, too
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = 1 if whole else torch.finfo(dtype).tiny
    return made.requires_grad_() if requires_grad and differentiable else made


def _bounds(low, high, dtype, whole, differentiable):
    if dtype is dtypes.bool_:
        least, beyond, defaults = 0, 2, (0, 2)
    elif whole:
        info = torch.iinfo(dtype)
        least, beyond, defaults = info.min, info.max + (dtype is not dtypes.int64), (-9, 10)
    else:
        info = torch.finfo(dtype)
        least, beyond, defaults = info.min, info.max, (-9, 9)
    low = defaults[0] if low is None else low
    high = defaults[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and differentiable:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= beyond:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {beyond})"
        )
    return min(max(low, least), beyond), min(max(high, least), beyond)


def _uniform(shape, device, dtype, low, high):
    """Numbers from [low, high), which may be further apart than the largest number."""
    made = torch.empty(shape, device=device, dtype=dtype)
    if high - low >= torch.finfo(dtype).max:
        return made.uniform_(low / 2, high / 2).mul_(2)
    return made.uniform_(low, high)
