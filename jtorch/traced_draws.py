"""Random numbers inside JAX's transformations: where a draw is made for the slices of a vmap, or from probabilities not known yet."""

import jax
import jax.numpy as jnp
import numpy as np

from .core import draw
from .core import storage as storages
from .core.lanes import is_traced
from .core.record import tls
from .creation import from_array, from_jax
from .tensor import value_of

__all__ = ["bernoulli", "host", "made", "multinomial", "of_host", "traced"]


def traced(t):
    """The array of a tensor that stands for an argument of a transformation; None for others."""
    value = t._storage.value
    return storages.realise(value_of(t)) if is_traced(value) else None


def host(drawn, shape):
    """What `drawn(shape)` gives; inside a vmap one set of numbers, or one for each slice, as that was asked to."""
    mapped = tls.me.extra.get("vmap_random")
    return drawn(shape) if mapped is None else mapped.host(drawn, shape)


def made(drawn, shape, place, d):
    """The tensor of what `drawn(shape)` gives, or gives each slice of a vmap."""
    return of_host(host(drawn, shape), place, d)


def of_host(array, place, d):
    """The tensor of drawn numbers, which are jax's where each slice of a vmap has its own."""
    return from_array(np.asarray(array), place, d) if isinstance(array, (np.ndarray, np.generic)) else from_jax(array)


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
