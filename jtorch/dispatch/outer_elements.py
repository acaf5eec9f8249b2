"""Derivatives of what works element by element, and of losses, for tensors of classes with a `__torch_dispatch__` (`outer_rules.py`)."""

import cmath
import functools
import math

from .outer import op
from .outer_rules import rule
from .outer_terms import conj, div, masked, mul, neg, product, ratio, real, reduced, scaled, times, where, zeros


def _rules_of_one(**by):
    for name, function in by.items():
        rule(f"{name}(self)", self=function)


_rules_of_one(
    neg=lambda g: neg(g),
    exp=lambda g, out: mul(g, out),
    exp2=lambda g, out: mul(mul(g, out), math.log(2)),
    expm1=lambda g, out: mul(g, op("add.Scalar", out, 1)),
    log=lambda g, self: div(g, self),
    log2=lambda g, self: div(g, mul(self, math.log(2))),
    log10=lambda g, self: div(g, mul(self, math.log(10))),
    log1p=lambda g, self: div(g, op("add.Scalar", self, 1)),
    sqrt=lambda g, out: div(g, mul(out, 2)),
    rsqrt=lambda g, out: mul(mul(g, -0.5), op("pow.Tensor_Scalar", out, 3)),
    reciprocal=lambda g, out: mul(neg(g), op("mul.Tensor", out, out)),
    sin=lambda g, self: mul(g, op("cos", self)),
    cos=lambda g, self: mul(g, neg(op("sin", self))),
    tan=lambda g, out: mul(g, op("add.Scalar", op("pow.Tensor_Scalar", out, 2), 1)),
    sinh=lambda g, self: mul(g, op("cosh", self)),
    cosh=lambda g, self: mul(g, op("sinh", self)),
    tanh=lambda g, out: op("tanh_backward", g, out),
    sigmoid=lambda g, out: op("sigmoid_backward", g, out),
    relu=lambda g, out: op("threshold_backward", g, out, 0),
    silu=lambda g, self: op("silu_backward", g, self),
    mish=lambda g, self: op("mish_backward", g, self),
    hardswish=lambda g, self: op("hardswish_backward", g, self),
    hardsigmoid=lambda g, self: op("hardsigmoid_backward", g, self),
    logsigmoid=lambda g, self: mul(g, op("sigmoid", neg(self))),
    erf=lambda g, self: mul(mul(op("exp", neg(op("pow.Tensor_Scalar", self, 2))), 2 / math.sqrt(math.pi)), g),
    abs=lambda g, self: product(g, op("sgn", self)),
    sgn=lambda g, self, out: _of_sign(g, self, out),
    square=lambda g, self: mul(g, mul(self, 2)),
    conj=lambda g: op("conj", g),
    alias=lambda g: g,
    lift_fresh=lambda g: g,
    t=lambda g: op("t", g),
    squeeze=lambda g, specs: op("view", g, list(specs["self"].shape)),
    **dict.fromkeys(("sign", "floor", "ceil", "trunc"), lambda g: zeros(g)),
)

for _name in ("detach", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones",
              "new_empty", "new_full", "bernoulli", "argmax", "argmin"):  # fmt: skip
    rule(f"{_name}(self, *args, **kwargs)", constant=True)

rule("clone(self, *, memory_format=None)", self=lambda g: g)
rule("round(self, *, decimals=0)", self=lambda g: zeros(g))
rule("_to_copy(self, **kwargs)", self=lambda g: g, first="ToCopyBackward0")
rule("gelu(self, approximate='none')", self=lambda g, self, approximate: op("gelu_backward", g, self)
      if approximate == "none" else op("gelu_backward", g, self, approximate=approximate))  # fmt: skip
rule(
    "softplus(self, beta=1, threshold=20)",
    self=lambda g, self, beta, threshold: op("softplus_backward", g, self, beta, threshold),
)
rule("leaky_relu(self, negative_slope=0.01)",
      self=lambda g, self, negative_slope: op("leaky_relu_backward", g, self, negative_slope, False))  # fmt: skip
rule("elu(self, alpha=1, scale=1, input_scale=1)",
      self=lambda g, self, alpha, scale, input_scale: op("elu_backward", g, alpha, scale, input_scale, False, self))  # fmt: skip
