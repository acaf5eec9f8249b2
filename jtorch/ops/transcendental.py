"""Elementwise powers, exponentials, logarithms and trigonometry. Knows arrays, never Tensor."""

import builtins
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from .. import errors, errors_autograd
from ..core import dtype as dtypes
from ..core import wide
from ..core.shapes import contiguous_strides
from . import angles
from .conversion import (
    _HALF,
    LN2,
    LN10,
    _check_parts,
    _zero,
    conj,
    conj_of,
    constant,
    imag,
    is_foreign,
    is_number,
    kind,
    like,
    opmath,
    real,
    rounded,
    to_dtype,
    to_float,
)
from .logic import logical_and, where
from .quotients import quotient
from .registry import FLOAT, PROMOTE, Array, Scalar, composite, op
from .rounding import sgn

RETURN_FIELDS = {"frexp": ("mantissa", "exponent")}

# ---- powers ----


def _power_name(args):
    if is_number(args["exponent"]):
        return "PowBackward0"
    return "PowBackward2" if is_number(args["input"]) else "PowBackward1"


def _power_by_constant(x, n):
    """Powers by multiplication and square root where that is exact enough: pow is slow on XLA's CPU."""
    if n == 0:
        return jnp.ones_like(x)
    if n == 1:
        return x
    if n == 2:
        return x * x
    if x.dtype.kind == "b":
        return x
    if isinstance(n, builtins.int | builtins.float) and -4 <= n <= 4 and n == builtins.int(n):
        whole = lax.integer_pow(x, builtins.abs(builtins.int(n)))
        return 1 / whole if n < 0 else whole
    if n == 0.5:
        return _root(x)
    if n == -0.5:
        return 1 / _root(x)
    return None


def _power_of_ints(x, n):
    """Integer powers by squaring; a negative exponent gives 1 / x truncated."""
    out = jnp.ones(jnp.broadcast_shapes(x.shape, n.shape), x.dtype)
    base, left = x, jnp.maximum(n, 0)

    def advance(out, base, left):
        return jnp.where(left & 1, out * base, out), base * base, left >> 1

    for _ in range(6):
        out, base, left = advance(out, base, left)
    # an exponent beyond 2 ** 6 wraps, for any base but 0, 1 and -1: rare, so no more of these steps are taken than there is need for
    out, base, left = lax.while_loop(
        lambda state: jnp.any(state[2] > 0), lambda state: advance(*state), (out, base, left)
    )
    if np.issubdtype(n.dtype, np.signedinteger):
        odd = jnp.where(n & 1, x, jnp.ones_like(x))
        inverse = jnp.where(x == 1, 1, jnp.where(x == -1, odd, 0)).astype(x.dtype)
        out = jnp.where(n < 0, inverse, out)
    return out


@op(promote=PROMOTE, grad_name=_power_name)
@opmath
def pow(input: Scalar, exponent: Scalar) -> Array:
    """`input` to the power `exponent`."""
    n = constant(exponent)
    input = jnp.asarray(input)
    if isinstance(n, builtins.complex) and n.imag == 0:  # beside a complex base 2 comes as 2 + 0j
        n = n.real
    if n is not None and not isinstance(n, builtins.complex):
        out = _power_by_constant(input, n)
        if out is not None:
            return jnp.broadcast_to(out, jnp.broadcast_shapes(out.shape, jnp.shape(exponent)))
    exponent = like(exponent, input) if is_number(exponent) else jnp.asarray(exponent)
    if input.dtype.kind in "iu" and exponent.dtype.kind in "iu":
        return _power_of_ints(input, exponent)
    if input.dtype.kind == "b":
        return jnp.logical_or(input, ~exponent)
    if input.dtype.kind in "fc" and exponent.dtype.kind in "fc":  # its second derivative has no end in jax at 0 ** 1
        return _flat_power(input, exponent)
    return jnp.power(input, exponent)


def _complex_power(x, n, out):
    """`out`, exp(n * log(x)), where it is nan or a product is nearer: (1 + 2j) ** 2 would be -3.0000005 + 3.9999998j."""
    out = jnp.where((x == 0) & (n.real > 0), 0, out)
    if n.ndim == 0 and x.dtype == out.dtype:  # a number that this program takes as an input
        for k, power in ((1, x), (2, x * x), (3, x * x * x), (-1, 1 / x), (-2, 1 / (x * x)), (0.5, _root(x))):
            out = jnp.where(n == k, power, out)
    return out


