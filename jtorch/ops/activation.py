"""Activation functions and the softmax family. Knows arrays only."""

import builtins
import functools
import math

import jax.numpy as jnp
from jax import Array, lax

from jtorch import errors_autograd
from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core import rng
from jtorch.core.dtype import dtype as DType
from jtorch.errors import argument, warn

from . import backend, formats
from .backend import magnitude, widened
from .registry import FLOAT, PROMOTE, Key, Number, composite, op

# An activation of floats alone: integers are an error, named after PyTorch's CPU kernel.


def floats_only(record, kernel: str, *, complex: bool = False):
    """Refuse inputs that PyTorch's CPU kernel of this name has no implementation for."""

    @record.check
    def check(input, *args, **kwargs):
        if not (input.dtype.is_floating_point or (complex and input.dtype.is_complex)):
            raise errors.not_implemented(kernel, input.dtype)


# softmax: derivatives from the saved result, which read it once


def _exponentials(x: Array, dim: int) -> tuple[Array, Array, Array]:
    top = lax.stop_gradient(jnp.max(x, axis=dim, keepdims=True))
    shifted = x - top
    e = jnp.exp(shifted)
    return shifted, e, jnp.sum(e, axis=dim, keepdims=True)


def _softmax_kernel(kernel):
    """Both kernels: cast to `dtype` first, accept 0-d and empty inputs."""

    def run(input, dim, dtype):
        x = input if dtype is None else input.astype(dtype.np)
        if x.size == 0:
            return x
        narrow = x.dtype
        x = x.astype(backend.accumulator(narrow))
        out = kernel(x.reshape(1), 0).reshape(()) if x.ndim == 0 else kernel(x, dim)
        return out.astype(narrow)

    return run


@_softmax_kernel
def _softmax(x, dim):
    _, e, total = _exponentials(x, dim)
    return e * (1 / total)


@_softmax_kernel
def _log_softmax(x, dim):
    shifted, _, total = _exponentials(x, dim)
    return shifted - jnp.log(total)


