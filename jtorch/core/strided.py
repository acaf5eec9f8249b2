"""Strides to XLA: reading a layout out of a storage's array, and writing it back. Knows no Tensor.

A storage's array has a logical shape and dense strides, which say where each of its elements lies in flat
memory. `plan` finds the shortest chain of reversible steps (transpose, reshape, slice, broadcast; gather
only where the wanted strides are irregular) that leads from that array to the wanted layout. A chain, a
`Recipe`, holds no offset: where the slices start is passed at each use, so all rows of a matrix share one
recipe, and one compiled program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from inspect import signature
from math import gcd, prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import shapes
from .layout import has_overlap

__all__ = ["Recipe", "plan", "reinterpret"]

Ints = tuple[int, ...]

# jax would wrap negative starts, at the cost of a select each; ours never are negative
_KNOWN = {n: False for n in signature(lax.dynamic_slice).parameters if n == "allow_negative_indices"}


# Steps. `read` maps the array before the step to the one after it; `write` maps the array before the step
# and a new value of the one after it to a new array before it. An `onto` step keeps every element, and its
# `write` ignores `x`.


@dataclass(frozen=True, slots=True)
class Permute:
    order: Ints
    onto = True

    def read(self, x, starts):
        return lax.transpose(x, self.order)

    def write(self, x, starts, value):
        return lax.transpose(value, tuple(np.argsort(self.order)))


@dataclass(frozen=True, slots=True)
class Reshape:
    before: Ints
    after: Ints
    onto = True

    def read(self, x, starts):
        return lax.reshape(x, self.after)

    def write(self, x, starts, value):
        return lax.reshape(value, self.before)


@dataclass(frozen=True, slots=True)
class Slice:
    """Takes `sizes[d]` elements, `steps[d]` apart, from `starts[slots[d]]` on; slot -1: the whole axis."""

    sizes: Ints
    steps: Ints
    slots: Ints
    onto = False

    def _from(self, starts) -> list | tuple[int, ...]:
        """Where each axis starts: all Python ints, or all scalars of one dtype."""
        if isinstance(starts, tuple) and all(isinstance(s, int) for s in starts):
            return tuple(starts[i] if i >= 0 else 0 for i in self.slots)
        first = next(s for s in starts if not isinstance(s, int)) if isinstance(starts, tuple) else starts
        kind = np.dtype(first.dtype).type
        picked = [starts[i] if i >= 0 else 0 for i in self.slots]
        return [kind(s) if isinstance(s, int) else s for s in picked]

    def _window(self, x, begin):
        """The smallest block that holds the elements taken."""
        spans = [(n - 1) * s + 1 for n, s in zip(self.sizes, self.steps)]
        if isinstance(begin, tuple):
            return lax.slice(x, begin, [b + n for b, n in zip(begin, spans)])
        return lax.dynamic_slice(x, begin, spans, **_KNOWN)

    def read(self, x, starts):
        begin = self._from(starts)
        if isinstance(begin, tuple):
            ends = [b + (n - 1) * s + 1 for b, n, s in zip(begin, self.sizes, self.steps)]
            return lax.slice(x, begin, ends, self.steps)
        window = self._window(x, begin)
        if window.shape == self.sizes:
            return window
        return lax.slice(window, (0,) * window.ndim, window.shape, self.steps)

    def write(self, x, starts, value):
        begin = self._from(starts)
        if any(s != 1 for s in self.steps):
            # spread the value over the block and choose by position: XLA fuses this, where a scatter is a
            # loop
            window = self._window(x, begin)
            spread = lax.pad(value, jnp.zeros((), value.dtype), [(0, 0, s - 1) for s in self.steps])
            ours = np.ones((), bool)
            for d, s in enumerate(self.steps):
                if s != 1:
                    ours = ours & (lax.broadcasted_iota(np.int32, window.shape, d) % np.int32(s) == 0)
            value = lax.select(ours, spread, window)
            if value.shape == x.shape:
                return value
        if isinstance(begin, tuple):
            return lax.dynamic_update_slice(x, value, [np.int32(b) for b in begin], **_KNOWN)
        return lax.dynamic_update_slice(x, value, begin, **_KNOWN)


@dataclass(frozen=True, slots=True)
class Pad:
    """Adds elements that nobody reads, so that an axis can be cut into equal blocks."""

    axis: int
    amount: int
    onto = False

    def read(self, x, starts):
        return lax.pad(x, jnp.zeros((), x.dtype), [(0, self.amount * (d == self.axis), 0) for d in range(x.ndim)])

    def write(self, x, starts, value):
        return lax.slice_in_dim(value, 0, value.shape[self.axis] - self.amount, axis=self.axis)


@dataclass(frozen=True, slots=True)
class Gather:
    """Replaces an axis by several that run over it with any strides."""

    axis: int
    sizes: Ints
    strides: Ints
    slot: int
    onto = False

    def _index(self, x, starts):
        where = starts[self.slot]
        kind = np.dtype(np.int32) if isinstance(where, int) else where.dtype
        index = lax.broadcast(jnp.asarray(where, kind), self.sizes)
        return lax.expand_dims(index + _positions(self.sizes, self.strides, kind), [len(self.sizes)])

    def _others(self, x) -> Ints:
        return tuple(d if d < self.axis else d + len(self.sizes) - 1 for d in range(x.ndim) if d != self.axis)

    def read(self, x, starts):
        numbers = lax.GatherDimensionNumbers(self._others(x), (self.axis,), (self.axis,))
        block = tuple(1 if d == self.axis else n for d, n in enumerate(x.shape))
        mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
        return lax.gather(x, self._index(x, starts), numbers, block, mode=mode)

    def write(self, x, starts, value):
        # Elements that share memory are written one after the other: the last one stays.
        apart = not has_overlap(self.sizes, self.strides)
        numbers = lax.ScatterDimensionNumbers(self._others(x), (self.axis,), (self.axis,))
        mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
        return lax.scatter(x, self._index(x, starts), value, numbers, unique_indices=apart, mode=mode)


@dataclass(frozen=True, slots=True)
class Broadcast:
    shape: Ints
    dims: Ints
    onto = False

    def read(self, x, starts):
        return lax.broadcast_in_dim(x, self.shape, self.dims)

    def write(self, x, starts, value):
        sizes = dict(zip(self.dims, x.shape))
        return value[tuple(slice(n - sizes[d], n) if d in sizes else -1 for d, n in enumerate(self.shape))]


@dataclass(frozen=True, slots=True)
class Empty:
    shape: Ints
    onto = False

    def read(self, x, starts):
        return jnp.zeros(self.shape, x.dtype)

    def write(self, x, starts, value):
        return x


Step = Permute | Reshape | Slice | Pad | Gather | Broadcast | Empty
STEPS = frozenset(Step.__args__)


def _positions(sizes: Ints, strides: Ints, kind):
    """The sum of index times stride at every index, by arithmetic on iotas."""
    terms = [
        lax.broadcasted_iota(kind, sizes, d) * np.asarray(s, kind)
        for d, (n, s) in enumerate(zip(sizes, strides))
        if n > 1 and s
    ]
    return reduce(lambda a, b: a + b, terms) if terms else jnp.zeros(sizes, kind)


class Recipe:
    """A chain of steps from a storage's array to a layout. Interned: equal structure is the same object."""

    __slots__ = ("__weakref__", "base_shape", "shape", "steps", "strides")

    _all: dict[tuple, "Recipe"] = {}

    base_shape: Ints
    shape: Ints
    strides: Ints
    steps: tuple[Step, ...]

    def __new__(cls, base_shape: Ints, shape: Ints, strides: Ints, steps: tuple[Step, ...]):
        key = (base_shape, shape, strides, steps)
        self = cls._all.get(key)
        if self is None:
            self = super().__new__(cls)
            self.base_shape, self.shape, self.strides, self.steps = key
            self = cls._all.setdefault(key, self)  # another thread may have been first
        return self

    def __repr__(self):
        return f"Recipe({self.base_shape} -> {self.shape}: {', '.join(map(repr, self.steps)) or 'identity'})"

    def __reduce__(self):
        return (Recipe, (self.base_shape, self.shape, self.strides, self.steps))

    @property
    def is_full(self) -> bool:
        """Whether every element of the base is part of the layout once, so that a write replaces all."""
        return all(step.onto for step in self.steps)

    def read(self, array, starts=()):
        """The layout's elements, as an array of its shape."""
        for step in self.steps:
            array = step.read(array, starts)
        return array

    def write(self, array, starts, value):
        """`array` with the layout's elements replaced by `value`, which has the layout's shape."""
        last = max((i for i, step in enumerate(self.steps) if not step.onto), default=-1)
        before = []
        for step in self.steps[: last + 1]:
            before.append(array)
            if step is not self.steps[last]:
                array = step.read(array, starts)
        for i in range(len(self.steps) - 1, -1, -1):
            value = self.steps[i].write(before[i] if i <= last else None, starts, value)
        return value