rule("hardtanh(self, min_val=-1, max_val=1)",
      self=lambda g, self, min_val, max_val: op("hardtanh_backward", g, self, min_val, max_val))  # fmt: skip
rule("threshold(self, threshold, value)", self=lambda g, self, threshold: op("threshold_backward", g, self, threshold))

# two operands
rule("add(self, other, *, alpha=1)", self=lambda g: g, other=lambda g, alpha: times(g, alpha))
rule("sub(self, other, *, alpha=1)", self=lambda g: g, other=lambda g, alpha: times(neg(g), alpha))
rule("rsub(self, other, alpha=1)", self=lambda g, alpha: times(neg(g), alpha), other=lambda g: g)
rule(
    "mul(self, other)",
    self=lambda g, other: op("mul.Tensor", g, conj(other)),
    other=lambda g, self: op("mul.Tensor", g, conj(self)),
)
rule("div(self, other, *, rounding_mode=None)",
      self=lambda g, other, rounding_mode: div(g, other) if rounding_mode is None else zeros(g),
      other=lambda g, self, other, rounding_mode: mul(neg(g), ratio(ratio(self, other), other))
      if rounding_mode is None else zeros(g))  # fmt: skip
rule(
    "maximum(self, other)",
    self=lambda g, self, other: _larger(g, self, other),
    other=lambda g, self, other: _larger(g, other, self),
)
rule(
    "minimum(self, other)",
    self=lambda g, self, other: _larger(g, other, self),
    other=lambda g, self, other: _larger(g, self, other),
)
rule("atan2(self, other)",
      self=lambda g, self, other: mul(g, div(other, _squares(self, other))),
      other=lambda g, self, other: mul(g, div(neg(self), _squares(self, other))))  # fmt: skip
rule("where(condition, self, other)", self=lambda g, condition: masked(g, condition),
      other=lambda g, condition: op("masked_fill.Scalar", g, condition, 0))  # fmt: skip
rule("masked_fill(self, mask, value)", self=lambda g, mask: op("masked_fill.Scalar", g, mask, 0),
      value=lambda g, mask: op("sum", masked(g, mask)))  # fmt: skip
rule("lerp(self, end, weight)", self=lambda g, weight: mul(g, op("rsub.Scalar", weight, 1) if hasattr(weight, "_spec") else 1 - weight),
      end=lambda g, weight: mul(g, weight), weight=lambda g, self, end: mul(g, op("sub.Tensor", end, self)))  # fmt: skip
rule("addcmul(self, tensor1, tensor2, *, value=1)", self=lambda g: g, tensor1=lambda g, tensor2, value: mul(g, scaled(tensor2, value)),
      tensor2=lambda g, tensor1, value: mul(g, scaled(tensor1, value)))  # fmt: skip
rule("addcdiv(self, tensor1, tensor2, *, value=1)", self=lambda g: g, tensor1=lambda g, tensor2, value: div(times(g, value), tensor2),
      tensor2=lambda g, tensor1, tensor2, value: mul(neg(g), ratio(scaled(tensor1, value), op("mul.Tensor", tensor2, tensor2))))  # fmt: skip
rule("pow(self, exponent)", self=lambda g, self, exponent: _of_base(g, self, exponent),
      exponent=lambda g, self, exponent, out: _of_exponent(g, self, exponent, out))  # fmt: skip
rule("clamp(self, min=None, max=None)", self=lambda g, self, min, max: _within(g, self, min, max),
     min=lambda g, self, min, max: _beyond(g, self, min, max, True), max=lambda g, self, min, max: _beyond(g, self, min, max, False))  # fmt: skip
rule(
    "clamp_min(self, min)",
    self=lambda g, self, min: _within(g, self, min, None),
    min=lambda g, self, min: masked(g, op("lt.Tensor", self, min)),
)
rule(
    "clamp_max(self, max)",
    self=lambda g, self, max: _within(g, self, None, max),
    max=lambda g, self, max: masked(g, op("gt.Tensor", self, max)),
)
rule("copy(self, src, non_blocking=False)", self=lambda g: zeros(g), src=lambda g: g)
rule("fill(self, value)", self=lambda g: zeros(g), value=lambda g: op("sum", g))
rule("zero(self)", self=lambda g: zeros(g))


