"""Elementwise sums, products and their quotients. Knows arrays, never Tensor."""

import builtins

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import errors, errors_nn
from ..core import dtype as dtypes
from . import formats
from .angles import rem
from .conversion import (
    _HALF,
    _zero,
    common_dtype,
    conj_of,
    is_number,
    kind,
    like,
    opmath,
    rounded,
    scaled,
    to_float,
)
from .quotients import quotient, seen
from .registry import FLOAT, PROMOTE, UNKNOWN, Array, Number, Scalar, op


def check_factor(d, factor, name):
    """Refuse a number of a kind that multiplies no tensor of this dtype."""
    if type(factor) is builtins.bool and d.category != dtypes.BOOL:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if d.category <= dtypes.INT and type(factor) is builtins.float:
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    if d.category <= dtypes.FLOAT and type(factor) is builtins.complex:
        raise RuntimeError(f"For non-complex input tensors, argument {name} must not be a complex number.")


def _check_alpha(input, other, alpha=1):
    check_factor(common_dtype(input, other), alpha, "alpha")


def _times_alpha(x, alpha):
    return x if is_number(alpha) and alpha == 1 else x * like(alpha, x)


@op(promote=PROMOTE, numbers=True)
@opmath
def add(input: Scalar, other: Scalar, *, alpha: Number = 1) -> Array:
    """`input + alpha * other`."""
    return input + _times_alpha(other, alpha)


add.vjp(input=lambda g: g, other=lambda g, alpha: scaled(g, alpha))
add.check(_check_alpha)


def _check_sub(input, other, alpha=1):
    bools = [kind(a) == "b" for a in (input, other)]
    if builtins.all(bools):
        raise errors_nn.bool_minus(two=True)
    if builtins.any(bools):
        raise errors_nn.bool_minus(two=False)
    _check_alpha(input, other, alpha)


@op(promote=PROMOTE, numbers=True, aliases=("subtract",))
@opmath
def sub(input: Scalar, other: Scalar, *, alpha: Number = 1) -> Array:
    """`input - alpha * other`."""
    return input - _times_alpha(other, alpha)


sub.vjp(input=lambda g: g, other=lambda g, alpha: -scaled(g, alpha))
sub.check(_check_sub)


@op(
    promote=PROMOTE,
    where="torch",
    inplace=False,
    out=False,
    grad_name=lambda args: "RsubBackward1" if is_number(args["other"]) else "RsubBackward0",
    strides=formats.other_first,
)
@opmath
def rsub(input: Array, other: Scalar, alpha: Number = 1) -> Array:
    """`other - alpha * input`."""
    return other - _times_alpha(input, alpha)


rsub.vjp(input=lambda g, alpha: -scaled(g, alpha), other=lambda g: g)
rsub.check(_check_sub)


@op(promote=PROMOTE, numbers=True, aliases=("multiply",), wide="other")
def mul(input: Scalar, other: Scalar) -> Array:
    """The product of two tensors, element by element."""
    return _mul(input, other) if _unlike(input, other) else input * other


def _unlike(input, other) -> builtins.bool:
    """Whether `other` is one number in float32 beside 16-bit floats."""
    return getattr(input, "dtype", None) in _HALF and getattr(other, "dtype", None) == np.float32 and other.ndim == 0


@opmath
def _mul(input, other):
    return input * other


mul.vjp(
    input=lambda g, other: g * conj_of(other),
    other=lambda g, input: g * conj_of(input),
)


def _floor_div(a, b):
    if a.dtype.kind in "biu":
        return jnp.floor_divide(a, b)
    near = a / b
    rest = rem(a, b)
    down = (rest != 0) & ((b < 0) != (rest < 0))
    whole = jnp.round(quotient(a - rest, b) - down)
    # an exact 0 keeps the sign of the quotient
    whole = jnp.where(whole == 0, jnp.copysign(jnp.zeros_like(whole), near), whole)
    return jnp.where(b == 0, near, whole)


def _trunc_div(a, b):
    return lax.div(*jnp.broadcast_arrays(a, b)) if a.dtype.kind in "biu" else jnp.trunc(quotient(a, b))


