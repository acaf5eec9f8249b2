"""Positions in a tensor that are given by other tensors: their checks, and what is added there. Knows arrays, never Tensor."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..core.lanes import Slices
from ..core.record import tls
from .arguments import axis
from .backend import accumulator, on_cpu
from .registry import Array

MANY_PLACES, WIDE_SLICE = 4096, 4  # indices, and elements of a slice, from which on `added_along` looks for slices
FEW = 32  # indices that are looked at one by one
IN_BOUNDS = "promise_in_bounds"  # indices are checked before; XLA then neither clamps nor masks


def narrow(index: Array, size: int) -> Array:
    """`index` as int32 where that holds every position below `size`."""
    return index.astype(jnp.int32) if size < 2**31 else index.astype(jnp.int64)


def is_index(x, *, wide=False) -> bool:
    """Whether `x` has a dtype of positions: int32 or int64, `wide` int64 alone."""
    return x.dtype in (np.dtype(np.int64),) if wide else x.dtype in (np.dtype(np.int32), np.dtype(np.int64))


def outside(index: np.ndarray | None, low: int, high: int):
    """The first value of a host-resident index outside [low, high), or None."""
    if not isinstance(index, np.ndarray) or index.size == 0:  # a Spec: of another dtype, which is refused
        return None
    if index.size <= FEW:  # a loop takes 1 us for some numbers, numpy 4
        for value in index.reshape(-1).tolist():
            if not low <= value < high:
                of_values(index)
                return int(value)
        return None
    bad = index[(index < low) | (index >= high)]
    if not bad.size:
        return None
    of_values(index)
    return int(bad.flat[0])


def of_values(looked_at: np.ndarray):
    """Say that the error that comes is about numbers that were looked at: under a vmap, whoever traced the function would not see them."""
    if type(looked_at) is Slices:
        tls.me.extra["of_values"] = True


def positions(index: Array, dim: int) -> tuple:
    """`index` along `dim` and each element's own place along the others."""
    shape = index.shape
    return tuple(narrow(index, 0) if d == dim else lax.broadcasted_iota(jnp.int32, shape, d) for d in range(len(shape)))


def added(array: Array, where, values: Array) -> Array:
    """`array` with `values` added at `where`; of booleans, as torch has it, their disjunction."""
    at = array.at[where]
    return at.max(values, mode=IN_BOUNDS) if array.dtype == np.bool_ else at.add(values, mode=IN_BOUNDS)


def _places(array: Array, where):
    """(dimensions, indices, the dimension of the result where those of the indices begin) where `where` holds, beside whole
    dimensions, integer indices alone, of dimensions that have elements; else None. Apart from each other, they come first."""
    given = [(d, i) for d, i in enumerate(where) if not isinstance(i, slice)]
    if not given or any(i.dtype == np.bool_ or not array.shape[d] for d, i in given):
        return None
    dims, indices = zip(*given)
    if len({i.dtype for i in indices}) > 1:
        return None
    return dims, indices, dims[0] if dims[-1] - dims[0] < len(dims) else 0


def _from_the_start(index, size):
    return lax.select(lax.lt(index, np.zeros((), index.dtype)), lax.add(index, np.asarray(size, index.dtype)), index)


def _starts(array, dims, indices, wrap):
    """The indices side by side in a last dimension, as XLA has them."""
    if wrap:
        indices = [_from_the_start(i, array.shape[d]) for d, i in zip(dims, indices)]
    if len(indices) == 1:
        return lax.expand_dims(indices[0], (indices[0].ndim,))
    shape = np.broadcast_shapes(*(i.shape for i in indices))
    within = [lax.broadcast_in_dim(i, (*shape, 1), range(len(shape) - i.ndim, len(shape))) for i in indices]
    return lax.concatenate(within, len(shape))


def _around(array, dims, at, wide):
    """The dimensions of what is picked along `dims` that are the array's own: those of the indices, `wide` of them, begin at `at`."""
    kept = array.ndim - len(dims)
    return (*range(at), *range(at + wide, kept + wide))


def picked(array: Array, where, wrap=True) -> Array:
    """`array.at[where].get(mode=IN_BOUNDS)`; wrap: an index may count from the end.

    Integer indices are written as XLA's gather: jnp's own takes three times as long to trace, at each length that an index has."""
    places = _places(array, where)
    if places is None:
        return array.at[where].get(mode=IN_BOUNDS)
    dims, indices, at = places
    starts = _starts(array, dims, indices, wrap)
    numbers = lax.GatherDimensionNumbers(_around(array, dims, at, starts.ndim - 1), dims, dims)
    sizes = tuple(1 if d in dims else n for d, n in enumerate(array.shape))
    return lax.gather(array, starts, numbers, sizes, mode=IN_BOUNDS)


def added_apart(array: Array, where, values: Array) -> Array:
    """`array.at[where].add(values, mode=IN_BOUNDS)`, of values as `picked` has them."""
    places = _places(array, where)
    if places is None:
        return array.at[where].add(values, mode=IN_BOUNDS)
    dims, indices, at = places
    starts = _starts(array, dims, indices, True)
    numbers = lax.ScatterDimensionNumbers(_around(array, dims, at, starts.ndim - 1), dims, dims)
    return lax.scatter_add(array, starts, values, numbers, mode=IN_BOUNDS)


def added_wide(array: Array, where, values: Array) -> Array:
    """`added`, of 16-bit floats in float32 and not rounded yet."""
    wide = accumulator(array.dtype)
    return added(array.astype(wide), where, values.astype(wide))


def added_along(array: Array, dim: int, index: Array, values: Array) -> Array:
    """`added_wide` at `index` along `dim`.

    Where the index is the same for all of a slice of the later dimensions (expanded to them, as graph networks do), whole slices are
    added on the CPU, in a fifth of the time. XLA sees that of an index which is expanded in the same program.
    """
    one_by_one = lambda array, index, values: added_wide(array, positions(index, dim), values)
    after = index.shape[dim + 1 :]
    if not on_cpu() or math.prod(after) < WIDE_SLICE or index.size < MANY_PLACES or after != array.shape[dim + 1 :]:
        return one_by_one(array, index, values)
    first = index[(..., *(slice(0, 1) for _ in after))]

    def slices(array, index, values):
        lead = index[(..., *(0 for _ in after))]
        return added_wide(array, positions(lead, dim), values)

    return lax.cond(jnp.all(index == first), slices, one_by_one, array, index, values)


def as_1d(*arrays):
    """Arrays with one dimension at least."""
    return tuple(a.reshape(1) if a.ndim == 0 else a for a in arrays)


def check_along(input, dim, index):
    """`within` the dimension `dim` of `input`; a number counts as one element."""
    dim = axis(dim, len(input.shape))
    within(index, dim, input.shape[dim] if input.shape else 1)


def within(index, dim, size):
    """PyTorch's RuntimeError where a host-resident index is outside [0, size)."""
    bad = outside(index, 0, size)
    if bad is not None:
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