class _Chain:
    """The steps so far and the shape that they lead to; drops what does nothing and joins reshapes."""

    def __init__(self, shape: Ints):
        self.shape = shape
        self.steps: list[Step] = []
        self.starts: list[int] = []

    def reshape(self, shape: Sequence[int]):
        shape, before = tuple(shape), self.shape
        if shape == before:
            return
        if self.steps and type(self.steps[-1]) is Reshape:
            before = self.steps.pop().before
        if shape != before:
            self.steps.append(Reshape(before, shape))
        self.shape = shape

    def permute(self, order: Sequence[int]):
        if list(order) != list(range(len(order))):
            self.steps.append(Permute(tuple(order)))
            self.shape = tuple(self.shape[d] for d in order)

    def slice(self, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]):
        slots = []
        for start, n, whole in zip(starts, sizes, self.shape):
            slots.append(-1 if n == whole else len(self.starts))
            if n != whole:
                self.starts.append(start)
        if any(s >= 0 for s in slots):
            self.steps.append(Slice(tuple(sizes), tuple(steps), tuple(slots)))
            self.shape = tuple(sizes)

    def pad(self, axis: int, amount: int):
        self.steps.append(Pad(axis, amount))
        self.shape = (*self.shape[:axis], self.shape[axis] + amount, *self.shape[axis + 1 :])

    def gather(self, axis: int, start: int, sizes: Sequence[int], strides: Sequence[int]):
        self.steps.append(Gather(axis, tuple(sizes), tuple(strides), len(self.starts)))
        self.starts.append(start)
        self.shape = (*self.shape[:axis], *sizes, *self.shape[axis + 1 :])

    def arrange(self, places: Sequence[int | None], shape: Ints, strides: Ints):
        """Bring the axes, each meant for a dimension of `shape` (None: of size 1, dropped), into place."""
        kept = [p for p in places if p is not None]
        if kept != sorted(kept):
            self.reshape([n for n, p in zip(self.shape, places) if p is not None])
            self.permute(sorted(range(len(kept)), key=kept.__getitem__))
        if any(s == 0 and n > 1 for n, s in zip(shape, strides)):
            self.reshape([shape[p] for p in sorted(kept)])
            self.steps.append(Broadcast(shape, tuple(sorted(kept))))
        else:
            self.reshape(shape)


