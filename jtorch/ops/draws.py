"""Random numbers whose distribution is given by tensors. Knows arrays, never Tensor."""

import jax.numpy as jnp
import jax.scipy.special as jsp
from jax import lax

from ..core import dtype as dtypes
from ..core import rng
from .registry import ZERO, Array, Key, op


@op(where="torch", out="exact")
def binomial(count: Array, prob: Array, generator: object = None, *, key: Key) -> Array:
    """How often an event of probability `prob` happens in `count` trials."""
    shape = jnp.broadcast_shapes(count.shape, prob.shape)
    n = jnp.broadcast_to(count, shape).astype(jnp.float64)
    p = jnp.broadcast_to(prob, shape).astype(jnp.float64)
    u = rng.uniform(key, shape, jnp.float64)

    def halve(_, bounds):
        low, high = bounds  # the cumulative probability of low is below u, that of high is not
        middle = jnp.floor((low + high) / 2)
        below = jsp.betainc(jnp.maximum(n - middle, 1e-300), middle + 1, 1 - p) < u
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    _, drawn = lax.fori_loop(0, 54, halve, (jnp.full(shape, -1.0), n))
    drawn = jnp.where(p <= 0, 0, jnp.where(p >= 1, n, drawn))
    return drawn.astype(count.dtype)


binomial.vjp(count=ZERO, prob=ZERO)


@binomial.check
def _(count, prob, generator=None, *, key=None):
    for name, x in (("count", count), ("prob", prob)):
        if not x.dtype.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {dtypes.scalar_name(x.dtype)}"
            )
    if count.dtype is not prob.dtype:
        raise RuntimeError(
            f"Found dtype {dtypes.scalar_name(prob.dtype)} but expected {dtypes.scalar_name(count.dtype)}"
        )
