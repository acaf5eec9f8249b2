"""Layout(shape, strides, offset): where the elements of a tensor lie in its storage. Integers only."""

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from .. import errors, errors_arguments, errors_storage
from . import shapes

__all__ = ["Layout", "has_overlap", "view_strides"]

Ints = tuple[int, ...]


class Layout:
    """Sizes, strides and the offset of the first element, all counted in elements. Immutable.

    The methods that derive a layout are the algebra that view ops are written in: they raise PyTorch's
    errors where an argument can be wrong in itself, and copy nothing.
    """

    __slots__ = ("shape", "strides", "offset")

    shape: Ints
    strides: Ints
    offset: int

    def __init__(self, shape: Ints, strides: Ints, offset: int = 0):
        put = object.__setattr__
        put(self, "shape", tuple(shape))
        put(self, "strides", tuple(strides))
        put(self, "offset", offset)

    def __setattr__(self, name, value):
        raise AttributeError("a Layout is immutable")

    __delattr__ = None

    def __eq__(self, other):
        if type(other) is not Layout:
            return NotImplemented
        return self.shape == other.shape and self.strides == other.strides and self.offset == other.offset

    def __hash__(self):
        return hash((self.shape, self.strides, self.offset))

    def __repr__(self):
        return f"Layout({self.shape}, {self.strides}, {self.offset})"

    def __reduce__(self):
        return (Layout, (self.shape, self.strides, self.offset))

    @classmethod
    def contiguous(cls, shape: Ints) -> "Layout":
        return cls(shape, shapes.contiguous_strides(shape), 0)

    # what it is

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return prod(self.shape)

    def dim(self, dim: int) -> int:
        """`dim` counted from the front; an error when there is no such dimension."""
        return shapes.wrap_dim(dim, len(self.shape))

    def is_contiguous(self) -> bool:
        return shapes.is_contiguous(self.shape, self.strides)

    def is_channels_last(self) -> bool:
        return shapes.is_channels_last(self.shape, self.strides)

    def is_dense(self) -> bool:
        """Whether the elements fill one block of memory, each once."""
        return shapes.is_dense(self.shape, self.strides)

    def has_overlap(self) -> bool:
        """Whether two indices share an element, exactly."""
        return has_overlap(self.shape, self.strides)

    def storage_size(self) -> int:
        """How many elements a storage must hold for this layout; 0 when there are no elements."""
        if 0 in self.shape:
            return 0
        return self.offset + 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))

    # what can be made of it

    def permute(self, order: Sequence[int]) -> "Layout":
        """Dimensions in the order given (already wrapped)."""
        shape, strides = self.shape, self.strides
        return Layout(tuple(shape[d] for d in order), tuple(strides[d] for d in order), self.offset)

    def replace(self, dim: int, sizes: Ints = (), strides: Ints = (), skip: int = 0) -> "Layout":
        """Dimension `dim` (wrapped) replaced by these, the first element moved by `skip`."""
        return Layout(
            (*self.shape[:dim], *sizes, *self.shape[dim + 1 :]),
            (*self.strides[:dim], *strides, *self.strides[dim + 1 :]),
            self.offset + skip,
        )

    def select(self, dim: int, index: int) -> "Layout":
        if not self.shape:
            raise errors.scalar_input("select")
        dim = self.dim(dim)
        size = self.shape[dim]
        if not -size <= index < size:
            raise errors.select_range(index, self.shape, dim)
        if index < 0:
            index += size
        return self.replace(dim, skip=index * self.strides[dim])

    def slice(self, dim: int, start: int | None, stop: int | None, step: int = 1) -> "Layout":
        """Bounds are clamped as Python clamps them, and `stop` never lies before `start`."""
        if not self.shape:
            raise errors.scalar_input("slice")
        dim = self.dim(dim)
        if step <= 0:
            raise errors.slice_step()
        size, stride = self.shape[dim], self.strides[dim]
        start = 0 if start is None else start + size if start < 0 else start
        stop = size if stop is None else stop + size if stop < 0 else stop
        start = min(max(start, 0), size)
        stop = min(max(stop, start), size)
        return self.replace(dim, ((stop - start + step - 1) // step,), (stride * step,), start * stride)

    def expand(self, shape: Sequence[int]) -> "Layout":
        """Sizes of 1 widened without copying; -1 keeps a size; new dimensions come first."""
        shape = tuple(shape)
        lead = len(shape) - len(self.shape)
        if lead < 0:
            raise errors_arguments.expand_rank(self.shape, shape)
        sizes, strides = list(shape), [0] * len(shape)
        for dim in range(len(shape) - 1, -1, -1):
            size = shape[dim]
            if dim >= lead:
                old, stride = self.shape[dim - lead], self.strides[dim - lead]
                if size == -1:
                    size = old
            else:
                # a dimension that was not there: it would have spanned everything after it
                old, stride = 1, sizes[dim + 1] * strides[dim + 1] if dim + 1 < len(shape) else 1
                if size == -1 and self.shape:
                    raise errors.expand_leading(size, dim)
            if size != old and old != 1:
                raise errors.expand_size(size, old, dim, shape, self.shape)
            if size != old or not self.shape:
                stride = 0
            sizes[dim], strides[dim] = size, stride
        if any(n < 0 for n in sizes):
            raise errors_storage.numel_overflow()
        return Layout(tuple(sizes), tuple(strides), self.offset)

    def view(self, shape: Sequence[int]) -> "Layout":
        """The same elements in the same order under another shape (may hold a -1)."""
        shape = shapes.infer_size(shape, self.numel)
        strides = view_strides(self.shape, self.strides, shape)
        if strides is None:
            raise errors.view_strides()
        return Layout(shape, strides, self.offset)

    def as_strided(self, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> "Layout":
        """This shape and these strides over the same storage. Whether they fit it, the caller checks."""
        if len(shape) != len(strides):
            raise errors.stride_length()
        if any(s < 0 for s in strides):
            raise errors.negative_stride(strides)
        if any(n < 0 for n in shape):
            raise errors_storage.storage_overflow(shape, strides)
        offset = self.offset if offset is None else offset
        if offset < 0:
            raise errors_storage.storage_offset(offset)
        return Layout(tuple(shape), tuple(strides), offset)

    def unfold(self, dim: int, size: int, step: int) -> "Layout":
        """Windows of `size` elements every `step` along `dim`; the window becomes the last dimension."""
        dim = self.dim(dim)
        if size < 0:
            raise errors.unfold_size(size)
        length = self.shape[dim] if self.shape else 1
        if size > length:
            raise errors.unfold_range(dim, length, size)
        if step <= 0:
            raise errors.unfold_step(step)
        if not self.shape:
            return Layout((size,), (1,), self.offset)
        stride = self.strides[dim]
        out = self.replace(dim, ((length - size) // step + 1,), (stride * step,))
        return Layout((*out.shape, size), (*out.strides, stride), out.offset)

    def diagonal(self, offset: int, dim1: int, dim2: int) -> "Layout":
        """The elements whose indices in the two dimensions differ by `offset`, as the last dimension."""
        i, j = self.dim(dim1), self.dim(dim2)
        if i == j:
            raise errors.diagonal_dims(dim1, dim2)
        rows, cols = self.shape[i], self.shape[j]
        size = max(min(rows, cols - offset) if offset >= 0 else min(rows + offset, cols), 0)
        first = self.offset
        if size:
            first += offset * self.strides[j] if offset >= 0 else -offset * self.strides[i]
        rest = [d for d in range(self.ndim) if d not in (i, j)]
        kept = self.permute(rest)
        return Layout((*kept.shape, size), (*kept.strides, self.strides[i] + self.strides[j]), first)

    def squeeze(self, dims: Sequence[int] | None = None) -> "Layout":
        """Without those of `dims` (wrapped; None: all) that have size 1."""
        drop = range(self.ndim) if dims is None else dims
        return self.permute([d for d, n in enumerate(self.shape) if n != 1 or d not in drop])

    def unsqueeze(self, dim: int) -> "Layout":
        """A dimension of size 1 put before `dim`, which may be one past the last."""
        dim = shapes.wrap_dim(dim, self.ndim + 1)
        stride = self.shape[dim] * self.strides[dim] if dim < self.ndim else 1
        return Layout(
            (*self.shape[:dim], 1, *self.shape[dim:]),
            (*self.strides[:dim], stride, *self.strides[dim:]),
            self.offset,
        )


def view_strides(shape: Ints, strides: Ints, target: Ints) -> Ints | None:
    """Strides that show `shape`/`strides` as `target` (same number of elements); None when none can.

    The old dimensions fall into runs, each evenly spaced in memory; a new dimension must lie within one run.
    Both shapes are therefore walked from the last dimension, run by run.
    """
    if 0 in shape:
        return strides if shape == target else shapes.contiguous_strides(target)
    out = [1] * len(target)
    if not shape:
        return tuple(out)
    at = len(target) - 1
    spacing, length = strides[-1], 1
    for dim in range(len(shape) - 1, -1, -1):
        length *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == length * spacing):
            continue  # the next dimension carries the run on
        filled = 1
        while at >= 0 and (filled < length or target[at] == 1):
            out[at] = filled * spacing
            filled *= target[at]
            at -= 1
        if filled != length:
            return None
        if dim:
            spacing, length = strides[dim - 1], 1
    return tuple(out) if at < 0 else None


def has_overlap(shape: Ints, strides: Ints) -> bool:
    """Whether two different indices address one element.

    Cheap answers come first: strides that outgrow everything inside them never collide, and two dimensions
    collide when multiples of their strides meet within their sizes. Only combinations of three and more need
    counting.
    """
    if 0 in shape:
        return False
    dims = sorted((s, n) for s, n in zip(strides, shape) if n > 1)
    span = 0
    apart = True
    for s, n in dims:
        if s <= span:
            apart = False
        span += s * (n - 1)
    if apart:
        return False
    for i, (s, n) in enumerate(dims):
        if s == 0:
            return True
        for t, m in dims[:i]:
            g = gcd(s, t)
            if t // g < n and s // g < m:
                return True
    if len(dims) < 3:
        return False
    spots = np.zeros((), np.int64)
    for s, n in dims:
        spots = np.unique((spots.reshape(-1, 1) + s * np.arange(n)).reshape(-1), return_counts=True)
        if spots[1].max() > 1:
            return True
        spots = spots[0]
    return False
