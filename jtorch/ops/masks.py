"""Ops that choose elements by a condition or a shape: masks, triangles, diagonals, parts of a tensor, counts."""

import builtins
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import errors, errors_storage
from ..core import dtype as dt
from ..core.shapes import broadcast, contiguous_strides
from .arguments import axis, scalar_name, size_of
from .backend import accumulator
from .conversion import convert, is_number, rounded
from .places import IN_BOUNDS
from .registry import UNKNOWN, ZERO, Array, Number, Scalar, composite, op
from .views import as_strided

# ---------------------------------------------------------------- masks


@op(
    elementwise=True,
    strides=lambda outs, *args: (contiguous_strides(tuple(outs[0].shape)),),
    grad_name=lambda args: f"MaskedFillBackward{int(hasattr(args['value'], 'dtype'))}",
)
def masked_fill(input: Array, mask: Array, value: Scalar) -> Array:
    """`input` with one value where `mask` holds; the result keeps the dtype of `input`."""
    if mask.dtype != np.bool_:
        name = {"int64": "long int", "uint8": "unsigned char", "int32": "int", "float32": "float"}
        words = name.get(str(mask.dtype), str(mask.dtype))
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {words}")
    value = jnp.asarray(value)
    whole = jnp.issubdtype(input.dtype, jnp.complexfloating)
    if jnp.issubdtype(value.dtype, jnp.complexfloating) and not whole and input.dtype != np.bool_:
        raise RuntimeError(f"value cannot be converted to type {errors.c_type(dt.of(input.dtype))} without overflow")
    return jnp.where(mask, value.astype(input.dtype), input)


@masked_fill.check
def _check_fill(input, mask, value):
    if is_number(value):
        dt.check_number(value, input.dtype)
    elif value.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )


@masked_fill.on_expanded
def _(input, mask, value):
    mask = mask.expand(input.shape)
    for d, (n, stride) in enumerate(zip(input.shape, input.stride())):
        if stride == 0 and n > 1:
            input, mask = input.narrow(d, 0, 1), mask.any(d, keepdim=True)
    return input, mask, value


masked_fill.vjp(
    input=lambda g, mask: masked_fill(g, mask, 0),
    value=lambda g, mask: masked_sum(g, mask),
)


@op(where="")
def masked_sum(input: Array, mask: Array) -> Array:
    """The sum of the elements where `mask` holds."""
    return jnp.where(mask, input, jnp.zeros((), input.dtype)).sum(dtype=accumulator(input.dtype)).astype(input.dtype)


@op(elementwise=False, inplace=True)
def masked_scatter(input: Array, mask: Array, source: Array) -> Array:
    """`input` with the elements of `source`, in order, written where `mask` holds."""
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype " + str(mask.dtype))
    if source.dtype != input.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_name(input)} and {scalar_name(source)}"
        )
    shape = np.broadcast_shapes(input.shape, mask.shape)
    input, mask = jnp.broadcast_to(input, shape), jnp.broadcast_to(mask, shape)
    if source.size == 0 or input.size == 0:
        return input
    order = jnp.cumsum(mask.reshape(-1), dtype=jnp.int32) - 1
    picked = source.reshape(-1).at[jnp.clip(order, 0, source.size - 1)].get(mode=IN_BOUNDS)
    return jnp.where(mask, picked.reshape(shape), input)


@masked_scatter.check
def _check_scatter(input, mask, source):
    broadcast(tuple(mask.shape), tuple(input.shape))


@masked_scatter.check_values
def _check_masked_scatter(input, mask, source):
    if mask is None or source is None or input is None:
        return
    shape = np.broadcast_shapes(tuple(mask.shape), tuple(input.shape))
    if int(np.broadcast_to(mask, shape).sum()) > math.prod(source.shape):
        raise RuntimeError("Number of elements of source < number of ones in mask")


def _on_host(x) -> builtins.bool:
    return isinstance(x, np.ndarray) or next(iter(x.devices())).platform == "cpu"


def _flat_places(mask) -> np.ndarray:
    return np.flatnonzero(np.asarray(mask))


