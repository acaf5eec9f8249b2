"""Convolutions in steps of one with few features (the last layer of what makes images), on XLA's CPU compiler. Knows arrays, never Tensor.

XLA writes down the input under each window, taps times as much, whatever the number of features. Here one product makes what each tap
adds to each feature at each position, and these are added up, shifted, with the positions innermost: a third to a quarter of the time
for up to 3 features, two thirds for 8 to 12 (benchmarks/kernels_cnn.py few).
"""

import itertools
import math

import jax.numpy as jnp
from jax import lax

from .backend import barrier

__all__ = ["covers", "forward", "input_grad", "weight_grad"]

FEW = 12  # features, no more than half of the channels
UNROLLED = 25  # taps that are added up in one kernel; more take long to compile
MOST_BYTES = 1 << 28  # of what all taps add


def covers(channels: int, features: int, kernel, positions: int, geo, dtype) -> bool:
    """Whether a convolution of so many channels to so many features is one of these."""
    taps = math.prod(kernel)
    return (
        2 * features <= min(channels, 2 * FEW)
        and taps > 1
        and geo.groups == 1
        and set(geo.stride) == {1}
        and jnp.issubdtype(dtype, jnp.floating)
        and taps * features * positions * jnp.dtype(dtype).itemsize <= MOST_BYTES
    )


def forward(x, w, geo):
    """(N, *S, C) and (O, C, *K) to (N, *T, O)."""
    features, channels, *kernel = w.shape
    out = geo.out(x.shape[1:-1], kernel)
    flat = jnp.moveaxis(w, (0, 1), (-2, -1)).reshape(-1, channels)
    parts = barrier(lax.dot_general(flat, x.reshape(-1, channels), (((1,), (1,)), ((), ()))))
    parts = parts.reshape(-1, features, *x.shape[:-1])
    parts = barrier(_padded(parts, geo.lo, geo.hi))
    starts = _starts(kernel, geo)
    shape = features, x.shape[0], *out
    if len(starts) <= UNROLLED:
        total = sum(
            lax.slice(parts[tap], (0, 0, *at), (*shape[:2], *map(sum, zip(at, out)))) for tap, at in enumerate(starts)
        )
    else:

        def add(tap, total):
            at = jnp.asarray(starts, tap.dtype)[tap]
            return total + lax.dynamic_slice(parts, (tap, 0, 0, *at), (1, *shape))[0]

        total = lax.fori_loop(0, len(starts), add, jnp.zeros(shape, x.dtype))
    return jnp.moveaxis(barrier(total), 0, -1)


def input_grad(g, w, size, geo):
    """(N, *T, O) and (O, C, *K) to (N, *S, C), for few C: the convolution with the kernel reversed."""
    kernel, out = w.shape[2:], g.shape[1:-1]
    turned = jnp.flip(jnp.swapaxes(w, 0, 1), range(2, w.ndim))
    reach = [d * (k - 1) for d, k in zip(geo.dilation, kernel)]
    lo = tuple(r - a for r, a in zip(reach, geo.lo))
    hi = tuple(s + r - o - a for s, r, o, a in zip(size[2:], reach, out, lo))
    return forward(g, turned, geo._replace(lo=lo, hi=hi))


def weight_grad(x, g, size, geo):
    """(N, *S, C) and (N, *T, O) to size (O, C, *K): the cotangent under each tap, times the input."""
    features, channels, *kernel = size
    n, spatial, out = len(kernel), x.shape[1:-1], g.shape[1:-1]
    reach = [d * (k - 1) for d, k in zip(geo.dilation, kernel)]
    before = [r - a for r, a in zip(reach, geo.lo)]
    after = [s + a - o for s, a, o in zip(spatial, geo.lo, out)]
    g = barrier(_padded(barrier(jnp.moveaxis(g, -1, 0)), before, after))
    # An input position under tap t belongs to the window t positions before it.
    starts = [[r - a for r, a in zip(reach, at)] for at in _starts(kernel, geo)]
    shape = features, x.shape[0], *spatial
    if len(starts) <= UNROLLED:
        parts = jnp.stack([lax.slice(g, (0, 0, *at), (*shape[:2], *map(sum, zip(at, spatial)))) for at in starts])
    else:

        def put(tap, parts):
            part = lax.dynamic_slice(g, (0, 0, *jnp.asarray(starts, tap.dtype)[tap]), shape)
            return lax.dynamic_update_index_in_dim(parts, part, tap, 0)

        parts = lax.fori_loop(0, len(starts), put, jnp.zeros((len(starts), *shape), g.dtype))
    w = barrier(parts).reshape(len(starts) * features, -1) @ x.reshape(-1, channels)
    return jnp.moveaxis(w.reshape(*kernel, features, channels), range(n), range(2, n + 2))


def _starts(kernel, geo):
    """Where the first window has each tap."""
    return [[t * d for t, d in zip(tap, geo.dilation)] for tap in itertools.product(*map(range, kernel))]


def _padded(x, lo, hi):
    """Zeros around the last dimensions; less than none cuts off."""
    config = [(0, 0, 0)] * (x.ndim - len(lo)) + [(a, b, 0) for a, b in zip(lo, hi)]
    return lax.pad(x, jnp.zeros((), x.dtype), config)