@op(where="torch Tensor special", out="exact")
def softmax(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """Exponentials along `dim`, divided by their sum; computed in `dtype` when given."""
    return _softmax(input, dim, dtype)


@op(where="torch Tensor special", out="exact")
def log_softmax(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """The logarithm of softmax, computed without forming softmax."""
    return _log_softmax(input, dim, dtype)


softmax.vjp(input=lambda g, dim, out: softmax_grad(g, out, dim))
log_softmax.vjp(input=lambda g, dim, out: log_softmax_grad(g, out, dim))


@op(where="", out=False, grad_name="SoftmaxBackwardDataBackward0")
@widened
def softmax_grad(grad: Array, out: Array, dim: int) -> Array:
    """The cotangent of softmax's input."""
    weighted = grad * out
    return weighted - out * _total(weighted, dim)


@op(where="", out=False, grad_name="LogSoftmaxBackwardDataBackward0")
@widened
def log_softmax_grad(grad: Array, out: Array, dim: int) -> Array:
    """The cotangent of log_softmax's input."""
    return grad - jnp.exp(out) * _total(grad, dim)


def _total(x: Array, dim: int) -> Array:
    return x if x.ndim == 0 else jnp.sum(x, axis=dim, keepdims=True)


def _check_softmax(name):
    def check(input, dim, dtype=None):
        n = builtins.max(input.ndim, 1)
        if not -n <= dim < n:
            raise errors.dim_range(dim, input.ndim)
        dtype = dtype or input.dtype
        if not dtype.is_floating_point and input.numel:
            last = "lastdim_" if dim % n == n - 1 else ""
            raise errors.not_implemented(f"{name}_{last}kernel_impl", dtype)

    return check


softmax.check(_check_softmax("softmax"))
log_softmax.check(_check_softmax("log_softmax"))


def _implicit_dim(name: str, input) -> int:
    warn(errors.implicit_dim_warning(name))
    return 0 if input.ndim in (0, 1, 3) else 1


@composite(where="nn.functional.softmax")
def functional_softmax(input: Array, dim=None, _stacklevel=3, dtype=None):
    """Exponentials along `dim`, divided by their sum."""
    return softmax(input, _implicit_dim("softmax", input) if dim is None else dim, dtype)


@composite(where="nn.functional.log_softmax")
def functional_log_softmax(input: Array, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax along `dim`."""
    return log_softmax(input, _implicit_dim("log_softmax", input) if dim is None else dim, dtype)


@composite(where="nn.functional")
def softmin(input: Array, dim=None, _stacklevel=3, dtype=None):
    """Softmax of the negated input."""
    return softmax(-input, _implicit_dim("softmin", input) if dim is None else dim, dtype)


functional_softmax.asked, functional_log_softmax.asked = "softmax", "log_softmax"


@op(where="nn.functional", grad_name=lambda args: "AddBackward0" if args["hard"] else "SoftmaxBackward0")
def gumbel_softmax(
    logits: Array, tau: Number = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, key: Key
) -> Array:
    """A sample of the Gumbel-softmax distribution; with `hard`, one-hot with the soft one's gradient."""
    noise = -jnp.log(-jnp.log(rng.uniform(key, logits.shape, logits.dtype)))
    x = (logits + noise) / jnp.asarray(tau, logits.dtype)
    _, e, total = _exponentials(x, dim)
    soft = e / total
    if not hard:
        return soft
    winner = jnp.argmax(soft, axis=dim, keepdims=True)
    hot = lax.broadcasted_iota(winner.dtype, soft.shape, dim % soft.ndim) == winner
    return hot.astype(soft.dtype) - lax.stop_gradient(soft) + soft


@gumbel_softmax.check
def _(logits, tau=1, hard=False, eps=1e-10, dim=-1, *, key=None):
    if not logits.dtype.is_floating_point:
        raise errors.exponential_dtype(logits.dtype)
    if not -logits.ndim <= dim < builtins.max(logits.ndim, 1):
        raise errors.dim_range(dim, logits.ndim)


# Rectifiers. Their derivatives are stated: PyTorch's at the corners, and g where the input is nan.


@op(promote=PROMOTE, where="torch Tensor nn.functional")
def relu(input: Array, inplace: bool = False) -> Array:
    """The larger of each element and 0."""
    return jnp.maximum(input, jnp.zeros((), input.dtype))


relu.vjp(input=lambda g, out: relu_grad(g, out))


@op(where="")
def relu_grad(grad: Array, out: Array) -> Array:
    """The cotangent of relu's input."""
    return jnp.where(out <= 0, jnp.zeros((), grad.dtype), grad)


@relu.check
def _(input, inplace=False):
    if input.dtype is dtypes.bool_:
        raise errors.bool_relu()
    if input.dtype.is_complex:
        raise errors.complex_clamp()


def _inside(grad: Array, x: Array, low, high) -> Array:
    """`grad` strictly between two limits; at nan too, as PyTorch's comparisons leave it."""
    return jnp.where((x <= low) | (x >= high), jnp.zeros((), grad.dtype), grad)


@op(promote=PROMOTE, where="nn.functional")
def hardtanh(input: Array, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Array:
    """Each element, brought between `min_val` and `max_val`."""
    cast = float if jnp.issubdtype(input.dtype, jnp.floating) else int
    return jnp.clip(input, jnp.asarray(cast(min_val), input.dtype), jnp.asarray(cast(max_val), input.dtype))


hardtanh.vjp(input=lambda g, input, min_val, max_val: hardtanh_grad(g, input, min_val, max_val))


@op(where="")
def hardtanh_grad(grad: Array, input: Array, min_val: float, max_val: float) -> Array:
    """The cotangent of hardtanh's input."""
    return _inside(grad, input, min_val, max_val)


@hardtanh.check
def _(input, min_val=-1.0, max_val=1.0, inplace=False):
    if min_val > max_val:
        raise errors.hardtanh_limits()
    if input.dtype is dtypes.bool_:
        raise errors.bool_hardtanh()
    if input.dtype.is_complex:
        raise errors.complex_clamp()
    if not input.dtype.is_signed and int(min_val) < 0:
        raise errors.unsigned_hardtanh()
    for limit in (min_val, max_val):  # of which PyTorch rounds only these towards zero before it looks
        dtypes.check_number(0 if not input.dtype.is_signed and -1 < limit < 0 else limit, input.dtype)


@op(promote=PROMOTE, where="nn.functional", grad_name="HardtanhBackward0")
def relu6(input: Array, inplace: bool = False) -> Array:
    """Each element, brought between 0 and 6."""
    return jnp.clip(input, jnp.asarray(0, input.dtype), jnp.asarray(6, input.dtype))


relu6.vjp(input=lambda g, input: hardtanh_grad(g, input, 0, 6))


@relu6.check
def _(input, inplace=False):
    if input.dtype is dtypes.bool_:
        raise errors.bool_hardtanh()
    if input.dtype.is_complex:
        raise errors.complex_clamp()


@op(promote=PROMOTE, where="torch nn.functional")
def threshold(input: Array, threshold: float, value: float, inplace: bool = False) -> Array:
    """`input` where it is above `threshold`, `value` elsewhere."""
    cast = float if jnp.issubdtype(input.dtype, jnp.floating) else int
    return jnp.where(input <= cast(threshold), jnp.asarray(cast(value)).astype(input.dtype), input)


threshold.vjp(input=lambda g, input, threshold: threshold_grad(g, input, threshold))


@op(where="")
def threshold_grad(grad: Array, input: Array, threshold: float) -> Array:
    """The cotangent of threshold's input."""
    return jnp.where(input <= threshold, jnp.zeros((), grad.dtype), grad)


@threshold.check
def _(input, threshold, value, inplace=False):
    if input.dtype is dtypes.bool_ or input.dtype.is_complex:
        raise errors.not_implemented("threshold_cpu", input.dtype)


@op(promote=PROMOTE, where="nn.functional _C._nn")
@widened
def leaky_relu(input: Array, negative_slope: float = 0.01, inplace: bool = False) -> Array:
    """`input` where positive, `negative_slope * input` elsewhere."""
    return jnp.where(input > 0, input, input * jnp.asarray(negative_slope, input.dtype))


def _elu(x: Array, negative: float, positive: float = 1.0, inner: float = 1.0) -> Array:
    """`positive * x` from zero on, `negative * (exp(inner * x) - 1)` below."""
    cast = lambda value: jnp.asarray(value, x.dtype)
    # exp of large positive numbers and of nan is kept out of sight
    below = jnp.expm1(cast(inner) * jnp.where(x < 0, x, cast(0)))
    return jnp.where(x < 0, cast(negative) * below, cast(positive) * x)


@widened
def _elu_slope(g: Array, x: Array, negative: float, positive: float = 1.0, inner: float = 1.0) -> Array:
    """The cotangent of the input: at 0 the slope of the left side, of which it says no more: its own slope there is 0, like PyTorch's."""
    cast = lambda value: jnp.asarray(value, x.dtype)
    below = jnp.exp(cast(inner) * jnp.where(x < 0, x, cast(0)))
    return jnp.where(x <= 0, g * (cast(negative * inner) * below), g * cast(positive))


@op(promote=PROMOTE, where="nn.functional")
@widened
def elu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """`input` where positive, `alpha * (exp(input) - 1)` elsewhere."""
    return _elu(input, alpha)


@op(promote=PROMOTE, where="torch nn.functional")
@widened
def celu(input: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    """`input` where positive, `alpha * (exp(input / alpha) - 1)` elsewhere."""
    return _elu(input, alpha, 1.0, 1 / alpha)


@celu.check
def _(input, alpha=1.0, inplace=False):
    if alpha == 0:
        raise errors.celu_alpha()


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@op(promote=PROMOTE, where="torch nn.functional", grad_name="EluBackward0")
@widened
def selu(input: Array, inplace: bool = False) -> Array:
    """Elu with the scale and alpha that keep mean 0 and variance 1 through layers."""
    return _elu(input, SELU_ALPHA * SELU_SCALE, SELU_SCALE)


elu.vjp(input=lambda g, input, alpha: _elu_slope(g, input, alpha))
celu.vjp(input=lambda g, input, alpha: _elu_slope(g, input, alpha, 1.0, 1 / alpha))
selu.vjp(input=lambda g, input: _elu_slope(g, input, SELU_ALPHA * SELU_SCALE, SELU_SCALE))


@op(promote=PROMOTE, where="", grad_name="EluBackward0")
@widened
def scaled_elu(input: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    """`scale * input` above zero, `alpha * scale * (exp(input_scale * input) - 1)` below: elu as PyTorch's kernel has it."""
    return _elu(input, alpha * scale, scale, input_scale)


scaled_elu.vjp(
    input=lambda g, input, alpha, scale, input_scale: _elu_slope(g, input, alpha * scale, scale, input_scale)
)
for record in (elu, celu, selu, scaled_elu):
    floats_only(record, "elu_cpu")
floats_only(leaky_relu, "leaky_relu_cpu")


def _negative(name, slope):
    """In place PyTorch derives from the result, of which a negative slope leaves no telling what it came from."""
    return lambda call: None if call.get(slope, 0) >= 0 else _refused(name)  # nan is refused too


def _refused(name):
    return functools.partial(errors_autograd.negative_slope, name)


elu.derives_in_place(_negative("elu", "alpha"), by_result=True)
celu.derives_in_place(_negative("elu", "alpha"), by_result=True)
selu.derives_in_place(by_result=True)
scaled_elu.derives_in_place(_negative("elu", "alpha"), by_result=True)
leaky_relu.derives_in_place(_negative("leakyReLu", "negative_slope"), by_result=True)
threshold.derives_in_place()


@op(where="torch Tensor nn.functional", out=False, grad_name="PreluKernelBackward0", strides=formats.keep_order)
@widened
def prelu(input: Array, weight: Array) -> Array:
    """`input` where positive, `weight * input` elsewhere; `weight` has one element, or one a channel."""
    weight = _at_channels(weight, input.ndim)
    below = jnp.where(input > 0, jnp.zeros((), input.dtype), input)  # a weight without end is no slope of what is above
    return jnp.where(input > 0, input, weight * below)


prelu.guards(input=True, weight=True)


def _at_channels(weight, ndim):
    """A weight of `prelu` as it broadcasts with an input of so many dimensions."""
    if weight.ndim != 1:
        return weight
    after = ndim - (2 if ndim > 1 else 1)
    return weight.reshape(*weight.shape, *(1,) * after) if ndim else weight.reshape(())


def _prelu_tangent(operands, tangents, numbers):
    """At 0 that of the input, where the gradient is that below it: PyTorch's."""
    (input, weight), (moved, turned) = operands, tangents
    weight, turned = _at_channels(weight, input.ndim), _at_channels(turned, input.ndim)
    return jnp.where(input >= 0, moved, weight * moved + turned * input)


prelu.tangents = _prelu_tangent


@prelu.check
def _(input, weight):
    if weight.ndim > 1:
        raise errors.prelu_rank(weight.ndim)
    if input.dtype is not weight.dtype:
        raise errors.prelu_dtype(input.dtype, weight.dtype)
    if weight.numel != 1:
        if input.ndim == 0:
            raise errors.prelu_scalar()
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.numel:
            raise errors.prelu_channels(weight.numel, channels)
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("prelu_cpu", input.dtype)


@op(where="", hidden=1, grad_name="RreluWithNoiseBackward0")
def rrelu_noise(input: Array, lower: float, upper: float, *, key: Key) -> tuple[Array, Array]:
    """Leaky relu with a slope drawn for each element."""
    drawn = rng.uniform(key, input.shape, input.dtype)
    slope = jnp.asarray(lower, input.dtype) + drawn * jnp.asarray(upper - lower, input.dtype)
    slope = jnp.where(input <= 0, slope, jnp.ones((), input.dtype))
    return input * slope, slope


rrelu_noise.vjp(input=lambda g, out1: g * out1)


def _check_slopes(lower, upper):
    for name, x in (("lower", lower), ("upper", upper)):
        if not math.isfinite(x):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {x:g}")
    if lower > upper:
        raise errors.rrelu_bounds()


@rrelu_noise.check
def _(input, lower, upper, *, key=None):
    _check_slopes(lower, upper)
    if not input.dtype.is_floating_point or input.dtype is dtypes.float16:
        raise errors.not_implemented("rrelu_with_noise_out_cpu", input.dtype)


@op(promote=PROMOTE, where="", grad_name="RreluWithNoiseBackward0")
@widened
def rrelu_mean(input: Array, lower: float, upper: float, inplace: bool = False) -> Array:
    """Leaky relu with the mean slope of rrelu."""
    return jnp.where(input > 0, input, input * jnp.asarray((lower + upper) / 2, input.dtype))


rrelu_mean.check(lambda input, lower, upper, inplace=False: _check_slopes(lower, upper))
rrelu_mean.derives_in_place(
    lambda call: _refused("leakyReLu") if call["lower"] + call["upper"] < 0 else None, by_result=True
)


floats_only(rrelu_mean, "leaky_relu_cpu")


@composite(where="nn.functional.rrelu")
def functional_rrelu(input: Array, lower=1 / 8, upper=1 / 3, training=False, inplace=False):
    """Leaky relu whose slope is drawn from [lower, upper] in training, and their mean otherwise."""
    if training:
        out = rrelu_noise(input, float(lower), float(upper))
        return input.copy_(out) if inplace else out
    return rrelu_mean(input, float(lower), float(upper), inplace)


@composite(where="torch.rrelu")
def torch_rrelu(input: Array, lower=1 / 8, upper=1 / 3, training: bool = False):
    """Leaky relu whose slope is drawn from [lower, upper] in training, and their mean otherwise."""
    return (rrelu_noise if training else rrelu_mean)(input, float(lower), float(upper))


# Smooth gates. jax.vjp of these kernels is the formula one would write, and XLA shares it with the forward.

_HALF_ROOT = math.sqrt(0.5)
_TANH_COEFFICIENT = math.sqrt(2 / math.pi)


@op(promote=PROMOTE, where="nn.functional _C._nn")
@widened
def gelu(input: Array, approximate: str = "none") -> Array:
    """`input` times the standard normal distribution function of `input`."""
    half = jnp.asarray(0.5, input.dtype)
    if approximate == "tanh":
        inner = jnp.asarray(_TANH_COEFFICIENT, input.dtype) * (input + 0.044715 * input * input * input)
        return half * input * (1 + jnp.tanh(inner))
    # erf, not erfc: half the time on the CPU, and what PyTorch computes
    return half * input * (1 + lax.erf(input * jnp.asarray(_HALF_ROOT, input.dtype)))


floats_only(gelu, "GeluKernelImpl")


@gelu.check
def _(input, approximate="none"):
    if approximate not in ("none", "tanh"):
        raise errors.gelu_approximate()


@op(promote=PROMOTE, where="nn.functional")
@widened
def silu(input: Array, inplace: bool = False) -> Array:
    """`input * sigmoid(input)`."""
    return input * lax.logistic(input)


@op(promote=PROMOTE, where="nn.functional")
@widened
def mish(input: Array, inplace: bool = False) -> Array:
    """`input * tanh(softplus(input))`."""
    return input * jnp.tanh(log1p_exp(input))


floats_only(silu, "silu_cpu", complex=True)
floats_only(mish, "mish_cpu")


def log1p_exp(x: Array) -> Array:
    """`log(1 + exp(x))` without overflow, smooth at 0."""
    return jnp.logaddexp(x, jnp.zeros((), x.dtype))


@op(where="nn.functional _C._nn", strides=formats.keep_order)
@widened
def glu(input: Array, dim: int = -1) -> Array:
    """The first half along `dim` times the sigmoid of the second."""
    a, b = jnp.split(input, 2, axis=dim)
    return a * lax.logistic(b)


glu.asked = "dim"


@glu.check
def _(input, dim=-1):
    if input.ndim == 0:
        raise errors.glu_rank()
    if not -input.ndim <= dim < input.ndim:
        raise errors.dim_range(dim, input.ndim)
    dim %= input.ndim
    if input.shape[dim] % 2:
        raise errors.glu_halves(dim, input.shape[dim])
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("glu_cpu", input.dtype)


@op(promote=PROMOTE, where="nn.functional _C._nn")
@widened
def softplus(input: Array, beta: float = 1, threshold: float = 20) -> Array:
    """`log(1 + exp(beta * input)) / beta`, and `input` itself where `beta * input > threshold`."""
    scaled = input * jnp.asarray(beta, input.dtype)
    linear = scaled > threshold
    smooth = jnp.log1p(jnp.exp(jnp.where(linear, jnp.zeros((), input.dtype), scaled)))
    return jnp.where(linear, input, smooth / jnp.asarray(beta, input.dtype))


softplus.guards(input=True)


floats_only(softplus, "softplus_cpu")


@op(
    promote=PROMOTE,
    where="nn.functional",
    elementwise=False,
    grad_name="LogSigmoidBackward0",
    out="expected scalar type {want} but found {have}",
)
@widened
def logsigmoid(input: Array) -> Array:
    """`log(sigmoid(input))`, without overflow."""
    return jnp.minimum(input, jnp.zeros((), input.dtype)) - jnp.log1p(jnp.exp(-jnp.abs(input)))


# the corners of minimum and abs cancel at 0, which jax cannot know
logsigmoid.vjp(input=lambda g, input: logsigmoid_grad(g, input)).transposed = True


@op(where="")
@widened
def logsigmoid_grad(grad: Array, input: Array) -> Array:
    """The cotangent of logsigmoid's input."""
    return grad * lax.logistic(-input)


floats_only(logsigmoid, "log_sigmoid_cpu")


@op(promote=FLOAT, where="nn.functional", grad_name="SubBackward0", inplace=False, out=False)
@widened
def tanhshrink(input: Array) -> Array:
    """`input - tanh(input)`."""
    return input - jnp.tanh(input)


tanhshrink.guards(input=False)


@tanhshrink.check
def _(input):
    if input.dtype is dtypes.bool_:
        raise errors.bool_minus(two=False)


@op(promote=FLOAT, where="nn.functional", grad_name="DivBackward0", inplace=False, out=False)
@widened
def softsign(input: Array) -> Array:
    """`input / (1 + |input|)`."""
    return input / (1 + magnitude(input))


@softsign.check
def _(input):
    if input.dtype is dtypes.bool_:
        raise errors.not_implemented("abs_cpu", input.dtype)


# Piecewise linear gates


@op(promote=PROMOTE, where="nn.functional")
@widened
def hardsigmoid(input: Array, inplace: bool = False) -> Array:
    """0 below -3, 1 above 3, `input / 6 + 1/2` between."""
    return jnp.clip(input + 3, 0, 6) * jnp.asarray(1 / 6, input.dtype)


hardsigmoid.vjp(input=lambda g, input: hardsigmoid_grad(g, input))


@op(where="")
@widened
def hardsigmoid_grad(grad: Array, input: Array) -> Array:
    """The cotangent of hardsigmoid's input."""
    inside = (input > -3) & (input < 3)
    return jnp.where(inside, grad * jnp.asarray(1 / 6, grad.dtype), jnp.zeros((), grad.dtype))


@op(promote=PROMOTE, where="nn.functional")
@widened
def hardswish(input: Array, inplace: bool = False) -> Array:
    """`input * hardsigmoid(input)`."""
    return input * jnp.clip(input + 3, 0, 6) * jnp.asarray(1 / 6, input.dtype)


hardswish.vjp(input=lambda g, input: hardswish_grad(g, input))


@op(where="")
@widened
def hardswish_grad(grad: Array, input: Array) -> Array:
    """The cotangent of hardswish's input."""
    middle = grad * (input * jnp.asarray(1 / 3, input.dtype) + jnp.asarray(0.5, input.dtype))
    zero = jnp.zeros((), grad.dtype)
    return jnp.where(input <= -3, zero, jnp.where(input < 3, middle, grad))


floats_only(hardsigmoid, "hardsigmoid_cpu")
floats_only(hardswish, "hardswish_cpu")


@op(promote=PROMOTE, where="torch Tensor nn.functional", inplace=False)
def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """`input` outside [-lambd, lambd], 0 inside."""
    return _outside(input, input, lambd)


def _outside(value: Array, x: Array, lambd: float) -> Array:
    return jnp.where((x >= -lambd) & (x <= lambd), jnp.zeros((), value.dtype), value)


hardshrink.vjp(input=lambda g, input, lambd: shrink_grad(g, input, lambd))


@op(promote=PROMOTE, where="nn.functional _C._nn", inplace=False)
@widened
def softshrink(input: Array, lambd: float = 0.5) -> Array:
    """`input` moved towards 0 by `lambd`, and 0 within `lambd` of it."""
    limit = jnp.asarray(lambd, input.dtype)
    inner = jnp.where(jnp.isnan(input), input, jnp.zeros((), input.dtype))
    return jnp.where(input > limit, input - limit, jnp.where(input < -limit, input + limit, inner))


softshrink.vjp(input=lambda g, input, lambd: shrink_grad(g, input, lambd))


@op(where="")
def shrink_grad(grad: Array, input: Array, lambd: float) -> Array:
    """The cotangent of the input of hardshrink and softshrink."""
    return _outside(grad, input, lambd)


floats_only(hardshrink, "hardshrink_cpu")


@softshrink.check
def _(input, lambd=0.5):
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("softshrink_check", input.dtype)
    if not 0 <= lambd <= dtypes.largest(input.dtype):
        raise errors.softshrink_lambda(lambd, input.dtype)


def _fitting(record, *names, wide=True):
    """Refuse numbers too large for the elements; `wide`: halves are computed in float32."""

    @record.check
    def check(*args, **kwargs):
        at = record.arguments(args, kwargs)
        dtype = at["input"].dtype
        for name in names:
            if at[name] is None or isinstance(at[name], (str, tuple)):
                raise argument(record.shown, name, "Number", at[name], list(at).index(name) + 1)
            dtypes.check_number(at[name], dtypes.float32 if wide and dtype.itemsize == 2 else dtype)


_fitting(threshold, "threshold")
_fitting(threshold, "value", wide=False)
_fitting(hardshrink, "lambd", wide=False)
_fitting(softplus, "beta", "threshold")
_fitting(leaky_relu, "negative_slope")
_fitting(elu, "alpha")
_fitting(celu, "alpha")
