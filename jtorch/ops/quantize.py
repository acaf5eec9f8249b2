"""Fake quantization: numbers rounded to the grid of a quantized type, and kept as they are floats.

B. Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, 2018.
"""

import jax.numpy as jnp

from .. import errors_extend
from .registry import ZERO, Array, composite, op


def _on_grid(x, scale, zero_point, low, high):
    """(value on the grid, where it was inside the range)."""
    inverse = 1 / scale
    at = jnp.round(x.astype(jnp.float32) * inverse + zero_point)
    inside = (at >= low) & (at <= high)
    return ((jnp.clip(at, low, high) - zero_point) * scale).astype(x.dtype), inside


@op(where="", hidden=1, grad_name="FakeQuantizePerTensorAffineCachemaskBackward0")
def fake_quantize_tensor(
    input: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int
) -> tuple[Array, Array]:
    """`input` on a grid of step `scale` with `zero_point` at 0, clamped to [quant_min, quant_max] steps."""
    return _on_grid(
        input, scale.astype(jnp.float32).reshape(()), zero_point.astype(jnp.float32).reshape(()), quant_min, quant_max
    )


# Straight through: the gradient passes where the value was inside the range.
fake_quantize_tensor.vjp(input=lambda g, out1: jnp.where(out1, g, 0), scale=ZERO, zero_point=ZERO)


@op(where="", hidden=1, grad_name="FakeQuantizePerChannelAffineCachemaskBackward0")
def fake_quantize_channels(
    input: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> tuple[Array, Array]:
    """fake_quantize_tensor with a scale and zero point for each slice along `axis`."""
    shape = [1] * input.ndim
    shape[axis] = -1
    scale, zero_point = scale.astype(jnp.float32).reshape(shape), zero_point.astype(jnp.float32).reshape(shape)
    return _on_grid(input, scale, zero_point, quant_min, quant_max)


fake_quantize_channels.vjp(input=lambda g, out1: jnp.where(out1, g, 0), scale=ZERO, zero_point=ZERO)


@composite(where="torch")
def fake_quantize_per_tensor_affine(input: Array, scale, zero_point, quant_min, quant_max):
    """`input` rounded to a grid: (clamp(round(input / scale + zero_point), quant_min, quant_max) - zero_point) * scale.

    scale, zero_point: numbers, or tensors with one element. The gradient passes where nothing was clamped.
    """
    if quant_min > quant_max:
        raise errors_extend.fake_range(quant_min, quant_max)
    if isinstance(zero_point, int) and not quant_min <= zero_point <= quant_max:
        raise errors_extend.fake_zero_point(quant_min, quant_max)
    scale, zero_point = (x if hasattr(x, "shape") else input.detach().new_full((), x) for x in (scale, zero_point))
    return fake_quantize_tensor(input, scale, zero_point, int(quant_min), int(quant_max))


@composite(where="torch")
def fake_quantize_per_channel_affine(input: Array, scale: Array, zero_point: Array, axis: int, quant_min, quant_max):
    """fake_quantize_per_tensor_affine with a scale and zero point for each slice along `axis`."""
    if quant_min > quant_max:
        raise errors_extend.fake_range(quant_min, quant_max)
    for name, x in (("scale", scale), ("zero-point", zero_point)):
        if x.numel() != input.shape[axis]:
            raise errors_extend.fake_channels(name, x.numel(), input.shape[axis])
    return fake_quantize_channels(input, scale, zero_point, int(axis) % input.ndim, int(quant_min), int(quant_max))