@op(dynamic=True, out="masked_select(): self and result must have the same scalar type", apart=True)
def masked_select(input: Array, mask: Array) -> Array:
    """The elements of `input` where `mask` holds, as a vector."""
    if mask.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast(tuple(mask.shape), tuple(input.shape))
    mask = np.broadcast_to(np.asarray(mask), shape)
    if _on_host(input):  # no compilation for each new count
        return np.broadcast_to(np.asarray(input), shape)[mask]
    return jnp.broadcast_to(input, shape).reshape(-1)[_flat_places(mask)]


masked_select.guards(input=True).picks = True


@op(where="")
def masked_unselect(g: Array, mask: Array, shape: tuple) -> Array:
    """Zeros with the elements of `g`, in order, where `mask` holds: the derivative of `masked_select`."""
    full = np.broadcast_shapes(shape, mask.shape)
    return masked_scatter.fn(jnp.zeros(full, g.dtype), jnp.broadcast_to(mask, full), g)


masked_select.vjp(input=lambda g, input, mask: masked_unselect(g, mask, tuple(input.shape)))


@op(where="", dynamic=True, differentiable=False, strides=lambda outs, input: ((1, outs[0].shape[0]),))
def nonzero_rows(input: Array) -> Array:
    """The positions of the nonzero elements, one row each."""
    host = np.asarray(input)
    flat = _flat_places(host if host.dtype == np.bool_ else host != 0)
    out = np.empty((len(flat), host.ndim), np.int64)
    for d, places in _coordinates(flat, host.shape):
        out[:, d] = places
    return out


def _coordinates(flat: np.ndarray, shape: tuple):
    """Where flat positions lie: each dimension from the last on, and the places along it. Divided as 32-bit numbers where these hold them, in
    half of the time."""
    rest = flat.astype(np.uint32) if math.prod(shape) < 1 << 32 else flat
    for d in range(len(shape) - 1, 0, -1):
        above = rest // shape[d] if shape[d] else rest
        yield d, rest - above * shape[d]
        rest = above
    if shape:
        yield 0, rest


@op(where="", dynamic=True, differentiable=False)
def nonzero_tuple(input: Array) -> tuple[Array, ...]:
    """The positions of the nonzero elements, one vector a dimension."""
    host = np.atleast_1d(np.asarray(input))
    flat = _flat_places(host if host.dtype == np.bool_ else host != 0)
    places = dict(_coordinates(flat, host.shape))
    return tuple(places[d].astype(np.int64) for d in range(host.ndim))


@composite(out="nonzero: Expected out tensor to have scalar type {want} but got scalar type{have}")
def nonzero(input: Array, *, as_tuple: bool = False):
    """The positions of the nonzero elements: one row each, or with `as_tuple` one vector a dimension."""
    return nonzero_tuple(input) if as_tuple else nonzero_rows(input)


@composite
def argwhere(input: Array):
    """The positions of the nonzero elements, one row each."""
    return nonzero_rows(input)


