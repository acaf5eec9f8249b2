"""Dimensions counted from the front, and sizes and dtypes in PyTorch's words: what kernels make of their arguments."""

import builtins

from .. import errors
from ..core import dtype as dt


def axis(dim: int, ndim: int) -> int:
    """`dim` counted from the front; PyTorch's IndexError when there is no such dimension."""
    n = builtins.max(ndim, 1)
    if not -n <= dim < n:
        raise errors.dim_range(dim, ndim)
    return dim + n if dim < 0 else dim


def axes(dims, ndim: int) -> tuple[int, ...]:
    """Several dimensions, each named once."""
    out = tuple(axis(d, ndim) for d in dims)
    for d in out:
        if out.count(d) > 1:
            raise errors.repeated_dim(d)
    return out


def ints(x) -> tuple[int, ...]:
    """One int or several, as a tuple."""
    return (x,) if isinstance(x, int) else tuple(x)


def size_of(shape) -> str:
    """A shape as PyTorch's messages write it."""
    return "[" + ", ".join(map(str, shape)) + "]"


def scalar_name(x) -> str:
    """The dtype of an array as PyTorch's messages name it."""
    return dt.scalar_name(dt.of(x.dtype))
