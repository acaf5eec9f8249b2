"""Convolutions that multiply little for each result (filters of images and signals), by themselves on XLA's CPU compiler: sums over the taps
with the channels where they lie. Knows arrays, never Tensor.

XLA's own convolutions want the channels last and many of them: with one channel they take 6 to 60 times as long, and what lies the other way
is turned before and after. In a program with other convolutions, or with gradients of these, the channels are last all the same.
"""

import functools
import itertools
import operator

import jax.numpy as jnp
from jax import lax

from ..core.channel_order import is_light
from .backend import barrier

__all__ = ["covers", "forward"]


def covers(x, w, geo) -> bool:
    """Whether a convolution is one of these."""
    return (
        is_light(x.shape, w.shape)
        and jnp.issubdtype(x.dtype, jnp.floating)
        and min(geo.out(x.shape[2:], w.shape[2:])) > 0
    )


def forward(x, w, geo):
    """(N, C, *S) and (O, C/groups, *K) to (N, O, *T)."""
    channels, *kernel = w.shape[1:]
    out, ones = geo.out(x.shape[2:], kernel), (1,) * len(kernel)
    spans = [(o - 1) * s + 1 for o, s in zip(out, geo.stride)]
    need = [span + (k - 1) * d for span, k, d in zip(spans, kernel, geo.dilation)]
    config = [(lo, m - lo - size, 0) for lo, m, size in zip(geo.lo, need, x.shape[2:])]
    x = barrier(lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *config]))
    terms = []
    for tap in itertools.product(*map(range, kernel)):
        start = [t * d for t, d in zip(tap, geo.dilation)]
        stop = [a + span for a, span in zip(start, spans)]
        part = lax.slice(x, (0, 0, *start), (*x.shape[:2], *stop), (1, 1, *geo.stride))
        for c in range(channels):
            of = part if geo.groups > 1 else lax.slice_in_dim(part, c, c + 1, axis=1)
            terms.append(of * w[(slice(None), c, *tap)].reshape(-1, *ones))
    return functools.reduce(operator.add, terms)
