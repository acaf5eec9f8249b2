"""Histograms in one and several dimensions. Knows arrays, never Tensor."""

import builtins
import math

import jax.numpy as jnp

from .. import errors
from .conversion import clone
from .registry import Array, composite, op

RETURN_FIELDS = {"histogram": ("hist", "bin_edges"), "histogramdd": ("hist", "bin_edges")}


def _linspace(low, high, bins, dtype):
    """bins + 1 edges, counted from the nearer end as linspace does."""
    low, high = jnp.asarray(low, dtype), jnp.asarray(high, dtype)
    step = (high - low) / jnp.asarray(bins, dtype)
    i = jnp.arange(bins + 1)
    from_low = low + step * i.astype(dtype)
    from_high = high - step * (bins - i).astype(dtype)
    return jnp.where(i < (bins + 1) // 2, from_low, from_high)


def _counted(points, edges, weight, density):
    """The histogram of rows of `points`; what lies outside of the edges is not counted, the last one is inside."""
    shape = tuple(e.shape[0] - 1 for e in edges)
    index, inside = jnp.zeros(points.shape[0], jnp.int64), jnp.ones(points.shape[0], builtins.bool)
    for d, (e, bins) in enumerate(zip(edges, shape, strict=True)):
        if bins == 0:
            return jnp.zeros(shape, points.dtype)
        x = points[:, d]
        at = jnp.minimum(jnp.searchsorted(e, x, side="right") - 1, bins - 1)
        inside &= (x >= e[0]) & (x <= e[-1])
        index = index * bins + jnp.maximum(at, 0)
    weight = jnp.ones(points.shape[0], points.dtype) if weight is None else weight.reshape(-1)
    weight = jnp.where(inside, weight, jnp.zeros((), weight.dtype))
    hist = jnp.zeros(math.prod(shape), points.dtype).at[index].add(weight).reshape(shape)
    if density:
        hist = hist / jnp.sum(hist)
        for d, e in enumerate(edges):
            hist = hist / jnp.diff(e).reshape(-1, *(1,) * (len(edges) - 1 - d))
    return hist


def _bounds(points, range, d):
    if range is not None:
        low, high = (jnp.asarray(v, points.dtype) for v in range[2 * d : 2 * d + 2])
    elif points.shape[0]:
        low, high = jnp.min(points[:, d]), jnp.max(points[:, d])
    else:
        low, high = jnp.zeros((), points.dtype), jnp.ones((), points.dtype)
    same, half = low == high, jnp.asarray(0.5, points.dtype)
    return jnp.where(same, low - half, low), jnp.where(same, high + half, high)


@op(where="", out=False, differentiable=False)
def _histogram_counts(input: Array, bins: tuple, range: object, weight: Array | None, density: bool) -> Array:
    """The histogram of rows of numbers with evenly spaced edges, and the edges of each column."""
    points = input.reshape(-1, input.shape[-1])
    edges = [_linspace(*_bounds(points, range, d), n, points.dtype) for d, n in enumerate(bins)]
    return (_counted(points, edges, weight, density), *edges)


@op(where="", out=False, differentiable=False)
def _histogram_edges(input: Array, bins: list[Array], weight: Array | None, density: bool) -> Array:
    """The histogram of rows of numbers between given edges."""
    return _counted(input.reshape(-1, input.shape[-1]), bins, weight, density)


def _cpp(dtype):
    return {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}.get(dtype.name, dtype.name)


def _check_histogram(input, bins, range, weight):
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    columns = input.shape[-1]
    if len(bins) != columns:
        if bins and not isinstance(bins[0], int):
            raise RuntimeError(
                f"torch.histogramdd: expected {columns} sequences of bin edges for a {columns}-dimensional histogram "
                f"but got {len(bins)}"
            )
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    for d, b in enumerate(bins):
        _check_bins(input, d, b)
    if weight is not None:
        _check_histogram_weight(input, weight)
    if range is not None:
        if len(range) != 2 * columns:
            raise RuntimeError(
                f"torch.histogramdd: for a {columns}-dimensional histogram range should have {2 * columns} elements, "
                f"but got {len(range)}"
            )
        for d in builtins.range(columns):
            low, high = range[2 * d : 2 * d + 2]
            if not (math.isfinite(low) and math.isfinite(high)):
                raise RuntimeError(f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite")
            if low > high:
                raise RuntimeError(
                    f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {d}"
                )
    edges = bool(bins) and not isinstance(bins[0], int)
    if input.dtype.name not in ("float32", "float64", *(("float16", "bfloat16") if edges or range is not None else ())):
        raise errors.not_implemented("histogram_cpu" if edges else "histogramdd", input.dtype)


def _check_bins(input, d, bins):
    if isinstance(bins, int):
        if bins <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {d}")
        return
    if not hasattr(bins, "dtype"):
        wanted = "(Tensor input, Tensor bins, ...) or (Tensor input, int bins, ...)"
        raise errors.combination("histogram", (input, bins), wanted)
    if bins.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{_cpp(input.dtype)} and bins for dimension {d} with dtype {_cpp(bins.dtype)}"
        )
    if bins.dim() != 1:
        raise RuntimeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {bins.dim()} dimensions in the bins "
            f"tensor for dimension {d}"
        )
    if bins.numel() == 0:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
            f"dimension {d}"
        )


def _check_histogram_weight(input, weight):
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({_cpp(input.dtype)}), and weight({_cpp(weight.dtype)})"
        )
    if tuple(weight.shape) != tuple(input.shape[:-1]):
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(input.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )


@composite(where="torch")
def histogramdd(input: Array, bins, range=None, weight: Array | None = None, density: bool = False):
    """The histogram of points, whose coordinates are the last dimension of `input`, and the edges by coordinate.

    `bins` is the number of bins, or that of each coordinate, or the edges for each coordinate.
    """
    columns = input.shape[-1] if input.dim() else 1
    bins = (bins,) * columns if isinstance(bins, int) else tuple(bins)
    _check_histogram(input, bins, range, weight)
    if bins and not isinstance(bins[0], int):
        return _histogram_edges(input, list(bins), weight, density), bins
    hist, *edges = _histogram_counts(input, bins, None if range is None else tuple(range), weight, density)
    return hist, tuple(edges)


@composite(out=True)
def histogram(input: Array, bins=100, *, range=None, weight: Array | None = None, density: bool = False):
    """How many elements, or how much weight, lies between neighbouring edges; and the edges.

    `bins` is a number of bins between the least and the largest element (or `range`), or a tensor of edges.
    """
    column = input.reshape(-1, 1)
    weight = None if weight is None else weight.reshape(-1)
    hist, (edges,) = histogramdd.fn(column, (bins,), range, weight, density)
    return hist, edges if edges is not bins else clone(edges)
