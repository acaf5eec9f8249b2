"""Complex numbers of two float16 in programs: arrays of complex64 that hold nothing else. XLA has no such type."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import strided
from .dtype import complex32


def rounded(array):
    """The numbers of complex32 that are closest to those of a complex64 array."""
    parts = jnp.stack([array.real, array.imag])
    # XLA drops a cast there and back unless something stands between, and its reduce_precision knows no subnormal numbers.
    parts = lax.optimization_barrier(parts.astype(jnp.float16)).astype(jnp.float32)
    return lax.complex(parts[0], parts[1])


def reinterpret(flat, old, new):
    """A flat array of one dtype of ours read as another: the same bytes in memory."""
    if old is complex32:
        flat = jnp.stack([flat.real, flat.imag], 1).astype(np.float16).reshape(-1)
    flat = strided.reinterpret(flat, new.memory if new is not complex32 else np.float16)
    if new is complex32:
        pairs = flat.astype(np.float32).reshape(-1, 2)
        flat = lax.complex(pairs[:, 0], pairs[:, 1])
    return flat
