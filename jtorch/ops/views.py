"""The view ops: functions from a Layout to a Layout, or to several. They neither touch nor mention data."""

import builtins
import math
import numbers
import operator
from functools import lru_cache

import jax.numpy as jnp

from .. import errors, errors_arguments
from ..core import shapes, strided
from ..core.dtype import INT
from ..core.layout import Layout, view_strides
from . import registry
from .registry import Array, VarInts, composite, op, view

__all__ = [
    "alias",
    "as_strided",
    "chunk",
    "diagonal",
    "dsplit",
    "expand",
    "expand_as",
    "hsplit",
    "movedim",
    "narrow",
    "permute",
    "reshape",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "t",
    "tensor_split",
    "transpose",
    "unbind",
    "unflatten",
    "unfold",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze",
    "view_as",
    "vsplit",
]

Layouts = tuple[Layout, ...]


def read_view(record, array, *args, **kwargs):
    """A view op applied to a plain array: the layout is taken as contiguous and read at once."""
    array = jnp.asarray(array)
    shape = array.shape
    got = record.fn(Layout.contiguous(shape), *args, **kwargs)
    if type(got) is Layout:
        return _read(array, got)
    return tuple(_read(array, one) for one in got)


def _read(array, layout: Layout):
    shape = array.shape
    steps = shapes.contiguous_strides(shape)
    recipe, starts = strided.plan(shape, steps, layout.shape, layout.strides, layout.offset)
    return recipe.read(array, starts)


registry.read_view = read_view


# ---------------------------------------------------------------- the same elements in another shape


@view(where="", grad_name="AliasBackward0")
def alias(input: Layout) -> Layout:
    """The tensor itself, as a new view."""
    return input


@view(name="view", where="Tensor")
def view_(input: Layout, size: VarInts) -> Layout:
    """The same elements in another shape, one of whose sizes may be -1 and is then worked out.

    An error when the strides cannot say it without a copy; `reshape` copies then.

    >>> jtorch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return input.view(size)


@view(name="_reshape_alias", where="", grad_name="ReshapeAliasBackward0")
def reshape_alias(input: Layout, size: VarInts) -> Layout:
    """`view` of a tensor that is not contiguous, as `reshape` calls it."""
    return input.view(size)


@view(name="_unsafe_view", where="", grad_name="UnsafeViewBackward0")
def unsafe_view(input: Layout, size: VarInts) -> Layout:
    """`view` of a tensor that nobody else refers to."""
    return input.view(size)


@composite(where="Tensor")
def view_as(input: Array, other: Array):
    """`input` in the shape of `other`."""
    return view_(input, tuple(other.shape))


@op(name="_packed", where="", out=False, grad_name="CloneBackward0")
def packed(input: Array) -> Array:
    """A copy with row-major strides."""
    return input


packed.vjp(input=lambda g: g)


@lru_cache(maxsize=1 << 14)
def _reshaped(shape, strides, target) -> tuple[tuple[int, ...], bool]:
    """(the target with its -1 filled in, whether a view can show it)."""
    target = shapes.infer_size(target, math.prod(shape))
    return target, view_strides(shape, strides, target) is not None


@composite
def reshape(input, shape: VarInts):
    """The same elements in another shape: a view where the strides allow it, a copy otherwise.

    >>> jtorch.arange(6).reshape(3, 2).T.reshape(-1)
    tensor([0, 2, 4, 1, 3, 5])
    """
    shape = tuple(shape)
    if not isinstance(input, registry.tensor_type):
        return jnp.reshape(input, shapes.infer_size(shape, input.size))
    target, viewable = _reshaped(tuple(input.shape), tuple(input.stride()), shape)
    if not viewable:
        return unsafe_view(packed(input), target)
    return view_(input, target) if input.is_contiguous() else reshape_alias(input, target)


@view(grad_name="ViewBackward0")
def unflatten(input: Layout, dim: int, sizes: tuple) -> Layout:
    """One dimension split into several, of which one may be -1."""
    dim = input.dim(dim)
    if isinstance(sizes, int):
        raise errors_arguments.no_tuple("unflatten", "sizes", 2, sizes)
    if not sizes:
        raise errors.unflatten_empty()
    if not input.shape:
        raise errors.unflatten_failed(str(errors.no_dimension(0, 0)))
    length = input.shape[dim]
    try:
        sizes = shapes.infer_size(sizes, length)
    except RuntimeError as error:
        if str(error) == str(errors.invalid_shape(sizes, length)):
            raise errors.unflatten_sizes(sizes, dim, length)
        raise errors.unflatten_failed(str(error))
    return input.view((*input.shape[:dim], *sizes, *input.shape[dim + 1 :]))


def _squeeze_name(spec, dim=None) -> str:
    return f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) else 2}"


@view(grad_name=_squeeze_name, spread=True)
def squeeze(input: Layout, dim: int | tuple | None = None) -> Layout:
    """Without its dimensions of size 1: all of them, or those of `dim` that have size 1."""
    return input.squeeze(None if dim is None else shapes.wrap_dims(dim, input.ndim))


@view
def unsqueeze(input: Layout, dim: int) -> Layout:
    """A dimension of size 1 put in at `dim`."""
    return input.unsqueeze(dim)


@view(where="Tensor")
def expand(input: Layout, size: VarInts, implicit: bool = False) -> Layout:
    """Dimensions of size 1 repeated without a copy; -1 keeps a size, and new dimensions come first."""
    return input.expand(size)


@expand.check
def _(input, size, implicit=False):
    if len(size) < input.ndim:
        raise errors_arguments.expand_rank(input.shape, size, input.dtype)


@composite(where="Tensor")
def expand_as(input: Array, other: Array):
    """`input` expanded to the shape of `other`."""
    return expand(input, tuple(other.shape))


# ---------------------------------------------------------------- the order of dimensions


def _swap(input: Layout, dim0: int, dim1: int) -> Layout:
    i, j = input.dim(dim0), input.dim(dim1)
    order = list(range(input.ndim))
    if order:
        order[i], order[j] = j, i
    return input.permute(order)


@view(aliases=("swapdims",))
def transpose(input: Layout, dim0: int, dim1: int) -> Layout:
    """Two dimensions swapped. The result shares storage with `input`."""
    return _swap(input, dim0, dim1)


@view(grad_name="TransposeBackward0")
def swapaxes(input: Layout, axis0: int, axis1: int) -> Layout:
    """Two dimensions swapped: numpy's name for `transpose`."""
    return _swap(input, axis0, axis1)


