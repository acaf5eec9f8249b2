"""Ordering: sort, selection of the largest, binary search and unique values. Knows arrays, never Tensor."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import deprecations, errors
from ..core import dtype as dtypes
from ..core.shapes import contiguous_strides
from . import formats
from .backend import accumulator, on_cpu
from .conversion import is_number, kind
from .order import PASSES, are_few, largest_of, ranked, sorted_with_index
from .places import outside
from .reduce import _add_at, _place, one_dim
from .registry import Array, Scalar, Unwritten, composite, op

RETURN_FIELDS = {
    "sort": ("values", "indices"),
    "topk": ("values", "indices"),
    "kthvalue": ("values", "indices"),
}


def _sort(x, dim, descending, count=None):
    """Stable sort with indices; nan is the largest. The first `count` of each slice."""
    if x.ndim == 0:
        return x, jnp.zeros((), jnp.int64)
    return sorted_with_index(x, dim, descending, count)


@op(out="exact", strides=formats.keep_format)
def sort(input: Array, dim: int = -1, descending: bool = False, stable: bool | None = None) -> tuple[Array, Array]:
    """The elements along a dimension in order, and where they were. Always stable."""
    return _sort(input, one_dim(dim, input.ndim), descending)


sort.grad_name = lambda args: "SortBackward0" if args["stable"] is None else "SortBackward1"
sort.vjp(input=lambda g, input, out, dim: _add_at(g[0], out[1], input.shape, dim))


@sort.check
def _check_sort(input, *rest, **named):
    if kind(input) == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")


@op(differentiable=False, strides=formats.keep_format)
def argsort(input: Array, dim: int = -1, descending: bool = False, stable: bool = False) -> Array:
    """The indices that put a dimension in order. Always stable."""
    return _sort(input, one_dim(dim, input.ndim), descending)[1]


argsort.check(_check_sort)


@composite(out="exact")
def msort(input: Array):
    """The elements along the first dimension in order."""
    return sort(input, 0)[0]


@op(out="exact")
def topk(input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    """The k largest or smallest elements along a dimension, in order, and where they were."""
    dim = one_dim(dim, input.ndim)
    if input.ndim == 0 or not jnp.issubdtype(input.dtype, jnp.floating) or on_cpu() and input.dtype.itemsize == 8:
        return _sort(input, dim, largest, k)
    # XLA's top-k orders nan by its sign bit; torch has every nan largest
    x = input.astype(accumulator(input.dtype))  # of shorter floats its library has none for the CPU
    x = jnp.where(jnp.isnan(x), jnp.asarray(jnp.nan, x.dtype), x)
    values, at = largest_of(jnp.moveaxis(x if largest else -x, dim, -1), k)
    values = values if largest else -values
    return jnp.moveaxis(values, -1, dim).astype(input.dtype), jnp.moveaxis(at, -1, dim).astype(jnp.int64)


topk.vjp(input=lambda g, input, out, dim: _add_at(g[0], out[1], input.shape, dim))


@topk.check
def _check_topk(input, k, dim=-1, largest=True, sorted=True):
    if kind(input) in "bc":
        what = {"b": "topk does not support bool", "c": " topk does not support complex"}[kind(input)]
        raise RuntimeError(f"{what} dtypes on CPU")
    size = input.shape[one_dim(dim, input.ndim)] if input.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")


@op(
    out=("output values must be of same type as input", "output indices must be of scalar type Long"),
    apart=True,
)
def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The k-th smallest element along a dimension and where it was."""
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    dim = one_dim(dim, input.ndim)
    if on_cpu() and input.dtype.itemsize == 8 and are_few(input, dim, k):
        found = (lax.slice_in_dim(v, k - 1, k, axis=dim) for v in _sort(input, dim, False, k))
        return tuple(v if keepdim else jnp.squeeze(v, dim) for v in found)
    rank = jnp.full([1 if d == dim else n for d, n in enumerate(input.shape)], k - 1, jnp.int64)
    return tuple(v if keepdim else jnp.squeeze(v, dim) for v in ranked(input, dim, rank))


kthvalue.vjp(
    input=lambda g, input, out, dim, keepdim: _place(g[0], out[1], input.shape, dim, keepdim),
)
kthvalue.passes = PASSES
kthvalue.lack(kthvalue_cpu="bool complex")


@kthvalue.check
def _check_kthvalue(input, k, dim=-1, keepdim=False):
    at = one_dim(dim, input.ndim)
    size = input.shape[at] if input.ndim else 1
    if not size:
        raise IndexError(f"kthvalue(): Expected reduction dim {at} to have non-zero size.")
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")


# ---- binary search ----


def _halved(edges, values, right):
    """The place of each value, by halving. jnp.searchsorted has nans last; here one among the edges lies before all, as PyTorch's does,
    and what is out of order is halved at the same places."""
    values = values.astype(jnp.promote_types(values.dtype, edges.dtype))

    def halve(_, ends):
        low, high = ends
        middle = (low + high) // 2
        edge = edges.at[middle].get(mode="clip")
        open, beyond = low < high, ~(edge > values if right else edge >= values)
        return jnp.where(open & beyond, middle + 1, low), jnp.where(open & ~beyond, middle, high)

    start = jnp.zeros(values.shape, jnp.int32)
    count = edges.shape[0]
    return lax.fori_loop(0, count.bit_length(), halve, (start, start + count))[0]


