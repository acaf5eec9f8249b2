"""Convolutions in space, seen as convolutions of their layers. Knows arrays, never Tensor.

The layers under the first dimension of a kernel are channels of one image each. XLA's CPU runtime has quick loops for the plane only.
"""

import jax.numpy as jnp
from jax import lax

__all__ = ["plane", "stacked", "unstacked", "weight"]


def plane(geo):
    """The geometry without the first dimension."""
    return geo._replace(**{name: getattr(geo, name)[1:] for name in ("stride", "lo", "hi", "dilation")})


def stacked(x, kernel, out, geo):
    """(N, D, H, W, C) to (N * out, H, W, taps * C): under each position of the first dimension the layers that its taps meet."""
    taps, count, stride, step, lo = kernel[0], out[0], geo.stride[0], geo.dilation[0], geo.lo[0]
    span = (count - 1) * stride + 1
    hi = span + (taps - 1) * step - lo - x.shape[1]
    if lo or hi:
        x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (lo, hi, 0), *((0, 0, 0),) * 3])
    parts = [lax.slice_in_dim(x, t * step, t * step + span, stride, axis=1) for t in range(taps)]
    return jnp.concatenate(parts, -1).reshape(-1, *x.shape[2:-1], taps * x.shape[-1])


def unstacked(x, size, kernel, out, geo):
    """The transpose of `stacked`, to channels last of the full size (N, C, D, H, W)."""
    taps, count, stride, step, lo = kernel[0], out[0], geo.stride[0], geo.dilation[0], geo.lo[0]
    x = x.reshape(size[0], count, *size[3:], taps, size[1])
    total = None
    for t in range(taps):
        before = t * step - lo
        after = size[2] - before - (count - 1) * stride - 1
        config = [(0, 0, 0), (before, after, stride - 1), *((0, 0, 0),) * 3]
        part = lax.pad(x[..., t, :], jnp.zeros((), x.dtype), config)
        total = part if total is None else total + part
    return total


def weight(w):
    """(O, C, D, H, W) to (O, D * C, H, W)."""
    return jnp.swapaxes(w, 1, 2).reshape(w.shape[0], -1, *w.shape[3:])
