"""Ops that read or write elements chosen by position: `x[...]`, gather, scatter, index_select, take and put."""

import builtins
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import errors
from ..core import dtype as dt
from ..core import shapes
from . import formats
from .backend import accumulator, on_cpu
from .order import order
from .registry import Array, Number, Scalar, composite, op
from .views import unbind

MANY_PLACES, WIDE_SLICE = 4096, 4  # indices, and elements of a slice, from which on `_added_along` looks for slices
IN_BOUNDS = "promise_in_bounds"  # indices are checked before; XLA then neither clamps nor masks


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
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return out


def ints(x) -> tuple[int, ...]:
    return (x,) if isinstance(x, int) else tuple(x)


def size_of(shape) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def scalar_name(x) -> str:
    return dt.scalar_name(dt.of(x.dtype))


def narrow(index: Array, size: int) -> Array:
    return index.astype(jnp.int32) if size < 2**31 else index.astype(jnp.int64)


def _wrapped(index: Array, size: int) -> Array:
    index = narrow(index, size)
    return jnp.where(index < 0, index + size, index)


def _is_index(x, *, wide=False) -> bool:
    return x.dtype in (np.dtype(np.int64),) if wide else x.dtype in (np.dtype(np.int32), np.dtype(np.int64))


def _outside(index: np.ndarray | None, low: int, high: int):
    """The first value of a host-resident index outside [low, high), or None."""
    if not isinstance(index, np.ndarray) or index.size == 0:  # a Spec: of another dtype, which is refused
        return None
    bad = index[(index < low) | (index >= high)]
    return int(bad.flat[0]) if bad.size else None


# ---------------------------------------------------------------- x[...]: advanced indexing


def _index_tuple(input, indices) -> tuple:
    if len(indices) > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim}")
    out = []
    for d, i in enumerate(indices):
        if i is None:
            out.append(slice(None))
        elif i.dtype == np.bool_:
            out.append(i)
        elif not jnp.issubdtype(i.dtype, jnp.integer):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        else:
            out.append(narrow(i, input.shape[d]))
    sizes = [tuple(i.shape) for i in indices if i is not None and i.dtype != np.bool_]
    try:
        np.broadcast_shapes(*sizes)
    except ValueError:
        words = ", ".join(map(size_of, sizes))
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {words}"
        ) from None
    numbers = [d for d, i in enumerate(indices) if i is not None and i.dtype != np.bool_]
    if builtins.any(input.shape[d] == 0 for d in numbers) and 0 not in np.broadcast_shapes(*sizes):
        raise IndexError("index is out of bounds for dimension with size 0")
    return tuple(out)


def _check_index_values(input, indices):
    shape = tuple(input.shape)
    given = [d for d, i in enumerate(indices) if i is not None]
    for d in given:
        i = indices[d]
        bad = None if i is None or i.dtype == np.bool_ else _outside(i, -shape[d], shape[d])
        if bad is not None:  # torch counts the indices, not the dimensions
            raise IndexError(f"index {bad} is out of bounds for dimension {given.index(d)} with size {shape[d]}")


def _index_strides(outs, input, indices):
    """The order in memory of what is indexed, and of the indices in their dimensions."""
    given = [d for d, i in enumerate(indices) if i is not None]
    if builtins.any(indices[d].dtype is dt.bool_ for d in given):
        return (None,)
    kept = [d for d in range(input.ndim) if d not in given]
    adjacent = given == list(range(given[0], given[-1] + 1))
    before = builtins.sum(d < given[0] for d in kept) if adjacent else 0
    block = np.broadcast_shapes(*(tuple(indices[d].shape) for d in given))
    rows = [[input.strides[d] for d in kept]]
    rows[0][before:before] = [0] * len(block)
    for i in (indices[d] for d in given):
        shape = (1,) * (len(block) - i.ndim) + tuple(i.shape)
        own = (0,) * (len(block) - i.ndim) + i.strides
        row = [0 if n == 1 and wide != 1 else s for n, wide, s in zip(shape, block, own)]
        # An index has a size of 1 where the input's own dimensions are, and a stride there that counts if they are of 1 too.
        ends = (row[0] * block[0], row[-1]) if block else (1, 1)
        around = [ends[k >= before] if input.shape[d] == 1 else 0 for k, d in enumerate(kept)]
        rows.append(around[:before] + row + around[before:])
    size = tuple(outs[0].shape)
    return (tuple(shapes.elementwise_strides(size, [(size, row) for row in rows])),)


