"""Convolutions whose groups have one channel each, on XLA's CPU compiler: sums over the taps of shifted products. Knows arrays, never Tensor.

The channels are last, and every loop runs along them. What several taps read is stored first: XLA would pad, or transpose the weight,
anew at every tap, and then no loop is vectorised. A convolution for each group, with few or no loops over the channels, takes 10 to
80 times as long (benchmarks/kernels_cnn.py depthwise).
"""

import functools
import itertools
import math
import operator

import jax.numpy as jnp
from jax import lax

from .backend import barrier, column_sum

__all__ = ["covers", "forward", "input_grad", "stored", "weight_grad"]

MOST_TAPS = 128  # with more the one loop over all taps takes long to compile
UNROLLED = 9  # taps, which up to that have a kernel each in the weight's gradient: twice as fast as a loop over them
FOLDS = 8  # parts of the rows that are added up where they are multiplied


def covers(channels: int, weight_shape, geo) -> bool:
    """Whether a convolution is one of these: each group has one channel, and one feature or more."""
    return 1 < geo.groups == channels and math.prod(weight_shape[2:]) <= MOST_TAPS


def forward(x, w, geo):
    """(N, *S, C) and (O, 1, *K) to (N, *T, O)."""
    kernel = w.shape[2:]
    out = geo.out(x.shape[1:-1], kernel)
    x = _padded(_repeated(x, w.shape[0]), kernel, out, geo)
    return _sum(t * v for t, v in zip(_windows(x, kernel, out, geo), _taps(w)))


def input_grad(g, w, size, geo):
    """(N, *T, O) and (O, 1, *K) to (N, *S, C), for the full size (N, C, *S).

    Positions whose distance is a multiple of the stride are met by the same taps: a correlation of the cotangent for each such phase.
    """
    kernel, spatial, out = w.shape[2:], size[2:], g.shape[1:-1]
    n, features, stride = len(kernel), w.shape[0], geo.stride
    taps = _taps(w)
    count = [-(-(s + lo) // st) for s, lo, st in zip(spatial, geo.lo, stride)]
    reach = [d * (k - 1) // st for d, k, st in zip(geo.dilation, kernel, stride)]
    config = [(r, c - o, 0) for r, c, o in zip(reach, count, out)]
    zero = jnp.zeros((), g.dtype)
    g = barrier(lax.pad(g, zero, [(0, 0, 0), *config, (0, 0, 0)]))
    phases = []
    for phase in itertools.product(*map(range, stride)):
        terms = []
        for tap, v in zip(itertools.product(*map(range, kernel)), taps):
            at = [t * d for t, d in zip(tap, geo.dilation)]
            if all(a % st == p for a, st, p in zip(at, stride, phase)):
                start = [r - a // st for r, a, st in zip(reach, at, stride)]
                stop = [a + c for a, c in zip(start, count)]
                terms.append(lax.slice(g, (0, *start, 0), (g.shape[0], *stop, features)) * v)
        phases.append(_sum(terms) if terms else jnp.broadcast_to(zero, (g.shape[0], *count, features)))
    x = phases[0]
    if len(phases) > 1:
        x = jnp.stack(phases, n + 1).reshape(g.shape[0], *count, *stride, features)
        x = jnp.transpose(x, (0, *(a for i in range(n) for a in (1 + i, 1 + n + i)), 2 * n + 1))
        x = x.reshape(g.shape[0], *(c * st for c, st in zip(count, stride)), features)
    x = lax.slice(x, (0, *geo.lo, 0), (g.shape[0], *(lo + s for lo, s in zip(geo.lo, spatial)), features))
    return x if features == size[1] else x.reshape(*x.shape[:-1], size[1], -1).sum(-1)


def weight_grad(x, g, size, geo):
    """(N, *S, C) and (N, *T, O) to (O, 1, *K), the given full size."""
    kernel, out = size[2:], g.shape[1:-1]
    x, g = _padded(_repeated(x, size[0]), kernel, out, geo), stored(g)
    taps = math.prod(kernel)
    if taps <= UNROLLED:
        return jnp.stack([_products(t, g) for t in _windows(x, kernel, out, geo)], -1).reshape(size)
    spans = _spans(out, geo)

    def put(tap, sums):
        at, rest = [], tap
        for k, d in zip(kernel[::-1], geo.dilation[::-1]):
            at.append(rest % k * d)
            rest = rest // k
        span = lax.dynamic_slice(x, (0, *at[::-1], 0), (len(x), *spans, size[0]))
        part = lax.slice(span, (0,) * span.ndim, span.shape, (1, *geo.stride, 1))
        return lax.dynamic_update_slice(sums, _products(part, g)[None], (tap, 0))

    return lax.fori_loop(0, taps, put, jnp.zeros((taps, size[0]), x.dtype)).T.reshape(size)


def _sum(terms):
    return functools.reduce(operator.add, terms)


def _spans(out, geo):
    """How far apart the first and the last window are, the first one included."""
    return [(o - 1) * s + 1 for o, s in zip(out, geo.stride)]


def _repeated(x, features: int):
    """Each channel as often as it has features."""
    return x if features == x.shape[-1] else jnp.repeat(x, features // x.shape[-1], axis=-1)


def _padded(x, kernel, out, geo):
    """x with its padding, stored, and with nothing after the last window."""
    need = [s + (k - 1) * d for s, k, d in zip(_spans(out, geo), kernel, geo.dilation)]
    config = [(lo, m - lo - size, 0) for m, lo, size in zip(need, geo.lo, x.shape[1:-1])]
    if any(lo or hi for lo, hi, _ in config):
        x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *config, (0, 0, 0)])
    return barrier(x)


def _windows(x, kernel, out, geo):
    """What lies under each tap of a padded x."""
    spans = _spans(out, geo)
    for tap in itertools.product(*map(range, kernel)):
        start = [t * d for t, d in zip(tap, geo.dilation)]
        stop = [a + s for a, s in zip(start, spans)]
        yield lax.slice(x, (0, *start, 0), (x.shape[0], *stop, x.shape[-1]), (1, *geo.stride, 1))


def _taps(w):
    """(O, 1, *K) to (taps, O), stored."""
    return stored(w.reshape(w.shape[0], -1).T)


def stored(x):
    """x, computed once: XLA puts a transpose, or what computes x, into each loop that reads it, but not into one over two halves.

    Of a cotangent with channels first the weight's gradient takes a tenth of its time then.
    """
    half = (len(x) + 1) // 2

    def put(i, to):
        at = i * (len(x) - half)
        return lax.dynamic_update_slice_in_dim(to, lax.dynamic_slice_in_dim(x, at, half), at, 0)

    return lax.fori_loop(0, 2, put, jnp.zeros(x.shape, x.dtype))


def _products(x, g):
    """The sum of `x * g` for each channel, the last dimension."""
    images = math.gcd(g.shape[0], FOLDS)
    lines = math.gcd(g.shape[1], FOLDS // images)
    n, m = g.shape[0] // images, g.shape[1] // lines
    parts = itertools.product(range(images), range(lines))
    cuts = [(slice(i * n, (i + 1) * n), slice(j * m, (j + 1) * m)) for i, j in parts]
    total = _sum(x[at] * g[at] for at in cuts)
    return column_sum(total.reshape(-1, g.shape[-1]))
