"""Batch and instance normalisation: statistics in one pass, derivatives from the saved statistics."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from jtorch import errors_arguments, errors_autograd
from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core import shapes
from jtorch.core.channel_order import FOLLOWS
from jtorch.core.record import Recomputed, statistics, tls

from . import channels, formats
from .backend import accumulator
from .channels import along
from .norm import group_norm_grad, group_normalized
from .registry import Array, Number, composite, op


def _enter(x):
    return channels.enter(x).astype(accumulator(x.dtype))


def _leave(x, dtype):
    return channels.leave(x).astype(dtype)


def _statistics(x, eps: float):
    """(mean, variance, 1 / standard deviation) of each channel."""
    count = x.size // x.shape[channels.axis(x.ndim)]
    # a sample of the channel is taken off first: the one-pass variance then has nothing large to cancel
    index = [0] * x.ndim
    index[channels.axis(x.ndim)] = slice(None)
    origin = lax.stop_gradient(x[tuple(index)])

    def terms(x):
        d = x - along(origin, x.ndim)
        return d, d * d

    total, squares = channels.sums(terms, x)
    offset = total / count
    var = jnp.maximum(squares / count - offset * offset, 0)
    return origin + offset, var, 1 / jnp.sqrt(var + eps)


def _normalize(x, mean, rstd, weight, bias):
    # one multiply and one add an element
    scale = rstd if weight is None else rstd * weight.astype(rstd.dtype)
    shift = -mean * scale if bias is None else bias.astype(rstd.dtype) - mean * scale
    return x * along(scale, x.ndim) + along(shift, x.ndim)


def _train(input, weight, bias, eps):
    if not input.size:
        nothing = jnp.zeros((_channels(input),), accumulator(input.dtype))
        return input, nothing, nothing, nothing
    x = _enter(input)
    mean, var, rstd = _statistics(x, eps)
    return _leave(_normalize(x, mean, rstd, weight, bias), input.dtype), mean, var, rstd


def _train_grad_from(grad, input, weight, mean, rstd):
    x, g = _enter(input), _enter(grad)
    by_bias, dot = channels.sums(lambda g, x: (g, g * (x - along(mean, x.ndim))), g, x)
    by_weight = dot * rstd
    count = input.size // input.shape[1]
    scale = rstd if weight is None else rstd * weight.astype(rstd.dtype)
    slope = along(scale * rstd * by_weight / count, x.ndim)
    level = along(scale * by_bias / count, x.ndim)
    by_input = g * along(scale, x.ndim) - (x - along(mean, x.ndim)) * slope - level
    return _leave(by_input, input.dtype), by_weight, by_bias


@jax.custom_jvp
def _train_grad(grad, input, weight, mean, rstd, eps):
    return _train_grad_from(grad, input, weight, mean, rstd)


@_train_grad.defjvp
def _(primals, tangents):
    # the saved statistics depend on the input: derivatives of higher order go through their formula
    grad, input, weight, mean, rstd, eps = primals

    def again(grad, input, weight):
        mean, _, rstd = _statistics(_enter(input), eps)
        return _train_grad_from(grad, input, weight, mean, rstd)

    if weight is None:
        _, out = jax.jvp(lambda g, x: again(g, x, None), (grad, input), tangents[:2])
    else:
        _, out = jax.jvp(again, (grad, input, weight), tangents[:3])
    return _train_grad(*primals), out


@op(where="")
def batch_norm_train_grad(
    grad: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, eps: float
) -> Array:
    """The gradients of `batch_norm_train` in its input, weight and bias."""
    if not input.size:
        nothing = jnp.zeros_like(mean)
        return jnp.zeros_like(input), nothing, nothing
    return _train_grad(grad, input, weight, mean, rstd, eps)


@op(where="", hidden=1, grad_name="NativeBatchNormBackward0", strides=formats.follow)
def batch_norm_train(input: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Normalise each channel (dimension 1) by the batch; also the batch's mean and biased variance."""
    return _train(input, weight, bias, eps)


batch_norm_train.vjp(
    bias=lambda g: batch_norm_bias_grad(g[0]),
).vjp_together(
    "input weight",
    lambda g, input, weight, eps, out1, out3: batch_norm_train_grad(g[0], input, weight, out1, out3, eps),
)


@op(where="")
def batch_norm_bias_grad(grad: Array) -> Array:
    """The sum over everything but the channels."""
    return channels.sums(lambda g: (g,), _enter(grad))[0]


@op(where="", grad_name="NativeBatchNormBackward0", strides=formats.follow)
def batch_norm_eval(
    input: Array,
    running_mean: Array,
    running_var: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
) -> Array:
    """Normalise each channel (dimension 1) by given statistics."""
    if not input.size:
        return input
    dtype = accumulator(input.dtype)
    rstd = 1 / jnp.sqrt(running_var.astype(dtype) + eps)
    out = _normalize(_enter(input), running_mean.astype(dtype), rstd, weight, bias)
    return _leave(out, input.dtype)


@op(where="", differentiable=False)
def batch_norm_update(running: Array, batch: Array, momentum: Number, factor: float) -> Array:
    """The running statistic after one batch."""
    new = batch.astype(jnp.promote_types(batch.dtype, running.dtype)) * factor
    return (running * (1 - momentum) + momentum * new).astype(running.dtype)


def _update(name, running, batch, momentum, factor):
    """Move a running statistic, off the tape."""
    me = tls.me
    if me.grad and running.requires_grad:
        raise errors_autograd.barred("native_batch_norm", name)
    new = batch_norm_update(running, batch, momentum, factor)
    before, me.grad = me.grad, False
    try:
        running.copy_(new)
    finally:
        me.grad = before


