"""make_tensor: random tensors of any dtype for tests."""

import math

from .. import functions as torch
from ..core import dtype as dtypes

_SMALL = {"float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"}


def make_tensor(
    *shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False,
    memory_format=None,
):  # fmt: skip
    """A tensor filled with values drawn evenly from [low, high).

    Args:
        shape: ints, or one sequence of them
        low, high: default: 0, 2 for bool and uint8... 0, 10 for uint8, -9, 10 for other integers, -9, 9 for floats and complex
        noncontiguous: every other element of the last dimension of a larger one
        exclude_zero: zeros become the smallest positive value (1 for integers)

    Raises ValueError where low is not below high, or requires_grad is asked of integers.
    """
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}"
        )
    low, high = _bounds(low, high, dtype)
    apart = noncontiguous and math.prod(shape) > 1
    full = (*shape[:-1], 2 * shape[-1]) if apart else shape
    made = _draw(full, dtype, device, low, high)
    if apart:
        made = made[..., ::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        least = 1 if not (dtype.is_floating_point or dtype.is_complex) else torch.finfo(dtype).tiny
        made[made == 0] = least
    return made.requires_grad_(requires_grad) if requires_grad else made


def _bounds(low, high, dtype):
    if dtype is dtypes.bool_:
        least, most, defaults = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        info = torch.finfo(dtype)
        least, most, defaults = info.min, info.max, (-9, 9)
    else:
        info = torch.iinfo(dtype)
        least, most, defaults = info.min, info.max, (0, 10) if info.min == 0 else (-9, 10)
    low = defaults[0] if low is None else low
    high = defaults[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    return max(low, least), min(high, most)


def _draw(shape, dtype, device, low, high):
    if dtype is dtypes.bool_:
        return torch.randint(0, 2, shape, device=device, dtype=dtype)
    if dtype.is_complex:
        real = torch.float64 if dtype is dtypes.complex128 else torch.float32
        parts = torch.empty((*shape, 2), device=device, dtype=real).uniform_(low, high)
        return torch.view_as_complex(parts).to(dtype)
    if dtype.is_floating_point:
        wide = torch.float32 if str(dtype).rpartition(".")[2] in _SMALL else dtype
        return torch.empty(shape, device=device, dtype=wide).uniform_(low, high).to(dtype)
    low, high = math.ceil(low), math.ceil(high)
    return torch.randint(low, max(high, low + 1), shape, device=device, dtype=dtype)