def _trunc_half(a, b):
    """torch rounds the quotient to half precision before it truncates, unless it divides by one number."""
    exact = quotient(a.astype(jnp.float32), b.astype(jnp.float32))
    return jnp.trunc(rounded(exact, a.dtype)).astype(a.dtype)


_ROUNDED = {"floor": _floor_div, "trunc": _trunc_div}


@op(
    promote=PROMOTE,
    numbers=True,
    aliases=("divide",),
    wide="other",
    grad_name=lambda args: "DivBackward0" if args["rounding_mode"] is None else "DivBackward2",
)
def div(input: Scalar, other: Scalar, *, rounding_mode: str | None = None) -> Array:
    """The quotient; of integers in floating point unless `rounding_mode` is "trunc" or "floor"."""
    input, other = seen(input), seen(other)
    if rounding_mode == "trunc" and input.dtype in _HALF and other.ndim:
        return _trunc_half(input, other)
    return _div(input, other, rounding_mode)


# Of integers a number, too, becomes a float at once: it may not fit into their dtype.
div.promotes = lambda statics: FLOAT if statics["rounding_mode"] is None else PROMOTE
div.guards(
    input=lambda call: True if call["rounding_mode"] and "other" in call["needs"] else None,
    other=lambda call: True if call["rounding_mode"] and hasattr(call["other"], "shape") else None,
)


@opmath
def _div(input, other, rounding_mode):
    if rounding_mode is None:
        return quotient(to_float(input), to_float(other))
    return _ROUNDED[rounding_mode](*jnp.broadcast_arrays(input, other))


def _div_input(g, other, rounding_mode):
    return true_divide(g, conj_of(other)) if rounding_mode is None else _zero(g)


def _div_other(g, input, other, rounding_mode):
    return _by_divisor(g, input, other) if rounding_mode is None else _zero(g)


def _by_divisor(g, input, other):
    return -g * conj_of(true_divide(true_divide(input, other), other))


div.vjp(input=_div_input, other=_div_other)


@div.check
def _check_rounding(input, other, rounding_mode=None):
    if rounding_mode not in (None, "trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    d = common_dtype(input, other)
    if rounding_mode is not None and d.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise errors.not_implemented(f"div_{rounding_mode}_cpu", d)
    if rounding_mode is not None and d.category == dtypes.INT and is_number(other) and not other:
        raise errors.division_by_zero()


def _no_zero_division(input, other):
    """PyTorch raises for integers, on values; only what is already on the host is looked at."""
    if other is None or np.asarray(other).dtype.kind not in "biu" or np.all(other):
        return
    # A dividend that is not computed yet is of integers: of others there is a Spec.
    if input is None or np.asarray(input).dtype.kind in "biu":
        raise errors.division_by_zero()


@op(promote=FLOAT, numbers=True, wide="other")
def true_divide(input: Scalar, other: Scalar) -> Array:
    """The quotient, of integers in floating point."""
    return _div(seen(input), seen(other), None)


true_divide.grad_name = "DivBackward0"
true_divide.vjp(
    input=lambda g, other: true_divide(g, conj_of(other)),
    other=_by_divisor,
)


@op(promote=PROMOTE, numbers=True, wide="other")
@opmath
def floor_divide(input: Scalar, other: Scalar) -> Array:
    """The quotient rounded towards minus infinity."""
    return _floor_div(*jnp.broadcast_arrays(jnp.asarray(input), jnp.asarray(other)))


floor_divide.vjp(input=UNKNOWN, other=UNKNOWN)
floor_divide.lack(div_floor_cpu="bool complex")


@op(
    promote=PROMOTE,
    grad_name=lambda args: "RemainderBackward0" if is_number(args["other"]) else "RemainderBackward1",
)
@opmath
def remainder(input: Scalar, other: Scalar) -> Array:
    """The remainder of floor division: it has the sign of the divisor."""
    input, other = jnp.broadcast_arrays(jnp.asarray(input), jnp.asarray(other))
    if kind(input) != "f":
        return jnp.remainder(input, other)
    rest = rem(input, other)
    return jnp.where((rest != 0) & ((rest < 0) != (other < 0)), rest + other, rest)


def _whole(x, y, mode):
    """The rounded quotient, which is flat: where y is 0 or infinite, jax's derivative of what is rounded would be nan."""
    return lax.stop_gradient(div(x, y, rounding_mode=mode))


remainder.vjp(input=lambda g: g, other=lambda g, input, other: -g * _whole(input, other, "floor"))
remainder.lack(remainder_cpu="bool complex")


@op(
    promote=PROMOTE,
    grad_name=lambda args: "FmodBackward0" if is_number(args["other"]) else "FmodBackward1",
)
@opmath
def fmod(input: Array, other: Scalar) -> Array:
    """The remainder of truncated division: it has the sign of the dividend."""
    return rem(*jnp.broadcast_arrays(jnp.asarray(input), jnp.asarray(other)))


fmod.vjp(input=lambda g: g, other=lambda g, input, other: -g * _whole(input, other, "trunc"))
fmod.lack(fmod_cpu="bool complex")


# not on div, whose fast path a check of values would cost
for _record in (floor_divide, remainder, fmod):
    _record.check_values(_no_zero_division)


@op(promote=PROMOTE, lacks={"addcmul_cpu_out": "bool"})
@opmath
def addcmul(input: Array, tensor1: Array, tensor2: Array, *, value: Number = 1) -> Array:
    """`input + value * tensor1 * tensor2`."""
    return input + _times_alpha(tensor1, value) * tensor2


addcmul.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: scaled(g, value) * conj_of(tensor2),
    tensor2=lambda g, tensor1, value: scaled(g, value) * conj_of(tensor1),
)


