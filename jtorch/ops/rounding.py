"""Elementwise signs, rounding and limits: the larger, the smaller, and what lies between. Knows arrays, never Tensor."""

import builtins

import jax.numpy as jnp
import ml_dtypes
from jax import lax

from .. import errors, errors_nn
from ..core import dtype as dtypes
from .conversion import (
    SAME_UNARY,
    _zero,
    common_dtype,
    conj,
    is_number,
    kind,
    like,
    opmath,
    real,
    to_float,
)
from .logic import isfinite, isnan, logical_and, logical_or, where
from .registry import FLOAT, PROMOTE, UNKNOWN, ZERO, Array, Scalar, composite, op

# ---- signs and rounding ----


@op(promote=PROMOTE, aliases=("negative",), out=SAME_UNARY)
def neg(input: Array) -> Array:
    """The negative of each element."""
    return -input


neg.vjp(input=lambda g: -g)


@neg.check
def _check_neg(input):
    if kind(input) == "b":
        raise errors_nn.bool_neg()


@composite
def positive(input: Array):
    """The tensor itself."""
    if kind(input) == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def _abs_in_place(spec, **_):
    if spec.dtype.category == dtypes.COMPLEX:
        raise RuntimeError("In-place abs is not supported for complex tensors.")


@op(promote=PROMOTE, aliases=("absolute",), inplace=_abs_in_place, out=SAME_UNARY)
def abs(input: Array) -> Array:
    """The absolute value; real for complex numbers."""
    size = jnp.abs(input)
    if input.dtype.kind == "c":  # infinite as soon as one part is, be the other nan
        size = jnp.where(jnp.isinf(input.real) | jnp.isinf(input.imag), jnp.inf, size)
    return size


abs.vjp(input=lambda g, input: g * sgn(input))
abs.lack(abs_cpu="bool")


def _sign(x):
    if x.dtype.kind == "b":
        return x
    if x.dtype.kind == "c":
        size = jnp.abs(x)
        return jnp.where(size == 0, 0, x / jnp.where(size == 0, 1, size))
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)  # 0 for nan, which jnp.sign keeps


@op(promote=PROMOTE, out=SAME_UNARY)
def sign(input: Array) -> Array:
    """-1, 0 or 1: the sign of each element."""
    return _sign(input)


sign.vjp(input=ZERO)


@sign.check
def _check_sign(input):
    if kind(input) == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )


@op(promote=PROMOTE, out=SAME_UNARY)
def sgn(input: Array) -> Array:
    """`input / abs(input)`, and 0 at 0."""
    return _sign(input)


sgn.guards(input=True)


def _sgn_input(g, input, out):
    if kind(out) != "c":
        return _zero(g)
    size = abs(input)
    # the part of g across the direction of input, over its length
    return where(size == 0, 0.0, (g - out * real(conj(out) * g)) / where(size == 0, 1.0, size))


sgn.vjp(input=_sgn_input)


@op(
    promote=PROMOTE,
    inplace=False,
    differentiable=False,
    out="signbit does not support non-boolean outputs.",
)
def signbit(input: Array) -> Array:
    """Whether the sign bit is set."""
    if input.dtype.kind == "b":
        return jnp.zeros_like(input)
    return input < 0 if input.dtype.kind in "iu" else jnp.signbit(input)


@signbit.check
def _check_signbit(input):
    if kind(input) == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")


def _round_op(record, name):
    record.vjp(input=ZERO)
    record.lack(**{f"{name}_cpu": "bool"})

    @record.check
    def check(input):
        if kind(input) == "c":
            raise NotImplementedError(f"{record.name} is not supported for complex inputs")


def _of_floats(fn):
    return lambda x: x if x.dtype.kind in "iu" else fn(x)


@op(promote=PROMOTE, out=SAME_UNARY)
def ceil(input: Array) -> Array:
    """Round up."""
    return _of_floats(jnp.ceil)(input)


@op(promote=PROMOTE, out=SAME_UNARY)
def floor(input: Array) -> Array:
    """Round down."""
    return _of_floats(jnp.floor)(input)


@op(promote=PROMOTE, aliases=("fix",), out=SAME_UNARY)
def trunc(input: Array) -> Array:
    """Round towards zero."""
    return _of_floats(jnp.trunc)(input)


