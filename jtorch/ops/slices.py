"""Ops that read or write whole slices along a dimension: index_select, index_add and their like."""

import jax.numpy as jnp
import numpy as np

from .. import deprecations, errors
from ..core import dtype as dt
from . import formats
from .arguments import axis, scalar_name, size_of
from .backend import accumulator
from .indexing import index_grad
from .places import IN_BOUNDS, added, as_1d, check_along, is_index, narrow, outside, picked
from .registry import Array, Number, Scalar, op
from .scatter import reduce_into


def _vector(index, name, *, sizes=False):
    if index.ndim > 1 and name == "index_copy_":
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if index.ndim > 1:
        more = (
            f", but got dim: {index.ndim} with type: {scalar_name(index)} and size: {size_of(index.shape)}"
            if sizes
            else ""
        )
        raise IndexError(f"{name}(): Index is supposed to be a vector{more}")
    return index.reshape(-1)


def _check_slices(name, full, source, dim, count):
    """Whether `source` has a slice for each index, of the size of those of `full`."""
    if source.ndim == full.ndim and source.shape[dim] != count:
        raise RuntimeError(
            f"{name}(): Number of indices ({count}) should be equal to source.size(dim): ({source.shape[dim]}), for dim: {dim}"
        )
    if (
        source.ndim != full.ndim
        or full.shape[:dim] + full.shape[dim + 1 :] != source.shape[:dim] + source.shape[dim + 1 :]
    ):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {size_of(full.shape)} source.shape = {size_of(source.shape)}"
        )


def _slices_of(name, input, source, dim, count):
    """Both with one dimension at least, and checked; a number goes with a number only."""
    if (input.ndim == 0) != (source.ndim == 0):
        _check_slices(name, input, source, dim, count)
    full, source = as_1d(input, source)
    _check_slices(name, full, source, dim, count)
    return full, source


def _along(dim, index) -> tuple:
    return (slice(None),) * dim + (narrow(index, 0),)


@op(out="index_select(): self and result must have the same scalar type", apart=True)
def index_select(input: Array, dim: int, index: Array) -> Array:
    """The slices of `input` along `dim` that the vector `index` names, in its order."""
    dim = axis(dim, input.ndim)
    index = _vector(index, "index_select")
    if input.ndim == 0 and index.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
    if not is_index(index):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if input.ndim == 0:
        return input
    return picked(input, _along(dim, index), wrap=False)


@op(where="")
def index_select_grad(g: Array, dim: int, index: Array, shape: tuple) -> Array:
    """Zeros of `shape` with the slices of `g` added at `index` along `dim`."""
    index = index.reshape(-1)
    if not shape:
        return g.sum().astype(g.dtype)
    dim = axis(dim, len(shape))
    where = [None] * dim + [index]
    return index_grad.fn(g, where, shape)


index_select.vjp(input=lambda g, input, dim, index: index_select_grad(g, dim, index, tuple(input.shape)))
index_select_grad.vjp(g=lambda g, dim, index: index_select(g, dim, index))


@index_select.check_values
def _check_index_select(input, dim, index):
    shape = tuple(input.shape)
    dim = axis(dim, len(shape))
    bad = outside(index, 0, shape[dim] if shape else 1)
    if bad is not None:
        if dim == 1:
            raise RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={shape[dim]}")
        raise IndexError("index out of range in self")


@op(inplace=True, out="exact", apart=True)
def index_add(input: Array, dim: int, index: Array, source: Array, *, alpha: Number = 1) -> Array:
    """`input` with the slices of `source`, times `alpha`, added at `index` along `dim`."""
    dim = axis(dim, input.ndim)
    index = _vector(index, "index_add_", sizes=True)
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"index_add_(): self ({scalar_name(input)}) and source ({scalar_name(source)}) must have the "
            "same scalar type"
        )
    full, source = _slices_of("index_add_", input, source, dim, index.size)
    alpha = jnp.asarray(alpha).astype(source.dtype)
    scaled = source & alpha if source.dtype == np.bool_ else source * alpha
    return added(full, _along(dim, index), scaled).reshape(input.shape)


@index_add.check
def _check_index_add(input, dim, index, source, alpha=1):
    if index.dtype not in (dt.int32, dt.int64) and index.ndim < 2:  # of a matrix that is said first
        raise RuntimeError(f"index_add_(): Expected dtype int32/int64 for index but got: {dt.scalar_name(index.dtype)}")


@index_add.check_values
def _check_added(input, dim, index, *rest, **kw):
    """Along the first or the last of several dimensions PyTorch scatters; elsewhere it goes by slices, with other words."""
    shape = tuple(input.shape)
    at = axis(dim, len(shape))
    if len(shape) > 1 and at in (0, len(shape) - 1):
        check_along(input, dim, index)
    elif outside(index, 0, shape[at] if shape else 1) is not None:
        raise IndexError("index out of range in self")


