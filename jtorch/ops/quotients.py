"""Division that XLA's CPU compiler leaves a division. Knows arrays only."""

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .backend import on_cpu

__all__ = ["quotient", "seen"]


def seen(x):
    """An array, or the number that `x` is known to be, as numpy has it."""
    return x if isinstance(x, np.ndarray | np.generic) else jnp.asarray(x)


def quotient(x, y) -> Array:
    """`x / y`, rounded once as PyTorch's CPU kernels round it.

    XLA takes the reciprocal of what is the same along a dimension (a number, a 0-d array, a column) and multiplies, which is off by a
    rounding in a third of the elements, and of a root or a power the reciprocal root or power. Neither where the divisor differs from
    element to element as far as XLA sees: a 0 that it does not know is taken off it along each such dimension, which the code generator knows.
    """
    known = y.item() if isinstance(y, np.ndarray | np.generic) and y.ndim == 0 else None
    x, y = jnp.asarray(x), jnp.asarray(y)
    if not on_cpu() or not x.dtype == y.dtype or x.dtype not in (np.float32, np.float64) or _is_exact(known, x.dtype):
        return x / y
    shape = np.broadcast_shapes(x.shape, y.shape)
    sizes = (1,) * (len(shape) - y.ndim) + y.shape
    long = [d for d, n in enumerate(shape) if n > 1]
    dims = [d for d in long if sizes[d] == 1] or long
    if not dims:
        return x / (y - (x > jnp.inf).astype(x.dtype))
    y = y.reshape(sizes)
    for d in dims:
        along = [n if k == d else 1 for k, n in enumerate(shape)]
        y = y - (lax.broadcasted_iota(x.dtype, along, d) > jnp.inf).astype(x.dtype)
    return x / y


def _is_exact(number, dtype) -> bool:
    """Whether the reciprocal of a number that is known is one of `dtype`, not below its smallest normal one."""
    return number is not None and abs(math.frexp(number)[0]) == 0.5 and abs(number) < 1 / jnp.finfo(dtype).tiny
