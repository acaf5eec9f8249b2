"""Operators that change shapes, pick elements, put tensors together, and make new ones."""

import numpy as np

from ...core import dtype as dtypes
from ..builder import Value
from ..errors import option
from .pointwise import number, together
from .record import op

_END = 2**63 - 1


def _given(sizes):
    """Sizes given one by one, or as one list."""
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else list(sizes)


@op("view", "reshape")
def reshape(g, input, *shape, size=None):
    sizes = _given(shape) if size is None else list(size)
    if sizes and isinstance(sizes[0], dtypes.dtype):
        raise option("view", "with a dtype: it has no bits of other types")
    return g.reshape(input, sizes)


@op("view_as", "reshape_as")
def view_as(g, input, other):
    return g("Reshape", input, g.sizes(other), shape=other.shape)


@op("flatten", "ravel")
def flatten(g, input, start_dim=0, end_dim=-1):
    if not input.ndim:
        return g.reshape(input, [1], (1,))
    start, end = start_dim % input.ndim, end_dim % input.ndim
    if (start, end) == (1, input.ndim - 1):
        return g("Flatten", input, axis=1, shape=g.shape)
    middle = [-1] if end > start else [0]
    if 0 in input.shape:
        return g.reshape(input, list(g.shape))
    after = [g.size(input, d) for d in range(end + 1, input.ndim)]  # 0 stands for the size at the same place
    return g("Reshape", input, g.ints([*[0] * start, *middle, *after]), shape=g.shape)


@op("unflatten")
def unflatten(g, input, dim, sizes):
    dim %= input.ndim
    before, after = ([g.size(input, d) for d in ds] for ds in (range(dim), range(dim + 1, input.ndim)))
    return g.reshape(input, [*before, *sizes, *after])


@op("squeeze")
def squeeze(g, input, dim=None):
    dims = range(input.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]
    dims = [d for d in dims if input.ndim and input.shape[d] == 1]
    return g.squeeze(input, *dims) if dims else input


@op("unsqueeze")
def unsqueeze(g, input, dim):
    return g.unsqueeze(input, dim % (input.ndim + 1))