def _pow_input(g, input, exponent):
    n = constant(exponent)
    if n is not None:
        if n == 0:
            return _zero(g)
        if n == 1:
            return g
        if n == 2:
            return g * conj_of(input + input)
        return g * conj_of(pow(input, n - 1) * n)
    # the power of a negative or zero base with exponent 0 is flat; exponent - 1 would give 0 * inf
    flat = exponent == 0
    return _unless(flat, g, conj_of(exponent * _slope_power(where(flat, like(1, input), input), exponent - 1)))


def _unless(flat, g, slope):
    """g * slope, and 0 where it is flat: there neither of them may be seen, nor their derivatives."""
    return where(flat, 0.0, g * where(flat, 0.0, slope))


@opmath
def _slope_power(x, n):
    return _flat_power(x, like(n, x))


@jax.custom_jvp
def _flat_power(x, n):
    """x ** n, whose own derivatives are 0 where they are 0 times what has no end."""
    out = jnp.power(x, n)
    return _complex_power(x, n, out) if out.dtype.kind == "c" else out


@functools.partial(_flat_power.defjvp, symbolic_zeros=True)
def _(primals, tangents):
    (x, n), (dx, dn) = primals, tangents
    out = _flat_power(x, n)
    moved = jnp.zeros_like(out)
    if type(dx) is not SymbolicZero:
        less = jnp.where(n == 0, jnp.ones_like(n), n - 1)  # what is not taken has no infinite slope either
        moved += jnp.where(n == 0, jnp.zeros((), out.dtype), n * _flat_power(x, less)) * dx
    if type(dn) is not SymbolicZero:  # the logarithm of what is negative is nan, 0 times it too
        flat = (x == 0) & (n.real >= 0)
        moved += jnp.where(flat, jnp.zeros((), out.dtype), out * jnp.log(jnp.where(flat, jnp.ones_like(x), x))) * dn
    return out, moved


def _pow_exponent(g, input, exponent, out):
    base = constant(input)
    if base is not None:
        if base == 0:
            flat = exponent >= 0
            return _unless(flat, g, where(flat, 1.0, out) * -math.inf)
        if isinstance(base, builtins.complex) or (base < 0 and kind(exponent) == "c"):
            return g * conj_of(out * complex_log(base))
        return g * conj_of(out * (math.log(base) if base > 0 else math.nan))
    at_zero = exponent >= 0 if kind(exponent) != "c" else real(exponent) >= 0
    flat = logical_and(input == 0, at_zero)
    return _unless(flat, g, conj_of(out * log(where(flat, 1.0, input))))


def complex_log(x):
    return builtins.complex(np.log(builtins.complex(x)))


pow.vjp(input=_pow_input, exponent=_pow_exponent)
pow.guards(out=lambda call: True if hasattr(call["exponent"], "shape") else None)


@pow.check
def _check_pow(input, exponent):
    if is_number(exponent) and exponent_is_negative_int(exponent) and not is_number(input) and kind(input) == "i":
        raise errors.integer_power()
    if not is_number(exponent) and kind(input) == kind(exponent) == "b":
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if is_number(exponent) and not is_number(input) and not isinstance(exponent, builtins.complex):
        own, d = dtypes.of_number(exponent), input.dtype
        # An int past int64 has none of the dtypes of ints; of the others PyTorch's kernel has the tensor's.
        past = type(exponent) is builtins.int and wide.is_wide(exponent) and d.category <= dtypes.INT
        dtypes.check_number(exponent, own if past or own.category > d.category else d)


def exponent_is_negative_int(n):
    return isinstance(n, builtins.int) and n < 0


def _wide_power(input, exponent):
    """The dtype that float_power computes in."""
    return dtypes.complex128 if "c" in (kind(input), kind(exponent)) else dtypes.float64


def _float_power_out(want, have):
    if want is not have:
        raise errors.out_dtype(
            want,
            have,
            "the output given to float_power has dtype {have} but the operation's result requires dtype {want}",
        )


