"""Normalisations within a sample, norms' relatives, and the distances built on them. Knows arrays only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core import shapes
from jtorch.core.channel_order import FOLLOWS

from . import backend, channels, distances, formats
from .conversion import to_float
from .registry import FLOAT, PROMOTE, composite, op

# Each kernel works on (outer, inner): rows of the elements that share a mean. Statistics are kept for the
# derivative, and are in float32 for 16-bit inputs.


def _split(x: Array, n: int) -> Array:
    """The last `n` dimensions as one; the others as they are."""
    return x.reshape(*x.shape[: x.ndim - n], math.prod(x.shape[x.ndim - n :]))


def _matrix(x: Array) -> Array:
    """Everything but the last dimension as rows."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _moments(x: Array, eps: float) -> tuple[Array, Array]:
    """Mean and reciprocal standard deviation of each row."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
    return mean, lax.rsqrt(variance + jnp.asarray(eps, x.dtype))


def _wide(x: Array) -> Array:
    return x.astype(backend.accumulator(x.dtype))


def _layer_norm(input, normalized_shape, weight, bias, eps):
    n = len(normalized_shape)
    x = _wide(_split(input, n))
    mean, rstd = _moments(x, eps)
    out = (x - mean) * rstd
    if weight is not None:
        out = out * weight.reshape(-1).astype(out.dtype)
    if bias is not None:
        out = out + bias.reshape(-1).astype(out.dtype)
    stats = (*input.shape[: input.ndim - n], *(1,) * n)
    return out.reshape(input.shape).astype(input.dtype), mean.reshape(stats), rstd.reshape(stats)


@op(where="torch nn.functional", hidden=2, out=False, grad_name="NativeLayerNormBackward0")
def layer_norm(
    input: Array,
    normalized_shape: list[int],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> tuple[Array, Array, Array]:
    """Zero mean and unit variance over the last dimensions, then `* weight + bias`."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


layer_norm.guards(bias=True)


layer_norm.vjp_together(
    "input weight bias",
    lambda g, input, normalized_shape, weight, eps, out1, out2: layer_norm_grad(
        g, input, weight, out1, out2, len(normalized_shape), eps
    ),
)


def _check_normalized(input, normalized_shape, star: str) -> None:
    shape = list(normalized_shape)
    if not shape:
        raise errors.normalized_shape_empty()
    if list(input.shape[-len(shape) :]) != shape or len(shape) > input.ndim:
        raise errors.normalized_shape(shape, input.shape, star)


