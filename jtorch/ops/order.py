"""Sorting with indices, as XLA's compilers want it. Knows arrays, never Tensor.

XLA's CPU compiler sorts one array of integers by a loop of its library, and everything else by calls of a compiled comparison, which
take ten times as long. So there the keys become integers, and the index is part of the key, which also makes the order stable.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .backend import barrier, on_cpu, one_of

__all__ = ["PASSES", "are_few", "largest_of", "order", "ranked", "sorted_with_index"]

PASSES = 32  # through the elements that `ranked` makes
_HALF = 32  # bits of a key that stand beside an index in an int64


def sorted_with_index(x, dim: int, descending: bool = False, count: int | None = None):
    """(values, indices) of a stable sort along a dimension, nan the largest; the first `count` of each slice. Not for 0-d arrays."""
    if not on_cpu() or _is_wide(x.dtype):
        return tuple(_first(v, dim, count) for v in _by_comparison(x, dim, descending))
    if count is not None:
        among = 0 < count <= x.shape[dim] // _PART
        if among or are_few(x, dim, count):
            at = (_among_floats if among else _one_by_one)(x, dim, descending, count)
            return _picked(x, at, dim), at
    key, at = _ordered(x, dim, descending)
    at = _first(at, dim, count)
    if x.dtype.kind in "biu":  # their keys are the numbers themselves
        key = _first(key, dim, count)
        return (~key if descending else key).astype(x.dtype), at
    return _picked(x, at, dim), at


_PART = 8  # of a slice that XLA's largest of float32 are found in, in less time than sorting takes


def _among_floats(x, dim, descending, count):
    """The indices of the first `count` of each slice in a stable sort.

    XLA has a function of its library for the largest of float32. Other numbers are rounded to those, which keeps their order, and what is
    found is sorted by what it was. Where rounding made the last of it equal to more than it, the whole of x has the say.
    """
    turned = jnp.moveaxis(lax.stop_gradient(x), dim, -1)
    short = turned.astype(jnp.float32)
    if x.dtype.kind == "f":
        short = jnp.where(jnp.isnan(short), jnp.float32(jnp.nan), short)  # that function knows nan with a sign
    key = short if descending else -short
    key = jnp.where(key == 0, jnp.float32(0), key)
    largest, at = largest_of(key, count)
    at = jnp.moveaxis(at, -1, dim).astype(jnp.int64)
    if x.dtype.itemsize <= 2:
        return at
    same = (short.astype(x.dtype) == turned) | (turned != turned)
    apart = jnp.sum(~(key < largest[..., -1:]), -1) == count

    def found():
        if count == 1:
            return at
        own = _key(_picked(x, at, dim))
        sort = _wide_order if own.dtype.itemsize == 8 else _order
        return _picked(at, sort(~own if descending else own, dim)[1], dim)

    def of_all():
        few = are_few(x, dim, count)
        return _one_by_one(x, dim, descending, count) if few else _first(_ordered(x, dim, descending)[1], dim, count)

    return one_of(jnp.all(same) | jnp.all(apart), found, of_all)


def largest_of(x, count):
    """`lax.top_k`. Of what is sliced, XLA's CPU compiler makes slices of a whole sort: 100000 elements take 21 ms in place of 0.2."""
    largest, at = lax.top_k(x, count)
    return (barrier(largest), barrier(at)) if on_cpu() else (largest, at)


def are_few(x, dim: int, count: int) -> bool:
    """Whether as many passes take less than sorting: a pass takes 3 ns an element, sorting 7 for each bit of the length, of short numbers
    half of that."""
    return 0 < count <= (2 if x.dtype.itemsize == 8 else 1) * x.shape[dim].bit_length()


def _one_by_one(x, dim, descending, count):
    """The indices of the first `count` of each slice in a stable sort: each in turn is the first of those that come after the one before."""
    key = _key(x) if descending else ~_key(x)
    info, n = jnp.iinfo(key.dtype), x.shape[dim]
    place = lax.broadcasted_iota(jnp.int32, x.shape, dim)
    shape = [1 if d == dim else size for d, size in enumerate(x.shape)]

    def following(k, found):
        largest, at, made = found
        left = (key < largest) | ((key == largest) & (place > at))
        largest = jnp.max(jnp.where(left, key, info.min), dim, keepdims=True)
        at = jnp.min(jnp.where(left & (key == largest), place, n), dim, keepdims=True)
        return largest, at, lax.dynamic_update_slice_in_dim(made, at, k, dim)

    made = jnp.zeros([*shape[:dim], count, *shape[dim + 1 :]], jnp.int32)
    start = jnp.full(shape, info.max, key.dtype), jnp.full(shape, -1, jnp.int32), made
    with jax.disable_jit(False):  # its loop stays one
        return lax.fori_loop(np.int32(0), np.int32(count), following, start)[2].astype(jnp.int64)