@composite(out=_float_power_out)
def float_power(input, exponent):
    """The power in double precision."""
    if builtins.all(is_number(x) or is_foreign(x) for x in (input, exponent)):
        raise errors.combination("float_power", (input, exponent), "a Tensor as input, as exponent or as both")
    if not builtins.all(is_number(x) or hasattr(x, "dtype") for x in (input, exponent)):
        raise errors.combination("float_power", (input, exponent), "tensors, or a tensor and a number")
    wide = _wide_power(input, exponent)
    input, exponent = (x if is_number(x) else to_dtype(x, dtype=wide) for x in (input, exponent))
    if is_number(input) and wide is dtypes.complex128:
        input = builtins.complex(input)
    return pow(input, exponent)


@composite(name="float_power_", where="Tensor")
def float_power_(input, exponent):
    """The power in double precision, in place."""
    wide = _wide_power(input, exponent)
    if input.dtype is not wide:
        raise errors.out_dtype(
            wide,
            input.dtype,
            "the base given to float_power_ has dtype {have} but the operation's result requires dtype {want}",
        )
    return input.pow_(exponent if is_number(exponent) else to_dtype(exponent, dtype=wide))


@op(promote=PROMOTE, grad_name="PowBackward0")
def square(input: Array) -> Array:
    """The square of each element; of bools as int64."""
    x = input.astype(jnp.int64) if input.dtype.kind == "b" else input
    return x * x


square.vjp(input=lambda g, input: g * conj_of(input + input))


@op(promote=FLOAT)
def sqrt(input: Array) -> Array:
    """The square root."""
    return _root(input)


def _root(x):
    out = jnp.sqrt(x)
    if x.dtype.kind == "c":  # of -inf + nan j the imaginary part is known, where XLA has nan, as in `exp` and `log`
        up, side = (
            jnp.asarray(builtins.complex(math.inf, math.nan), x.dtype),
            jnp.asarray(builtins.complex(math.nan, math.inf), x.dtype),
        )
        out = jnp.where(jnp.isinf(x.real) & jnp.isnan(x.imag), jnp.where(x.real > 0, up, side), out)
        out = jnp.where(jnp.isnan(x.real) & jnp.isinf(x.imag), lax.complex(jnp.abs(x.imag), x.imag), out)
        out = _with_side(out, x.imag)
    return out


def _with_side(out, side):
    """A complex number on the side of a cut that the sign tells, be it that of a zero, which XLA does not look at."""
    return lax.complex(out.real, jnp.copysign(out.imag, side))


sqrt.vjp(input=lambda g, out: g / conj_of(out * 2))


@op(promote=FLOAT)
@opmath
def rsqrt(input: Array) -> Array:
    """One over the square root."""
    # XLA's own rsqrt, which it makes of 1 / sqrt(x) too, is three times as slow on a CPU
    return quotient(np.ones((), input.dtype), _root(input))


rsqrt.vjp(input=lambda g, out: g * conj_of(out * out * out) * -0.5)


@op(promote=FLOAT)
def reciprocal(input: Array) -> Array:
    """One over each element."""
    return 1 / input


reciprocal.vjp(input=lambda g, out: -g * conj_of(out * out))


# ---- exponentials and logarithms ----


@op(promote=FLOAT)
def exp(input: Array) -> Array:
    """e to the power of each element."""
    out = jnp.exp(input)
    if input.dtype.kind == "c":  # the size is known without a direction
        known = jnp.isinf(input.real) & ~jnp.isfinite(input.imag)
        large = jnp.asarray(builtins.complex(math.inf, math.nan), input.dtype)
        out = jnp.where(known, jnp.where(input.real > 0, large, 0), out)
    return out


exp.vjp(input=lambda g, out: g * conj_of(out))


@op(promote=FLOAT, where="torch Tensor special")
@opmath
def exp2(input: Array) -> Array:
    """2 to the power of each element."""
    return jnp.exp2(input)


exp2.vjp(input=lambda g, out: g * conj_of(out) * LN2)


@op(promote=FLOAT, where="torch Tensor special")
def expm1(input: Array) -> Array:
    """exp(input) - 1, exact near 0."""
    return jnp.expm1(input)


expm1.vjp(input=lambda g, out: g * conj_of(out + 1))