@op(where="", strides=_index_strides)
def index(input: Array, indices: list[Array | None]) -> Array:
    """`input[indices]`: a tensor of positions per leading dimension, None for a whole one.

    Indexed dimensions next to each other are replaced in place; otherwise the index comes first.
    """
    return input.at[_index_tuple(input, indices)].get(mode=IN_BOUNDS)


@op(where="")
def index_grad(g: Array, indices: list[Array | None], shape: tuple) -> Array:
    """Zeros of `shape` with `g` added at `indices`: the derivative of `index`."""
    # a scatter even of rows on the CPU: 4 to 400 times faster there than a one-hot matmul
    zeros = jnp.zeros(shape, g.dtype)
    return zeros.at[_index_tuple(zeros, indices)].add(g, mode=IN_BOUNDS)


index.vjp(input=lambda g, input, indices: index_grad(g, indices, tuple(input.shape)))
index_grad.vjp(g=lambda g, indices: index(g, indices))
index.check_values(_check_index_values)


def _only_mask(input, indices, values):
    """The one boolean mask among `indices`, fitted to `input`, where `values` need not be counted out."""
    masks = [(d, i) for d, i in enumerate(indices) if i is not None]
    if len(masks) != 1 or masks[0][1].dtype != np.bool_:
        return None
    d, mask = masks[0]
    if values.ndim > input.ndim - d - mask.ndim:
        return None
    return mask.reshape((1,) * d + mask.shape + (1,) * (input.ndim - d - mask.ndim))


@op(inplace=True, apart=True, strides=formats.keep_format)
def index_put(input: Array, indices: list[Array | None], values: Array, accumulate: bool = False) -> Array:
    """`input` with `values` written (or added) at the positions of `indices`.

    Where a position is named twice, one of its values stays, unless they accumulate.
    """
    if values.dtype != input.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(input)} for the destination and {scalar_name(values)} for the source."
        )
    mask = _only_mask(input, indices, values)
    if mask is not None:
        whole = input | values if input.dtype == np.bool_ else input + values
        return jnp.where(mask, whole if accumulate else values, input)
    where = _index_tuple(input, indices)
    result = jax.eval_shape(lambda x: x.at[where].get(mode=IN_BOUNDS), input).shape
    lead = values.ndim - len(result)
    if lead > 0 and builtins.all(n == 1 for n in values.shape[:lead]):
        values = values.reshape(values.shape[lead:])
    fits = values.ndim <= len(result) and builtins.all(a in (1, b) for a, b in zip(values.shape[::-1], result[::-1]))
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {size_of(values.shape)} cannot be broadcast to indexing "
            f"result of shape {size_of(result)}"
        )
    at = input.at[where]
    return added(input, where, values) if accumulate else at.set(values, mode=IN_BOUNDS)


@index_put.on_expanded
def _(input, indices, values, accumulate=False):
    indices = [*indices] + [None] * (input.ndim - len(indices))
    for d, (n, stride) in enumerate(zip(input.shape, input.stride())):
        if stride != 0 or n == 1:
            continue
        index = indices[d] if len(indices) == input.ndim else None
        by_mask = any(i is not None and i.dtype.name in ("bool", "uint8") for i in indices)
        if by_mask or accumulate or index is None and values.numel() > 1:
            raise errors.overlap()  # which of several values stays depends on PyTorch's order
        input = input.narrow(d, 0, 1)
        if index is not None:
            indices[d] = index * 0
    return input, indices, values, accumulate