def _swapped(g, x, a, b):
    order = list(range(x.ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return g.transpose(x, *order)


@op("transpose", "swapaxes", "swapdims")
def transpose(g, input, dim0, dim1):
    return _swapped(g, input, dim0, dim1)


@op("t", "T", "mT")
def t(g, input):
    return _swapped(g, input, -2, -1) if input.ndim > 1 else input


@op("permute")
def permute(g, input, *dims):
    return g.transpose(input, *(d % input.ndim for d in _given(dims)))


@op("movedim", "moveaxis")
def movedim(g, input, source, destination):
    pairs = [[d % input.ndim for d in ([x] if isinstance(x, int) else x)] for x in (source, destination)]
    rest = iter(d for d in range(input.ndim) if d not in pairs[0])
    at = dict(zip(pairs[1], pairs[0]))
    return g.transpose(input, *(at[d] if d in at else next(rest) for d in range(input.ndim)))


@op("expand", "broadcast_to")
def expand(g, input, *sizes, size=None, implicit=False):
    sizes = _given(sizes) if size is None else list(size)
    sizes = [1 if isinstance(n, int) and n == -1 else n for n in sizes]  # Expand takes the larger of both
    return g("Expand", input, g.ints(sizes), shape=g.shape)


@op("expand_as")
def expand_as(g, input, other):
    return g("Expand", input, g.sizes(other), shape=other.shape)


@op("repeat", "tile")
def repeat(g, input, *repeats, dims=None):
    repeats = _given(repeats) if dims is None else list(dims)
    repeats = [1] * (input.ndim - len(repeats)) + repeats
    if len(repeats) > input.ndim:
        input = g.unsqueeze(input, *range(len(repeats) - input.ndim))
    return g("Tile", input, g.ints(repeats), shape=g.shape)


@op("repeat_interleave")
def repeat_interleave(g, input, repeats, dim=None, output_size=None):
    if not isinstance(repeats, int):
        raise option("repeat_interleave", "with a tensor of counts")
    if dim is None:
        input, dim = g.reshape(input, [-1], (int(np.prod(input.shape)),)), 0
    dim %= input.ndim
    apart = g.unsqueeze(input, dim + 1)
    apart = g("Tile", apart, g.ints([repeats if d == dim + 1 else 1 for d in range(apart.ndim)]))
    sizes = [g.size(input, d) for d in range(input.ndim)]
    sizes[dim] = -1
    return g.reshape(apart, sizes)


@op("cat", "concat", "concatenate")
def cat(g, tensors, dim=0):
    tensors = [x for x in together(g, *tensors) if x.shape != (0,)]
    return g("Concat", *tensors, axis=dim, dtype=g.dtype, shape=g.shape)


@op("stack")
def stack(g, tensors, dim=0):
    dim %= len(g.shape)
    return g("Concat", *(g.unsqueeze(x, dim) for x in together(g, *tensors)), axis=dim, shape=g.shape)


@op("hstack")
def hstack(g, tensors):
    return cat(g, tensors, 1 if tensors[0].ndim > 1 else 0)


@op("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_chunk", "unsafe_split")
def split(g, input, split_size_or_sections, dim=0):
    # What the pieces are is known from the example: only their number would change with sizes that change.
    sizes, at, found = [part.shape[dim] for part in g.example], 0, []
    for k, n in enumerate(sizes):
        found.append(g.slice(input, dim, at, at + n if k < len(sizes) - 1 else _END))
        at += n
    return found


@op("unbind")
def unbind(g, input, dim=0):
    return [select(g, input, dim, k) for k in range(input.shape[dim])]


@op("select")
def select(g, input, dim, index):
    dim %= input.ndim
    at = index if isinstance(index, Value) else np.array(index, np.int64)
    return g("Gather", input, at, axis=dim, shape=[*input.shape[:dim], *input.shape[dim + 1 :]])


@op("narrow")
def narrow(g, input, dim, start, length):
    end = start + length if isinstance(start, int) and isinstance(length, int) else None
    if end is None:
        parts = [x if isinstance(x, Value) else g.value(np.array(x, np.int64)) for x in (start, length)]
        end = g("Add", *parts, dtype=dtypes.int64, shape=())
    return g.slice(input, dim, start, end)


@op("index_select")
def index_select(g, input, dim, index):
    return g("Gather", input, index, axis=dim % input.ndim, shape=g.shape)


@op("gather")
def gather(g, input, dim, index, sparse_grad=False):
    return g("GatherElements", input, index, axis=dim % input.ndim, shape=index.shape)


@op("take_along_dim")
def take_along_dim(g, input, indices, dim):
    return gather(g, input, dim, indices)


@op("scatter")
def scatter(g, input, dim, index, src=None, value=None, reduce=None):
    src = value if src is None else src
    if not isinstance(src, Value):
        src = g("Expand", g.value(src, input.dtype), g.sizes(index), shape=index.shape)
    kind = {None: None, "add": "add", "multiply": "mul"}[reduce]
    return g("ScatterElements", input, index, src, axis=dim % input.ndim, reduction=kind)


@op("scatter_add")
def scatter_add(g, input, dim, index, src):
    return g("ScatterElements", input, index, src, axis=dim % input.ndim, reduction="add")


@op("index_add")
def index_add(g, input, dim, index, source, alpha=1):
    if dim % input.ndim:
        raise option("index_add", "along another dimension than the first")
    source = source if alpha == 1 else g("Mul", source, number(g, alpha))
    return g("ScatterND", input, g.unsqueeze(index, 1), source, reduction="add")


def _plain_index(g, x, index):
    """Numbers, slices, None and one array, dimension by dimension from the left."""
    dim = 0
    for k, at in enumerate(index):
        if at is None:
            x = g.unsqueeze(x, dim)
            dim += 1
        elif at is Ellipsis:
            dim = x.ndim - sum(i is not None for i in index[k + 1 :])
        elif isinstance(at, slice):
            start, end, step = at.start, at.stop, 1 if at.step is None else at.step
            if (start, end, step) not in ((None, None, 1), (0, None, 1)):
                x = g.slice(x, dim, 0 if start is None else start, _END if end is None else end, step)
            dim += 1
        elif isinstance(at, Value) and at.dtype is dtypes.bool_:
            raise option("indexing", "with a mask: the result's size depends on it; torch.where keeps it")
        elif isinstance(at, Value):
            x = g("Gather", x, at, axis=dim, shape=[*x.shape[:dim], *at.shape, *x.shape[dim + 1 :]])
            dim += at.ndim
        else:
            x = select(g, x, dim, at)
    return x


def _joint_index(g, x, index):
    """Several arrays that come first, and are read together."""
    count = sum(isinstance(at, (Value, int)) for at in index)
    tail = index[count:]
    if not all(isinstance(at, (Value, int)) for at in index[:count]) or any(at != slice(None) for at in tail):
        raise option("indexing", "with arrays between which, or before which, there are slices")
    arrays = [g.value(at if isinstance(at, Value) else np.array(at, np.int64), dtypes.int64) for at in index[:count]]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    zero = np.array(0, np.int64)
    nothing = g("Mul", arrays[0], zero)
    for a in arrays[1:]:
        nothing = g("Add", nothing, g("Mul", a, zero), shape=np.broadcast_shapes(nothing.shape, a.shape))
    spread = [g("Add", nothing, a, shape=shape) for a in arrays]
    joined = g("Concat", *(g.unsqueeze(a, len(shape)) for a in spread), axis=len(shape))
    return g("GatherND", x, Value(joined.name, dtypes.int64, (*shape, count)), dtype=x.dtype, shape=g.shape)


@op("getitem")
def getitem(g, input, index):
    if isinstance(input, (list, tuple)):
        return input[index]
    index = list(index) if isinstance(index, (list, tuple)) else [index]
    arrays = [k for k, at in enumerate(index) if isinstance(at, Value) and (at.ndim or at.dtype is dtypes.bool_)]
    if len(arrays) > 1:
        return _joint_index(g, input, index)
    if arrays and any(isinstance(at, int) for at in index[: arrays[0]]):
        return _joint_index(g, input, index)
    return _plain_index(g, input, index)


@op("diagonal")
def diagonal(g, input, offset=0, dim1=0, dim2=1):
    if offset or g.dynamic:
        raise option("diagonal", "with an offset, or sizes that change")
    dim1, dim2 = dim1 % input.ndim, dim2 % input.ndim
    rest = [d for d in range(input.ndim) if d not in (dim1, dim2)]
    n = min(input.shape[dim1], input.shape[dim2])
    moved = g.transpose(input, dim1, dim2, *rest)
    at = np.stack([np.arange(n)] * 2, 1)
    found = g("GatherND", moved, at, shape=[n, *(input.shape[d] for d in rest)])
    return g.transpose(found, *range(1, found.ndim), 0)


@op("flip")
def flip(g, input, *dims):
    for d in _given(dims):
        input = g("Slice", input, *(np.array([n], np.int64) for n in (-1, -_END, d % input.ndim, -1)))
    return input


@op("roll")
def roll(g, input, shifts, dims=None):
    if dims is None:
        flat = g.reshape(input, [-1], (int(np.prod(input.shape)),))
        return g("Reshape", roll(g, flat, shifts, 0), g.sizes(input), shape=input.shape)
    pairs = [(shifts, dims)] if isinstance(dims, int) else zip(shifts, dims)
    for n, d in pairs:
        parts = [g.slice(input, d, -n, _END), g.slice(input, d, 0, -n)]
        input = g("Concat", *parts, axis=d % input.ndim, shape=input.shape) if n else input
    return input


_PADS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@op("pad")
def pad(g, input, pad, mode="constant", value=None):
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)]
    pairs = [(0, 0)] * (input.ndim - len(pairs)) + pairs[::-1]
    amounts = g.ints([*(a for a, _ in pairs), *(b for _, b in pairs)])
    filler = g.value(0 if value is None else value, input.dtype) if mode == "constant" else None
    return g("Pad", input, amounts, filler, mode=_PADS[mode], shape=g.shape)