@op(promote=FLOAT)
def log(input: Array) -> Array:
    """The natural logarithm."""
    out = jnp.log(input)
    if input.dtype.kind == "c":
        re, im = input.real, input.imag
        known = (jnp.isinf(re) & jnp.isnan(im)) | (jnp.isnan(re) & jnp.isinf(im))
        out = jnp.where(known, jnp.asarray(builtins.complex(math.inf, math.nan), input.dtype), out)
    return out


log.vjp(input=lambda g, input: g / conj_of(input))


@op(promote=FLOAT)
@opmath
def log2(input: Array) -> Array:
    """The logarithm to the base 2."""
    return jnp.log2(input)


log2.vjp(input=lambda g, input: g / conj_of(input * LN2))


@op(promote=FLOAT)
@opmath
def log10(input: Array) -> Array:
    """The logarithm to the base 10."""
    return jnp.log10(input)


log10.vjp(input=lambda g, input: g / conj_of(input * LN10))


@op(promote=FLOAT, where="torch Tensor special", grad_name="Log1PBackward0")
def log1p(input: Array) -> Array:
    """log(1 + input), exact near 0."""
    return jnp.log1p(input)


log1p.vjp(input=lambda g, input: g / conj_of(input + 1))


@op(promote=PROMOTE, inplace=False)
@opmath
def logaddexp(input: Array, other: Array) -> Array:
    """log(exp(input) + exp(other)) without overflow."""
    if input.dtype.kind == "c":
        return _complex_logaddexp(*jnp.broadcast_arrays(input, other))
    return jnp.logaddexp(input, other)


def _complex_logaddexp(x, y):
    """The larger real part plus log1p of the rest: the imaginary part is not wrapped, as in torch."""
    swap = (x.real < y.real) | jnp.isnan(y)
    top, low = jnp.where(swap, y, x), jnp.where(swap, x, y)
    same = ~jnp.isfinite(low.real) & (low.real == top.real)
    a, b = (jnp.where(same, v, 0) for v in (low, top))
    plain = jnp.where(top.real < 0, low, jnp.log(jnp.exp(a) + jnp.exp(b)))
    out = jnp.where(same, plain, top + jnp.log1p(jnp.exp(jnp.where(same, 0, low - top))))
    return jnp.where(jnp.isnan(top), jnp.asarray(jnp.nan, x.dtype), out)


# Of the difference, not exp(input - out): right where only one is infinite, and with torch's nan at second order there
logaddexp.vjp(
    input=lambda g, input, other: g / conj_of(1 + exp(other - input)),
    other=lambda g, input, other: g / conj_of(1 + exp(input - other)),
)
logaddexp.lack(logaddexp_cpu="bool int")


@op(promote=PROMOTE, inplace=False)
@opmath
def logaddexp2(input: Array, other: Array) -> Array:
    """log2(2 ** input + 2 ** other) without overflow."""
    return jnp.logaddexp2(input, other)


logaddexp2.vjp(
    input=lambda g, input, other: g / (1 + exp2(other - input)),
    other=lambda g, input, other: g / (1 + exp2(input - other)),
)
logaddexp2.lack(logaddexp2_cpu="bool int complex")


@op(promote=FLOAT, where="torch Tensor special.expit")
def sigmoid(input: Array) -> Array:
    """1 / (1 + exp(-input))."""
    return jax.nn.sigmoid(input) if input.dtype.kind != "c" else 1 / (1 + jnp.exp(-input))


sigmoid.vjp(input=lambda g, out: g * conj_of(out * (1 - out)))


# ---- trigonometry ----


@op(promote=FLOAT)
def sin(input: Array) -> Array:
    """The sine."""
    return angles.sin(input)


sin.vjp(input=lambda g, input: g * conj_of(cos(input)))


@op(promote=FLOAT)
def cos(input: Array) -> Array:
    """The cosine."""
    return angles.cos(input)


cos.vjp(input=lambda g, input: -g * conj_of(sin(input)))


@op(promote=FLOAT)
def tan(input: Array) -> Array:
    """The tangent."""
    return angles.tan(input)


tan.vjp(input=lambda g, out: g * conj_of(1 + out * out))


@op(promote=FLOAT, aliases=("arcsin",))
def asin(input: Array) -> Array:
    """The inverse sine."""
    out = angles.arcsin(input)
    return _with_side(out, input.imag) if input.dtype.kind == "c" else out


