"""Convolutions with many groups of a few channels (ResNeXt's), on XLA's CPU compiler: sums of depthwise ones. Knows arrays, never Tensor.

Each channel of a group meets all features of the group: the first channels of all groups, repeated for their features, make one
convolution with a channel a group, the second ones another. A loop over the groups, each a convolution of a few channels, takes 2 to 10
times as long (benchmarks/kernels_cnn.py groups).
"""

import math

import jax.numpy as jnp
from jax import lax

from . import depthwise

__all__ = ["covers", "forward", "input_grad", "weight_grad"]

FEWEST_GROUPS = 7
WIDEST = 8  # channels and features of a group
WIDEST_OF_WEIGHT = 4  # for the weight's gradient, which gains nothing from 8 on


def covers(channels: int, weight_shape, geo, widest: int = WIDEST) -> bool:
    """Whether a convolution is one of these."""
    width = max(channels, weight_shape[0]) // geo.groups
    return geo.groups >= FEWEST_GROUPS and width <= widest and math.prod(weight_shape[2:]) <= depthwise.MOST_TAPS


def forward(x, w, geo):
    """(N, *S, C) and (O, C/groups, *K) to (N, *T, O)."""
    features, width, *kernel = w.shape
    parts, weights, one = _apart(x, geo.groups), jnp.moveaxis(w, 1, 0), geo._replace(groups=features)

    def part(j):
        each = jnp.repeat(_at(parts, j), features // geo.groups, axis=-1)
        return depthwise.forward(each, _at(weights, j)[:, None], one)

    return _added(part, width, (x.shape[0], *geo.out(x.shape[1:-1], kernel), features), x.dtype)


def input_grad(g, w, size, geo):
    """(N, *T, O) and (O, C/groups, *K) to (N, *S, C), for the full size (N, C, *S)."""
    features, width, *kernel = w.shape
    count, channels = features // geo.groups, size[1]
    weights = jnp.moveaxis(w.reshape(geo.groups, count, width, *kernel), 1, 0).reshape(count, channels, 1, *kernel)
    parts, one = _apart(g, geo.groups), geo._replace(groups=channels)

    def part(i):
        return depthwise.input_grad(jnp.repeat(_at(parts, i), width, axis=-1), _at(weights, i), size, one)

    return _added(part, count, (size[0], *size[2:], channels), g.dtype)


def weight_grad(x, g, size, geo):
    """(N, *S, C) and (N, *T, O) to (O, C/groups, *K), the given full size."""
    features, width, *kernel = size
    parts, one = _apart(x, geo.groups), geo._replace(groups=features)

    def part(j):
        each = jnp.repeat(_at(parts, j), features // geo.groups, axis=-1)
        return depthwise.weight_grad(each, g, (features, 1, *kernel), one)[:, 0]

    return jnp.moveaxis(lax.map(part, jnp.arange(width)), 0, 1)


def _apart(x, groups: int):
    """(..., groups * width) to (width, ..., groups), stored."""
    return depthwise.stored(jnp.moveaxis(x.reshape(*x.shape[:-1], groups, -1), -1, 0))


def _at(parts, j):
    return lax.dynamic_index_in_dim(parts, j, 0, keepdims=False)


def _added(part, count: int, shape, dtype):
    return lax.fori_loop(0, count, lambda j, total: total + part(j), jnp.zeros(shape, dtype))
