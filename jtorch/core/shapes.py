"""Shapes and strides as plain integers: broadcasting, -1, dims and the strides of results. Knows no array."""

from collections.abc import Sequence
from math import prod

from .. import errors

__all__ = [
    "broadcast",
    "channels_last_strides",
    "contiguous_strides",
    "elementwise_strides",
    "empty_like_strides",
    "infer_size",
    "is_channels_last",
    "is_contiguous",
    "is_dense",
    "reduced_shape",
    "wrap_dim",
    "wrap_dims",
]

Ints = tuple[int, ...]


def wrap_dim(dim: int, ndim: int) -> int:
    """The dimension that `dim` names, counted from the front; a scalar counts as one dimension."""
    bound = ndim or 1
    if not -bound <= dim < bound:
        raise errors.dim_range(dim, ndim)
    return dim + bound if dim < 0 else dim


def wrap_dims(dims: Sequence[int] | int | None, ndim: int) -> Ints:
    """`wrap_dim` of each, in the order given; None means all; a dimension named twice is an error."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        return (wrap_dim(dims, ndim),)
    out = []
    for dim in dims:
        dim = wrap_dim(dim, ndim)
        if dim in out:
            raise errors.repeated_dim(dim)
        out.append(dim)
    return tuple(out)


def reduced_shape(shape: Ints, dims: Ints, keepdim: bool) -> Ints:
    """The shape left after reducing `dims` (already wrapped)."""
    if keepdim:
        return tuple(1 if d in dims else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in dims)


def broadcast(*shapes: Ints) -> Ints:
    """The common shape of all `shapes`, compared two at a time from the left."""
    if not shapes:
        return ()
    out = shapes[0]
    for shape in shapes[1:]:
        if shape != out:
            out = _broadcast_two(out, shape)
    return tuple(out)


def _broadcast_two(a: Ints, b: Ints) -> Ints:
    ndim = max(len(a), len(b))
    a = (1,) * (ndim - len(a)) + tuple(a)
    b = (1,) * (ndim - len(b)) + tuple(b)
    for dim in range(ndim - 1, -1, -1):
        if a[dim] != b[dim] and a[dim] != 1 and b[dim] != 1:
            raise errors.broadcast(a[dim], b[dim], dim)
    return tuple(n if m == 1 else m for m, n in zip(a, b))


def infer_size(shape: Sequence[int], numel: int) -> Ints:
    """`shape` with its -1, if any, replaced so that it holds `numel` elements."""
    known, hole = 1, None
    for dim, n in enumerate(shape):
        if n == -1:
            if hole is not None:
                raise errors.two_inferred()
            hole = dim
        elif n < 0:
            raise errors.negative_size(n, dim, shape)
        else:
            known *= n
    if hole is None:
        if known != numel:
            raise errors.invalid_shape(shape, numel)
        return tuple(shape)
    if known == 0 and numel == 0:
        raise errors.ambiguous_shape(shape)
    if known == 0 or numel % known:
        raise errors.invalid_shape(shape, numel)
    return (*shape[:hole], numel // known, *shape[hole + 1 :])


def contiguous_strides(shape: Ints) -> Ints:
    """Row-major strides; an empty dimension counts as one element."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        if n > 1:
            step *= n
    return tuple(out[::-1])


def channels_last_strides(shape: Ints) -> Ints:
    """Strides that keep dimension 1 innermost, for 4 or 5 dimensions (2 or 3 of space)."""
    if len(shape) not in (4, 5):
        raise errors.channels_last_rank(len(shape))
    # dimension 1 first, then the space dimensions from the last; sizes multiply in as they are, zeros too
    return _dense_strides(shape, (1, *range(len(shape) - 1, 1, -1), 0))


def _dense_strides(shape: Ints, order: Sequence[int]) -> Ints:
    """Strides of a block whose dimensions lie in memory in `order`, the innermost first."""
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def is_contiguous(shape: Ints, strides: Ints) -> bool:
    """Whether the strides are row-major, dimensions of size 1 aside."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n != 1:
            if s != step:
                return not prod(shape)
            step *= n
    return True


def is_channels_last(shape: Ints, strides: Ints) -> bool:
    """Whether dimension 1 is innermost and the rest follows in order (4 or 5 dimensions)."""
    if len(shape) not in (4, 5):
        return False
    step = 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        n = shape[dim]
        if n != 1:
            if strides[dim] != step:
                return False
            step *= n
    return True


def is_dense(shape: Ints, strides: Ints) -> bool:
    """Whether the elements fill one block of memory, each once, in whatever order of dimensions."""
    step = 1
    for s, n in sorted((s, n) for s, n in zip(strides, shape) if n != 1):
        if s != step:
            return not prod(shape)
        step *= n
    return True


def empty_like_strides(shape: Ints, strides: Ints) -> Ints:
    """Strides of a new tensor that keeps the format of one with these: dense as they are, else packed."""
    if is_dense(shape, strides):
        return tuple(strides)
    order = _memory_order(shape, [strides])
    out, step = [0] * len(shape), 1
    for dim in order:
        out[dim] = step
        step *= max(shape[dim], 1)
    return tuple(out)


def stride_order(shape: Ints, strides: Ints) -> tuple[Ints, bool]:
    """The dimensions from the outermost in, as these strides order them; and whether they leave two of them undecided."""
    if strides == contiguous_strides(shape):
        order = range(len(shape))
    else:
        order = reversed(_memory_order(shape, [strides]))
    dims = range(len(shape))
    return tuple(order), any(not _compare(shape, [strides], a, b) for a in dims for b in dims[:a])


def elementwise_strides(shape: Ints, operands: Sequence[tuple[Ints, Ints]]) -> Ints:
    """Strides of the fresh result of an elementwise op over operands given as (shape, strides).

    The result keeps the order in memory of the operands' dimensions. The first operand that tells two
    dimensions apart decides; broadcast dimensions say nothing, and what nobody decides is row-major.
    """
    if all(s == shape for s, _ in operands):
        if all(is_contiguous(shape, st) for _, st in operands):
            return contiguous_strides(shape)
        if len(shape) == 4 and all(is_channels_last(shape, st) for _, st in operands):
            return channels_last_strides(shape)
        first = operands[0][1]
        if is_dense(shape, first) and all(st == first for _, st in operands):
            return tuple(first)
    ndim = len(shape)
    if ndim < 2:
        return contiguous_strides(shape)
    spread = []
    for own, strides in operands:
        lead = ndim - len(own)
        row = [0 if n == 1 and shape[lead + d] != 1 else s for d, (n, s) in enumerate(zip(own, strides))]
        if any(row):
            spread.append([0] * lead + row)
    order = _memory_order(shape, spread)
    if order == list(range(ndim - 1, -1, -1)):
        return contiguous_strides(shape)
    return _dense_strides(shape, order)


def _memory_order(shape: Ints, rows: Sequence[Sequence[int]]) -> list[int]:
    """The dimensions from the innermost out, as the rows of strides order them.

    An insertion sort from row-major: "undecided" is not an equivalence, so the outcome depends on the order
    of comparing, and a library sort would give another.
    """
    order = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            verdict = _compare(shape, rows, order[j], order[at])
            if verdict > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif verdict < 0:
                break
    return order


def _compare(shape, rows, a: int, b: int) -> int:
    """Below 0: `a` lies inside `b`; above: outside it; 0: undecided."""
    for strides in rows:
        x, y = strides[a], strides[b]
        if x and y:
            if x != y:
                return x - y
            if shape[a] > shape[b]:
                return 1
    return 0