asin.vjp(input=lambda g, input: g / conj_of(sqrt(1 - input * input)))


@op(promote=FLOAT, aliases=("arccos",))
def acos(input: Array) -> Array:
    """The inverse cosine."""
    out = angles.arccos(input)
    return _with_side(out, -input.imag) if input.dtype.kind == "c" else out


acos.vjp(input=lambda g, input: -g / conj_of(sqrt(1 - input * input)))


@op(promote=FLOAT, aliases=("arctan",))
def atan(input: Array) -> Array:
    """The inverse tangent."""
    return angles.arctan(input)


atan.vjp(input=lambda g, input: g / conj_of(input * input + 1))


@op(promote=FLOAT, aliases=("arctan2",))
def atan2(input: Array, other: Array) -> Array:
    """The angle of the point (other, input)."""
    return angles.arctan2(input, other)


atan2.vjp(
    # torch: 0 at the origin, where jax gives nan
    input=lambda g, input, other: _over_square(g * other, input, other),
    other=lambda g, input, other: -_over_square(g * input, input, other),
)


atan2.lack(atan2_cpu="complex")


def _over_square(top, a, b):
    bottom = a * a + b * b
    return where(bottom == 0, 0, top / where(bottom == 0, 1, bottom))


@op(promote=FLOAT)
def sinh(input: Array) -> Array:
    """The hyperbolic sine."""
    return jnp.sinh(input)


sinh.vjp(input=lambda g, input: g * conj_of(cosh(input)))


@op(promote=FLOAT)
def cosh(input: Array) -> Array:
    """The hyperbolic cosine."""
    return jnp.cosh(input)


cosh.vjp(input=lambda g, input: g * conj_of(sinh(input)))


@op(promote=FLOAT)
def tanh(input: Array) -> Array:
    """The hyperbolic tangent."""
    return jnp.tanh(input)


tanh.vjp(input=lambda g, out: g * conj_of(1 - out * out))


@op(promote=FLOAT, aliases=("arcsinh",))
def asinh(input: Array) -> Array:
    """The inverse hyperbolic sine."""
    out = jnp.arcsinh(input)
    if input.dtype.kind == "c":  # beyond j the sign of the real part is that of a zero, which XLA does not look at
        out = lax.complex(jnp.copysign(out.real, input.real), out.imag)
    return out


asinh.vjp(input=lambda g, input: g / conj_of(sqrt(input * input + 1)))


# the product of roots, not the root of the product, which jax takes: they differ in sign for complex numbers
@jax.custom_jvp
def _complex_acosh(x):
    return jnp.arccosh(x)


_complex_acosh.defjvps(lambda t, out, x: t / (jnp.sqrt(x - 1) * jnp.sqrt(x + 1)))


@op(promote=FLOAT, aliases=("arccosh",))
def acosh(input: Array) -> Array:
    """The inverse hyperbolic cosine."""
    return _with_side(_complex_acosh(input), input.imag) if jnp.iscomplexobj(input) else jnp.arccosh(input)


acosh.vjp(
    input=lambda g, input: (
        g / conj_of(sqrt(input - 1) * sqrt(input + 1) if kind(input) == "c" else sqrt(input * input - 1))
    )
)


@op(promote=FLOAT, aliases=("arctanh",))
def atanh(input: Array) -> Array:
    """The inverse hyperbolic tangent."""
    return jnp.arctanh(input)


atanh.vjp(input=lambda g, input: g / conj_of(1 - input * input))
for _record in (asinh, acosh, atanh):
    _refused = functools.partial(errors_autograd.unwritten, f"inplace version of {_record.name}")
    _record.derives_in_place(lambda call, refused=_refused: refused)


@op(promote=FLOAT, grad_name="Deg2RadBackward0")
@opmath
def deg2rad(input: Array) -> Array:
    """Degrees to radians."""
    return input * (math.pi / 180)


deg2rad.vjp(input=lambda g: g * (math.pi / 180))


@op(promote=FLOAT, grad_name="Rad2DegBackward0")
@opmath
def rad2deg(input: Array) -> Array:
    """Radians to degrees."""
    return input * (180 / math.pi)