@view
def t(input: Layout) -> Layout:
    """The transpose of a matrix; a vector or a scalar stays as it is."""
    if input.ndim > 2:
        raise errors.t_rank(input.ndim)
    return input.permute(range(input.ndim)[::-1])


@view
def permute(input: Layout, dims: VarInts) -> Layout:
    """The dimensions in the order given.

    >>> jtorch.zeros(2, 3, 5).permute(2, 0, 1).shape
    torch.Size([5, 2, 3])
    """
    if len(dims) != input.ndim:
        raise errors.permute_length(input.ndim, len(dims))
    order = [input.dim(d) for d in dims]
    if len(set(order)) != len(order):
        raise errors.permute_repeated()
    return input.permute(order)


@view(aliases=("moveaxis",), grad_name="PermuteBackward0")
def movedim(input: Layout, source: int | tuple, destination: int | tuple) -> Layout:
    """The dimensions of `source` moved to the places `destination`; the rest keeps its order."""
    if isinstance(source, int) != isinstance(destination, int):
        raise errors.combination("movedim", (source, destination), "two ints, or two tuples of ints")
    source, destination = ((d,) if isinstance(d, int) else tuple(d) for d in (source, destination))
    if len(source) != len(destination):
        raise errors.movedim_count(source, destination)
    moved, places = ([input.dim(d) for d in dims] for dims in (source, destination))
    for name, given, dims in (("source", source, moved), ("destination", destination, places)):
        if len(set(dims)) != len(dims):
            raise errors.movedim_repeated(name, given)
    rest = iter(d for d in range(input.ndim) if d not in moved)
    came = dict(zip(places, moved))
    return input.permute([came[d] if d in came else next(rest) for d in range(input.ndim)])


# ---------------------------------------------------------------- a part of the elements


@view
def select(input: Layout, dim: int, index: int) -> Layout:
    """The slice at `index` of a dimension, which disappears."""
    return input.select(dim, index)