@lru_cache(maxsize=1 << 16)
def plan(base_shape: Ints, base_strides: Ints, shape: Ints, strides: Ints, offset: int) -> tuple[Recipe, Ints]:
    """The recipe that leads from an array of `base_shape` to the layout, and where its slices start.

    `base_strides` are dense: they place each element of the array in a storage of exactly its size.
    """
    strides = tuple(s if n > 1 else 0 for n, s in zip(shape, strides))
    if 0 in shape:
        steps = () if shape == base_shape else (Empty(shape),)
        return Recipe(base_shape, shape, strides, steps), ()
    dims = sorted(
        ((n, s, place) for place, (n, s) in enumerate(zip(shape, strides)) if n > 1 and s),
        key=lambda d: (-d[1], d[2]),
    )
    assert offset >= 0 and offset + sum((n - 1) * s for n, s, _ in dims) < prod(base_shape), "outside the storage"
    chain = _Chain(base_shape)
    places = _by_axes(chain, base_shape, base_strides, dims, offset)
    if places is None:
        places = _Cutter(chain, base_shape, base_strides, dims).cut(offset)
    chain.arrange(places, shape, strides)
    return Recipe(base_shape, shape, strides, tuple(chain.steps)), tuple(chain.starts)


def _by_axes(chain: _Chain, base_shape, base_strides, dims, offset) -> list[int | None] | None:
    """Slice the base's own axes, if each wanted dimension runs along one of them; where each axis then goes.

    Keeping the axes keeps the layout and the sharding that XLA has chosen for the array.
    """
    axes = sorted(((t, m, d) for d, (m, t) in enumerate(zip(base_shape, base_strides)) if m > 1), reverse=True)
    starts, sizes, steps = [0] * len(base_shape), [1] * len(base_shape), [1] * len(base_shape)
    places: list[int | None] = [None] * len(base_shape)
    for t, m, d in axes:
        starts[d] = offset // t % m
    for n, s, place in dims:
        t, m, d = next((axis for axis in axes if axis[0] <= s), (0, 0, 0))
        if t == 0 or s % t or places[d] is not None or starts[d] + (n - 1) * (s // t) >= m:
            return None
        places[d], sizes[d], steps[d] = place, n, s // t
    chain.slice(starts, sizes, steps)
    return places


class _Cutter:
    """Cuts flat memory into axes along which the wanted dimensions run.

    Memory is one block. The outermost wanted dimension, of stride s, runs along the first axis when the
    block is cut into pieces of a size that divides both s and the block, and everything further in stays
    inside one piece; of the sizes that do, the greatest common divisor leaves the most freedom, so no search
    is needed. Then the piece is the block for the next dimension. When it fails, the part of the block in
    use is cut out first, or dimensions that overlap are gathered.
    """

    def __init__(self, chain: _Chain, base_shape: Ints, base_strides: Ints, dims):
        self.chain = chain
        self.dims = dims
        self.bounds = sorted((t for m, t in zip(base_shape, base_strides) if m > 1), reverse=True)
        order = sorted(range(len(base_shape)), key=lambda d: (base_shape[d] > 1, -base_strides[d]))
        if [d for d in order if base_shape[d] > 1] != [d for d, m in enumerate(base_shape) if m > 1]:
            chain.permute(order)
        self.block = prod(base_shape)  # the size of the piece of memory not yet cut
        self.done: list[int] = []  # sizes of the axes in front of it, as the chain has them
        self.cuts: list[tuple] = []  # axes of it not yet in the chain: (size, start, n, step, gathered dims)
        self.places: list[int | None] = []

    def cut(self, offset: int) -> list[int | None]:
        """Extend the chain until only wanted axes are left; which wanted dimension each of them is."""
        inner = [0]
        for n, s, _ in reversed(self.dims):
            inner.append(inner[-1] + (n - 1) * s)
        inner = inner[-2::-1]  # how far the dimensions inside each one reach
        i = 0
        while i < len(self.dims):
            n, s, place = self.dims[i]
            piece = gcd(self.block, s)
            if offset % piece + inner[i] < piece:
                offset = self._keep_bounds(offset, piece, (n - 1) * s + inner[i])
                offset = self._axis(offset, piece, n, s // piece, place)
                i += 1
            elif inner[i] < s:
                offset = self._window(offset, n, s, inner[i], place)
                i += 1
            else:
                i, offset = self._gather(i, offset, inner)
        if self.block > 1:
            self._axis(offset, 1, 1, 1, None)
        self._flush()
        return self.places

    def _axis(self, offset, piece, n, step, place, gathered=()) -> int:
        self.cuts.append((self.block // piece, offset // piece, n, step, gathered))
        self.places += [p for _, _, p in gathered] or [place]
        self.block = piece
        return offset % piece

    def _keep_bounds(self, offset: int, piece: int, reach: int) -> int:
        """Cut also where the base's own axes end, as far as the elements wanted permit."""
        for bound in self.bounds:
            if piece < bound < self.block and self.block % bound == 0 == bound % piece:
                if offset % bound + reach < bound:
                    offset = self._axis(offset, bound, 1, 1, None)
        return offset

    def _window(self, offset: int, n: int, s: int, inside: int, place: int) -> int:
        """Take `n` pieces of size `s` out of the block, then cut these."""
        start = min(offset, self.block - n * s)
        padding = 0
        if start < 0 or offset - start + inside >= s:
            start, padding = offset, s - 1 - inside  # the last piece may reach beyond the block
        self._flush(padding=padding)
        self.chain.slice([0] * len(self.done) + [start], [*self.done, n * s], [1] * (len(self.done) + 1))
        self.block = n * s
        return self._axis(offset - start, s, n, 1, place)

    def _gather(self, i: int, offset: int, inner: list[int]) -> tuple[int, int]:
        """Gather as few dimensions as will leave the rest inside one piece."""
        piece, j = self.block, i
        while True:
            piece = gcd(piece, self.dims[j][1])
            j += 1
            if offset % piece + inner[j - 1] < piece:
                break
        gathered = tuple((n, s // piece, place) for n, s, place in self.dims[i:j])
        return j, self._axis(offset, piece, 0, 0, None, gathered)

    def _flush(self, padding: int = 0):
        """Put the cuts made so far into the chain; what is left of the block becomes its last axis."""
        rest = [self.block] if self.block > 1 or padding else []
        lead = len(self.done)
        self.chain.reshape([*self.done, *(c[0] for c in self.cuts), *rest])
        if padding:
            self.chain.pad(lead + len(self.cuts), padding)
        starts, sizes, steps = [0] * lead, list(self.done), [1] * lead
        for size, start, n, step, gathered in self.cuts:
            starts.append(0 if gathered else start)
            sizes.append(size if gathered else n)
            steps.append(1 if gathered else step)
        rest = [self.block + padding] if rest else []
        self.chain.slice(starts + [0] * len(rest), sizes + rest, steps + [1] * len(rest))
        for _, start, n, _, gathered in self.cuts:
            if gathered:
                ns = [n for n, _, _ in gathered]
                self.chain.gather(len(self.done), start, ns, [s for _, s, _ in gathered])
                self.done += ns
            else:
                self.done.append(n)
        self.cuts = []


def reinterpret(array, to: Any):
    """A flat array's bytes taken as elements of another numpy dtype, as PyTorch's `view(dtype)` does."""
    old, new = np.dtype(array.dtype), np.dtype(to)
    if old == new:
        return array
    if old.kind == "c":
        array = lax.concatenate([lax.expand_dims(f(array), [1]) for f in (lax.real, lax.imag)], 1)
        return reinterpret(lax.reshape(array, (array.size,)), new)
    if new.kind == "c":
        array = reinterpret(array, np.float32 if new.itemsize == 8 else np.float64)
        pairs = lax.reshape(array, (array.size // 2, 2))
        return lax.complex(pairs[:, 0], pairs[:, 1])
    if old.kind == "b":
        return reinterpret(lax.convert_element_type(array, np.uint8), new)
    if new.kind == "b":
        return reinterpret(array, np.uint8) != 0
    if new.itemsize > old.itemsize:
        array = lax.reshape(array, (array.size * old.itemsize // new.itemsize, new.itemsize // old.itemsize))
    array = lax.bitcast_convert_type(array, new)
    return lax.reshape(array, (array.size,))


class Scattered:
    """Elements of an array at fixed flat positions: the relation of a view to a base that is not dense itself."""

    __slots__ = ("index", "shape")

    def __init__(self, index):
        self.index = index
        self.shape = index.shape

    def read(self, array, starts=()):
        return array.reshape(-1)[self.index]

    def write(self, array, starts, value):
        return array.reshape(-1).at[self.index].set(value).reshape(array.shape)


_scattered: dict = {}


def between(base_shape: Ints, base_strides: Ints, shape: Ints, strides: Ints, offset: int):
    """As `plan`, for a base that may itself be a view with gaps, seen as an array of its logical elements."""
    if shapes.is_dense(base_shape, base_strides):
        return plan(base_shape, base_strides, shape, strides, offset)
    key = (base_shape, base_strides, shape, strides, offset)
    found = _scattered.get(key)
    if found is None:
        place = {int(p): k for k, p in reversed(list(enumerate(_offsets(base_shape, base_strides).reshape(-1))))}
        wanted = _offsets(shape, strides) + offset
        index = np.array([place[int(p)] for p in wanted.reshape(-1)], np.int32).reshape(shape)
        found = _scattered[key] = Scattered(index)
    return found, ()


def _offsets(shape, strides):
    total = np.zeros(shape, np.int64)
    for axis, (n, s) in enumerate(zip(shape, strides)):
        total += (np.arange(n) * s).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return total