@layer_norm.check
def _(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    _check_layer_norm(input, normalized_shape, weight, bias)


def _check_layer_norm(input, normalized_shape, weight, bias) -> None:
    shape = list(normalized_shape)
    if not shape:
        raise errors.normalized_shape_empty()
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and list(x.shape) != shape:
            raise errors.affine_shape(name, x.shape, shape)
    _check_normalized(input, normalized_shape, ", ")
    _check_mixed(input, weight, bias)
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("LayerNormKernelImpl", input.dtype)


def _check_mixed(input, *affine) -> None:
    """All of one dtype, or a 16-bit input with float32 weights."""
    for x in affine:
        if x is None or x.dtype is input.dtype:
            continue
        if input.dtype.itemsize != 2 or x.dtype is not dtypes.float32:
            raise errors.mixed_dtype()


def kept_as(input, weight, bias, out, *statistics):
    """Results with statistics as PyTorch returns them: in float32 where a parameter is, else in the input's dtype."""
    mixed = any(p is not None and p.dtype == jnp.float32 for p in (weight, bias))
    return out, *(x.astype(jnp.float32 if mixed else input.dtype) for x in statistics)


@op(where="torch", constant=(1, 2))
def native_layer_norm(
    input: Array, normalized_shape: list[int], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """layer_norm, its mean and its reciprocal standard deviation."""
    return kept_as(input, weight, bias, *_layer_norm(input, normalized_shape, weight, bias, eps))


native_layer_norm.guards(weight=True, bias=True)


# the gradient goes through the first result alone, as PyTorch's does
native_layer_norm.vjp_together(
    "input weight bias",
    lambda g, input, normalized_shape, weight, eps, out1, out2: layer_norm_grad(
        g[0], input, weight, out1, out2, len(normalized_shape), eps
    ),
)


@native_layer_norm.check
def _(input, normalized_shape, weight, bias, eps):
    _check_layer_norm(input, normalized_shape, weight, bias)


def _weighted_sum(x: Array, weight: Array | None) -> Array:
    """The sum of each row of `x * weight`; on the CPU a product, which takes a third of the time of summing what is multiplied."""
    if weight is None:
        return jnp.sum(x, -1, keepdims=True)
    if backend.on_cpu() and x.dtype in (jnp.float32, jnp.float64):
        return jnp.matmul(x, weight[:, None])
    return jnp.sum(x * weight, -1, keepdims=True)


@op(where="")
def layer_norm_grad(
    grad: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, n: int, eps: float
) -> tuple[Array, Array, Array]:
    """The cotangents of layer_norm's input, weight and bias. On the CPU `grad * (input - mean)` is stored: its sums along the rows and
    over them are products."""
    inner = input.shape[input.ndim - n :]

    def fast(grad, input, weight, mean, rstd):
        g, x, mean, rstd = (
            _matrix(v) for v in (_wide(_split(grad, n)), _wide(_split(input, n)), _flat(mean, n), _flat(rstd, n))
        )
        w = None if weight is None else _wide(weight.reshape(-1))
        d = x - mean
        moved = backend.materialize(g * d)
        along, across = _weighted_sum(g, w) / x.shape[1], _weighted_sum(moved, w) / x.shape[1]
        out = rstd * ((g if w is None else g * w) - along - d * (across * jnp.square(rstd)))
        over = (backend.column_sum(moved, rstd), backend.column_sum(g))
        dtype = x.dtype if weight is None else weight.dtype
        return out.reshape(input.shape).astype(input.dtype), *(v.reshape(inner).astype(dtype) for v in over)

    def plain(grad, input, weight, mean, rstd):
        return fast(grad, input, weight, *_layer_norm(input, inner, None, None, eps)[1:])

    return backend.differentiated_as(fast, plain)(grad, input, weight, mean, rstd)


def _flat(stat: Array, n: int) -> Array:
    return stat.reshape(*stat.shape[: stat.ndim - n], 1)


# rms_norm


@op(where="torch nn.functional", out=False, grad_name="MulBackward0")
def rms_norm(input: Array, normalized_shape: list[int], weight: Array | None = None, eps: float | None = None) -> Array:
    """Divide by the root of the mean square over the last dimensions, then `* weight`.

    `eps` defaults to the machine epsilon of the input's dtype."""
    n = len(normalized_shape)
    x = _split(input, n)
    x = x.astype(backend.accumulator(x.dtype))
    if eps is None:
        eps = float(jnp.finfo(x.dtype).eps)
    # complex numbers are squared as such, not their absolute values: what PyTorch computes
    square = jnp.mean(jnp.square(x), axis=-1, keepdims=True) + jnp.asarray(eps, x.dtype)
    out = x * (1 / jnp.sqrt(square) if jnp.iscomplexobj(x) else lax.rsqrt(square))
    if weight is not None:
        out = out * weight.reshape(-1).astype(out.dtype)
    return out.reshape(input.shape).astype(input.dtype)


@rms_norm.check
def _(input, normalized_shape, weight=None, eps=None):
    shape = list(normalized_shape)
    if weight is not None and list(weight.shape) != shape:
        raise errors.affine_shape("weight", weight.shape, shape)
    _check_normalized(input, normalized_shape, "")
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise errors.not_implemented("rms_norm", input.dtype)


# group_norm


@op(where="torch nn.functional", hidden=2, out=False, grad_name="NativeGroupNormBackward0", strides=formats.follow)
def group_norm(
    input: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool | None = True,
) -> tuple[Array, Array, Array]:
    """Zero mean and unit variance over each group of channels, then `* weight + bias` by channel."""
    return _group_norm(input, num_groups, weight, bias, eps)


def _by_channel(x: Array) -> Array:
    """(N, C, *S), wide, as (N, S, C) where kernels have the channels last, as (N, C, S) elsewhere."""
    x = channels.enter(_wide(x))
    flat = (-1, x.shape[-1]) if channels.space(3) == 1 else (x.shape[1], -1)
    return x.reshape(x.shape[0], *flat)


def _over(x: Array) -> Array:
    """The sum over the space of a `_by_channel`: a number for each channel of each sample."""
    return jnp.sum(x, channels.space(3))


def _each(v: Array) -> Array:
    """A number for each channel of each sample, to be broadcast with `_by_channel`."""
    return jnp.expand_dims(v, channels.space(3))


def _as(x: Array, like: Array) -> Array:
    """A `_by_channel` in the shape and dtype of the array that it was made of."""
    n, c, *space = like.shape
    return channels.leave(x.reshape((n, *space, c) if channels.space(3) == 1 else like.shape)).astype(like.dtype)


def _group_statistics(x, groups: int, eps: float):
    """Mean, variance and reciprocal standard deviation of the groups, (N, groups), by the sums of each channel: one pass over `_by_channel`."""
    count = x.shape[channels.space(3)]
    # an element of the channel is taken off first: the variance then has nothing large to cancel
    origin = lax.stop_gradient(lax.index_in_dim(x, 0, channels.space(3), keepdims=False))
    d = x - _each(origin)
    total, squares = _over(d), _over(jnp.square(d))
    group = lambda v: v.reshape(x.shape[0], groups, -1)
    means = group(origin + total / count)
    within = group(jnp.maximum(squares - jnp.square(total) / count, 0))
    mean = jnp.mean(means, -1)
    across = jnp.square(means - mean[..., None])
    variance = jnp.mean(within / count + across, -1)
    return mean, variance, lax.rsqrt(variance + jnp.asarray(eps, x.dtype))


def _of_channels(v: Array, count: int) -> Array:
    """(N, groups) to (N, C)."""
    return jnp.repeat(v, count // v.shape[1], axis=1)


def _group_norm(input, groups, weight, bias, eps):
    out, mean, _, rstd = group_normalized(input, groups, weight, bias, eps)
    return out, mean, rstd


def group_normalized(input, groups, weight, bias, eps):
    """The result of group norm, and the groups' mean, variance and reciprocal standard deviation."""
    n, c = input.shape[:2]
    if not input.size:
        mean, rstd = _moments(_wide(input).reshape(n, groups, math.prod(input.shape[1:]) // max(groups, 1)), eps)
        return input, mean[..., 0], rstd[..., 0] * 0, rstd[..., 0]
    x = _by_channel(input)
    mean, variance, rstd = _group_statistics(x, groups, eps)
    scale = _of_channels(rstd, c)
    scale = scale if weight is None else scale * weight.astype(x.dtype)
    shift = -_of_channels(mean, c) * scale
    shift = shift if bias is None else shift + bias.astype(x.dtype)
    return _as(x * _each(scale) + _each(shift), input), mean, variance, rstd


group_norm.vjp_together(
    "input weight bias",
    lambda g, input, num_groups, weight, eps, out1, out2: group_norm_grad(
        g, input, weight, out1, out2, num_groups, eps
    ),
)


group_norm.asked = "dim"


@group_norm.check
def _(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    if input.ndim < 2:
        raise errors.group_norm_rank(input.ndim)
    if cudnn_enabled is None and num_groups > 0:  # as nn.functional calls it
        values = (input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:])
        if values[0] * math.prod(values[2:]) == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(values)}")
    if num_groups <= 0:
        raise errors.group_norm_groups(num_groups)
    if input.shape[1] % num_groups:
        raise errors.group_norm_channels(input.shape, num_groups)
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and tuple(x.shape) != (input.shape[1],):
            raise errors.channel_vector(name, x.shape, input.shape)
    _check_mixed(input, weight, bias)
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("GroupNormKernelImpl", input.dtype)


@op(where="")
def group_norm_grad(
    grad: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    """The cotangents of group_norm's input, weight and bias: two sums for each channel of each sample give them all."""
    n, c = input.shape[:2]

    def fast(grad, input, weight, mean, rstd):
        x, g = _by_channel(input), _by_channel(grad)
        count = x.shape[channels.space(3)] * (c // groups)
        d, rate = x - _each(_of_channels(mean, c)), _of_channels(rstd, c)
        by_shift, dot = _over(g), _over(g * d) * rate
        scale = rate if weight is None else rate * weight.astype(x.dtype)
        weighted = lambda v: v if weight is None else v * weight.astype(x.dtype)
        group = lambda v: _of_channels(jnp.sum(weighted(v).reshape(n, groups, -1), -1), c) / count * rate
        out = g * _each(scale) - d * _each(group(dot) * rate) - _each(group(by_shift))
        dtype = x.dtype if weight is None else weight.dtype
        return _as(out, input), jnp.sum(dot, 0).astype(dtype), jnp.sum(by_shift, 0).astype(dtype)

    def plain(grad, input, weight, mean, rstd):
        return fast(grad, input, weight, *_group_norm(input, groups, None, None, eps)[1:])

    if not input.size:
        nothing = jnp.zeros(c, mean.dtype)
        return jnp.zeros_like(input), nothing, nothing
    return backend.differentiated_as(fast, plain)(grad, input, weight, mean, rstd)


group_norm.channels = group_norm_grad.channels = FOLLOWS


@op(promote=FLOAT, where="", inplace=False, out=False, grad_name="DivBackward0")
def response_norm(input: Array, size: int, alpha: float, beta: float, k: float, whole: bool) -> Array:
    """local_response_norm; `whole`: of integers, whose mean square PyTorch rounds down."""
    x = _wide(input)
    square = jnp.square(x)
    window = (1, size) + (1,) * (x.ndim - 2)
    pad = ((0, 0), (size // 2, (size - 1) // 2), *((0, 0),) * (x.ndim - 2))
    near = lax.reduce_window(square, np.zeros((), x.dtype), lax.add, window, (1,) * x.ndim, pad)
    mean = jnp.floor(near / size) if whole else near / size
    scale = jnp.asarray(alpha, x.dtype) * mean + jnp.asarray(k, x.dtype)
    return (x * jnp.power(scale, jnp.asarray(-beta, x.dtype))).astype(input.dtype)


@response_norm.check
def _(input, size, alpha, beta, k, whole):
    if input.ndim < 3:
        raise errors.response_norm_rank(input.ndim)
    if not (input.dtype.is_floating_point or input.dtype is dtypes.int64):
        raise errors.not_implemented("avg_pool2d" if input.ndim == 3 else "avg_pool3d_out_frame", input.dtype)


@composite(where="nn.functional")
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divide by a power of the mean square over `size` neighbouring channels."""
    if input.ndim >= 3 and 0 in input.shape:
        return input
    return response_norm(input, size, float(alpha), float(beta), float(k), not input.dtype.is_floating_point)


# Norms along a dimension, with PyTorch's gradient of 0 where the norm is 0


def _norm(x: Array, p: float, dim, keepdims: bool) -> Array:
    if x.ndim == 0:
        return _norm(x[None], p, 0, False)
    size = backend.magnitude(x)
    if p == math.inf:
        return backend.extreme_over(size, dim, keepdims, True)
    if p == -math.inf:
        return backend.extreme_over(size, dim, keepdims, False)
    if p == 0:
        return jnp.sum(size != 0, axis=dim, keepdims=keepdims).astype(size.dtype)
    if p == 1:
        return jnp.sum(size, axis=dim, keepdims=keepdims)
    # the inner selection: a root, and a power below 1, have an infinite slope at 0
    if p == 2:
        square = jnp.square(jnp.real(x)) + jnp.square(jnp.imag(x)) if jnp.iscomplexobj(x) else jnp.square(x)
        total = jnp.sum(square, axis=dim, keepdims=keepdims)
        return jnp.where(total == 0, 0, jnp.sqrt(jnp.where(total == 0, 1, total)))
    power = jnp.where(size == 0, 0 if p > 0 else jnp.inf, jnp.power(jnp.where(size == 0, 1, size), p))
    total = jnp.sum(power, axis=dim, keepdims=keepdims)
    return jnp.where(total == 0, 0, jnp.power(jnp.where(total == 0, 1, total), 1 / p))


@op(where="nn.functional", grad_name="DivBackward0", strides=formats.keep_order)
def normalize(input: Array, p: float = 2.0, dim: int | tuple[int, ...] | None = 1, eps: float = 1e-12) -> Array:
    """Divide by the p-norm along `dim`, or by `eps` where the norm is smaller."""
    x = _wide(input)
    norm = _norm(x, p, dim, keepdims=True)
    floor = jnp.asarray(eps, norm.dtype)
    return (x / jnp.where(norm < floor, floor, norm).astype(x.dtype)).astype(input.dtype)


@normalize.check
def _(input, p=2.0, dim=1, eps=1e-12):
    _check_dim(input, dim)
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise errors.vector_norm_dtype(input.dtype)


def _check_dim(input, dim) -> None:
    n = input.ndim or 1
    for d in (dim,) if isinstance(dim, int) else dim or ():
        if not -n <= d < n:
            raise errors.dim_range(d, input.ndim)


@op(where="torch nn.functional", out=False, grad_name="SumBackward1")
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """The sum of products along `dim`, divided by both norms, each at least `eps`."""
    dtype = jnp.result_type(x1.dtype, x2.dtype)
    a, b = jnp.broadcast_arrays(x1.astype(dtype), x2.astype(dtype))
    a, b = _wide(a), _wide(b)
    floor = jnp.asarray(eps, a.dtype)
    unit = []
    for x in (a, b):
        norm = _norm(x, 2, dim, keepdims=True)
        # the floor is a constant to the derivative of the norm, as in PyTorch
        unit.append(x / (norm + lax.stop_gradient(jnp.maximum(norm, floor) - norm)))
    product = unit[0] * unit[1]
    return (jnp.sum(product, axis=dim) if product.ndim else product).astype(dtype)


@cosine_similarity.check
def _(x1, x2, dim=1, eps=1e-8):
    common = dtypes.promote(x1.dtype, x2.dtype)
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    if not common.is_floating_point:
        raise errors.common_float(common)
    _check_dim(x1 if x1.ndim >= x2.ndim else x2, dim)
    shapes.broadcast(tuple(x1.shape), tuple(x2.shape))


@op(promote=PROMOTE, elementwise=False, where="torch nn.functional", out=False, grad_name="NormBackward1")
def pairwise_distance(x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    """The p-norm of `x1 - x2 + eps` along the last dimension."""
    x1 = to_float(x1 - x2)  # bytes wrap
    difference = _wide(x1) + jnp.asarray(eps, backend.accumulator(x1.dtype))
    out = _norm(difference, p, -1, keepdim)
    return out.astype(x1.dtype) if not jnp.iscomplexobj(x1) else out


pairwise_distance.guards(x1=False, x2=False, out=True)


@pairwise_distance.check
def _(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    if dtypes.bool_ in (x1.dtype, x2.dtype):
        raise errors.bool_minus(two=x1.dtype is x2.dtype)
    shapes.broadcast(tuple(x1.shape), tuple(x2.shape))


def _distance(difference: Array, p: float) -> Array:
    """The p-norms of rows. Of order 0 those of nans are nan, which count as one element elsewhere."""
    out = _norm(difference, p, -1, False)
    return jnp.where(jnp.isnan(difference).any(-1), jnp.nan, out).astype(out.dtype) if p == 0 else out


@op(where="torch nn.functional", out=False)
def pdist(input: Array, p: float = 2.0) -> Array:
    """The p-norm distances between the rows of a matrix, each pair once: (0, 1), (0, 2), ..., (1, 2), ..."""
    first, second = np.triu_indices(input.shape[0], 1)
    if not input.shape[1] or not len(first):
        return jnp.zeros(len(first), input.dtype)
    if backend.on_cpu():  # all pairs in one loop: rows that are gathered are stored first
        places = (first * len(input) + second).astype(np.int32)
        return _distance(input[:, None] - input, p).reshape(-1)[places]
    return _distance(input[first] - input[second], p)


def _pulled_pairs(g, input, out, p):
    derived = lambda g, x, out: jax.vjp(lambda x: pdist.fn(x, p), x)[1](g)[0]
    if p not in (2, math.inf) or not input.size or not len(out):
        return derived(g, input, out)
    by_pairs = lambda g, x, out: distances.pulled_pairs(g, x, out, p)
    return backend.differentiated_as(by_pairs, derived)(g, input, out)


pdist.vjp(input=_pulled_pairs)
pdist.guards(input=True, out=True)


@pdist.check
def _(input, p=2.0):
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if input.shape[0] > 1:
        backend.need_floats(input, "pdist", halves=False)