@op(inplace=True, out="exact", apart=True)
def index_copy(input: Array, dim: int, index: Array, source: Array) -> Array:
    """`input` with the slices of `source` written at `index` along `dim`."""
    dim = axis(dim, input.ndim)
    index = _vector(index, "index_copy_")
    if input.ndim and source.ndim and input.ndim != source.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({input.ndim})"
        )
    if index.dtype != np.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {scalar_name(index)}")
    if input.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_name(input)} and (source) {scalar_name(source)}"
        )
    full, source = as_1d(input, source)
    if source.shape[dim] != index.size:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) ({source.shape[dim]})"
        )
    here, there = (x.shape[:dim] + x.shape[dim + 1 :] for x in (full, source))
    if here != there:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, here))} at dimension {dim} and source slice shape: {' '.join(map(str, there))} at dimension 0."
        )
    return full.at[_along(dim, index)].set(source, mode=IN_BOUNDS).reshape(input.shape)


@index_copy.check_values
def _check_index_copy(input, dim, index, source):
    shape = tuple(input.shape)
    dim = axis(dim, len(shape))
    size = shape[dim] if shape else 1
    bad = outside(index, 0, size)
    if bad is not None:
        raise IndexError(f"index_copy_(): index {bad} is out of bounds for dimension {dim} with size {size}")


@op(inplace=True, strides=formats.keep_format)
def index_fill(input: Array, dim: int, index: Array, value: Scalar) -> Array:
    """`input` with one value written to the slices at `index` along `dim`."""
    dim = axis(dim, input.ndim)
    if not is_index(index, wide=True):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    value = jnp.asarray(value)
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if jnp.iscomplexobj(value) and not jnp.iscomplexobj(input):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    index = index.reshape(-1)
    at = as_1d(input)[0].at[_along(dim, index)]
    return at.set(value.astype(input.dtype), mode=IN_BOUNDS).reshape(input.shape)


@index_fill.on_expanded
def _(input, dim, index, value):
    place = dim % max(input.ndim, 1)
    for d, (n, stride) in enumerate(zip(input.shape, input.stride())):
        if stride == 0 and n > 1:
            input, index = input.narrow(d, 0, 1), index * 0 if d == place else index
    return input, dim, index, value


@index_fill.check
def _check_fill(input, dim, index, value):
    if isinstance(value, int | float):
        dt.check_number(value, input.dtype)


@index_fill.check_values
def _check_index_fill(input, dim, index, value):
    shape = tuple(input.shape)
    dim = axis(dim, len(shape))
    size = shape[dim] if shape else 1
    bad = outside(index, -size, size)
    if bad is not None:
        raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


index_copy.vjp(
    input=lambda g, dim, index: index_fill(g, dim, index, 0),
    source=lambda g, dim, index, source: like_source(g, dim, index, tuple(source.shape)),
)
index_fill.vjp(
    input=lambda g, dim, index: index_fill(g, dim, index, 0),
    value=lambda g, dim, index: filled_grad(g, dim, index),
)


@op(where="")
def like_source(g: Array, dim: int, index: Array, shape: tuple) -> Array:
    """The slices of `g` at `index`, in the shape of the source that was copied."""
    full = as_1d(g)[0]
    return full.at[_along(axis(dim, g.ndim), index.reshape(-1))].get(mode=IN_BOUNDS).reshape(shape)


@op(where="")
def filled_grad(g: Array, dim: int, index: Array) -> Array:
    """The sum of `g` over the places that one value was written to."""
    full = as_1d(g)[0]
    hit = jnp.zeros(full.shape, bool).at[_along(axis(dim, g.ndim), index.reshape(-1))].set(True, mode=IN_BOUNDS)
    return jnp.where(hit, full, jnp.zeros((), g.dtype)).sum(dtype=accumulator(g.dtype)).astype(g.dtype)


def _refuse_reduction(input, reduce):
    if jnp.issubdtype(input.dtype, jnp.complexfloating) or input.dtype == np.bool_:
        if input.ndim < 2:
            raise errors.not_implemented("index_func_", dt.of(input.dtype))
        name = {"mean": "div_floor_cpu", "amax": "maximum_cpu", "amin": "minimum_cpu"}.get(reduce)
        if name and (input.dtype != np.bool_ or reduce == "mean") and (input.dtype == np.bool_ or reduce != "mean"):
            raise errors.not_implemented(name, dt.of(input.dtype))


@op(inplace=True, apart=True, out="exact")
def index_reduce(
    input: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """`input` with the slices of `source` that meet at `index` reduced: prod, mean, amax or amin."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = axis(dim, input.ndim)
    index = _vector(index, "index_reduce_", sizes=True)
    if not is_index(index):
        raise RuntimeError(f"index_reduce_(): Expected dtype int32/int64 for index but got: {scalar_name(index)}")
    _refuse_reduction(input, reduce)
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({scalar_name(input)}) and source ({scalar_name(source)}) must have the same scalar type"
        )
    full, source = _slices_of("index_reduce_", input, source, dim, index.size)
    if index.size == 0:
        return input
    return reduce_into(full, (narrow(index, 0),), source, reduce, include_self, before=dim).reshape(input.shape)


index_reduce.guards(input=True, source=True, out=True)


@index_reduce.check
def _say_beta(input, dim, index, source, reduce, *, include_self=True):
    deprecations.say("index_reduce")


@index_reduce.check_values
def _check_index_reduce(input, dim, index, *rest, **kw):
    if isinstance(index, np.ndarray):
        bad = outside(index, 0, input.shape[axis(dim, len(input.shape))] if input.shape else 1)
        if bad is not None:
            raise IndexError("index out of range in self")


for _record in (index_select, index_add, index_copy, index_fill, index_reduce):
    _record.sized = True
