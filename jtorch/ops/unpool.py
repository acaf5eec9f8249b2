"""The inverse of max pooling: each element is put where its window's largest was."""

import builtins
import math

import jax.numpy as jnp
import numpy as np

from . import formats
from .backend import need_floats
from .pool_shapes import check_unpool, unpooled
from .registry import Array, op


@op(where="")
def at_indices(grad: Array, indices: Array, n: int) -> Array:
    """The elements at flat spatial positions: where an index occurs twice, both get it."""
    lead = math.prod(grad.shape[:-n])
    grad = grad.reshape(lead, math.prod(grad.shape[-n:]))
    flat = jnp.take_along_axis(grad, indices.reshape(lead, math.prod(indices.shape[-n:])), 1)
    return flat.reshape(indices.shape)


@op(where="nn.functional", grad_name="SqueezeBackward1")
def max_unpool1d(input: Array, indices: Array, kernel_size, stride=None, padding=0, output_size=None) -> Array:
    """Put each element at its index of the larger result; the rest is zero."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@op(where="nn.functional", grad_name="MaxUnpool2DBackward0", strides=formats.follow)
def max_unpool2d(input: Array, indices: Array, kernel_size, stride=None, padding=0, output_size=None) -> Array:
    """Put each element at its index of the larger result; the rest is zero."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@op(where="nn.functional", grad_name="MaxUnpool3DBackward0")
def max_unpool3d(input: Array, indices: Array, kernel_size, stride=None, padding=0, output_size=None) -> Array:
    """Put each element at its index of the larger result; the rest is zero."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _unpool_rule(n: int):
    return lambda g, indices: at_indices(g, indices, n)


def _max_unpool(n, input, indices, kernel_size, stride, padding, output_size):
    spatial = unpooled(n, input.shape[-n:], kernel_size, stride, padding, output_size)
    lead = math.prod(input.shape[:-n])
    flat = jnp.zeros((lead, math.prod(spatial)), input.dtype)
    if not input.size:
        return flat.reshape(*input.shape[:-n], *spatial)
    rows = jnp.arange(lead)[:, None]
    size = math.prod(input.shape[-n:])
    flat = flat.at[rows, indices.reshape(lead, size)].set(input.reshape(lead, size))
    return flat.reshape(*input.shape[:-n], *spatial)


for _n, _record in enumerate((max_unpool1d, max_unpool2d, max_unpool3d), 1):
    _record.vjp(input=_unpool_rule(_n))

    @_record.check
    def _(input, indices, kernel_size, stride=None, padding=0, output_size=None, n=_n):
        check_unpool(n, input, indices, kernel_size, stride, padding, output_size)
        need_floats(input, f"max_unpool{builtins.max(n, 2)}d")

    @_record.check_values
    def _(input, indices, kernel_size, stride=None, padding=0, output_size=None, n=_n):
        if not isinstance(indices, np.ndarray) or not indices.size:
            return
        spatial = unpooled(n, input.shape[-n:], kernel_size, stride, padding, output_size)
        bad = indices[(indices < 0) | (indices >= math.prod(spatial))]
        if bad.size:
            size = "x".join(map(str, spatial))
            raise RuntimeError(f"Found an invalid max index: {int(bad.flat[0])} (output volumes are of size {size})")