@op("constant_pad_nd")
def constant_pad_nd(g, input, pad_, value=0):
    return pad(g, input, pad_, "constant", value)


@op("tril")
def tril(g, input, diagonal=0):
    return g("Trilu", input, np.array(diagonal, np.int64), upper=0)


@op("triu")
def triu(g, input, diagonal=0):
    return g("Trilu", input, np.array(diagonal, np.int64), upper=1)


@op("size", "shape")
def size(g, input, dim=None):
    if dim is None:
        return [g.size(input, d) for d in range(input.ndim)]
    return g.size(input, dim)


@op("numel")
def numel(g, input):
    return g("Size", input, dtype=dtypes.int64, shape=()) if g.dynamic else int(np.prod(input.shape))


@op("dim", "ndimension")
def dim(g, input):
    return input.ndim


def _filled(g, sizes, value):
    """A tensor of one number; `sizes` is a list of sizes, or a tensor of them."""
    sizes = sizes if isinstance(sizes, Value) else g.ints(sizes)
    return g("Expand", number(g, value), sizes, dtype=g.dtype, shape=g.shape)


@op("zeros", "new_zeros")
def zeros(g, *args, size=None, **options):
    return _filled(g, _sizes(args, size), 0)


@op("ones", "new_ones")
def ones(g, *args, size=None, **options):
    return _filled(g, _sizes(args, size), 1)


@op("empty", "new_empty")
def empty(g, *args, size=None, **options):
    return zeros(g, *args, size=size)