@op(promote=PROMOTE)
@opmath
def addcdiv(input: Array, tensor1: Array, tensor2: Array, *, value: Number = 1) -> Array:
    """`input + value * tensor1 / tensor2`."""
    return input + quotient(_times_alpha(tensor1, value), tensor2)


addcdiv.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: scaled(g, value) / conj_of(tensor2),
    tensor2=lambda g, tensor1, tensor2, value: -scaled(g, value) * conj_of(tensor1 / tensor2 / tensor2),
)


@addcdiv.check
def _check_addcdiv(input, tensor1, tensor2, value=1):
    if kind(tensor1) in "bi" and kind(tensor2) in "bi":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
            "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented "
            "as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as "
            "(input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the "
            "latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )


@op(
    promote=PROMOTE,
    wide="weight",
    grad_name=lambda args: "LerpBackward0" if is_number(args["weight"]) else "LerpBackward1",
)
@opmath
def lerp(input: Array, end: Array, weight: Scalar) -> Array:
    """`input + weight * (end - input)`, exact at both ends."""
    weight = like(weight, input)
    span = end - input
    return jnp.where(jnp.abs(weight) < 0.5, input + weight * span, end - span * (1 - weight))


lerp.vjp(
    input=lambda g, weight: g * (1 - conj_of(weight)),
    end=lambda g, weight: g * conj_of(weight),
    weight=lambda g, input, end: g * conj_of(end - input),
)


@lerp.check
def _check_lerp(input, end, weight):
    if is_number(weight) and input.dtype.category > dtypes.INT:
        dtypes.check_number(weight, input.dtype)
    lone = not is_number(weight) and not weight.ndim
    for name, arg in (("end", end), ("weight", weight)):
        if name == "weight" and lone:
            continue  # it stands for its number
        if not is_number(arg) and arg.dtype is not input.dtype:
            raise RuntimeError(
                f"expected dtype {errors.c_type(input.dtype)} for `{name}` but got dtype {errors.c_type(arg.dtype)}"
            )
    if input.dtype.category <= dtypes.INT and not (lone and weight.dtype.category > dtypes.INT):
        which = "scalar" if is_number(weight) else "tensor"
        raise NotImplementedError(f"\"lerp_kernel_{which}\" not implemented for '{dtypes.scalar_name(input.dtype)}'")