@op(
    promote=PROMOTE,
    where="torch Tensor special",
    grad_name=lambda args: "RoundBackward0" if args["decimals"] is None else "RoundBackward1",
    out=SAME_UNARY,
)
@opmath
def round(input: Array, *, decimals: int | None = None) -> Array:
    """Round to the nearest, halves to the even neighbour."""
    if input.dtype.kind in "iu":
        return input
    if not decimals:
        return jnp.round(input)
    scale = 10.0 ** builtins.abs(decimals)
    scale = jnp.asarray(scale if scale <= jnp.finfo(input.dtype).max else builtins.float("inf"), input.dtype)
    return jnp.round(input * scale) / scale if decimals > 0 else jnp.round(input / scale) * scale


@round.check
def _check_round(input, decimals=None):
    if kind(input) != "f" and not (kind(input) == "i" and decimals is None):
        raise errors.not_implemented("round_cpu" if decimals else "round_vml_cpu", input.dtype)


for _record, _name in ((ceil, "ceil_vml"), (floor, "floor_vml"), (trunc, "trunc_vml")):
    _round_op(_record, _name)
round.vjp(input=ZERO)


@op(promote=PROMOTE, out=SAME_UNARY)
def frac(input: Array) -> Array:
    """The part behind the point, with the sign of the element."""
    return input - jnp.trunc(input)


frac.vjp(input=lambda g: g)
frac.lack(frac_cpu="bool int complex")


def _clamp_name(args):
    bounds = (args["min"], args["max"])
    return "ClampBackward1" if builtins.all(b is None or is_number(b) for b in bounds) else "ClampBackward0"