@op(where="")
def index_zero(input: Array, indices: list[Array | None]) -> Array:
    """`input` with zeros at `indices`."""
    mask = _only_mask(input, indices, jnp.zeros((), input.dtype))
    if mask is not None:
        return jnp.where(mask, jnp.zeros((), input.dtype), input)
    return input.at[_index_tuple(input, indices)].set(jnp.zeros((), input.dtype), mode=IN_BOUNDS)


@op(where="")
def index_values_grad(g: Array, indices: list[Array | None], shape: tuple) -> Array:
    """What `g` holds at `indices`, summed to `shape`: the derivative of `index_put` in its values."""
    mask = _only_mask(g, indices, jnp.zeros(shape, g.dtype))
    if mask is not None:
        picked = jnp.where(mask, g, jnp.zeros((), g.dtype))
    else:
        picked = index.fn(g, indices)
    lead = picked.ndim - len(shape)
    picked = picked.sum(tuple(range(lead))) if lead > 0 else picked
    tail = shape[builtins.max(-lead, 0) :]
    ones = tuple(d for d, n in enumerate(tail) if n == 1 and picked.shape[d] != 1)
    return picked.sum(ones, keepdims=True).reshape(shape)


index_put.vjp(
    input=lambda g, indices, accumulate: g if accumulate else index_zero(g, indices),
    values=lambda g, indices, values: index_values_grad(g, indices, tuple(values.shape)),
)
index_zero.vjp(input=lambda g, indices: index_zero(g, indices))
index_put.check_values(lambda input, indices, values, accumulate=False: _check_index_values(input, indices))


@op(where="torch")
def _unsafe_masked_index(input: Array, mask: Array, indices: list[Array | None], fill: Number) -> Array:
    """`input[indices]` where `mask` holds, `fill` elsewhere; indices outside are clamped."""
    picked = input.at[_clamped(input, indices)].get(mode=IN_BOUNDS)
    return jnp.where(mask, picked, jnp.asarray(fill).astype(input.dtype))


@op(where="torch")
def _unsafe_masked_index_put_accumulate(input: Array, mask: Array, indices: list[Array | None], values: Array) -> Array:
    """`input` with the values where `mask` holds added at `indices`, clamped."""
    return added(input, _clamped(input, indices), jnp.where(mask, values, jnp.zeros((), values.dtype)))


def _clamped(input, indices):
    kept = [None if i is None else jnp.clip(i, -input.shape[d], input.shape[d] - 1) for d, i in enumerate(indices)]
    return _index_tuple(input, kept)


def _by_coordinate(outs, indices, shape):
    """As the quotients of `indices` and a vector lie."""
    operands = [((*indices.shape, 1), (*indices.strides, 1)), ((len(shape),), (1,))]
    return (shapes.elementwise_strides(tuple(outs[0].shape), operands),)