def _sizes(args, size):
    args = args[1:] if args and isinstance(args[0], Value) and args[0].ndim else args
    return _given(args) if size is None else list(size)


@op("full")
def full(g, size, fill_value, **options):
    return _filled(g, list(size), fill_value)


@op("new_full")
def new_full(g, input, size, fill_value, **options):
    return _filled(g, list(size), fill_value)


@op("zeros_like", "empty_like")
def zeros_like(g, input, **options):
    return _filled(g, g.sizes(input), 0)


@op("ones_like")
def ones_like(g, input, **options):
    return _filled(g, g.sizes(input), 1)


@op("full_like")
def full_like(g, input, fill_value, **options):
    return _filled(g, g.sizes(input), fill_value)


@op("arange")
def arange(g, *bounds, start=0, end=None, step=1, **options):
    bounds = list(bounds)
    if end is not None:
        bounds.append(end)
    first, last, by = ([start, *bounds] if len(bounds) == 1 else bounds) + ([step] if len(bounds) < 3 else [])
    found = g("Range", *(g.value(n, dtypes.int64) for n in (first, last, by)), dtype=dtypes.int64, shape=g.shape)
    return g.cast(found, g.dtype)


@op("one_hot")
def one_hot(g, input, num_classes=-1):
    if num_classes < 0:
        raise option("one_hot", "without num_classes")
    return g(
        "OneHot", input, np.array(num_classes, np.int64), np.array([0, 1], np.int64), dtype=dtypes.int64, shape=g.shape
    )


@op("nonzero")
def nonzero(g, input, as_tuple=False):
    found = g("NonZero", input, dtype=dtypes.int64, shape=g.shape[::-1])
    if as_tuple:
        return [select(g, found, 0, k) for k in range(input.ndim)]
    return g.transpose(found, 1, 0)


@op("pixel_shuffle")
def pixel_shuffle(g, input, upscale_factor):
    return g("DepthToSpace", input, blocksize=upscale_factor, mode="CRD", shape=g.shape)


@op("pixel_unshuffle")
def pixel_unshuffle(g, input, downscale_factor):
    r = downscale_factor
    n, c, h, w = input.shape
    apart = g("Reshape", input, g.ints([0, c, h // r, r, w // r, r]), shape=(n, c, h // r, r, w // r, r))
    return g("Reshape", g.transpose(apart, 0, 1, 3, 5, 2, 4), g.ints([0, c * r * r, h // r, w // r]), shape=g.shape)


@op("channel_shuffle")
def channel_shuffle(g, input, groups):
    n, c = input.shape[:2]
    tail = list(input.shape[2:])
    apart = g("Reshape", input, g.ints([0, groups, c // groups, *[g.size(input, d) for d in range(2, input.ndim)]]),
              shape=(n, groups, c // groups, *tail))  # fmt: skip
    turned = g.transpose(apart, 0, 2, 1, *range(3, apart.ndim))
    return g("Reshape", turned, g.sizes(input), shape=g.shape)


# written in place


@op("fill")
def fill(g, input, value):
    return g("Expand", g.value(value, input.dtype), g.sizes(input), dtype=input.dtype, shape=input.shape)


@op("zero")
def zero(g, input):
    return fill(g, input, 0)


@op("copy")
def copy(g, input, src, non_blocking=False):
    return fill(g, input, src)


@op("setitem")
def setitem(g, input, index, value):
    if isinstance(index, Value) and index.dtype is dtypes.bool_ and not (isinstance(value, Value) and value.ndim):
        index = g.unsqueeze(index, *range(index.ndim, input.ndim)) if index.ndim < input.ndim else index
        return g("Where", index, g.value(value, input.dtype), input, dtype=input.dtype, shape=input.shape)
    parts = index if isinstance(index, (list, tuple)) else [index]
    if g.dynamic or any(isinstance(at, Value) and at.name not in g.arrays for at in parts):
        raise option(
            "setitem", "at places that depend on inputs, or where sizes may change; torch.where writes anywhere"
        )
    places = np.arange(int(np.prod(input.shape)), dtype=np.int64).reshape(input.shape)
    places = places[tuple(g.arrays[at.name] if isinstance(at, Value) else at for at in parts)]
    values = g("Expand", g.value(value, input.dtype), g.ints(list(places.shape)), dtype=input.dtype, shape=places.shape)
    flat = g.reshape(input, [-1], (int(np.prod(input.shape)),))
    written = g("ScatterElements", flat, places.reshape(-1), g.reshape(values, [-1], (places.size,)), axis=0)
    return g.reshape(written, list(input.shape), input.shape)
