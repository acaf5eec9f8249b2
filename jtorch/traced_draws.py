"""Random numbers inside JAX's transformations: where a draw is made for the slices of a vmap, or from probabilities not known yet."""

import jax
import jax.numpy as jnp

from .core import draw
from .core import storage as storages
from .core.lanes import is_traced
from .core.record import tls
from .tensor import value_of

__all__ = ["bernoulli", "host", "multinomial", "traced"]


def traced(t):
    """The array of a tensor that stands for an argument of a transformation; None for others."""
    value = t._storage.value
    return storages.realise(value_of(t)) if is_traced(value) else None


def host(drawn, shape):
    """What `drawn(shape)` gives; inside a vmap one set of numbers, or one for each slice, as that was asked to."""
    mapped = tls.me.extra.get("vmap_random")
    return drawn(shape) if mapped is None else mapped.host(drawn, shape)


def bernoulli(probability, gen):
    """0 or 1 of the shape of an array of probabilities."""
    kind = "float64" if probability.dtype == "float64" else "float32"
    return jnp.less(host(lambda s: draw.uniform(gen, s, kind), probability.shape), probability)


def multinomial(weights, count, replacement, gen):
    """Indices drawn from each row of weights: the largest of weight over exponential noise is drawn first."""
    shape = (*weights.shape[:-1], count, weights.shape[-1]) if replacement else weights.shape
    noise = host(lambda s: draw.exponential(gen, s, "float64"), shape)
    if replacement:
        return jnp.argmax(weights[..., None, :] / noise, axis=-1)
    return jax.lax.top_k(weights / noise, count)[1].astype("int64")
