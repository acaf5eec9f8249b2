"""Resampling along one axis: which elements go into each result, with what weights, and how they are added."""

import functools
import math
import operator

import jax.numpy as jnp
import numpy as np
from jax import lax

from .backend import accumulator, differentiated_as, on_cpu

MOST_SHIFTS = 8  # slices that are added up for an axis: with cubic taps the matrix is quicker
MATRIX_SIZE = 128  # up to here the matrix is multiplied as it stands; above, tap by tap


def cubic(t, a=-0.75):
    """The weights of the four taps around a point `t` past the second."""
    near = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1
    far = lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _scale(size, out, factor, align_corners):
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1 / factor if factor else size / out


def _source(size, out, factor, align_corners, clamp):
    """The input coordinate of each output position."""
    scale = _scale(size, out, factor, align_corners)
    at = np.arange(out)
    x = at * scale if align_corners else (at + 0.5) * scale - 0.5
    return np.maximum(x, 0) if clamp else x


def nearest_taps(size, out, factor, exact):
    scale = np.float32(1 / factor if factor else size / out)
    at = np.arange(out, dtype=np.float32)
    index = np.floor((at + np.float32(0.5)) * scale if exact else at * scale).astype(np.int64)
    return np.minimum(index, size - 1)[:, None], np.ones((out, 1))


def linear_taps(size, out, factor, align_corners):
    x = _source(size, out, factor, align_corners, True)
    low = np.minimum(np.floor(x).astype(np.int64), size - 1)
    t = np.clip(x - low, 0, 1)
    return np.stack([low, np.minimum(low + 1, size - 1)], 1), np.stack([1 - t, t], 1)


def cubic_taps(size, out, factor, align_corners):
    x = _source(size, out, factor, align_corners, False)
    low = np.floor(x).astype(np.int64)
    index = np.clip(low[:, None] + np.arange(-1, 3), 0, size - 1)
    return index, np.stack(cubic(x - low), 1)


def _filter(mode, x):
    x = np.abs(x)
    if mode == "bilinear":
        return np.maximum(1 - x, 0)
    if mode == "lanczos":
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    a = -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def smooth_taps(size, out, factor, align_corners, mode):
    """Taps of a filter as wide as an output pixel where it is larger than an input pixel."""
    scale = _scale(size, out, factor, align_corners)
    wide = {"bilinear": 2, "bicubic": 4, "lanczos": 6}[mode]
    shrink = max(scale, 1.0)
    support = wide / 2 * shrink
    center = scale * (np.arange(out) + 0.5)
    first = np.maximum((center - support + 0.5).astype(np.int64), 0)
    stop = np.minimum((center + support + 0.5).astype(np.int64), size)
    index = first[:, None] + np.arange(int((stop - first).max()))
    weight = _filter(mode, (index - center[:, None] + 0.5) / shrink)
    weight = np.where(index < stop[:, None], weight, 0)
    return np.minimum(index, size - 1), weight / weight.sum(1, keepdims=True)


def _apply_taps(x, axis, index, weight):
    size, out = x.shape[axis], len(index)
    small = max(size, out) <= MATRIX_SIZE
    steps = _steps(size, index, weight) if on_cpu() and jnp.issubdtype(x.dtype, jnp.floating) else None
    if steps is not None:
        shifted = lambda x: _shifted(x, axis, steps, weight)
        one_by_one = lambda x: _tap_by_tap(x, axis, index, weight)
        return shifted(x) if small else differentiated_as(one_by_one, shifted)(x)
    if small or index.shape[1] > 8:
        matrix = np.zeros((out, size))
        np.add.at(matrix, (np.arange(out)[:, None], index), weight)
        matrix = jnp.asarray(matrix, x.dtype)
        moved = jnp.tensordot(x, matrix, ((axis,), (1,)), precision=lax.Precision.HIGHEST)
        return jnp.moveaxis(moved, -1, axis)
    return _tap_by_tap(x, axis, index, weight)


def _steps(size, index, weight):
    """How far each tap of the first, second... of every so many results is from the element that they stand for; None where that differs."""
    out, taps = index.shape
    if taps > 2 or out % size or out == size or out // size * taps > MOST_SHIFTS:
        return None
    places, own = (a.reshape(size, out // size, taps) for a in (index, weight))
    steps = places[size // 2] - size // 2
    there = np.clip(np.arange(size)[:, None, None] + steps, 0, size - 1)
    return steps if ((places == there) | (own == 0)).all() else None


def _shifted(x, axis, steps, weight):
    """Every so many results at once, from slices: their derivatives are no scatters."""
    size, (times, taps) = x.shape[axis], steps.shape
    before, after = max(-steps.min(), 0), max(steps.max(), 0)
    first, last = lax.slice_in_dim(x, 0, 1, axis=axis), lax.slice_in_dim(x, size - 1, size, axis=axis)
    wide = lax.concatenate([first] * before + [x] + [last] * after, axis)
    own = weight.reshape(size, times, taps, *[1] * (x.ndim - 1 - axis))
    parts = []
    for i, row in enumerate(steps + before):
        terms = (
            lax.slice_in_dim(wide, at, at + size, axis=axis) * jnp.asarray(own[:, i, k], x.dtype)
            for k, at in enumerate(row.tolist())
        )
        parts.append(functools.reduce(operator.add, terms))
    return jnp.stack(parts, axis + 1).reshape(*x.shape[:axis], times * size, *x.shape[axis + 1 :])


def _tap_by_tap(x, axis, index, weight):
    shape = [1] * x.ndim
    shape[axis] = len(index)
    total = 0
    for k in range(index.shape[1]):
        w = jnp.asarray(weight[:, k].reshape(shape), x.dtype)
        total = total + jnp.take(x, index[:, k], axis, indices_are_sorted=True) * w
    return total


def resample(input, taps):
    """The input with each axis of `taps` resampled by its (index, weight)."""
    if input.dtype == jnp.uint8:
        for axis in sorted(taps, reverse=True):
            input = _apply_to_bytes(input, axis, *taps[axis])
        return input
    x = input.astype(accumulator(input.dtype))
    for axis in sorted(taps):
        x = _apply_taps(x, axis, *taps[axis])
    return x.astype(input.dtype)


def _apply_to_bytes(x, axis, index, weight):
    """PyTorch's arithmetic of bytes: whole weights, as fine as 16 bits hold the largest, and bytes after each dimension."""
    rows = np.arange(len(index))[:, None]
    matrix = np.zeros((len(index), x.shape[axis]))
    np.add.at(matrix, (rows, index), weight)
    bits = min(math.ceil(math.log2((2**15 - 0.5) / matrix.max())) - 1, 22)
    matrix = np.trunc(matrix * 2**bits + np.copysign(0.5, matrix))
    # positions beyond the edge are the edge's: their weights are in its first tap
    again = np.stack([(index[:, :k] == index[:, k : k + 1]).any(1) for k in range(index.shape[1])], 1)
    whole = np.where(again, 0, matrix[rows, index])
    # many taps are a matrix product, of doubles because those of integers are slow; all numbers are below 2^31
    total = _apply_taps(x.astype(jnp.int32 if index.shape[1] <= 8 else jnp.float64), axis, index, whole)
    total = (total.astype(jnp.int32) + (1 << bits - 1)) >> bits
    return jnp.clip(total, 0, 255).astype(x.dtype)