@op(differentiable=False)
def nonzero_static(input: Array, *, size: int, fill_value: int = -1) -> Array:
    """The positions of the first `size` nonzero elements, one row each; rows past the last are `fill_value`."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if not input.ndim:
        return jnp.zeros((size, 0), jnp.int64)
    if not input.size:
        return jnp.full((size, input.ndim), fill_value, jnp.int64)
    places = jnp.nonzero(input, size=size, fill_value=fill_value)
    return jnp.stack(places, 1).astype(jnp.int64)


@op(where="", grad_name="FillBackward2")
def filled(input: Array, value: Number) -> Array:
    """One value in the shape of `input`."""
    return jnp.broadcast_to(jnp.asarray(value).astype(input.dtype), input.shape)


filled.vjp(input=ZERO)


@op(where="", grad_name="FillBackward3")
def assigned(input: Array, value: Scalar) -> Array:
    """The same, of a tensor without dimensions, as which item assignment takes a number too."""
    return jnp.broadcast_to(_real_part(jnp.asarray(value), input).astype(input.dtype), input.shape)


assigned.vjp(input=ZERO, value=lambda g: g)


def _real_part(x, input):
    """`x`, or its real part where `input` is not complex."""
    return x.real if jnp.iscomplexobj(x) and not jnp.iscomplexobj(input) else x


@op(where="", grad_name="ZeroBackward0")
def zeroed(input: Array) -> Array:
    """Zeros in the shape of `input`."""
    return jnp.zeros_like(input)


zeroed.vjp(input=ZERO)


# ---------------------------------------------------------------- triangles and diagonals


def _triangle(input, keep, name):
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    row = lax.broadcasted_iota(jnp.int32, input.shape[-2:], 0)
    col = lax.broadcasted_iota(jnp.int32, input.shape[-2:], 1)
    return jnp.where(keep(col - row), input, jnp.zeros((), input.dtype))


@op(inplace=True, out="exact")
def tril(input: Array, diagonal: int = 0) -> Array:
    """The lower triangles of the matrices in `input`: zeros above the given diagonal."""
    return _triangle(input, lambda offset: offset <= diagonal, "tril")


@op(inplace=True, out="exact")
def triu(input: Array, diagonal: int = 0) -> Array:
    """The upper triangles of the matrices in `input`: zeros below the given diagonal."""
    return _triangle(input, lambda offset: offset >= diagonal, "triu")


tril.vjp(input=lambda g, diagonal: tril(g, diagonal))
triu.vjp(input=lambda g, diagonal: triu(g, diagonal))


@op(grad_name="DiagEmbedBackward0")
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Matrices, in the new dimensions dim1 and dim2, whose diagonal `offset` is the last of `input`."""
    ndim = input.ndim + 1
    first, second = axis(dim1, ndim), axis(dim2, ndim)
    if first == second:
        raise errors.diagonal_dims(dim1, dim2)
    size = input.shape[-1] + builtins.abs(offset)
    out = _with_diagonal(input, jnp.zeros((), input.dtype), size, size, offset)
    return jnp.moveaxis(out, (-2, -1), (first, second))


def _with_diagonal(line, rest, rows, cols, offset):
    """Matrices with `line` on a diagonal and `rest` elsewhere: a choice at each element, where a scatter goes one by one."""
    first = builtins.max(-offset, 0)
    line = jnp.pad(line, [(0, 0)] * (line.ndim - 1) + [(first, rows - first - line.shape[-1])])
    row, col = (lax.broadcasted_iota(jnp.int32, (rows, cols), d) for d in (0, 1))
    return jnp.where(row + offset == col, line[..., None], rest)


diag_embed.vjp(input=lambda g, offset, dim1, dim2: jnp.diagonal(g, offset, dim1, dim2))


@op(grad_name=lambda a: "DiagEmbedBackward0" if a["input"].ndim == 1 else "DiagonalBackward0_copy", out="exact")
def diag(input: Array, diagonal: int = 0) -> Array:
    """The square matrix with the given vector on a diagonal, or a copy of a matrix's diagonal."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diag_embed.fn(input, diagonal) if input.ndim == 1 else jnp.diagonal(input, diagonal)


@op(grad_name="DiagEmbedBackward0")
def diagflat(input: Array, offset: int = 0) -> Array:
    """The square matrix with the elements of `input` on a diagonal."""
    return diag_embed.fn(input.reshape(-1), offset)


diagflat.vjp(input=lambda g, input, offset: jnp.diagonal(g, offset).reshape(input.shape))


@op(lacks={"trace": "bool"})
def trace(input: Array) -> Array:
    """The sum of a matrix's diagonal."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    exact = jnp.issubdtype(input.dtype, jnp.integer) or input.dtype == np.bool_
    dtype = jnp.dtype(jnp.int64) if exact else input.dtype
    return jnp.diagonal(input).sum(dtype=accumulator(dtype)).astype(dtype)


def _fits(src, part):
    if src.shape != part:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {size_of(src.shape)}, slice size = {size_of(part)}"
        )


