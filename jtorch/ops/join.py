"""Ops that join, repeat and rearrange tensors: cat, stack, meshgrid, flip, roll, repeat."""

import builtins
import itertools
import math
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import deprecations, errors, errors_arguments
from ..core import dtype as dt
from ..core import shapes
from ..core.channel_order import FOLLOWS, IMAGES
from . import channels, formats, registry
from .arguments import axes, axis, ints, size_of
from .backend import sum_over
from .create import full
from .places import IN_BOUNDS, narrow
from .registry import Array, VarInts, composite, op
from .slices import index_select
from .views import expand, reshape, unsqueeze

# ---------------------------------------------------------------- cat and stack


def _legacy_empty(x) -> bool:
    return tuple(x.shape) == (0,)


def _together(arrays) -> list:
    """The arrays in their common dtype. Numbers of dimensions play no part, as in torch.cat."""
    kind = dt.of(arrays[0].dtype)
    for a in arrays[1:]:
        kind = dt.promote(kind, dt.of(a.dtype))
    return [a.astype(kind.np) for a in arrays]


def _parts(g, dim, sizes):
    out, start = [], 0
    for n in sizes:
        out.append(lax.slice_in_dim(g, start, start + n, axis=dim))
        start += n
    return out


def _cat_strides(outs, tensors, dim=0):
    """Channels-last where all tensors are."""
    shape = tuple(outs[0].shape)
    last = all(map(formats.suggests_channels_last, tensors))
    return (shapes.channels_last_strides(shape) if last else None,)


def _cat_out(want, have):
    if not dt.can_cast(want, have):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {errors.scalar_name(have)}")


@op(
    aliases=("concat", "concatenate"),
    where="torch",
    apart=True,
    strides=_cat_strides,
    out=_cat_out,
    by_numpy=np.concatenate,
)
def cat(tensors: list[Array], dim: int = 0) -> Array:
    """The tensors joined along a dimension; their other sizes agree."""
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    arrays = _together(tensors)
    for i, a in enumerate(arrays):
        if a.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    full = [(i, a) for i, a in enumerate(arrays) if not _legacy_empty(a)]
    if not full:
        axis(dim, 1)
        return arrays[0]
    first = full[0][1]
    dim = axis(dim, first.ndim)
    for i, a in full[1:]:
        if a.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {a.ndim}")
        for d in range(a.ndim):
            if d != dim and a.shape[d] != first.shape[d]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {first.shape[d]} "
                    f"but got size {a.shape[d]} for tensor number {i} in the list."
                )
    if dim == 1 and first.ndim in IMAGES:
        return channels.leave(lax.concatenate([channels.enter(a) for _, a in full], channels.axis(first.ndim)))
    return lax.concatenate([a for _, a in full], dim)


cat.channels = FOLLOWS