def ranked(x, dim: int, rank):
    """(value, index), both with size 1 along a dimension, of what stands at the place `rank` of each slice in a stable sort, nan the largest.

    On the CPU the value is found by halving the range of keys, which reads the elements once a bit instead of sorting them.
    """
    n = x.shape[dim]
    wide = x.dtype.itemsize == 8
    if not on_cpu() or _is_wide(x.dtype) or not (_FEW_WIDE if wide else _FEW) <= n < _EXACT:
        return tuple(jnp.take_along_axis(v, rank, axis=dim) for v in sorted_with_index(x, dim))
    kind = jnp.int64 if wide else jnp.int32
    key, rank = _key(x).astype(kind), rank.astype(jnp.int32)
    bits = _HALF if x.dtype.kind in "bu" else x.dtype.itemsize * 8
    least = jnp.full(rank.shape, -(1 << (bits - 1)), kind)

    def halve(k, found):
        middle = found + lax.shift_left(jnp.asarray(1, kind), (bits - 1 - k).astype(kind))
        return jnp.where(_count(key < middle, dim) <= rank, middle, found)

    with jax.disable_jit(False):  # its loop stays one
        found = lax.fori_loop(np.int32(0), np.int32(bits), halve, least)
    alike = key == found
    nth = rank - _count(key < found, dim) + 1
    first = lambda which: jnp.min(
        jnp.where(which, lax.broadcasted_iota(jnp.int32, x.shape, dim), n - 1), dim, keepdims=True
    )
    in_turn = lambda: first(alike & (jnp.cumsum(alike, axis=dim, dtype=jnp.int32) == nth))
    at = one_of(jnp.all(nth == 1), lambda: first(alike), in_turn).astype(jnp.int64)
    return _picked(x, at, dim), at


_FEW, _FEW_WIDE = 64, 128  # elements of a slice that are sorted as quickly, those of 64 bits
_EXACT = 1 << 24  # numbers that float32 counts


def _count(which, dim):
    return jnp.sum(which.astype(jnp.float32), axis=dim, keepdims=True).astype(jnp.int32)


def order(x, dim: int):
    """The indices that sort `x` stably along a dimension."""
    if not on_cpu() or _is_wide(x.dtype):
        return _by_comparison(x, dim, False)[1]
    return _ordered(x, dim, False)[1]


def _ordered(x, dim, descending):
    """(keys, indices) of a stable sort; descending keys are the complements."""
    key = _key(x)
    key = ~key if descending else key
    if x.dtype == jnp.bool_ and x.shape[dim] >= _FEW:
        return _parted(key, dim)
    if key.dtype.itemsize * 8 <= _HALF or not key.size:
        return _order(key, dim)
    fits = (jnp.min(key) >= -(1 << (_HALF - 1))) & (jnp.max(key) < 1 << (_HALF - 1))
    return one_of(fits, lambda: _order(key, dim), lambda: _wide_order(key, dim))


def _parted(key, dim):
    """`_order` of keys of which there are two, of neighbouring values: each goes behind its equals before it. 512x512: 2.4 ms, sorted 7."""
    key = jnp.moveaxis(key, dim, -1)
    n, place = key.shape[-1], lax.broadcasted_iota(jnp.int32, key.shape, key.ndim - 1)
    least = jnp.min(key, -1, keepdims=True)
    late = (key != least).astype(jnp.int32)
    before = jnp.cumsum(late, -1, dtype=jnp.int32)
    early = n - before[..., -1:]
    goes = jnp.where(late == 1, early + before - 1, place - before)
    slices = lax.broadcasted_iota(jnp.int32, (key.size // n, n), 0).reshape(key.shape)
    goes = slices * n + goes if key.size < 1 << 31 else slices.astype(jnp.int64) * n + goes
    at = (
        jnp.zeros(key.size, jnp.int32)
        .at[goes.reshape(-1)]
        .set(place.reshape(-1), mode="promise_in_bounds", unique_indices=True)
    )
    made = least + (place >= early)
    return jnp.moveaxis(made, -1, dim), jnp.moveaxis(at.reshape(key.shape).astype(jnp.int64), -1, dim)


def _wide_order(key, dim):
    low = (key & 0xFFFFFFFF) - (1 << (_HALF - 1))
    at = _order(low, dim)[1]
    at = _picked(at, _order(_picked(key, at, dim) >> _HALF, dim)[1], dim)
    return _picked(key, at, dim), at


def _by_comparison(x, dim, descending):
    at = lax.broadcasted_iota(jnp.int64, x.shape, dim)
    if descending:  # reversing before and after keeps equal keys in their order
        x, at = jnp.flip(x, dim), jnp.flip(at, dim)
    values, at = lax.sort((x, at), dimension=dim, is_stable=True, num_keys=1)
    return (jnp.flip(values, dim), jnp.flip(at, dim)) if descending else (values, at)


def _is_wide(dtype) -> bool:
    """Whether the order of the numbers is none of signed integers here."""
    return dtype.kind == "c" or dtype.kind == "u" and dtype.itemsize > 2


def _key(x):
    """Signed integers in the order of `x`: equal for 0.0 and -0.0, and the largest for nan."""
    if x.dtype.kind in "biu":
        return x if x.dtype == jnp.int64 else x.astype(jnp.int32)
    bits = lax.bitcast_convert_type(x, {2: jnp.int16, 4: jnp.int32, 8: jnp.int64}[x.dtype.itemsize])
    info = jnp.iinfo(bits.dtype)
    endless = np.asarray(np.inf, x.dtype).view(bits.dtype)
    nan = (bits & info.max) > endless
    bits = jnp.where(bits == info.min, jnp.zeros((), bits.dtype), jnp.where(bits < 0, bits ^ info.max, bits))
    return jnp.where(nan, jnp.asarray(info.max, bits.dtype), bits)


def _order(key, dim):
    """(sorted, indices) of integers of at most 32 bits, of whatever type."""
    index = lax.broadcasted_iota(jnp.int64, key.shape, dim)
    both = lax.shift_left(key.astype(jnp.int64), jnp.asarray(_HALF, jnp.int64)) | index
    both = lax.sort(both, dimension=dim, is_stable=False)
    return (both >> _HALF).astype(key.dtype), both & 0xFFFFFFFF


def _picked(x, at, dim):
    return jnp.take_along_axis(x, at, axis=dim, mode="promise_in_bounds")


def _first(x, dim, count):
    return x if count is None else lax.slice_in_dim(x, 0, count, axis=dim)