@op(out="exact", in_copy=True)
def diagonal_scatter(input: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """A copy of `input` with a diagonal replaced by `src`."""
    first, second = axis(dim1, input.ndim), axis(dim2, input.ndim)
    if first == second:
        raise errors.diagonal_dims(dim1, dim2)
    moved = jnp.moveaxis(input, (first, second), (-2, -1))
    rows, cols = moved.shape[-2:]
    n = builtins.max(builtins.min(rows + builtins.min(offset, 0), cols - builtins.max(offset, 0)), 0)
    _fits(src, (*moved.shape[:-2], n))
    moved = _with_diagonal(convert(src, input.dtype), moved, rows, cols, offset)
    return jnp.moveaxis(moved, (-2, -1), (first, second))


@op(out="exact", in_copy=True)
def select_scatter(input: Array, src: Array, dim: int, index: int) -> Array:
    """A copy of `input` with the slice number `index` of `dim` replaced by `src`."""
    dim = axis(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {size_of(input.shape)} at dimension {dim}"
        )
    _fits(src, input.shape[:dim] + input.shape[dim + 1 :])
    full = jnp.expand_dims(convert(src, input.dtype), dim)
    return lax.dynamic_update_slice_in_dim(input, full, index % size, dim)


@op(out="exact", in_copy=True)
def slice_scatter(
    input: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """A copy of `input` with `[start:end:step]` of `dim` replaced by `src`."""
    dim = axis(dim, input.ndim)
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    places = range(input.shape[dim])[slice(start, end, step)]
    _fits(src, input.shape[:dim] + (len(places),) + input.shape[dim + 1 :])
    if not len(places):
        return input
    src = convert(src, input.dtype)
    if step == 1:
        return lax.dynamic_update_slice_in_dim(input, src, places.start, dim)
    where = (slice(None),) * dim + (slice(places.start, places[-1] + 1, step),)
    return input.at[where].set(src)


@op(name="_as_strided_scatter", where="", out="exact", grad_name="AsStridedScatterBackward0")
def scattered_in_memory(
    input: Array, src: Array, size: tuple, stride: tuple, storage_offset: int | None = None
) -> Array:
    """`input`, row by row, with the elements that the strides name replaced by `src`."""
    _fits(src, tuple(size))
    place = _strided_places(size, stride, storage_offset)
    flat = input.reshape(-1).at[place].set(convert(src, input.dtype), mode=IN_BOUNDS)
    return flat.reshape(input.shape)


@scattered_in_memory.check
def _check_as_strided_scatter(input, src, size, stride, storage_offset=None):
    start = storage_offset or 0
    need = start + 1 + builtins.sum((n - 1) * s for n, s in zip(size, stride)) if math.prod(size) else 0
    if need > input.numel:
        raise errors.storage_bounds(size, stride, start, input.dtype.itemsize, need, input.numel)


def _strided_places(size, stride, storage_offset):
    place = jnp.full(tuple(size), storage_offset or 0, jnp.int32)
    for d, s in enumerate(stride):
        place = place + lax.broadcasted_iota(jnp.int32, tuple(size), d) * s
    return place


@op(where="")
def strided_part(g: Array, size: tuple, stride: tuple, storage_offset: int | None, keep: bool) -> Array:
    """The elements that the strides name: alone, or in their places with zeros elsewhere (`keep`)."""
    place = _strided_places(size, stride, storage_offset)
    part = g.reshape(-1).at[place].get(mode=IN_BOUNDS)
    return jnp.zeros((g.size,), g.dtype).at[place].set(part, mode=IN_BOUNDS).reshape(g.shape) if keep else part


# torch hands `input` the gradient of the part that was replaced, not of the rest
scattered_in_memory.vjp(
    input=lambda g, size, stride, storage_offset: strided_part(g, size, stride, storage_offset, True),
    src=lambda g, size, stride, storage_offset: strided_part(g, size, stride, storage_offset, False),
)


@composite
def as_strided_scatter(input: Array, src: Array, size, stride, storage_offset: int | None = None, *, out=None):
    """A copy of `input`, and of all the memory that it is part of, with the elements that the strides name replaced by `src`."""
    size, stride, keep = tuple(size), tuple(stride), {} if out is None else {"out": out}
    elements = input.untyped_storage().nbytes() // input.dtype.itemsize
    start = input.storage_offset() if storage_offset is None else storage_offset
    if elements == input.numel() and input.is_contiguous() or out is not None:
        return scattered_in_memory(input, src, size, stride, start, **keep)
    if input.requires_grad and not input.is_contiguous():
        raise RuntimeError("as_strided_scatter is currently only supported for contiguous inputs")
    memory = scattered_in_memory(as_strided(input, (elements,), (1,), 0), src, size, stride, start)
    return as_strided(memory, tuple(input.shape), input.stride(), input.storage_offset())


# ---------------------------------------------------------------- counts


@op(where="", differentiable=False)
def one_hot_of(input: Array, num_classes: int) -> Array:
    """A last dimension of `num_classes` that is 1 at each element's value and 0 elsewhere."""
    return (input[..., None] == jnp.arange(num_classes, dtype=input.dtype)).astype(jnp.int64)


@one_hot_of.check_values
def _check_one_hot(input, num_classes):
    if input is not None and input.size:
        if input.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if input.max() >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")


@op(where="", dynamic=True, differentiable=False)
def one_hot_counted(input: Array) -> Array:
    """`one_hot_of` with as many classes as the largest value needs."""
    host = np.asarray(input)
    if not host.size:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if host.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    return (host[..., None] == np.arange(host.max() + 1)).astype(np.int64)


@composite(where="nn.functional")
def one_hot(input: Array, num_classes: int = -1):
    """A last dimension that is 1 at each element's value and 0 elsewhere; -1 classes: as many as needed."""
    if "int64" not in str(input.dtype):
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes == -1:
        return one_hot_counted(input)
    if num_classes < 1 and math.prod(input.shape) == 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if num_classes < 1:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return one_hot_of(input, num_classes)


@op(dynamic=True)
def bincount(input: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """How often each value from 0 up occurs, or the sum of the weights of its occurrences."""
    values = np.asarray(input)
    if not np.issubdtype(values.dtype, np.integer):
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{scalar_name(values)}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if values.ndim != 1 or (values.size and values.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if not values.size:
        return np.zeros(minlength, np.int64)
    most = int(values.max())
    if most == 2**63 - 1:  # numpy would write before its memory
        raise RuntimeError(f"maximum value of input overflowed, it should be < {most} but got {most}")
    if most >= 2**60 - 1:
        raise errors_storage.storage_overflow((most + 1,))
    if weights is None:
        return np.bincount(values, minlength=minlength).astype(np.int64)
    weights = np.asarray(weights)
    if weights.shape != values.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = np.float32 if weights.dtype == np.float32 else np.float64
    return np.bincount(values, weights, minlength).astype(kind)


bincount.vjp(weights=UNKNOWN)


@op(differentiable=False)
def histc(input: Array, bins: int = 100, min: Number = 0, max: Number = 0) -> Array:
    """The counts of the elements in `bins` equal bins from `min` to `max`; both 0: the range of the data."""
    if input.dtype == np.bool_ or jnp.issubdtype(input.dtype, jnp.complexfloating):
        kernel = "linspace_cpu" if input.dtype == np.bool_ else "aminmax_cpu"
        raise errors.not_implemented(kernel, dt.of(input.dtype))
    if not jnp.issubdtype(input.dtype, jnp.floating):
        raise errors.not_implemented("histogram_cpu", dt.of(input.dtype))
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    x = input.reshape(-1)
    if not x.size:
        return jnp.zeros((bins,), input.dtype)
    low, high = jnp.asarray(min, input.dtype), jnp.asarray(max, input.dtype)
    whole = low == high
    low, high = jnp.where(whole, x.min(), low), jnp.where(whole, x.max(), high)
    flat = low == high
    low, high = jnp.where(flat, low - 1, low), jnp.where(flat, high + 1, high)
    # each step in the input's own type, rounded before the next
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
    steps, ends = jnp.asarray(bins, x.dtype).astype(wide), (high - low).astype(wide)
    place = rounded(x.astype(wide) - low.astype(wide), x.dtype)
    place = rounded(rounded(place * steps, x.dtype) / ends, x.dtype).astype(jnp.int32)
    place = jnp.where(x == high, bins - 1, place)
    inside = (x >= low) & (x <= high)
    place = jnp.where(inside, jnp.clip(place, 0, bins - 1), bins)
    return jnp.zeros((bins,), input.dtype).at[place].add(1, mode="drop")


@histc.check_values
def _check_ends(input, bins=100, min=0, max=0):
    """A later call of a plan has other ends, so that each is looked at."""
    if min == max or bins <= 0:
        return
    if not (math.isfinite(min) and math.isfinite(max)):
        raise RuntimeError(f"torch.histc: range of [{min:g}, {max:g}] is not finite")
    if not min < max:
        raise RuntimeError("torch.histc: max must be larger than min")