def _trained(update, *args):
    """The batch normalised, its statistics given to `update`. A recomputation may end with what the op saves: PyTorch's kernel has
    moved the running ones by then."""
    try:
        out, mean, var = batch_norm_train(*args)
    except Recomputed:
        me = tls.me
        before, me.grad = me.grad, False
        try:
            update(*batch_norm_train(*args)[1:])
        finally:
            me.grad = before
        raise
    update(mean, var)
    return out


def _channels(input) -> int:
    return input.shape[1] if input.ndim > 1 else 0


def _check_channels(input, **arrays):
    count = _channels(input)
    for name, a in arrays.items():
        if a is not None and math.prod(a.shape) != count:
            raise RuntimeError(f"{name} should contain {count} elements not {math.prod(a.shape)}")


def _check_repeated(input, **statistics):
    """Refuse running statistics of another number of channels; PyTorch has them once for each sample."""
    for name, a in statistics.items():
        if a is not None and math.prod(a.shape) != input.shape[1]:
            wanted, there = (input.shape[0] * n for n in (input.shape[1], math.prod(a.shape)))
            raise RuntimeError(f"{name} should contain {wanted} elements not {there}")


def _check_floats(input):
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("batch_norm", input.dtype)


def _check_dtypes(input, *statistics, weight, bias):
    """Parameters and statistics have the dtype of the input; those of halves may all be floats."""
    given = [a.dtype for a in (weight, bias, *statistics) if a is not None]
    if not given:
        return
    first = given[0]
    mixed = input.dtype.itemsize == 2 and first is dtypes.float32
    if not (first is input.dtype or mixed) or (mixed and len(set(given)) > 1):
        raise errors_arguments.mixed_norm(input.dtype)
    for other in given:
        if other is not first:
            raise errors.scalar_type(first, other)


for _record in (batch_norm_train, batch_norm_train_grad, batch_norm_bias_grad, batch_norm_eval):
    _record.channels = FOLLOWS


@batch_norm_train.check
def _(input, weight, bias, eps):
    _check_channels(input, weight=weight, bias=bias)
    shapes.wrap_dim(1, input.ndim)
    _check_floats(input)
    _check_dtypes(input, weight=weight, bias=bias)


@batch_norm_update.check
def _(running, batch, momentum, factor):
    if running.dtype is not batch.dtype and running.dtype.itemsize > 2:  # the statistics of halves are floats
        raise errors.scalar_type(batch.dtype, running.dtype)


batch_norm_eval.bars(running_mean="native_batch_norm", running_var="native_batch_norm")


@batch_norm_eval.check
def _(input, running_mean, running_var, weight, bias, eps):
    _check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    _check_floats(input)
    _check_dtypes(input, running_mean, running_var, weight=weight, bias=bias)


@composite(where="nn.functional")
def batch_norm(
    input: Array,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    """Normalise each channel by the batch (training) or by the running statistics, which training updates."""
    count = math.prod(input.shape) // max(_channels(input), 1)
    if training and count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {_size(input.shape)}")
    if eps < 0 or (training and eps == 0):
        limit = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {limit}, but got {eps}")
    if not training:
        if running_mean is None or running_var is None:
            name = "running_mean" if running_mean is None else "running_var"
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        return batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    _check_channels(input, running_mean=running_mean, running_var=running_var)

    def update(mean, var):
        if running_mean is not None and count:  # an empty batch says nothing
            _update("running_mean", running_mean, mean, momentum, 1.0)
        if running_var is not None and count:
            _update("running_var", running_var, var, momentum, count / (count - 1))

    return _trained(update, input, weight, bias, eps)


def _size(shape) -> str:
    return f"torch.Size({list(shape)})"


@op(where="", grad_name="ViewBackward0")
def instance_norm_train(input: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """Normalise each channel of each sample; also their means and biased variances, of shape (N, C)."""
    return group_normalized(input, input.shape[1], weight, bias, eps)[:3]


instance_norm_train.vjp_together(
    "input weight bias",
    lambda g, input, weight, eps, out1, out2: group_norm_grad(
        g[0], input, weight, out1, lax.rsqrt(out2 + jnp.asarray(eps, out2.dtype)), input.shape[1], eps
    ),
)


instance_norm_train.channels = FOLLOWS
instance_norm_train.guards(weight=False)  # PyTorch's kernel has it repeated for each sample


@instance_norm_train.check
def _(input, weight, bias, eps):
    _check_floats(input)


@composite(where="nn.functional")
def instance_norm(
    input: Array,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Normalise each channel of each sample by its own statistics, or by the running ones."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {_size(input.shape)}")
    _check_repeated(input, running_mean=running_mean, running_var=running_var)
    out, mean, var = instance_norm_train(input, weight, bias, eps)
    with statistics():
        if running_mean is not None and count:
            _update("running_mean", running_mean, mean.mean(0), momentum, 1.0)
        if running_var is not None and count:
            _update("running_var", running_var, var.mean(0), momentum, count / (count - 1))
    return out


@composite(where="torch.batch_norm")
def torch_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum,
    eps,
    cudnn_enabled: bool,
):
    """`nn.functional.batch_norm` with torch.batch_norm's order of arguments."""
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@composite(where="torch.instance_norm")
def torch_instance_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    use_input_stats: bool,
    momentum,
    eps,
    cudnn_enabled: bool,
):
    """`nn.functional.instance_norm` with torch.instance_norm's order of arguments."""
    return instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