rad2deg.vjp(input=lambda g: g * (180 / math.pi))


def _real_angle(record):
    @record.check
    def check(input):
        if kind(input) == "c":
            raise RuntimeError(f"{record.name} is not supported for complex tensors.")


for _record in (deg2rad, rad2deg):
    _real_angle(_record)


@op(promote=PROMOTE)
@opmath
def hypot(input: Array, other: Array) -> Array:
    """The length of the hypotenuse, without overflow."""
    return jnp.hypot(input, other)


hypot.vjp(
    input=lambda g, input, out: g * (input / out),
    other=lambda g, other, out: g * (other / out),
)
hypot.lack(hypot_cpu="bool int complex")


# ---- angles of complex numbers ----
def _angle_strides(outs, input):
    """Row by row for complex numbers."""
    return (contiguous_strides(tuple(input.shape)) if input.dtype.is_complex else None,)


@op(promote=PROMOTE, strides=_angle_strides)
@opmath
def angle(input: Array) -> Array:
    """The argument of a complex number; 0 or pi for a real one."""
    if input.dtype.kind == "c":
        return angles.arctan2(jnp.imag(input), jnp.real(input))
    input = to_float(input)
    turned = jnp.where(input < 0, jnp.asarray(jnp.pi, input.dtype), jnp.zeros((), input.dtype))
    return jnp.where(jnp.isnan(input), input, turned)


angle.guards(input=True)


angle.inplace = False


def _angle_input(g, input):
    if kind(input) != "c":
        return _zero(g)
    x, y = real(input), imag(input)
    return _over_square(g * (input * 1j), x, y)


angle.vjp(input=_angle_input)


@op(
    promote=PROMOTE,
    where="torch",
    inplace=False,
    lacks={"polar_cpu": "float16"},
    out="Expected object of scalar type {want} but got scalar type {have} for argument 'out'",
)
def polar(abs: Array, angle: Array) -> Array:
    """The complex number of a length and an angle."""
    return lax.complex(*jnp.broadcast_arrays(abs * jnp.cos(angle), abs * jnp.sin(angle)))


polar.vjp(
    abs=lambda g, out: real(conj(g) * sgn(out)),
    angle=lambda g, out: real(g * conj(out * 1j)),
)
polar.check(lambda abs, angle: _check_parts(abs, angle))


# ---- parts of floating-point numbers ----
def _ldexp_out(want, have):
    if not dtypes.can_cast(want, have):
        words = "result type {want}" if have.category == dtypes.FLOAT else "ldexp"
        raise errors.out_dtype(want, have, words + " can't be cast to the desired output type {have}")


@op(promote=FLOAT, out=_ldexp_out)
def ldexp(input: Array, other: Array) -> Array:
    """`input * 2 ** other`."""
    input, other = jnp.broadcast_arrays(input, other)
    if other.dtype.kind == "c":
        return input * jnp.exp2(other)
    wide = other.astype(jnp.float32) if other.dtype in _HALF else other
    whole = (wide == jnp.floor(wide)) & jnp.isfinite(wide)
    x = input.astype(wide.dtype)
    exact = jnp.ldexp(x, jnp.where(whole, wide, 0).astype(jnp.int32))  # its power alone may be too large
    return jnp.where(whole, exact, x * rounded(jnp.exp2(wide), other.dtype)).astype(input.dtype)


ldexp.vjp(
    input=lambda g, other: g * conj_of(exp2(other)),
    other=lambda g, out: g * conj_of(out * LN2),
)
ldexp.guards(out=True)


@op(
    promote=PROMOTE,
    inplace=False,
    out=(
        "torch.frexp() expects mantissa to have dtype {c_want} but got {c_have}",
        "torch.frexp() expects exponent to have int dtype but got {c_have}",
    ),
)
def frexp(input: Array) -> tuple[Array, Array]:
    """Mantissa in [0.5, 1) and exponent of each element."""
    half = input.dtype in _HALF
    mantissa, exponent = jnp.frexp(input.astype(jnp.float32) if half else input)
    return mantissa.astype(input.dtype), exponent.astype(jnp.int32)


frexp.vjp(input=lambda g, out: g[0] / exp2(out[1]))


@frexp.check
def _check_frexp(input):
    if kind(input) != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
