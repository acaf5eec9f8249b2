"""The transpose of a read: what is shown is added up where it lies. Windows that overlap are added as shifted blocks, not one element
after the other.

A window of `w` elements that starts each `s` elements touches ceil(w / s) blocks of `s`, so that many shifted arrays of blocks make the
sum. Where these would be many, windows are added in groups first, and then the groups.
"""

from functools import reduce
from math import isqrt

import jax
import jax.numpy as jnp
from jax import lax

from . import cuts
from .strided import Gather, Recipe

__all__ = ["spread"]

FEW = 16  # arrays that are added at once: XLA's loop over them grows with each


def spread(recipe: Recipe, starts, aval, value):
    """`value`, which has the recipe's shape, added up in an array like `aval`."""
    like, before = jax.ShapeDtypeStruct(aval.shape, aval.dtype), []
    for step in recipe.steps:
        before.append(like)
        like = jax.eval_shape(lambda x, step=step: step.read(x, starts), like)
    for step, like in zip(reversed(recipe.steps), reversed(before)):
        value = _back(step, starts, like, value)
    return value


def _back(step, starts, like, value):
    if type(step) is not Gather or any(s % step.strides[-1] for s in step.strides):
        return jax.linear_transpose(lambda x: step.read(x, starts), like)(value)[0]
    axis, apart = step.axis, step.strides[-1]
    for level in reversed(range(len(step.strides) - 1)):
        value = _joined(value, axis + level, step.strides[level] // apart)
    return _placed(value, axis, apart, starts[step.slot], like)


def _placed(x, axis, apart, start, like):
    """Zeros with `x` from `start` on, its elements `apart` from each other."""
    size = (x.shape[axis] - 1) * apart + 1
    if isinstance(start, int):
        return _padded(x, axis, start, like.shape[axis] - size - start, apart - 1)
    begin = [start if d == axis else jnp.zeros((), start.dtype) for d in range(x.ndim)]
    return lax.dynamic_update_slice(jnp.zeros(like.shape, x.dtype), _padded(x, axis, 0, 0, apart - 1), begin)


def _padded(x, axis, low, high, between=0):
    return lax.pad(x, jnp.zeros((), x.dtype), [(low, high, between) if d == axis else (0, 0, 0) for d in range(x.ndim)])


def _sum(parts):
    return reduce(lax.add, parts)


def _joined(x, axis: int, every: int):
    """Two axes as one along which element `j` of window `i` lies at `i * every + j`, with sums where several do."""
    before, (n, w), after = x.shape[:axis], x.shape[axis : axis + 2], x.shape[axis + 2 :]
    size, blocks = (n - 1) * every + w, -(-w // every)
    if min(n, blocks) > FEW:
        return _in_groups(x, axis, every, blocks)
    if n < blocks:
        windows = (lax.index_in_dim(x, i, axis, keepdims=False) for i in range(n))
        return _sum(_padded(piece, axis, i * every, size - w - i * every) for i, piece in enumerate(windows))
    x = _padded(x, axis + 1, 0, blocks * every - w).reshape(*before, n, blocks, every, *after)
    pieces = (lax.index_in_dim(x, c, axis + 1, keepdims=False) for c in range(blocks))
    total = _sum(_padded(piece, axis, c, blocks - 1 - c) for c, piece in enumerate(pieces))
    return lax.slice_in_dim(total.reshape(*before, -1, *after), 0, size, axis=axis)


def _in_groups(x, axis, every, blocks):
    """The same: each window cut into parts, parts of one number joined, then these."""
    before, (n, w), after = x.shape[:axis], x.shape[axis : axis + 2], x.shape[axis + 2 :]
    part = isqrt(blocks - 1) + 1
    count, long = -(-blocks // part), part * every
    x = _padded(x, axis + 1, 0, count * long - w).reshape(*before, n, count, long, *after)
    total = _joined(cuts.stored(_joined(jnp.swapaxes(x, axis, axis + 1), axis + 1, every)), axis, long)
    return lax.slice_in_dim(total, 0, (n - 1) * every + w, axis=axis)
