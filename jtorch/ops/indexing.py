"""Ops that read or write elements chosen by position: `x[...]`, take and put."""

import builtins
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .. import errors
from ..core import dtype as dt
from ..core import shapes
from . import formats
from .arguments import scalar_name, size_of
from .places import IN_BOUNDS, added, added_apart, is_index, narrow, outside, picked
from .registry import Array, Number, composite, op
from .views import unbind

# ---------------------------------------------------------------- x[...]: advanced indexing


def _index_tuple(input, indices) -> tuple:
    if len(indices) > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim} (got {len(indices)})")
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
        bad = None if i is None or i.dtype == np.bool_ else outside(i, -shape[d], shape[d])
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
    return picked(input, _index_tuple(input, indices))


@op(where="")
def index_grad(g: Array, indices: list[Array | None], shape: tuple) -> Array:
    """Zeros of `shape` with `g` added at `indices`: the derivative of `index`."""
    # a scatter even of rows on the CPU: 4 to 400 times faster there than a one-hot matmul
    zeros = jnp.zeros(shape, g.dtype)
    return added_apart(zeros, _index_tuple(zeros, indices), g)


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
    if accumulate and not builtins.any(i is not None and i.dtype.name in ("bool", "uint8") for i in indices):
        # what is added to an element of the memory is the sum of what is added to those that lie there
        shared = [d for d, (n, stride) in enumerate(zip(input.shape, input.stride())) if stride == 0 and n > 1]
        total = index_put(input.new_zeros(input.shape), indices, values, True)
        for d in shared:
            total, input = total.sum(d, True).to(input.dtype), input.narrow(d, 0, 1)
        rows = input.new_ones(input.shape[0], dtype=dt.int64).cumsum(0) - 1
        return input, [rows], total, True
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


# ---------------------------------------------------------------- flat positions


def _wrapped(index: Array, size: int) -> Array:
    index = narrow(index, size)
    return jnp.where(index < 0, index + size, index)


def _check_flat(input, index):
    size = math.prod(input.shape)
    bad = outside(index, -size, size)
    if bad is not None:
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements.")


@op(
    out="take(): self and out expected to have the same dtype, but got self.dtype = {want} and out.dtype = {have}",
    apart=True,
)
def take(input: Array, index: Array) -> Array:
    """The elements of `input`, read as one line, at `index`."""
    if not is_index(index, wide=True):
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {scalar_name(index)}")
    if input.size == 0:
        if index.size:
            raise IndexError("take(): tried to take from an empty tensor")
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
    if not input.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
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


for _record in (index, index_put, take, put):
    _record.sized = True
