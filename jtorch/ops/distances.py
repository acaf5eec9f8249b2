"""Derivatives of distances between rows, from the distances themselves. Knows arrays only.

One loop over the pairs for each set of rows: what jax derives keeps powers and extremes of all differences.
"""

import math

import jax.numpy as jnp
from jax import Array

from .backend import materialize

__all__ = ["pulled", "pulled_pairs", "square_of_pairs"]


def _towards(g: Array, distance: Array, difference: Array, p: float) -> Array:
    """g times the derivative of p-norms of differences, by these: 0 of a difference or a norm of 0."""
    zero = jnp.zeros((), g.dtype)
    if p == 0:
        return jnp.zeros_like(difference)
    if p == 1:
        return jnp.sign(difference) * g[..., None]
    if math.isinf(p):
        return jnp.where(jnp.abs(difference) == distance[..., None], jnp.sign(difference) * g[..., None], zero)
    share = materialize(jnp.where(distance == 0, zero, g / jnp.where(distance == 0, 1, distance) ** (p - 1)))[..., None]
    if p == 2:
        return difference * share
    size = jnp.abs(difference)
    power = jnp.where(size == 0, zero, jnp.where(size == 0, 1, size) ** (p - 1))
    return jnp.sign(difference) * power * share


def pulled(g: Array, x: Array, y: Array, distance: Array, p: float) -> tuple[Array, Array]:
    """The gradients of two sets of rows from that of `distance`, the p-norms of all differences between them."""
    toward = lambda: _towards(g, distance, x[..., :, None, :] - y[..., None, :, :], p)
    return toward().sum(-2), -toward().sum(-3)


def square_of_pairs(pairs: Array, rows: int) -> Array:
    """What stands for the pairs (0, 1), (0, 2), ..., (1, 2), ... of rows as a symmetric matrix, 0 of a row with itself."""
    at = jnp.arange(rows, dtype=jnp.int32)
    low, high = jnp.minimum(at[:, None], at), jnp.maximum(at[:, None], at)
    place = low * (2 * rows - low - 1) // 2 + high - low - 1
    return jnp.where(low == high, jnp.zeros((), pairs.dtype), pairs[jnp.clip(place, 0, len(pairs) - 1)])


def pulled_pairs(g: Array, x: Array, distance: Array, p: float) -> Array:
    """The gradient of rows from that of `distance`, the p-norms of the differences of each pair."""
    g, distance = (materialize(square_of_pairs(a, len(x))) for a in (g, distance))
    return _towards(g, distance, x[:, None] - x, p).sum(1)