def _search(edges, values, right, out_int32):
    index = jnp.int32 if out_int32 else jnp.int64
    if not edges.size or not values.size:
        return jnp.zeros(values.shape, index)
    if edges.ndim == 1:
        return _halved(edges, values, right).astype(index)
    rows = edges.reshape(-1, edges.shape[-1])
    wanted = values.reshape(rows.shape[0], -1)
    found = jax.vmap(lambda e, v: _halved(e, v, right))(rows, wanted)
    return found.reshape(values.shape).astype(index)


_SEARCH_OUT = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
    "whether out_int32 flag is True, but we got output tensor's dtype {have} and out_int32 flag is %s"
)


def _search_out(want, have):
    if want is not have:
        raise errors.out_dtype(want, have, _SEARCH_OUT % ("True" if want is dtypes.int32 else "False"))


@op(where="torch", differentiable=False, out=_search_out)
def searchsorted(
    sorted_sequence: Array,
    input: Scalar,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Where to insert each value so that the sequence stays in order."""
    if sorter is not None:
        sorted_sequence = jnp.take_along_axis(sorted_sequence, sorter, axis=-1)
    return _search(sorted_sequence, jnp.asarray(input), right or side == "right", out_int32)


@searchsorted.check
def _check_searchsorted(sorted_sequence, input, out_int32=False, right=False, side=None, sorter=None):
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if not is_number(input) and not sorted_sequence.ndim and sorted_sequence.numel:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if sorter is not None and sorter.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {dtypes.scalar_name(sorter.dtype)}"
        )
    if sorter is not None and sorter.shape != sorted_sequence.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sorted_sequence.shape)}and got sorter tensor {list(sorter.shape)}"
        )
    _check_ordered(sorted_sequence, input)
    shape = getattr(input, "shape", ())
    if len(sorted_sequence.shape) != 1 and not shape:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
            f"tensor dim({len(sorted_sequence.shape)}) and input value's dim(0) numel(1)"
        )
    if len(sorted_sequence.shape) != 1 and sorted_sequence.shape[:-1] != shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sorted_sequence.shape)} "
            f"and input value tensor {list(shape)}"
        )
    _say_strided(input, sorted_sequence, sorter)


@searchsorted.check_values
def _check_sorter(sorted_sequence, input, *, sorter=None, **options):
    if sorter is not None and outside(sorter, 0, sorted_sequence.shape[-1] if sorted_sequence.shape else 1) is not None:
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


searchsorted.sized = True


@op(where="torch", differentiable=False, out=_search_out)
def bucketize(input: Scalar, boundaries: Array, *, out_int32: bool = False, right: bool = False) -> Array:
    """The index of the bucket of each value, between ascending boundaries."""
    return _search(boundaries, jnp.asarray(input), right, out_int32)


@bucketize.check
def _check_bucketize(input, boundaries, out_int32=False, right=False):
    if len(boundaries.shape) != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({len(boundaries.shape)})")
    _check_ordered(boundaries, input)
    _say_strided(input, boundaries)


def _say_strided(input, boundaries, sorter=None):
    """What lies out of order is copied first."""
    for name, x in (("input value", input), ("boundary", boundaries), ("sorter", sorter)):
        if x is not None and not is_number(x) and not x.contiguous:
            deprecations.say("searchsorted", name)


def _check_ordered(edges, values):
    """They are compared in their common dtype."""
    if is_number(values) or values.numel:
        kinds = {kind(edges), kind(values)}
        for x in (edges, values):
            if not is_number(x) and (kind(x) == "c" or kinds == {"b"}):
                raise errors.not_implemented("searchsorted_out_cpu", x.dtype)


# ---- unique values ----

DENSE = 4  # integers in a range of so many times their number are counted, not sorted


def _slices_first(outs, dim):
    """The strides of slices along `dim` that lie one after the other, and None for all else."""
    if dim is None or not outs[0].ndim:
        return (None,) * len(outs)
    dim = one_dim(dim, outs[0].ndim)
    sizes = list(outs[0].shape)
    strides = list(contiguous_strides((sizes.pop(dim), *sizes)))
    first = strides.pop(0)
    strides.insert(dim, first)
    return (tuple(strides), *(None,) * (len(outs) - 1))


def _host_unique(x, axis, inverse: bool):
    """(the different values, each element's place among them, their counts), by numpy: an array at hand needs no program."""
    if x.dtype.kind == "V":  # short floats that numpy does not know
        values, *rest = _host_unique(x.astype(np.float32), axis, inverse)
        return values.astype(x.dtype), *rest
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    if axis is None and rows.size and rows.dtype.kind in "biu" and rows.dtype != np.uint64:
        rows = rows.view(np.uint8) if rows.dtype.kind == "b" else rows
        low = rows.min()
        if int(rows.max()) - int(low) <= DENSE * rows.size:
            from_low = (rows - low if rows.dtype.kind == "u" else rows.astype(np.int64) - low).astype(np.int64)
            counts = np.bincount(from_low.reshape(-1))
            found = np.flatnonzero(counts)
            values = (found + int(low)).astype(x.dtype)
            place = (np.cumsum(counts > 0) - 1)[from_low].reshape(x.shape) if inverse else None
            return values, place, counts[found]
        rows = x.reshape(-1)
    if axis is None and not inverse:
        at, ordered = None, np.sort(rows)
    else:
        columns = rows.reshape(len(rows), math.prod(rows.shape[1:])).T
        at = np.lexsort(columns[::-1]) if len(columns) else np.arange(len(rows))
        ordered = rows[at]
    starts = _starts(ordered)
    values = ordered[starts] if axis is None else np.moveaxis(ordered[starts], 0, axis)
    place = None
    if inverse:
        place = np.empty(len(rows), np.int64)
        place[at] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
        place = place.reshape(x.shape) if axis is None else place
    return values, place, np.diff(starts, append=len(rows))


def _starts(rows):
    """Where rows begin that differ from the one before."""
    differs = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), bool), differs]))