@op(where="torch", out=_cat_out, by_numpy=np.stack, apart=True)
def stack(tensors: list[Array], dim: int = 0) -> Array:
    """The tensors, of one shape, joined along a new dimension."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    arrays = _together(tensors)
    dim = axis(dim, arrays[0].ndim + 1)
    for i, a in enumerate(arrays):
        if a.shape != arrays[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {size_of(arrays[0].shape)} at entry 0 "
                f"and {size_of(a.shape)} at entry {i}"
            )
    return lax.concatenate([lax.expand_dims(a, (dim,)) for a in arrays], dim)


def _chunked(x, dim, num_chunks):
    """x as (sizes before dim, num_chunks, the elements of a chunk): `dim` padded with zeros to whole chunks."""
    length = x.shape[dim]
    size = -(-length // num_chunks)
    x = jnp.pad(x, [(0, size * num_chunks - length if d == dim else 0) for d in range(x.ndim)])
    return x.reshape(*x.shape[:dim], num_chunks, size * math.prod(x.shape[dim + 1 :]))


@op(where="torch")
def _chunk_cat(tensors: list[Array], dim: int, num_chunks: int) -> Array:
    """Each tensor cut along `dim` into `num_chunks`, padded with zeros; chunks of one number joined flat."""
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks <= 0:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    first = tensors[0]
    if builtins.any(t.dtype != first.dtype for t in tensors):
        raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    if dim < 0 and builtins.any(t.ndim != first.ndim for t in tensors):
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    dim = axis(dim, first.ndim)
    for t in tensors:
        if not t.size:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if dim >= t.ndim:
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if t.shape[:dim] != first.shape[:dim]:
            raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return lax.concatenate([_chunked(t, dim, num_chunks) for t in tensors], dim + 1)


def _some(tensors, name):
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


def _each(fn, tensors):
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    out = tuple(fn(t) for t in tensors)
    return out


@composite(where="torch")
def atleast_1d(*tensors: Array | list[Array]):
    """Each tensor with at least one dimension."""
    one = len(tensors) == 1 and not isinstance(tensors[0], (list, tuple))
    out = _each(lambda x: reshape(x, (1,)) if x.ndim == 0 else x, tensors)
    return out[0] if one else out


@composite(where="torch")
def atleast_2d(*tensors: Array | list[Array]):
    """Each tensor with at least two dimensions: a vector becomes a row."""
    one = len(tensors) == 1 and not isinstance(tensors[0], (list, tuple))
    out = _each(_two_dims, tensors)
    return out[0] if one else out


@composite(where="torch")
def atleast_3d(*tensors: Array | list[Array]):
    """Each tensor with at least three dimensions: a vector lies along the second."""
    one = len(tensors) == 1 and not isinstance(tensors[0], (list, tuple))
    out = _each(_three_dims, tensors)
    return out[0] if one else out


def _two_dims(x):
    if x.ndim == 0:
        return reshape(x, (1, 1))
    return unsqueeze(x, 0) if x.ndim == 1 else x


def _three_dims(x):
    if x.ndim == 0:
        return reshape(x, (1, 1, 1))
    if x.ndim == 1:
        return unsqueeze(unsqueeze(x, 0), -1)
    return unsqueeze(x, -1) if x.ndim == 2 else x


@composite(where="torch", out=_cat_out)
def hstack(tensors: list[Array]):
    """The tensors joined along columns; vectors end to end."""
    _some(tensors, "hstack")
    rows = [atleast_1d(t) for t in tensors]
    return cat(rows, 0 if rows[0].ndim == 1 else 1)


@composite(where="torch", aliases=("row_stack",), out=_cat_out)
def vstack(tensors: list[Array]):
    """The tensors joined along rows; a vector is a row."""
    _some(tensors, "vstack")
    return cat([atleast_2d(t) for t in tensors], 0)


@composite(where="torch", out=_cat_out)
def dstack(tensors: list[Array]):
    """The tensors joined along the third dimension."""
    _some(tensors, "dstack")
    return cat([atleast_3d(t) for t in tensors], 2)


@composite(where="torch", out=_cat_out)
def column_stack(tensors: list[Array]):
    """The tensors joined along columns; a vector is a column."""
    _some(tensors, "column_stack")
    return cat([t if t.ndim >= 2 else reshape(t, (math.prod(t.shape), 1)) for t in tensors], 1)


@op(where="", grad_name="BlockDiagBackward0")
def block_diagonal(tensors: list[Array]) -> Array:
    """The matrix with the given matrices along its diagonal."""
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
            )
    blocks = [jnp.atleast_2d(t) for t in _together(tensors)]
    width = builtins.sum(b.shape[1] for b in blocks)
    rows, left = [], 0
    for b in blocks:
        rows.append(jnp.pad(b, ((0, 0), (left, width - left - b.shape[1]))))
        left += b.shape[1]
    return lax.concatenate(rows, 0)


@composite(where="torch")
def block_diag(*tensors: Array):
    """The matrix with the given matrices along its diagonal."""
    if not tensors:
        return registry.tensor_call(full, ((1, 0), 0.0), {"dtype": dt.default.dtype})
    return block_diagonal(list(tensors))


# ---------------------------------------------------------------- grids and products


@composite(where="torch")
def broadcast_tensors(*tensors: Array | list[Array]):
    """The tensors expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    shape = ()
    for t in tensors:
        shape = _common_shape(shape, tuple(t.shape))
    return tuple(t if tuple(t.shape) == shape else expand(t, shape) for t in tensors)


