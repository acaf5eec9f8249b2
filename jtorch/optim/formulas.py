"""The few functions that update formulas need beyond operators, over arrays and over tensors alike.

A formula runs on arrays inside the one recorded node of a step, and on tensors when the step is differentiable.
"""

import jax.numpy as jnp

from jtorch import functions as torch
from jtorch.ops import backend
from jtorch.tensor import Tensor

__all__ = ["absolute", "bias_correction", "cast", "clip", "lerp", "maximum", "minimum", "norm", "sqrt", "where"]


def sqrt(x):
    return x.sqrt() if isinstance(x, Tensor) else jnp.sqrt(x)


def absolute(x):
    return x.abs() if isinstance(x, Tensor) else jnp.abs(x)


def maximum(a, b):
    if isinstance(a, Tensor):
        return torch.maximum(a, b) if isinstance(b, Tensor) else a.clamp(min=b)
    return jnp.maximum(a, b)


def minimum(a, b):
    if isinstance(a, Tensor):
        return torch.minimum(a, b) if isinstance(b, Tensor) else a.clamp(max=b)
    return jnp.minimum(a, b)


def clip(x, low, high):
    return minimum(maximum(x, low), high)


def where(condition, a, b):
    if isinstance(condition, Tensor):
        return torch.where(condition, a, b)
    return jnp.where(condition, a, b)


def lerp(a, b, weight):
    """a + weight * (b - a): the form that PyTorch uses for weights below one half."""
    return a + weight * (b - a)


def bias_correction(beta, step):
    """1 - beta**step, in the dtype of `step`."""
    if isinstance(step, Tensor) or not backend.on_tpu():
        return 1 - beta**step
    # The power of two doubles takes a TPU's compiler a second; this is as exact, in single precision.
    return -jnp.expm1(step.astype(jnp.float32) * jnp.log1p((beta - 1).astype(jnp.float32))).astype(step.dtype)


def norm(x):
    """The Euclidean norm of all elements."""
    return sqrt((x * x).sum())


def cast(x, dtype):
    """`x` in another dtype, named as numpy names it."""
    if isinstance(x, Tensor):
        return x.to(getattr(torch, dtype))
    return x.astype(dtype)
