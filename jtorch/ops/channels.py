"""Where kernels have the channels: last on the CPU, where its convolutions want them; second elsewhere, and in programs without any.

Transposes between neighbouring kernels cancel in the compiled program as long as only elementwise operations without a
broadcast along the channels lie between them; so kernels that do broadcast or reduce along them enter this form first.
"""

import math

import jax.numpy as jnp
from jax import lax

from ..core.channel_order import as_stored
from .backend import column_sum, on_cpu

FOLDS = 8  # measured on the CPU: 3 to 6 times faster than sums by a matmul with ones of terms stored first


def axis(ndim: int) -> int:
    """The dimension of the channels inside kernels."""
    return ndim - 1 if on_cpu() and not as_stored() else 1


def space(ndim: int) -> int:
    """The first dimension of the space inside kernels."""
    return 1 if axis(ndim) == ndim - 1 > 1 else 2


def enter(x):
    """(N, C, ...) in the kernels' order."""
    return jnp.moveaxis(x, 1, axis(x.ndim))


def leave(x):
    """Back to (N, C, ...)."""
    return jnp.moveaxis(x, axis(x.ndim), 1)


def along(v, ndim: int):
    """A vector over the channels, to be broadcast with an entered array."""
    shape = [1] * ndim
    shape[axis(ndim)] = -1
    return v.reshape(shape)


def sums(terms, *arrays):
    """The sums over everything but the channels of each of `terms(*arrays)`, for entered arrays.

    `terms` gets arrays whose channels `along(..., their ndim)` meets. On the CPU it sees a fold of the rows at a time:
    the terms are added up where they are computed, in one vectorised pass that stores none of them.
    """
    ndim = arrays[0].ndim
    if not on_cpu():
        return tuple(jnp.sum(t, tuple(i for i in range(ndim) if i != 1)) for t in terms(*arrays))
    if as_stored() and ndim > 2:
        rows = [a.reshape(*a.shape[:2], math.prod(a.shape[2:])) for a in arrays]
        return tuple(jnp.sum(jnp.sum(t, -1), 0) for t in terms(*rows))
    channels = arrays[0].shape[-1]
    rows = arrays[0].size // channels
    folds = math.gcd(rows, FOLDS)
    split = [a.reshape(folds, rows // folds, channels) for a in arrays]
    parts = zip(*([lax.squeeze(p, (0,)) for p in lax.split(a, (1,) * folds)] for a in split))
    total = terms(*next(parts))
    for part in parts:
        total = tuple(s + t for s, t in zip(total, terms(*part)))
    return tuple(column_sum(t) for t in total)