def _squares(a, b):
    return op("add.Tensor", op("mul.Tensor", a, a), op("mul.Tensor", b, b))


def _larger(g, a, b):
    """The gradient of the larger of two, halved where they are equal."""
    half = op("masked_fill.Scalar", g, op("ne.Tensor", a, b), 0)
    return op("add.Tensor", masked(g, op("gt.Tensor", a, b)), div(half, 2))


def _of_base(g, self, exponent):
    if hasattr(exponent, "_spec"):
        power = product(exponent, op("pow.Tensor_Tensor", self, op("sub.Scalar", exponent, 1)))
        return where(op("eq.Scalar", exponent, 0.0), zeros(g), mul(g, power))
    if exponent == 0:
        return zeros(g)
    return mul(g, product(op("pow.Tensor_Scalar", self, exponent - 1), exponent))


def _of_exponent(g, self, exponent, out):
    """The gradient of an exponent: none where the base is 0 and stays so, though its logarithm is infinite."""
    if hasattr(self, "_spec"):
        found = mul(g, product(out, op("log", self)))
        flat = op("eq.Scalar", self, 0)
    elif self == 0:
        found = mul(g, product(out, -math.inf))
        flat = None
    else:
        log = cmath.log(self) if isinstance(self, complex) else math.log(self) if self > 0 else math.nan
        return mul(g, product(out, log))
    if exponent._spec.dtype.is_complex:
        return found if flat is None else where(flat, zeros(g), found)
    stays = op("ge.Scalar", exponent, 0)
    return where(stays if flat is None else op("logical_and", flat, stays), zeros(g), found)


def _of_sign(g, self, out):
    """The gradient of `sgn`: of a complex number what is across its direction, over its length."""
    if not self._spec.dtype.is_complex:
        return zeros(g)
    size = op("abs", self)
    across = op("sub.Tensor", g, product(out, real(mul(g, out))))
    return op("masked_fill.Scalar", ratio(across, size), op("eq.Scalar", size, 0), 0)


def _beyond(g, self, low, high, below):
    """The gradient of one of two limits, of which the upper one holds where they cross."""
    if below:
        out = op("lt.Tensor", self, low)
        return masked(g, out if high is None else op("logical_and", out, op("lt.Tensor", low, high)))
    out = op("gt.Tensor", self, high)
    return masked(g, out if low is None else op("logical_or", out, op("gt.Tensor", low, high)))


def _within(g, self, low, high):
    masks = [
        op(f"{name}.{'Tensor' if hasattr(x, '_spec') else 'Scalar'}", self, x)
        for name, x in (("ge", low), ("le", high))
        if x is not None
    ]
    return masked(g, functools.reduce(lambda a, b: op("logical_and", a, b), masks)) if masks else g


# losses
rule("binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1)",
      together=lambda g, self, target, weight, pos_weight, reduction: _of_logits(g, self, target, weight, pos_weight, reduction))  # fmt: skip
rule("xlogy(self, other)", self=lambda g, self, other: op("masked_fill.Scalar", mul(g, op("log", other)), op("eq.Scalar", self, 0.0), 0.0),
      other=lambda g, self, other: div(mul(g, self), other))  # fmt: skip
rule("mse_loss(self, target, reduction=1)",
      self=lambda g, self, target, reduction: op("mse_loss_backward", g, self, target, reduction),
      target=lambda g, self, target, reduction: op("mse_loss_backward", g, target, self, reduction))  # fmt: skip


def _of_logits(g, self, target, weight, pos_weight, reduction):
    sigmoid = op("sigmoid", self)
    if pos_weight is None:
        each, of_target = op("sub.Tensor", sigmoid, target), neg(self)
    else:
        scaled = op("mul.Tensor", pos_weight, target)
        kept = op("sub.Tensor", op("add.Scalar", scaled, 1), target)
        each = op("sub.Tensor", op("mul.Tensor", kept, sigmoid), scaled)
        tail = op("softplus", neg(self))
        of_target = op("sub.Tensor", op("mul.Tensor", op("sub.Scalar", pos_weight, 1), tail), self)
    if weight is not None:
        each, of_target = op("mul.Tensor", each, weight), op("mul.Tensor", of_target, weight)
    n = self._spec.numel
    return {"self": reduced(g, each, reduction, n), "target": reduced(g, of_target, reduction, n)}