@op(
    dynamic=True,
    out=False,
    grad_name="Unique2Backward0",
    strides=lambda outs, input, sorted, inverse, counts, dim: _slices_first(outs, dim),
)
def unique(
    input: Array,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Array:
    """The different values in order, with each element's place among them and their counts if asked."""
    axis = None if dim is None else one_dim(dim, input.ndim)
    if on_cpu():
        found = _host_unique(np.asarray(input), axis, return_inverse)
        kept = [found[0], *(found[1:2] if return_inverse else ()), *(found[2:] if return_counts else ())]
        return kept[0] if len(kept) == 1 else tuple(kept)
    found = jnp.unique(input, return_inverse=return_inverse, return_counts=return_counts, axis=axis, equal_nan=False)
    if not (return_inverse or return_counts):
        return found
    values, *rest = found
    rest = [r.astype(jnp.int64) for r in rest]
    if return_inverse:
        rest[0] = rest[0].reshape(input.shape if dim is None else (input.shape[axis],))
    return (values, *rest)


@op(
    dynamic=True,
    out=False,
    grad_name="UniqueConsecutiveBackward0",
    strides=lambda outs, input, inverse, counts, dim: _slices_first(outs, dim),
)
def unique_consecutive(
    input: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Array:
    """The values without neighbours that repeat, with each element's place and the counts if asked."""
    x = np.asarray(input)
    axis = 0 if dim is None else one_dim(dim, x.ndim)
    rows = x.reshape(-1) if dim is None else np.moveaxis(x, axis, 0)
    starts = _starts(rows)
    values = np.moveaxis(rows[starts], 0, axis) if dim is not None else rows[starts]
    out = [values]
    if return_inverse:
        place = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))
        out.append(place.reshape(x.shape) if dim is None else place)
    if return_counts:
        out.append(np.diff(np.append(starts, len(rows))))
    return out[0] if len(out) == 1 else tuple(out)


unique.vjp(input=Unwritten("_unique2"))
unique_consecutive.vjp(input=Unwritten("unique_consecutive"))


@unique.check
def _check_unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    _check_unique_dim(input, dim)
    if kind(input) == "c":
        raise errors.not_implemented("unique" if dim is None else "unique_dim", input.dtype)


@unique_consecutive.check
def _check_unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    _check_unique_dim(input, dim)
    if kind(input) == "c":
        raise errors.not_implemented("unique", input.dtype)


def _check_unique_dim(input, dim):
    if dim is not None and not input.ndim:
        raise errors.no_dimension(dim, 0)
    if dim is None or 0 not in input.shape:
        return
    if input.shape[one_dim(dim, input.ndim)] == 0 and input.shape.count(0) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if input.shape[one_dim(dim, input.ndim)] or input.shape.count(0) != 1:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")


# ---- rows of sparse matrices: sorted, so found by binary search ----


@op(where="torch", differentiable=False)
def _convert_indices_from_coo_to_csr(input: Array, size: int, *, out_int32: bool = False) -> Array:
    """Where each of `size` rows begins in sorted row indices, and their number."""
    return _search(input, jnp.arange(size + 1, dtype=input.dtype), False, out_int32)


@op(where="torch", differentiable=False)
def _convert_indices_from_csr_to_coo(
    crow_indices: Array, col_indices: Array, *, out_int32: bool = False, transpose: bool = False
) -> Array:
    """(2, n): the row of each element and its column; `transpose`: the column first."""
    at = jnp.arange(col_indices.shape[-1], dtype=crow_indices.dtype)
    rows = _search(crow_indices, at, True, out_int32) - 1
    pair = (rows, col_indices.astype(rows.dtype))
    return jnp.stack(pair[::-1] if transpose else pair)