@op(where="", differentiable=False, strides=_by_coordinate)
def unraveled(indices: Array, shape: tuple) -> Array:
    """The coordinates of flat positions in a tensor of this shape, as a last dimension."""
    indices = indices.astype(jnp.int64)
    coordinates, step = [], 1
    for n in reversed(shape):
        coordinates.append(indices // step % n)
        step *= n
    return jnp.stack(coordinates[::-1], -1)


@composite(where="torch")
def unravel_index(indices, shape):
    """The coordinates of flat positions in a tensor of this shape, one tensor a dimension."""
    if indices.dtype.category != dt.INT:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, int | Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in shape:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if builtins.any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    return unbind(unraveled(indices, shape), -1) if shape else ()


# ---------------------------------------------------------------- gather and scatter along a dimension


def _same_rank(index, other, words):
    if index.size and builtins.max(index.ndim, 1) != builtins.max(other.ndim, 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {words} tensor")


def _positions(index: Array, dim: int) -> tuple:
    """`index` along `dim` and each element's own place along the others."""
    shape = index.shape
    return tuple(narrow(index, 0) if d == dim else lax.broadcasted_iota(jnp.int32, shape, d) for d in range(len(shape)))


def added(array: Array, where, values: Array) -> Array:
    """`array` with `values` added at `where`; of booleans, as torch has it, their disjunction."""
    at = array.at[where]
    return at.max(values, mode=IN_BOUNDS) if array.dtype == np.bool_ else at.add(values, mode=IN_BOUNDS)


def _added_wide(array: Array, where, values: Array) -> Array:
    """`added`, of 16-bit floats in float32 and not rounded yet."""
    wide = accumulator(array.dtype)
    return added(array.astype(wide), where, values.astype(wide))


def _added_along(array: Array, dim: int, index: Array, values: Array) -> Array:
    """`_added_wide` at `index` along `dim`.

    Where the index is the same for all of a slice of the later dimensions (expanded to them, as graph networks do), whole slices are
    added on the CPU, in a fifth of the time. XLA sees that of an index which is expanded in the same program.
    """
    one_by_one = lambda array, index, values: _added_wide(array, _positions(index, dim), values)
    after = index.shape[dim + 1 :]
    if not on_cpu() or math.prod(after) < WIDE_SLICE or index.size < MANY_PLACES or after != array.shape[dim + 1 :]:
        return one_by_one(array, index, values)
    first = index[(..., *(slice(0, 1) for _ in after))]

    def slices(array, index, values):
        lead = index[(..., *(0 for _ in after))]
        return _added_wide(array, _positions(lead, dim), values)

    return lax.cond(jnp.all(index == first), slices, one_by_one, array, index, values)


def _as_1d(*arrays):
    return tuple(a.reshape(1) if a.ndim == 0 else a for a in arrays)


def _check_along(input, dim, index):
    dim = axis(dim, len(input.shape))
    _within(index, dim, input.shape[dim] if input.shape else 1)


def _within(index, dim, size):
    bad = _outside(index, 0, size)
    if bad is not None:
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


@op(out="exact", apart=True)
def gather(input: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    """The elements of `input` at `index` along `dim`; the result has the shape of `index`."""
    dim = axis(dim, input.ndim)
    if index.size == 0:
        return jnp.zeros(index.shape, input.dtype)
    if not _is_index(index):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    _same_rank(index, input, "input")
    shape = index.shape
    input, index = _as_1d(input, index)
    for d in range(input.ndim):
        if d != dim and index.shape[d] > input.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {size_of(index.shape)} to be no larger "
                f"than self {size_of(input.shape)} apart from dimension {dim}"
            )
    return _gathered(input, dim, index).reshape(shape)


gather.guards(input=True)


def _gathered(input, dim, index):
    box = tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(index.shape))
    index = narrow(index, input.shape[dim])
    return jnp.take_along_axis(input[box], index, axis=dim, mode=IN_BOUNDS)


gather.vjp(input=lambda g, input, dim, index: gather_grad(g, dim, index, tuple(input.shape)))
gather.check_values(lambda input, dim, index, *, sparse_grad=False: _check_along(input, dim, index))


@op(where="")
def gather_grad(g: Array, dim: int, index: Array, shape: tuple) -> Array:
    """Zeros of `shape` with `g` added at `index` along `dim`."""
    dim = axis(dim, len(shape))
    if g.size == 0:
        return jnp.zeros(shape, g.dtype)
    g, index = _as_1d(g, index)
    return _added_along(jnp.zeros(shape or (1,), g.dtype), dim, index, g).astype(g.dtype).reshape(shape)


gather_grad.vjp(g=lambda g, dim, index: gather(g, dim, index))


@op(out="exact")
def take_along_dim(input: Array, indices: Array, dim: int | None = None) -> Array:
    """`gather` with the other dimensions broadcast; over the flattened tensors when `dim` is None."""
    if not _is_index(indices):
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {scalar_name(indices)}")
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    elif input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = axis(dim, input.ndim)
    before = np.broadcast_shapes(input.shape[:dim], indices.shape[:dim])
    after = np.broadcast_shapes(input.shape[dim + 1 :], indices.shape[dim + 1 :])
    input = jnp.broadcast_to(input, (*before, input.shape[dim], *after))
    indices = jnp.broadcast_to(indices, (*before, indices.shape[dim], *after))
    indices = indices % input.shape[dim]
    return jnp.take_along_axis(input, narrow(indices, input.shape[dim]), axis=dim, mode=IN_BOUNDS)


take_along_dim.grad_name = "GatherBackward0"
take_along_dim.sized = True


@take_along_dim.check_values
def _check_take_along(input, indices, dim=None):
    if dim is None:  # along a dimension PyTorch takes the remainder
        _within(indices, 0, math.prod(input.shape))


def _scatter_at(input, dim, index, src, *, name="scatter"):
    """Check a scatter; the dimension and the parts of `src` and `index` that are used."""
    dim = axis(dim, input.ndim)
    if index.size and not _is_index(index):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if src is not None and src.dtype != input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return dim, None, None
    _same_rank(index, input, "self")
    index = _as_1d(index)[0]
    shape = input.shape or (1,)
    too_big = builtins.any(d != dim and n > shape[d] for d, n in enumerate(index.shape))
    if src is None:
        if too_big:
            raise RuntimeError(
                f"Expected index {size_of(index.shape)} to be no larger than self {size_of(input.shape)} "
                f"apart from dimension {dim}"
            )
        return dim, index, None
    if builtins.max(src.ndim, 1) != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    src = _as_1d(src)[0]
    if too_big or builtins.any(n > m for n, m in zip(index.shape, src.shape)):
        raise RuntimeError(
            f"Expected index {size_of(index.shape)} to be no larger than self {size_of(input.shape)} apart "
            f"from dimension {dim} and to be no larger size than src {size_of(src.shape)}"
        )
    return dim, index, src[tuple(slice(0, n) for n in index.shape)]


def _check_scatter(input, dim, index, *rest, **kw):
    _check_along(input, dim, index)


def _scatter_name(args) -> str:
    src = args["src"]
    return "ScatterBackward0" if getattr(src, "ndim", 0) else "ScatterBackward1"


@op(inplace=True, apart=True, grad_name=_scatter_name, out="exact")
def scatter(
    input: Array,
    dim: int,
    index: Array,
    src: Scalar | None = None,
    *,
    value: Scalar | None = None,
    reduce: str | None = None,
) -> Array:
    """`input` with `src` (a tensor or a number) written at `index` along `dim`.

    `reduce` ("add" or "multiply") is PyTorch's older spelling of `scatter_add` and `scatter_reduce`.
    """
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    src = jnp.asarray(value if src is None else src)
    single = src.ndim == 0
    dim, index, part = _scatter_at(input, dim, index, None if single else src)
    if index is None:
        return input
    src = src.astype(input.dtype) if single else part
    at = _as_1d(input)[0].at[_positions(index, dim)]
    if reduce == "add":
        out = added(_as_1d(input)[0], _positions(index, dim), src)
    elif reduce == "multiply":
        out = at.min(src, mode=IN_BOUNDS) if input.dtype == np.bool_ else at.multiply(src, mode=IN_BOUNDS)
    else:
        out = at.set(src, mode=IN_BOUNDS)
    return out.reshape(input.shape)


# torch's convention where an index repeats: every writer receives the whole gradient
scatter.vjp(
    input=lambda g, dim, index, reduce: g if reduce == "add" else scatter(g, dim, index, 0),
    src=lambda g, dim, index, src: gather_padded(g, dim, index, tuple(src.shape)),
)
scatter.check_values(_check_scatter)


@scatter.check
def _check_scattered(input, dim, index, src=None, *, value=None, reduce=None):
    for number in (src, value):
        if isinstance(number, int | float):
            dt.check_number(number, input.dtype)


@op(where="")
def gather_padded(input: Array, dim: int, index: Array, shape: tuple) -> Array:
    """`gather`, filled up with zeros to `shape`: the derivative of a scatter in its source."""
    dim = axis(dim, input.ndim)
    if index.size == 0:
        return jnp.zeros(shape, input.dtype)
    input, index = _as_1d(input, index)
    out = _gathered(input, dim, index)
    if not shape:
        return out.sum(dtype=accumulator(out.dtype)).astype(out.dtype)
    return jnp.pad(out, [(0, n - m) for n, m in zip(shape, out.shape)])


@op(inplace=True, apart=True, out="exact")
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """`input` with the elements of `src` added at `index` along `dim`."""
    dim, index, src = _scatter_at(input, dim, index, src)
    if index is None:
        return input
    return _added_along(_as_1d(input)[0], dim, index, src).astype(input.dtype).reshape(input.shape)


scatter_add.vjp(
    input=lambda g: g,
    src=lambda g, dim, index, src: gather_padded(g, dim, index, tuple(src.shape)),
)
scatter_add.check_values(_check_scatter)


# ---------------------------------------------------------------- reductions into places


def _identity(reduce, dtype):
    if reduce in ("sum", "mean"):
        return jnp.zeros((), dtype)
    if reduce == "prod":
        return jnp.ones((), dtype)
    if dtype == np.bool_:
        return jnp.asarray(reduce == "amin")
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.asarray(-jnp.inf if reduce == "amax" else jnp.inf, dtype)
    info = jnp.iinfo(dtype)
    return jnp.asarray(info.min if reduce == "amax" else info.max, dtype)


def _prod_into(base, flat, src):
    """`base` times the `src` whose place is `flat`, differentiable though places repeat.

    XLA's multiplying scatter has no derivative for repeated indices; a segmented scan over the sorted places
    has one, exact at zeros.
    """
    at = order(flat, 0)
    place, value = flat[at], src[at]
    first = jnp.concatenate([jnp.ones(1, bool), place[1:] != place[:-1]])
    last = jnp.concatenate([place[1:] != place[:-1], jnp.ones(1, bool)])

    def join(a, b):
        return a[0] | b[0], jnp.where(b[0], b[1], a[1] * b[1])

    _, run = lax.associative_scan(join, (first, value))
    target = jnp.where(last, place, base.size)  # rows past the end are dropped
    factor = jnp.ones_like(base).at[target].set(run, mode="drop")
    return base * factor


def _erased(input, at, reduce):
    """`input` with the places that are written to set to the identity of the reduction."""
    return input.at[at].set(_identity(reduce, input.dtype), mode=IN_BOUNDS)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _extremum(input, at, src, reduce, include_self):
    base = input if include_self else _erased(input, at, reduce)
    place = base.at[at]
    return place.max(src, mode=IN_BOUNDS) if reduce == "amax" else place.min(src, mode=IN_BOUNDS)


@_extremum.defjvp
def _(reduce, include_self, primals, tangents):
    """Ties share evenly, `input` among them."""
    (input, at, src), (d_input, _, d_src) = primals, tangents
    out = _extremum(input, at, src, reduce, include_self)
    won_src = src == out.at[at].get(mode=IN_BOUNDS)
    won_input = input == out
    if not include_self:
        won_input = won_input.at[at].set(False, mode=IN_BOUNDS)
    count = won_input.astype(out.dtype).at[at].add(won_src.astype(out.dtype), mode=IN_BOUNDS)
    zero = jnp.zeros((), out.dtype)
    moved = jnp.where(won_input, d_input, zero).at[at].add(jnp.where(won_src, d_src, zero), mode=IN_BOUNDS)
    return out, moved / jnp.maximum(count, 1)


def _reduce_into(input, at, src, reduce, include_self, along=None):
    """`input` with each `src` reduced into its place `at`; `along`: the dimension and the index that the places come from."""
    if reduce in ("amax", "amin"):
        return _extremum(input, at, src, reduce, include_self)
    if reduce == "prod":
        base = input if include_self else _erased(input, at, reduce)
        flat = jnp.ravel_multi_index(at, input.shape, mode="clip")
        return _prod_into(base.reshape(-1), flat.reshape(-1), src.reshape(-1)).reshape(input.shape)
    add = lambda to, src: _added_along(to, *along, src) if along else _added_wide(to, at, src)
    if include_self and reduce == "sum":
        return add(input, src).astype(input.dtype)
    count = add(jnp.zeros(input.shape, jnp.int32), jnp.ones(src.shape, jnp.int32))
    base = input if include_self else jnp.where(count > 0, jnp.zeros((), input.dtype), input)
    out = add(base, src)
    if reduce == "sum":
        return out.astype(input.dtype)
    count = jnp.maximum(count + include_self, 1).astype(out.dtype)
    return out // count if jnp.issubdtype(out.dtype, jnp.integer) else (out / count).astype(input.dtype)


@op(inplace=True, apart=True, out="exact")
def scatter_reduce(
    input: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """`input` with the `src` that meet at each place of `index` reduced: sum, prod, mean, amax or amin."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    kernel = f"scatter_gather_tensor_cpu_reduce_{reduce}"
    if (
        reduce in ("amax", "amin")
        and jnp.issubdtype(input.dtype, jnp.complexfloating)
        or (reduce == "mean" and input.dtype == np.bool_)
    ):
        raise errors.not_implemented(kernel, dt.of(input.dtype))
    dim, index, src = _scatter_at(input, dim, index, src)
    if index is None:
        return input
    full = _as_1d(input)[0]
    return _reduce_into(full, _positions(index, dim), src, reduce, include_self, (dim, index)).reshape(input.shape)


scatter_reduce.check_values(_check_scatter)


# ---------------------------------------------------------------- whole slices along a dimension


def _vector(index, name, *, sizes=False):
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
    full, source = _as_1d(input, source)
    _check_slices(name, full, source, dim, count)
    return full, source


def _along(dim, index) -> tuple:
    return (slice(None),) * dim + (narrow(index, 0),)


@op(out="index_select(): self and result must have the same scalar type", apart=True)
def index_select(input: Array, dim: int, index: Array) -> Array:
    """The slices of `input` along `dim` that the vector `index` names, in its order."""
    dim = axis(dim, input.ndim)
    if not _is_index(index):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    index = _vector(index, "index_select")
    if input.ndim == 0:
        return jnp.broadcast_to(input, index.shape).reshape(index.shape if index.size != 1 else ())
    return input.at[_along(dim, index)].get(mode=IN_BOUNDS)


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
    if shape and _outside(index, 0, shape[axis(dim, len(shape))]) is not None:
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
    if index.dtype not in (dt.int32, dt.int64):
        raise RuntimeError(f"index_add_(): Expected dtype int32/int64 for index but got: {dt.scalar_name(index.dtype)}")


index_add.check_values(lambda input, dim, index, *rest, **kw: _check_along(input, dim, index))


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
    full, source = _as_1d(input, source)
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
    bad = _outside(index, 0, size)
    if bad is not None:
        raise IndexError(f"index_copy_(): index {bad} is out of bounds for dimension {dim} with size {size}")


@op(inplace=True, strides=formats.keep_format)
def index_fill(input: Array, dim: int, index: Array, value: Scalar) -> Array:
    """`input` with one value written to the slices at `index` along `dim`."""
    dim = axis(dim, input.ndim)
    if not _is_index(index):
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
    at = _as_1d(input)[0].at[_along(dim, index)]
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
    bad = _outside(index, -size, size)
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
    full = _as_1d(g)[0]
    return full.at[_along(axis(dim, g.ndim), index.reshape(-1))].get(mode=IN_BOUNDS).reshape(shape)


@op(where="")
def filled_grad(g: Array, dim: int, index: Array) -> Array:
    """The sum of `g` over the places that one value was written to."""
    full = _as_1d(g)[0]
    hit = jnp.zeros(full.shape, bool).at[_along(axis(dim, g.ndim), index.reshape(-1))].set(True, mode=IN_BOUNDS)
    return jnp.where(hit, full, jnp.zeros((), g.dtype)).sum(dtype=accumulator(g.dtype)).astype(g.dtype)


def _refuse_reduction(input, reduce):
    if jnp.issubdtype(input.dtype, jnp.complexfloating) or input.dtype == np.bool_:
        if not input.ndim:
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
    if not _is_index(index):
        raise RuntimeError(f"index_reduce_(): Expected dtype int32/int64 for index but got: {scalar_name(index)}")
    _refuse_reduction(input, reduce)
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"index_reduce_(): self ({scalar_name(input)}) and source ({scalar_name(source)}) must have the same scalar type"
        )
    full, source = _slices_of("index_reduce_", input, source, dim, index.size)
    if index.size == 0:
        return input
    where = lax.broadcast_in_dim(index, source.shape, (dim,))
    return _reduce_into(full, _positions(where, dim), source, reduce, include_self).reshape(input.shape)


@index_reduce.check_values
def _check_index_reduce(input, dim, index, *rest, **kw):
    if isinstance(index, np.ndarray):
        bad = _outside(index, 0, input.shape[axis(dim, len(input.shape))] if input.shape else 1)
        if bad is not None:
            raise IndexError("index out of range in self")


# ---------------------------------------------------------------- flat positions


def _check_flat(input, index):
    size = math.prod(input.shape)
    bad = _outside(index, -size, size)
    if bad is not None:
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements.")


@op(
    out="take(): self and out expected to have the same dtype, but got self.dtype = {want} and out.dtype = {have}",
    apart=True,
)
def take(input: Array, index: Array) -> Array:
    """The elements of `input`, read as one line, at `index`."""
    if not _is_index(index, wide=True):
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {scalar_name(index)}")
    if input.size == 0 and index.size == 0:
        return jnp.zeros(index.shape, input.dtype)
    return input.reshape(-1).at[_wrapped(index, input.size)].get(mode=IN_BOUNDS)


take.guards(input=True)


take.check_values(_check_flat)


@op(inplace=True, apart=True, strides=formats.keep_format)
def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """`input` with `source` written (or added) at `index`, all three read as one line."""
    if source.dtype != input.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(input)} and source.dtype = {scalar_name(source)}"
        )
    if source.size != index.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    if not index.size:
        return input
    line, where, source = input.reshape(-1), _wrapped(index.reshape(-1), input.size), source.reshape(-1)
    out = added(line, where, source) if accumulate else line.at[where].set(source, mode=IN_BOUNDS)
    return out.reshape(input.shape)


put.vjp(
    input=lambda g, index, accumulate: g if accumulate else put_zero(g, index),
    source=lambda g, index, source: take_like(g, index, tuple(source.shape)),
)


@put.check
def _check_put(input, index, source, accumulate=False):
    if index.dtype is not dt.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {dt.scalar_name(index.dtype)}")


put.check_values(lambda input, index, *rest, **kw: _check_flat(input, index))


@op(where="")
def put_zero(input: Array, index: Array) -> Array:
    """`input` with zeros at the flat positions `index`."""
    if not index.size:
        return input
    zero = jnp.zeros((), input.dtype)
    flat = input.reshape(-1).at[_wrapped(index.reshape(-1), input.size)].set(zero, mode=IN_BOUNDS)
    return flat.reshape(input.shape)


@op(where="")
def take_like(input: Array, index: Array, shape: tuple) -> Array:
    """`take` in another shape."""
    return take.fn(input, index).reshape(shape)


for _record in (
    index, index_put, gather, scatter, scatter_add, scatter_reduce, index_select, index_add, index_copy, index_fill, index_reduce,
    take, put,
):  # fmt: skip
    _record.sized = True