@view(where="")
def slice(input: Layout, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Layout:
    """The elements from `start` up to `end` of a dimension, bounds clamped as Python's are."""
    return input.slice(dim, start, end, step)


@view(name="_narrow", where="", grad_name="SliceBackward0")
def narrow_by_int(input: Layout, dim: int, start: int, length: int) -> Layout:
    """`narrow` with a number to start from."""
    if not input.shape:
        raise errors.narrow_scalar()
    if length < 0:
        raise errors.narrow_length()
    dim = input.dim(dim)
    size = input.shape[dim]
    if not -size <= start <= size:
        raise errors.narrow_start(start, size)
    if start < 0:
        start += size
    if start + length > size:
        raise errors.narrow_range(start, length, size)
    return input.slice(dim, start, start + length)


@composite
def narrow(input: Array, dim: int, start, length: int):
    """`length` elements of a dimension from `start` on, a number or a tensor of one integer."""
    if isinstance(start, registry.tensor_type):
        if start.ndim or start.dtype.category != INT:
            raise errors.narrow_tensor()
        start = int(start)
    return narrow_by_int(input, operator.index(dim), operator.index(start), operator.index(length))


@view
def diagonal(input: Layout, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Layout:
    """The diagonal of two dimensions, as the last dimension; `offset` above 0 lies above the main one."""
    return input.diagonal(offset, dim1, dim2)


@view(where="Tensor")
def unfold(input: Layout, dimension: int, size: int, step: int) -> Layout:
    """Windows of `size` elements every `step` along a dimension, as a new last dimension; they may overlap.

    >>> jtorch.arange(5).unfold(0, 3, 1)
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    return input.unfold(dimension, size, step)


@view
def as_strided(input: Layout, size: tuple, stride: tuple, storage_offset: int | None = None) -> Layout:
    """Any sizes and strides over the storage of `input`, at an offset from the start of the storage."""
    return input.as_strided(size, stride, storage_offset)


# ---------------------------------------------------------------- several parts


def _parts(input: Layout, sizes, dim: int) -> Layouts:
    """Consecutive parts of a dimension (wrapped)."""
    stride, at, out = input.strides[dim], 0, []
    for n in sizes:
        out.append(input.replace(dim, (n,), (stride,), at * stride))
        at += n
    return tuple(out)


def _split_equal(input: Layout, size: int, dim: int) -> Layouts:
    if not input.shape:
        raise errors.split_scalar("split")
    if size < 0:
        raise errors.split_negative(size)
    dim = input.dim(dim)
    length = input.shape[dim]
    if size == 0:
        if length:
            raise errors.split_zero(length)
        return _parts(input, (0,), dim)
    count = builtins.max(-(-length // size), 1)
    return _parts(input, [size] * (count - 1) + [length - size * (count - 1)], dim)


def _split_sizes(input: Layout, sizes, dim: int) -> Layouts:
    if not input.shape:
        raise errors.split_scalar("split")
    dim = input.dim(dim)
    if builtins.any(n < 0 for n in sizes):
        raise errors.split_sizes_negative(sizes)
    length = input.shape[dim]
    if builtins.sum(sizes) != length:
        raise errors.split_sizes_sum(sizes, length, dim)
    return _parts(input, sizes, dim)


def _split_any(input: Layout, size, dim: int) -> Layouts:
    if isinstance(size, tuple | list):
        return _split_sizes(input, size, dim)
    if not isinstance(size, int):
        raise errors.split_type(size)
    return _split_equal(input, size, dim)


def _split_name(spec, size, dim=0) -> str:
    return "SplitBackward0" if isinstance(size, int) else "SplitWithSizesBackward0"


@view(where="torch", grad_name=_split_name)
def split(input: Layout, split_size_or_sections: int | tuple, dim: int = 0) -> Layouts:
    """Consecutive parts of a dimension: of one size, the last perhaps shorter, or of the sizes listed."""
    return _split_any(input, split_size_or_sections, dim)


# torch names the argument of the method otherwise than that of the function
@view(name="_split", where="Tensor.split", grad_name=_split_name)
def split_method(input: Layout, split_size: int | tuple, dim: int = 0) -> Layouts:
    """Consecutive parts of a dimension: of one size, the last perhaps shorter, or of the sizes listed."""
    return _split_any(input, split_size, dim)


@view
def split_with_sizes(input: Layout, split_sizes: tuple, dim: int = 0) -> Layouts:
    """Consecutive parts of a dimension, of the sizes listed."""
    return _split_sizes(input, split_sizes, dim)


@view
def unsafe_split(input: Layout, split_size: int, dim: int = 0) -> Layouts:
    """`split` into parts that may be written in place, as long as nobody uses the whole any more."""
    return _split_equal(input, split_size, dim)


@view
def unsafe_split_with_sizes(input: Layout, split_sizes: tuple, dim: int = 0) -> Layouts:
    """`split_with_sizes` into parts that may be written in place, if nobody uses the whole any more."""
    return _split_sizes(input, split_sizes, dim)


def _chunks(input: Layout, chunks: int, dim: int) -> Layouts:
    if not input.shape:
        raise errors.split_scalar("chunk")
    if chunks <= 0:
        raise errors.chunk_count(chunks)
    length = input.shape[input.dim(dim)]
    if length == 0:
        return _split_sizes(input, (0,) * chunks, dim)
    return _split_equal(input, -(-length // chunks), dim)


def _chunk_name(spec, chunks, dim=0) -> str:
    return "SplitBackward0" if spec.shape[dim] else "SplitWithSizesBackward0"


@view(grad_name=_chunk_name)
def chunk(input: Layout, chunks: int, dim: int = 0) -> Layouts:
    """At most `chunks` consecutive parts of a dimension, equal but for the last."""
    return _chunks(input, chunks, dim)


@view(grad_name="UnsafeSplitBackward0")
def unsafe_chunk(input: Layout, chunks: int, dim: int = 0) -> Layouts:
    """`chunk` into parts that may be written in place, as long as nobody uses the whole any more."""
    return _chunks(input, chunks, dim)


@view
def unbind(input: Layout, dim: int = 0) -> Layouts:
    """The slices of a dimension, which disappears."""
    if not input.shape:
        input.dim(dim)
        raise errors.no_dimension(0, 0)
    dim = input.dim(dim)
    return tuple(input.select(dim, i) for i in range(input.shape[dim]))


def _cuts(cuts):
    """A number of parts, or a tuple of places to cut at, from whichever argument was given."""
    given = [c for c in cuts if c is not None]
    if len(given) != 1:
        raise errors.cuts_missing()
    cuts = given[0]
    if isinstance(cuts, registry.tensor_type):
        if cuts.dtype.name != "int64":
            raise errors.cuts_dtype(cuts.dtype)
        if len(cuts.shape) > 1:
            raise errors_arguments.cuts_rank(len(cuts.shape))
        cuts = cuts.tolist()
    return tuple(map(operator.index, cuts)) if isinstance(cuts, tuple | list) else operator.index(cuts)


@composite
def tensor_split(
    input: Array,
    indices_or_sections=None,
    dim: int = 0,
    *,
    sections=None,
    indices=None,
    tensor_indices_or_sections=None,
):
    """Parts of a dimension: so many, as equal as can be, or cut before each of the indices."""
    if not input.shape:
        raise errors.tensor_split_scalar(0)
    cuts = _cuts((indices_or_sections, sections, indices, tensor_indices_or_sections))
    dim = shapes.wrap_dim(dim, len(input.shape))
    if isinstance(cuts, int):
        if cuts <= 0:
            raise errors.sections(cuts)
        each, more = divmod(input.shape[dim], cuts)
        cuts = tuple(i * each + builtins.min(i, more) for i in range(1, cuts))
    return tuple(slice(input, dim, a, b) for a, b in zip((0, *cuts), (*cuts, None)))


def _directed(name: str, input, cuts, least: int, dim: int):
    ndim = len(input.shape)
    if ndim < least:
        raise errors.directed_split_rank(name, least, ndim)
    cuts = [int(c) if isinstance(c, numbers.Integral) else c for c in cuts]  # numpy's ints too
    for given in cuts:
        if not (given is None or isinstance(given, int | tuple | list | registry.tensor_type)):
            raise errors.combination(
                name, (input, given), "(Tensor input, int sections) or (Tensor input, tuple of ints indices)"
            )
    cuts = _cuts(cuts)
    length = input.shape[dim]
    if isinstance(cuts, int) and (cuts == 0 or length % cuts):
        raise errors.directed_split_size(name, dim, length, cuts)
    return tensor_split(input, cuts, dim)


@composite
def hsplit(input: Array, indices_or_sections=None, *, sections=None, indices=None):
    """Equal parts of the second dimension (of a vector: the first), or cut before each of the indices."""
    cuts = (indices_or_sections, sections, indices)
    return _directed("hsplit", input, cuts, 1, 0 if len(input.shape) == 1 else 1)


@composite
def vsplit(input: Array, indices_or_sections=None, *, sections=None, indices=None):
    """Equal parts of the first dimension, or cut before each of the indices."""
    return _directed("vsplit", input, (indices_or_sections, sections, indices), 2, 0)


@composite
def dsplit(input: Array, indices_or_sections=None, *, sections=None, indices=None):
    """Equal parts of the third dimension, or cut before each of the indices."""
    return _directed("dsplit", input, (indices_or_sections, sections, indices), 3, 2)