def _common_shape(a, b) -> tuple:
    ndim = builtins.max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    for d, (n, m) in enumerate(zip(a, b)):
        if n != m and 1 not in (n, m):
            raise errors.broadcast(n, m, d)
    return tuple(m if n == 1 else n for n, m in zip(a, b))


@composite
def broadcast_to(input: Array, size):
    """A view of `input` in a larger shape."""
    if not isinstance(size, Iterable):
        raise errors_arguments.no_tuple("broadcast_to", "size", 2, size)
    return expand(input, tuple(size))


@composite(where="torch")
def meshgrid(*tensors: Array | list[Array], indexing=None):
    """Views of the vectors spread over the grid that they span."""
    if indexing is None:
        deprecations.say("meshgrid")
        indexing = "ij"
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.ndim > 1:
            shape = " ".join(map(str, t.shape))
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got:  {shape}")
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    places = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) >= 2:
        places[:2] = 1, 0
    sizes = [0] * len(tensors)
    for t, d in zip(tensors, places):
        sizes[d] = math.prod(t.shape)
    grid = []
    for t, d in zip(tensors, places):
        own = [1] * len(tensors)
        own[d] = sizes[d]
        grid.append(expand(reshape(t, tuple(own)), tuple(sizes)))
    return tuple(grid)