def _clamp_check(input, min=None, max=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if (is_number(min) and getattr(max, "ndim", 0)) or (is_number(max) and getattr(min, "ndim", 0)):
        raise errors.combination(
            "clamp", (input, min, max), "(Tensor input, Tensor min, Tensor max) or (…, Number, Number)"
        )
    found = common_dtype(input, min, max)
    if found.category == dtypes.COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")
    for bound in (min, max):
        if is_number(bound):
            dtypes.check_number(bound, found)
    if found.category == dtypes.BOOL:
        bounds = [b for b in (min, max) if b is not None]
        if builtins.any(is_number(b) for b in bounds):
            which = "_scalar" if len(bounds) == 2 else "_max_scalar" if min is None else "_min_scalar"
            raise errors.not_implemented(f"clamp{which}_cpu", found)
        if len(bounds) == 2:
            raise errors.not_implemented("clamp_cpu", found)


@op(promote=PROMOTE, aliases=("clip",), grad_name=_clamp_name)
def clamp(input: Array, min: Scalar | None = None, max: Scalar | None = None) -> Array:
    """The elements limited to [min, max]; nan stays."""
    if min is not None:
        input = jnp.maximum(input, like(min, input))
    return input if max is None else jnp.minimum(input, like(max, input))


def _clamp_input(g, input, min, max):
    inside = None
    if min is not None:
        inside = input >= min
    if max is not None:
        below = input <= max
        inside = below if inside is None else logical_and(inside, below)
    return where(inside, g, 0)


def _clamp_min_bound(g, input, min, max):
    under = input < min
    return where(under if max is None else logical_and(under, min < max), g, 0)


def _clamp_max_bound(g, input, min, max):
    over = input > max
    return where(over if min is None else logical_or(over, min > max), g, 0)


clamp.vjp(input=_clamp_input, min=_clamp_min_bound, max=_clamp_max_bound)


clamp.check(_clamp_check)


@op(
    promote=PROMOTE,
    grad_name=lambda args: "ClampMinBackward0" if is_number(args["min"]) else "ClampMinBackward1",
)
def clamp_min(input: Array, min: Scalar) -> Array:
    """The elements, at least `min`."""
    return jnp.maximum(input, like(min, input))


@clamp_min.check
def _check_clamp_min(input, min):
    if is_number(min):
        _clamp_check(input, min=min)


clamp_min.lack(maximum_cpu="complex")
clamp_min.vjp(
    input=lambda g, input, min: where(input >= min, g, 0),
    min=lambda g, input, min: where(input < min, g, 0),
)


@op(
    promote=PROMOTE,
    grad_name=lambda args: "ClampMaxBackward0" if is_number(args["max"]) else "ClampMaxBackward1",
)
def clamp_max(input: Array, max: Scalar) -> Array:
    """The elements, at most `max`."""
    return jnp.minimum(input, like(max, input))


@clamp_max.check
def _check_clamp_max(input, max):
    if is_number(max):
        _clamp_check(input, max=max)


clamp_max.lack(minimum_cpu="complex")
clamp_max.vjp(
    input=lambda g, input, max: where(input <= max, g, 0),
    max=lambda g, input, max: where(input > max, g, 0),
)


@op(promote=FLOAT)
def copysign(input: Array, other: Scalar) -> Array:
    """The size of `input` with the sign of `other`."""
    return jnp.copysign(to_float(input), to_float(like(other, input)))


copysign.grad_name = lambda args: "CopysignBackward1" if is_number(args["other"]) else "CopysignBackward0"
copysign.vjp(
    # torch: no gradient at 0, where the ratio is 0 / 0
    input=lambda g, input, out: g * where(input == 0, 0, out / where(input == 0, 1, input)),
    other=ZERO,
)
copysign.lack(copysign_cpu="complex")


@op(promote=PROMOTE)
def nextafter(input: Array, other: Array) -> Array:
    """The next representable number from `input` towards `other`."""
    return jnp.nextafter(input, other)


# torch: the step itself is flat, unless there is none to take
nextafter.vjp(input=lambda g, input, other: where(input == other, 0, g), other=ZERO)
nextafter.lack(nextafter_cpu="bool int complex")


def _same_as_input(want, have):
    if have.category == dtypes.COMPLEX:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if want is not have:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@op(promote=PROMOTE, out=_same_as_input)
def heaviside(input: Array, values: Array) -> Array:
    """0 below zero, 1 above, `values` at zero."""
    one = jnp.ones((), input.dtype)
    return jnp.where(input == 0, values, jnp.where(input > 0, one, jnp.zeros_like(one)))


heaviside.vjp(input=UNKNOWN, values=UNKNOWN)


@heaviside.check
def _check_heaviside(input, values):
    if "c" in (kind(input), kind(values)):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


# ---- larger and smaller ----


def _tied(g, mine, other):
    """All of g to the larger, half to each of two equals; a nan lets it through."""
    return where(mine == other, g / 2, where(mine < other, 0, g))


@op(promote=PROMOTE, inplace=False)
def maximum(input: Array, other: Array) -> Array:
    """The larger of two; nan if either is."""
    return jnp.maximum(input, other)


maximum.vjp(
    input=lambda g, input, other: _tied(g, input, other),
    other=lambda g, input, other: _tied(g, other, input),
)


@op(promote=PROMOTE, inplace=False)
def minimum(input: Array, other: Array) -> Array:
    """The smaller of two; nan if either is."""
    return jnp.minimum(input, other)


minimum.vjp(
    input=lambda g, input, other: _tied_low(g, input, other),
    other=lambda g, input, other: _tied_low(g, other, input),
)


def _tied_low(g, mine, other):
    return where(mine == other, g / 2, where(mine > other, 0, g))


@op(promote=PROMOTE, inplace=False)
def fmax(input: Array, other: Array) -> Array:
    """The larger of two; the number if one is nan."""
    return jnp.fmax(input, other)


fmax.vjp(
    input=lambda g, input, other: where(logical_or(input >= other, isnan(other)), g, 0),
    other=lambda g, input, other: where(logical_or(input >= other, isnan(other)), 0, g),
)


@op(promote=PROMOTE, inplace=False)
def fmin(input: Array, other: Array) -> Array:
    """The smaller of two; the number if one is nan."""
    return jnp.fmin(input, other)


fmin.vjp(
    input=lambda g, input, other: where(logical_or(input <= other, isnan(other)), g, 0),
    other=lambda g, input, other: where(logical_or(input <= other, isnan(other)), 0, g),
)


def _real_pair(record):
    @record.check
    def check(input, other):
        if "c" in (kind(input), kind(other)):
            raise RuntimeError(f"{record.name} not implemented for complex tensors.")


for _record in (maximum, minimum, fmax, fmin):
    _real_pair(_record)


@op(promote=PROMOTE, out="nan_to_num: dtype of out: {have} should be same as input: {want}")
def nan_to_num(
    input: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """Numbers in the place of nan and the infinities."""
    if input.dtype.kind in "biu":
        return input
    if input.dtype.kind == "c":
        parts = [nan_to_num.fn(p, nan, posinf, neginf) for p in (jnp.real(input), jnp.imag(input))]
        return lax.complex(*parts)
    info = ml_dtypes.finfo(input.dtype)
    high = like(info.max if posinf is None else posinf, input)
    low = like(info.min if neginf is None else neginf, input)
    out = jnp.where(jnp.isnan(input), like(0 if nan is None else nan, input), input)
    return jnp.where(input == jnp.inf, high, jnp.where(input == -jnp.inf, low, out))


nan_to_num.vjp(input=lambda g, input: where(isfinite(input), g, 0))
