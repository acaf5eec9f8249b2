"""Linear recurrences over time: y[n] = x[n] - a[1] y[n - 1] - a[2] y[n - 2] ..., by blocks of samples and not one at a time.

Within a block y = H x + G s: H holds the impulse response, s the last outputs of the block before. What is of x alone is one matmul of
all blocks; the loop over blocks takes only the few outputs that the next block starts with.
"""

import jax.numpy as jnp
from jax import lax

from ..core import blas
from .registry import Array, op

BLOCK = 64  # samples


def _responses(taps, length):
    """(H, G) of a block, (channels, length, length) and (channels, length, order), from taps (channels, order): a[order] ... a[1].

    They solve T y = x - S s, where T and S are bands of taps."""
    channels, order = taps.shape
    ones = jnp.ones((channels, 1), taps.dtype)
    band = jnp.concatenate([taps, ones], 1)
    # Column c of T is the output c, of S the output c - order: both read the tap that lies as far back.
    back = jnp.arange(length)[:, None] - jnp.arange(-order, length)
    both = jnp.where((back >= 0) & (back <= order), band[:, jnp.clip(order - back, 0, order)], 0)
    earlier, within = both[:, :, :order], both[:, :, order:]
    unit = jnp.broadcast_to(jnp.eye(length, dtype=taps.dtype), within.shape)
    right = jnp.concatenate([unit, -earlier], 2)
    blas.lapack_for(length)
    solved = lax.linalg.triangular_solve(within, right, left_side=True, lower=True, unit_diagonal=True)
    return solved[:, :, :length], solved[:, :, length:]


@op(where="")
def linear_recurrence(input: Array, taps: Array, state: Array) -> Array:
    """The outputs of input (batch, channels, time), given taps (channels, order), the one furthest back first, and the last `order`
    outputs before, state (batch, channels, order)."""
    batch, channels, samples = input.shape
    order = taps.shape[1]
    if not order or not input.size:
        return input
    length = min(BLOCK, samples)
    blocks = -(-samples // length)
    # In float64 whatever the signal's dtype: of a filter that rings a block's outputs are small differences of large products.
    response, start = _responses(taps.astype(jnp.float64), length)
    x = jnp.pad(input, ((0, 0), (0, 0), (0, blocks * length - samples))).reshape(batch, channels, blocks, length)
    x = x.astype(jnp.float64)
    # A matmul would spread what is not finite to the samples before it.
    lost = lax.cummax((~jnp.isfinite(x)).astype(jnp.int8), axis=3) > 0
    y = jnp.einsum("bcnj,cij->nbci", jnp.where(lost, 0, x), response)
    y = jnp.where(jnp.moveaxis(lost, 2, 0), jnp.nan, y)
    last = min(order, length)
    y_last, start_last = y[..., -last:], start[:, -last:]

    def step(before, ends):
        ends = ends + jnp.einsum("bcj,cij->bci", before, start_last)
        return jnp.concatenate([before, ends], 2)[..., -order:], before

    _, before = lax.scan(step, state.astype(jnp.float64), y_last)
    y = y + jnp.einsum("nbcj,cij->nbci", before, start)
    return jnp.moveaxis(y.astype(input.dtype), 0, 2).reshape(batch, channels, -1)[..., :samples]