@composite(where="torch")
def cartesian_prod(*tensors: Array):
    """Every combination of one element from each vector, a row each."""
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {size_of(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grid = meshgrid(*tensors, indexing="ij")
    return stack([reshape(t, (math.prod(t.shape),)) for t in grid], 1)


@op(where="", grad_name="StackBackward0")
def chosen_rows(input: Array, r: int, with_replacement: bool) -> Array:
    """The combinations of r elements of a vector, a row each, in lexicographic order of places."""
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(pick(range(input.shape[0]), r)), np.int32).reshape(-1, r)
    return input.at[rows].get(mode=IN_BOUNDS)


@composite(where="torch")
def combinations(input: Array, r: int = 2, with_replacement: bool = False):
    """The combinations of r elements of a vector, a row each."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {size_of(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    return chosen_rows(input, r, with_replacement) if r else reshape(input[:0], (0,))


# ---------------------------------------------------------------- flips, rolls, repeats


@op(strides=formats.keep_format)
def flip(input: Array, dims: VarInts) -> Array:
    """The order of the elements reversed along `dims`."""
    dims = axes(dims, input.ndim)
    return lax.rev(input, dims) if input.ndim else input


flip.vjp(input=lambda g, dims: flip(g, dims))


def _check_size(input, repeats, dim, output_size):
    """Raise where output_size= is not that of the repeated dimension."""
    size = math.prod(input.shape) if dim is None else (input.shape or (1,))[axis(dim, input.ndim)]
    if output_size is not None and output_size != size * repeats:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {size * repeats} but got {output_size}")


@composite
def fliplr(input: Array):
    """The columns (dimension 1) reversed."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@composite
def flipud(input: Array):
    """The rows (dimension 0) reversed."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


def _roll_strides(outs, input, shifts, dims=None):
    """Channels-last where the input is and each dimension that is named moves."""
    dims = () if dims is None else ints(dims)
    moves = bool(dims) and all(
        input.shape[d] and shift % input.shape[d] for shift, d in zip(ints(shifts), (axis(d, input.ndim) for d in dims))
    )
    last = moves and formats.suggests_channels_last(input)
    return (shapes.channels_last_strides(tuple(outs[0].shape)) if last else None,)


@op(strides=_roll_strides)
def roll(input: Array, shifts: int | tuple, dims: int | tuple | None = None) -> Array:
    """The elements shifted along `dims`, those pushed out coming in at the other end."""
    shifts, dims = ints(shifts), () if dims is None else ints(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims:
        if len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
        return jnp.roll(input.reshape(-1), shifts[0]).reshape(input.shape)
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    return jnp.roll(input, shifts, tuple(axis(d, input.ndim) for d in dims)) if input.size else input


def _rot90_strides(outs, input, k, dims):
    turns = k % 4
    if not turns:
        return (None,)
    strides = list(shapes.empty_like_strides(tuple(input.shape), input.strides))
    if turns % 2:
        a, b = (axis(d, input.ndim) for d in dims)
        strides[a], strides[b] = strides[b], strides[a]
    return (tuple(strides),)


@op(strides=_rot90_strides)
def rot90(input: Array, k: int = 1, dims: tuple = (0, 1)) -> Array:
    """The plane of `dims` turned by 90 degrees `k` times, from the first towards the second."""
    dims = tuple(dims)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if dims[0] == dims[1]:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return jnp.rot90(input, k, tuple(axis(d, input.ndim) for d in dims))


@op(where="Tensor", out=False)
def repeat(input: Array, repeats: VarInts) -> Array:
    """Copies of `input` laid side by side: `repeats[i]` of them along dimension i."""
    if len(repeats) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if any(n < 0 for n in repeats):
        sizes = (1,) * (len(repeats) - input.ndim) + input.shape
        made = [n * s for n, s in zip(repeats, sizes)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {next(n for n in made if n < 0)}: {made}")
    return jnp.tile(input, tuple(repeats))


def _copies_added(g, input, repeats):
    sizes = (1,) * (len(repeats) - input.ndim) + input.shape
    apart = g.reshape([n for pair in zip(repeats, sizes) for n in pair])
    return sum_over(apart, range(0, 2 * len(sizes), 2)).reshape(input.shape)


repeat.vjp(input=_copies_added)


@composite
def tile(input: Array, dims: VarInts):
    """`repeat`, where missing leading counts are ones."""
    return repeat(input, (1,) * (input.ndim - len(dims)) + tuple(dims))


@op(where="", grad_name="ViewBackward0")
def repeat_each(input: Array, repeats: int, dim: int | None = None) -> Array:
    """Each element `repeats` times in a row along `dim`."""
    if repeats < 0:
        raise RuntimeError(f"Repeats must be non-negative, got {repeats}")
    if dim is None or input.ndim == 0:
        input, dim = input.reshape(-1), 0
    dim = axis(dim, input.ndim)
    shape = input.shape
    wide = jnp.broadcast_to(jnp.expand_dims(input, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    return wide.reshape(*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :])


@op(where="", dynamic=True, differentiable=False)
def repeat_places(repeats: Array) -> Array:
    """The number i written `repeats[i]` times."""
    counts = np.asarray(repeats)
    if counts.ndim > 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.dtype not in (np.int64, np.int32):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    return np.repeat(np.arange(counts.size, dtype=counts.dtype), counts.reshape(-1))


@op(where="", differentiable=False)
def repeat_places_sized(repeats: Array, output_size: int) -> Array:
    """`repeat_places` where the sum of the counts is known."""
    places = jnp.arange(repeats.size, dtype=repeats.dtype)
    return jnp.repeat(places, repeats, total_repeat_length=output_size)


@op(where="", grad_name="IndexSelectBackward0")
def select_flat(input: Array, index: Array) -> Array:
    """`index_select` of the elements read as one line."""
    return input.reshape(-1).at[narrow(index, 0)].get(mode=IN_BOUNDS)


@composite
def repeat_interleave(input: Array, repeats=None, dim: int | None = None, *, output_size: int | None = None):
    """Each element (or slice of `dim`) repeated in place, all alike or by a tensor of counts."""
    if repeats is None:
        if input.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        return repeat_places(input) if output_size is None else repeat_places_sized(input, output_size)
    if isinstance(repeats, (int, np.integer)):
        _check_size(input, int(repeats), dim, output_size)
        return repeat_each(input, int(repeats), dim)
    if not hasattr(repeats, "ndim"):
        raise errors.argument("repeat_interleave", "repeats", "Tensor or int", repeats, 1)
    size = math.prod(input.shape) if dim is None else (input.shape or (1,))[axis(dim, input.ndim)]
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    count = math.prod(repeats.shape)
    if count != 1 and count != size:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got "
            f"repeats.size(0) = {count} and input.size({dim or 0}) = {size}"
        )
    if count == 1 and size != 1:
        repeats = repeat(repeats, (size,))
    places = repeat_places(repeats) if output_size is None else repeat_places_sized(repeats, output_size)
    return select_flat(input, places) if dim is None else index_select(input, dim, places)
