"""Elementwise arithmetic, transcendental, bitwise and logical ops. Knows arrays, never Tensor."""

import builtins
import functools
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from ..core import dtype as dtypes
from .registry import FLOAT, PROMOTE, ZERO, Array, Number, Scalar, composite, op

RETURN_FIELDS = {"frexp": ("mantissa", "exponent")}

LN2, LN10 = math.log(2), math.log(10)
_HALF = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))

# ---- helpers ----


def is_number(x) -> builtins.bool:
    return isinstance(x, builtins.int | builtins.float | builtins.complex)


def constant(x):
    """The Python number that `x` is known to be (a number, or a 0-d numpy value), else None."""
    if is_number(x):
        return x
    if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and x.ndim == 0):
        return x.item()
    return None


def like(value, array):
    """A number, or a 0-d array made from one, in the dtype of `array`."""
    return value.astype(array.dtype) if hasattr(value, "astype") else jnp.asarray(value, array.dtype)


def kind(x) -> str:
    """'b', 'i', 'f' or 'c': the category of an array, a Spec or a number."""
    if is_number(x):
        d = dtypes.of_number(x)
    else:
        d = x.dtype if isinstance(x.dtype, dtypes.dtype) else dtypes.of(x.dtype)
    return "bifc"[d.category]


def common_dtype(*args) -> dtypes.dtype:
    """The dtype, by category and rank, that Specs and numbers together compute in (for messages)."""
    specs = [a for a in args if a is not None and not is_number(a)]
    found = functools.reduce(dtypes.promote, [s.dtype for s in specs])
    for a in args:
        if is_number(a) and dtypes.of_number(a).category > found.category:
            found = dtypes.promote(found, dtypes.of_number(a))
    return found


def refuse(record, kernel_name: str, kinds: str, count: int = 1):
    """Check that raises PyTorch's "not implemented" for common dtypes of these kinds."""

    @record.check
    def check(*args, **kwargs):
        d = common_dtype(*args[:count])
        if "bifc"[d.category] in kinds:
            raise NotImplementedError(f"\"{kernel_name}\" not implemented for '{dtypes.scalar_name(d)}'")


def opmath(fn):
    """Compute half and bfloat16 in float32 and round once, as PyTorch's kernels do."""

    @functools.wraps(fn)
    def wide(*args, **kwargs):
        half = next((a.dtype for a in args if getattr(a, "dtype", None) in _HALF), None)
        if half is None:
            return fn(*args, **kwargs)
        args = [a.astype(jnp.float32) if getattr(a, "dtype", None) in _HALF else a for a in args]
        out = fn(*args, **kwargs)
        return jax.tree.map(lambda r: r.astype(half) if r.dtype == np.float32 else r, out)

    return wide


def to_float(x):
    """Integers and bools in the default float dtype, everything else as it is."""
    return x.astype(dtypes.default.dtype.np) if x.dtype.kind in "biu" else x


def conj_of(x):
    """The conjugate of a factor in a derivative; real factors and numbers cost nothing."""
    if is_number(x):
        return x.conjugate()
    return conj(x) if kind(x) == "c" else x


@op(where="", name="_scale", out=False)
def _scale(input: Array, value: Number) -> Array:
    """`input * conj(value)` in the dtype of `input`: the derivative of `alpha * x`."""
    return input * jnp.conj(like(value, input))


@op(where="", name="_zero", out=False)
def _zero(input: Array) -> Array:
    """Zeros shaped as `input`."""
    return jnp.zeros_like(input)


def scaled(g, value):
    return g if is_number(value) and value == 1 else _scale(g, value)


# ---- copies and conversions ----


@op(elementwise=True, inplace=False, out=False)
def clone(input: Array, *, memory_format: object = None) -> Array:
    """A copy of the tensor."""
    return input


clone.vjp(input=lambda g: g)


def convert(x, np_dtype):
    """`x` in another dtype; floats beyond the range of an integer type wrap as they do on PyTorch's CPU."""
    np_dtype = np.dtype(np_dtype)
    if x.dtype == np_dtype:
        return x
    if np_dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and np_dtype.kind != "c":
        x = jnp.real(x)
    if dtypes.of(x.dtype).is_floating_point and np_dtype.kind in "iu":
        wide = np.dtype(np.int64 if np_dtype.itemsize >= 8 or np_dtype == np.uint32 else np.int32)
        info = np.iinfo(wide)
        inside = (x >= builtins.float(info.min)) & (x < -builtins.float(info.min))
        return jnp.where(inside, x, 0).astype(wide).astype(np_dtype) + jnp.where(
            inside, jnp.zeros((), np_dtype), np.asarray(info.min, wide).astype(np_dtype)
        )
    return x.astype(np_dtype)


@op(name="_to_copy", where="", elementwise=True, inplace=False, out=False)
def to_dtype(input: Array, dtype: dtypes.dtype) -> Array:
    """The tensor in another dtype."""
    return convert(input, dtype.np)


to_dtype.grad_name = "ToCopyBackward0"
to_dtype.vjp(input=lambda g: g)


# ---- sums and products ----


def _check_alpha(input, other, alpha=1):
    d = common_dtype(input, other)
    if type(alpha) is builtins.bool and d.category != dtypes.BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if d.category <= dtypes.INT and type(alpha) is builtins.float:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if d.category <= dtypes.FLOAT and type(alpha) is builtins.complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def _times_alpha(x, alpha):
    return x if is_number(alpha) and alpha == 1 else x * like(alpha, x)


@op(promote=PROMOTE)
@opmath
def add(input: Scalar, other: Scalar, *, alpha: Number = 1) -> Array:
    """`input + alpha * other`."""
    return input + _times_alpha(other, alpha)


add.vjp(input=lambda g: g, other=lambda g, alpha: scaled(g, alpha))
add.check(_check_alpha)


def _check_sub(input, other, alpha=1):
    bools = [kind(a) == "b" for a in (input, other)]
    if builtins.all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    if builtins.any(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    _check_alpha(input, other, alpha)


@op(promote=PROMOTE, aliases=("subtract",))
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
)
@opmath
def rsub(input: Scalar, other: Scalar, *, alpha: Number = 1) -> Array:
    """`other - alpha * input`."""
    return other - _times_alpha(input, alpha)


rsub.vjp(input=lambda g, alpha: -scaled(g, alpha), other=lambda g: g)
rsub.check(_check_sub)


@op(promote=PROMOTE, aliases=("multiply",))
def mul(input: Scalar, other: Scalar) -> Array:
    """The product of two tensors, element by element."""
    return input * other


mul.vjp(
    input=lambda g, other: g * conj_of(other),
    other=lambda g, input: g * conj_of(input),
)


def _floor_div(a, b):
    if a.dtype.kind in "biu":
        return jnp.floor_divide(a, b)
    quotient = a / b
    rest = lax.rem(a, b)
    down = (rest != 0) & ((b < 0) != (rest < 0))
    whole = jnp.round((a - rest) / b - down)
    # an exact 0 keeps the sign of the quotient
    whole = jnp.where(whole == 0, jnp.copysign(jnp.zeros_like(whole), quotient), whole)
    return jnp.where(b == 0, quotient, whole)


def _trunc_div(a, b):
    return lax.div(*jnp.broadcast_arrays(a, b)) if a.dtype.kind in "biu" else jnp.trunc(a / b)


_ROUNDED = {"floor": _floor_div, "trunc": _trunc_div}


@op(
    promote=PROMOTE,
    aliases=("divide",),
    grad_name=lambda args: "DivBackward0" if args["rounding_mode"] is None else "DivBackward2",
)
@opmath
def div(input: Scalar, other: Scalar, *, rounding_mode: str | None = None) -> Array:
    """The quotient; of integers in floating point unless `rounding_mode` is "trunc" or "floor"."""
    input, other = jnp.asarray(input), jnp.asarray(other)
    if rounding_mode is None:
        return to_float(input) / to_float(other)
    return _ROUNDED[rounding_mode](*jnp.broadcast_arrays(input, other))


def _div_input(g, other, rounding_mode):
    return g / conj_of(other) if rounding_mode is None else _zero(g)


def _div_other(g, input, other, rounding_mode):
    return -g * conj_of(input / other / other) if rounding_mode is None else _zero(g)


div.vjp(input=_div_input, other=_div_other)


@div.check
def _check_rounding(input, other, rounding_mode=None):
    if rounding_mode not in (None, "trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    d = common_dtype(input, other)
    if rounding_mode is not None and d.category == dtypes.COMPLEX:
        raise NotImplementedError(f"\"div_{rounding_mode}_cpu\" not implemented for '{dtypes.scalar_name(d)}'")


def _no_zero_division(input, other):
    """PyTorch raises for integers, on values; only what is already on the host is looked at."""
    if other is None or np.asarray(other).dtype.kind not in "biu" or np.all(other):
        return
    # an unknown dividend may be floating point: only integers are ever handed to value checks
    if input is not None and np.asarray(input).dtype.kind in "biu":
        raise RuntimeError("ZeroDivisionError")


@op(promote=PROMOTE)
def true_divide(input: Scalar, other: Scalar) -> Array:
    """The quotient, of integers in floating point."""
    return to_float(jnp.asarray(input)) / to_float(jnp.asarray(other))


true_divide.grad_name = "DivBackward0"
true_divide.vjp(
    input=lambda g, other: g / conj_of(other),
    other=lambda g, input, other: -g * conj_of(input / other / other),
)


@op(promote=PROMOTE)
@opmath
def floor_divide(input: Scalar, other: Scalar) -> Array:
    """The quotient rounded towards minus infinity."""
    return _floor_div(*jnp.broadcast_arrays(jnp.asarray(input), jnp.asarray(other)))


floor_divide.vjp(input=ZERO, other=ZERO)
refuse(floor_divide, "div_floor_cpu", "c", 2)


@op(
    promote=PROMOTE,
    grad_name=lambda args: "RemainderBackward0" if is_number(args["other"]) else "RemainderBackward1",
)
@opmath
def remainder(input: Scalar, other: Scalar) -> Array:
    """The remainder of floor division: it has the sign of the divisor."""
    return jnp.remainder(input, other)


remainder.vjp(input=lambda g: g, other=lambda g, input, other: -g * div(input, other, rounding_mode="floor"))
refuse(remainder, "remainder_cpu", "bc", 2)


@op(
    promote=PROMOTE,
    grad_name=lambda args: "FmodBackward0" if is_number(args["other"]) else "FmodBackward1",
)
@opmath
def fmod(input: Scalar, other: Scalar) -> Array:
    """The remainder of truncated division: it has the sign of the dividend."""
    return lax.rem(*jnp.broadcast_arrays(jnp.asarray(input), jnp.asarray(other)))


fmod.vjp(input=lambda g: g, other=lambda g, input, other: -g * div(input, other, rounding_mode="trunc"))
refuse(fmod, "fmod_cpu", "bc", 2)


# not on div, whose fast path a check of values would cost
for _record in (floor_divide, remainder, fmod):
    _record.check_values(_no_zero_division)


@op(promote=PROMOTE)
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
    return input + _times_alpha(tensor1, value) / tensor2


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
    for name, arg in (("end", end), ("weight", weight)):
        if not is_number(arg) and arg.dtype is not input.dtype:
            want, got = (_CPP_NAMES.get(d.name, d.name) for d in (input.dtype, arg.dtype))
            raise RuntimeError(f"expected dtype {want} for `{name}` but got dtype {got}")
    if input.dtype.category <= dtypes.INT:
        which = "scalar" if is_number(weight) else "tensor"
        raise NotImplementedError(f"\"lerp_kernel_{which}\" not implemented for '{dtypes.scalar_name(input.dtype)}'")


_CPP_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "int64": "long int", "int32": "int", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


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
    if isinstance(n, builtins.int | builtins.float) and n == builtins.int(n) and -4 <= n <= 4:
        whole = lax.integer_pow(x, builtins.abs(builtins.int(n)))
        return 1 / whole if n < 0 else whole
    if n == 0.5:
        return jnp.sqrt(x)
    if n == -0.5:
        return 1 / jnp.sqrt(x)
    return None


def _power_of_ints(x, n):
    """Integer powers by squaring; a negative exponent gives 1 / x truncated."""
    out = jnp.ones(jnp.broadcast_shapes(x.shape, n.shape), x.dtype)
    base, left = x, jnp.maximum(n, 0)
    for _ in range(7):  # beyond 2 ** 7 only 0, 1 and -1, or a wrapped value, are left: handled by parity
        out = jnp.where(left & 1, out * base, out)
        base, left = base * base, left >> 1
    out = jnp.where(left > 0, out * jnp.power(base, jnp.maximum(left, 0)), out)
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
    if n is not None and not isinstance(n, builtins.complex):
        out = _power_by_constant(input, n)
        if out is not None:
            return jnp.broadcast_to(out, jnp.broadcast_shapes(out.shape, jnp.shape(exponent)))
    exponent = like(exponent, input) if is_number(exponent) else jnp.asarray(exponent)
    if input.dtype.kind in "iu" and exponent.dtype.kind in "iu":
        return _power_of_ints(input, exponent)
    if input.dtype.kind == "b":
        return jnp.logical_or(input, ~exponent)
    return jnp.power(input, exponent)


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
    return where(exponent == 0, 0.0, g * conj_of(exponent * pow(input, exponent - 1)))


def _pow_exponent(g, input, exponent, out):
    base = constant(input)
    if base is not None:
        if base == 0:
            return where(exponent >= 0, 0.0, g * (out * -math.inf))
        if isinstance(base, builtins.complex) or (base < 0 and kind(exponent) == "c"):
            return g * conj_of(out * complex_log(base))
        return g * conj_of(out * (math.log(base) if base > 0 else math.nan))
    at_zero = exponent >= 0 if kind(exponent) != "c" else real(exponent) >= 0
    return where(logical_and(input == 0, at_zero), 0.0, g * conj_of(out * log(input)))


def complex_log(x):
    return builtins.complex(np.log(builtins.complex(x)))


pow.vjp(input=_pow_input, exponent=_pow_exponent)


@pow.check
def _check_pow(input, exponent):
    if is_number(exponent) and exponent_is_negative_int(exponent) and not is_number(input) and kind(input) == "i":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if not is_number(input) and not is_number(exponent) and kind(input) == kind(exponent) == "b":
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")


def exponent_is_negative_int(n):
    return isinstance(n, builtins.int) and n < 0


@composite
def float_power(input, exponent):
    """The power in double precision."""
    wide = dtypes.complex128 if "c" in (kind(input), kind(exponent)) else dtypes.float64
    if not is_number(input):
        input = to_dtype(input, wide)
    elif not is_number(exponent):
        exponent = to_dtype(exponent, wide)
    if not is_number(exponent):
        exponent = to_dtype(exponent, wide)
    return pow(input, exponent)


@op(promote=PROMOTE, grad_name="PowBackward0")
def square(input: Array) -> Array:
    """The square of each element; of bools as int64."""
    x = input.astype(jnp.int64) if input.dtype.kind == "b" else input
    return x * x


square.vjp(input=lambda g, input: g * conj_of(input + input))


@op(promote=FLOAT)
def sqrt(input: Array) -> Array:
    """The square root."""
    return jnp.sqrt(input)


sqrt.vjp(input=lambda g, out: g / conj_of(out * 2))


@op(promote=FLOAT)
@opmath
def rsqrt(input: Array) -> Array:
    """One over the square root."""
    return 1 / jnp.sqrt(input)  # XLA's own rsqrt is six times slower on a CPU


rsqrt.vjp(input=lambda g, out: g * conj_of(out * out * out) * -0.5)


@op(promote=FLOAT)
def reciprocal(input: Array) -> Array:
    """One over each element."""
    return 1 / input


reciprocal.vjp(input=lambda g, out: -g * conj_of(out * out))


# ---- signs and rounding ----


@op(promote=PROMOTE, aliases=("negative",))
def neg(input: Array) -> Array:
    """The negative of each element."""
    return -input


neg.vjp(input=lambda g: -g)


@neg.check
def _check_neg(input):
    if kind(input) == "b":
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


@composite
def positive(input):
    """The tensor itself."""
    if kind(input) == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@op(promote=PROMOTE, aliases=("absolute",))
def abs(input: Array) -> Array:
    """The absolute value; real for complex numbers."""
    return jnp.abs(input)


abs.vjp(input=lambda g, input: g * sgn(input))
refuse(abs, "abs_cpu", "b")


def _sign(x):
    if x.dtype.kind == "b":
        return x
    if x.dtype.kind == "c":
        size = jnp.abs(x)
        return jnp.where(size == 0, 0, x / jnp.where(size == 0, 1, size))
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)  # 0 for nan, which jnp.sign keeps


@op(promote=PROMOTE)
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


@op(promote=PROMOTE)
def sgn(input: Array) -> Array:
    """`input / abs(input)`, and 0 at 0."""
    return _sign(input)


def _sgn_input(g, input, out):
    if kind(out) != "c":
        return _zero(g)
    size = abs(input)
    # the part of g across the direction of input, over its length
    return where(size == 0, 0.0, (g - out * real(conj(out) * g)) / where(size == 0, 1.0, size))


sgn.vjp(input=_sgn_input)


@op(promote=PROMOTE, inplace=False, differentiable=False)
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

    @record.check
    def check(input, *rest, **named):
        if kind(input) == "b":
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
        if kind(input) == "c":
            words = f"{record.name} is not supported for complex inputs"
            if record is round:
                words = f"\"{name}_cpu\" not implemented for '{dtypes.scalar_name(input.dtype)}'"
            raise NotImplementedError(words)


def _of_floats(fn):
    return lambda x: x if x.dtype.kind in "iu" else fn(x)


@op(promote=PROMOTE)
def ceil(input: Array) -> Array:
    """Round up."""
    return _of_floats(jnp.ceil)(input)


@op(promote=PROMOTE)
def floor(input: Array) -> Array:
    """Round down."""
    return _of_floats(jnp.floor)(input)


@op(promote=PROMOTE, aliases=("fix",))
def trunc(input: Array) -> Array:
    """Round towards zero."""
    return _of_floats(jnp.trunc)(input)


@op(
    promote=PROMOTE,
    where="torch Tensor special",
    grad_name=lambda args: "RoundBackward1" if args["decimals"] else "RoundBackward0",
)
@opmath
def round(input: Array, *, decimals: int = 0) -> Array:
    """Round to the nearest, halves to the even neighbour."""
    if input.dtype.kind in "iu":
        return input
    if decimals == 0:
        return jnp.round(input)
    scale = jnp.asarray(10.0 ** builtins.abs(decimals), input.dtype)
    return jnp.round(input * scale) / scale if decimals > 0 else jnp.round(input / scale) * scale


@round.check
def _check_round(input, decimals=0):
    if kind(input) == "i" and decimals:
        raise NotImplementedError(f"\"round_cpu\" not implemented for '{dtypes.scalar_name(input.dtype)}'")


for _record, _name in ((ceil, "ceil_vml"), (floor, "floor_vml"), (trunc, "trunc_vml"), (round, "round_vml")):
    _round_op(_record, _name)


@op(promote=PROMOTE)
def frac(input: Array) -> Array:
    """The part behind the point, with the sign of the element."""
    return input - jnp.trunc(input)


frac.vjp(input=lambda g: g)
refuse(frac, "frac_cpu", "bic")


def _clamp_name(args):
    bounds = (args["min"], args["max"])
    return "ClampBackward1" if builtins.all(b is None or is_number(b) for b in bounds) else "ClampBackward0"


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


@clamp.check
def _check_clamp(input, min=None, max=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if common_dtype(input, min, max).category == dtypes.COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")


@op(
    promote=PROMOTE,
    grad_name=lambda args: "ClampMinBackward0" if is_number(args["min"]) else "ClampMinBackward1",
)
def clamp_min(input: Array, min: Scalar) -> Array:
    """The elements, at least `min`."""
    return jnp.maximum(input, like(min, input))


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


clamp_max.vjp(
    input=lambda g, input, max: where(input <= max, g, 0),
    max=lambda g, input, max: where(input > max, g, 0),
)


@op(promote=PROMOTE)
def copysign(input: Array, other: Scalar) -> Array:
    """The size of `input` with the sign of `other`."""
    return jnp.copysign(to_float(input), to_float(like(other, input)))


copysign.grad_name = lambda args: "CopysignBackward1" if is_number(args["other"]) else "CopysignBackward0"
copysign.vjp(
    # torch: no gradient at 0, where the ratio is 0 / 0
    input=lambda g, input, out: where(input == 0, 0, g * out / input),
    other=ZERO,
)
refuse(copysign, "copysign_cpu", "c", 2)


@op(promote=PROMOTE)
def nextafter(input: Array, other: Array) -> Array:
    """The next representable number from `input` towards `other`."""
    return jnp.nextafter(input, other)


nextafter.vjp(input=ZERO, other=ZERO)
refuse(nextafter, "nextafter_cpu", "bic", 2)


@op(promote=PROMOTE)
def heaviside(input: Array, values: Array) -> Array:
    """0 below zero, 1 above, `values` at zero."""
    one = jnp.ones((), input.dtype)
    out = jnp.where(input == 0, values, jnp.where(input < 0, jnp.zeros_like(one), one))
    return jnp.where(jnp.isnan(input), jnp.zeros_like(one), out) if input.dtype.kind == "f" else out


heaviside.vjp(input=ZERO, values=ZERO)


@heaviside.check
def _check_heaviside(input, values):
    if "c" in (kind(input), kind(values)):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


# ---- exponentials and logarithms ----


@op(promote=FLOAT)
def exp(input: Array) -> Array:
    """e to the power of each element."""
    return jnp.exp(input)


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
    return jnp.log(input)


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


@op(promote=FLOAT, where="torch Tensor special")
def log1p(input: Array) -> Array:
    """log(1 + input), exact near 0."""
    return jnp.log1p(input)


log1p.vjp(input=lambda g, input: g / conj_of(input + 1))


@op(promote=PROMOTE, inplace=False)
@opmath
def logaddexp(input: Array, other: Array) -> Array:
    """log(exp(input) + exp(other)) without overflow."""
    return jnp.logaddexp(input, other)


# jax.vjp gives nan where both are the same infinity; torch: the share exp(input - out), nan there as well
logaddexp.vjp(
    input=lambda g, input, out: g * conj_of(exp(input - out)),
    other=lambda g, other, out: g * conj_of(exp(other - out)),
)
refuse(logaddexp, "logaddexp_cpu", "bi", 2)


@op(promote=PROMOTE, inplace=False)
@opmath
def logaddexp2(input: Array, other: Array) -> Array:
    """log2(2 ** input + 2 ** other) without overflow."""
    return jnp.logaddexp2(input, other)


logaddexp2.vjp(
    input=lambda g, input, out: g * conj_of(exp2(input - out)),
    other=lambda g, other, out: g * conj_of(exp2(other - out)),
)
refuse(logaddexp2, "logaddexp2_cpu", "bi", 2)


@op(promote=FLOAT, where="torch Tensor special.expit")
def sigmoid(input: Array) -> Array:
    """1 / (1 + exp(-input))."""
    return jax.nn.sigmoid(input) if input.dtype.kind != "c" else 1 / (1 + jnp.exp(-input))


sigmoid.vjp(input=lambda g, out: g * conj_of(out * (1 - out)))


# ---- trigonometry ----


@op(promote=FLOAT)
def sin(input: Array) -> Array:
    """The sine."""
    return jnp.sin(input)


sin.vjp(input=lambda g, input: g * conj_of(cos(input)))


@op(promote=FLOAT)
def cos(input: Array) -> Array:
    """The cosine."""
    return jnp.cos(input)


cos.vjp(input=lambda g, input: -g * conj_of(sin(input)))


@op(promote=FLOAT)
def tan(input: Array) -> Array:
    """The tangent."""
    return jnp.tan(input)


tan.vjp(input=lambda g, out: g * conj_of(1 + out * out))


@op(promote=FLOAT, aliases=("arcsin",))
def asin(input: Array) -> Array:
    """The inverse sine."""
    return jnp.arcsin(input)


asin.vjp(input=lambda g, input: g / conj_of(sqrt(1 - input * input)))


@op(promote=FLOAT, aliases=("arccos",))
def acos(input: Array) -> Array:
    """The inverse cosine."""
    return jnp.arccos(input)


acos.vjp(input=lambda g, input: -g / conj_of(sqrt(1 - input * input)))


@op(promote=FLOAT, aliases=("arctan",))
def atan(input: Array) -> Array:
    """The inverse tangent."""
    return jnp.arctan(input)


atan.vjp(input=lambda g, input: g / conj_of(input * input + 1))


@op(promote=FLOAT, aliases=("arctan2",))
def atan2(input: Array, other: Array) -> Array:
    """The angle of the point (other, input)."""
    return jnp.arctan2(input, other)


atan2.vjp(
    # torch: 0 at the origin, where jax gives nan
    input=lambda g, input, other: _over_square(g * other, input, other),
    other=lambda g, input, other: -_over_square(g * input, input, other),
)


refuse(atan2, "atan2_cpu", "c", 2)


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
    return jnp.arcsinh(input)


asinh.vjp(input=lambda g, input: g / conj_of(sqrt(input * input + 1)))


@op(promote=FLOAT, aliases=("arccosh",))
def acosh(input: Array) -> Array:
    """The inverse hyperbolic cosine."""
    return jnp.arccosh(input)


# the product of roots, not the root of the product: they differ in sign for complex numbers
acosh.vjp(input=lambda g, input: g / conj_of(sqrt(input - 1) * sqrt(input + 1)))


@op(promote=FLOAT, aliases=("arctanh",))
def atanh(input: Array) -> Array:
    """The inverse hyperbolic tangent."""
    return jnp.arctanh(input)


atanh.vjp(input=lambda g, input: g / conj_of(1 - input * input))


@op(promote=FLOAT)
@opmath
def deg2rad(input: Array) -> Array:
    """Degrees to radians."""
    return input * (math.pi / 180)


deg2rad.vjp(input=lambda g: g * (math.pi / 180))


@op(promote=FLOAT)
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
refuse(hypot, "hypot_cpu", "bic", 2)


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


@op(promote=PROMOTE)
def where(condition: Array, input: Scalar, other: Scalar) -> Array:
    """`input` where the condition holds, else `other`."""
    if condition.dtype != np.bool_:
        condition = condition != 0  # promoted together with the values
    return jnp.where(condition, input, other)


where.targets = ["torch.where"]  # as a method, `self` is the second argument: see below
where.inplace = False
where.vjp(
    input=lambda g, condition: where(condition, g, 0),
    other=lambda g, condition: where(condition, 0, g),
)


@where.check
def _check_where(condition, input, other):
    if condition.dtype.name not in ("bool", "uint8"):
        name = dtypes.scalar_name(condition.dtype)
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {name}")


@composite(name="where_method", where="Tensor.where")
def where_method(input, condition, other):
    """`input` where the condition holds, else `other`."""
    return where(condition, input, other)


@op(promote=PROMOTE, where="torch", out=True)
def threshold(input: Array, threshold: Number, value: Number) -> Array:
    """The elements above the threshold, `value` in the place of the others."""
    return jnp.where(input <= like(threshold, input), like(value, input), input)


threshold.vjp(input=lambda g, input, threshold: where(input <= threshold, 0, g))


@op(promote=PROMOTE)
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


# ---- integers, bits and logic ----


@op(promote=PROMOTE)
def gcd(input: Array, other: Array) -> Array:
    """The greatest common divisor."""
    return jnp.gcd(input, other)


@op(promote=PROMOTE)
def lcm(input: Array, other: Array) -> Array:
    """The least common multiple."""
    return jnp.lcm(input, other)


@op(promote=PROMOTE)
def bitwise_and(input: Scalar, other: Scalar) -> Array:
    """Bitwise and."""
    return jnp.bitwise_and(input, other)


@op(promote=PROMOTE)
def bitwise_or(input: Scalar, other: Scalar) -> Array:
    """Bitwise or."""
    return jnp.bitwise_or(input, other)


@op(promote=PROMOTE)
def bitwise_xor(input: Scalar, other: Scalar) -> Array:
    """Bitwise exclusive or."""
    return jnp.bitwise_xor(input, other)


@op(promote=PROMOTE)
def bitwise_not(input: Array) -> Array:
    """Bitwise not; logical not of bools."""
    return jnp.bitwise_not(input)


@op(promote=PROMOTE)
def bitwise_left_shift(input: Scalar, other: Scalar) -> Array:
    """`input` shifted left by `other` bits; 0 beyond its width."""
    bits = input.dtype.itemsize * 8
    out = jnp.left_shift(input, other)
    return jnp.where((other < 0) | (other >= bits), jnp.zeros_like(out), out)


@op(promote=PROMOTE)
def bitwise_right_shift(input: Scalar, other: Scalar) -> Array:
    """`input` shifted right by `other` bits; all sign bits beyond its width."""
    bits = input.dtype.itemsize * 8 - (1 if np.issubdtype(input.dtype, np.signedinteger) else 0)
    out = jnp.right_shift(input, other)
    last = jnp.right_shift(input, jnp.asarray(bits - 1, input.dtype))
    sign_fill = jnp.where(input < 0, last | -1, 0) if bits % 2 else jnp.zeros_like(out)
    return jnp.where((other < 0) | (other >= bits), sign_fill.astype(out.dtype), out)


for _record, _name, _kinds, _count in (
    (gcd, "gcd_cpu", "bfc", 2),
    (lcm, "lcm_cpu", "bfc", 2),
    (bitwise_and, "bitwise_and_cpu", "fc", 2),
    (bitwise_or, "bitwise_or_cpu", "fc", 2),
    (bitwise_xor, "bitwise_xor_cpu", "fc", 2),
    (bitwise_not, "bitwise_not_cpu", "fc", 1),
    (bitwise_left_shift, "lshift_cpu", "bfc", 2),
    (bitwise_right_shift, "rshift_cpu", "bfc", 2),
):
    _record.differentiable = False
    refuse(_record, _name, _kinds, _count)


@op(promote=PROMOTE, differentiable=False)
def logical_and(input: Array, other: Array) -> Array:
    """Whether both are non-zero."""
    return jnp.logical_and(input, other)


@op(promote=PROMOTE, differentiable=False)
def logical_or(input: Array, other: Array) -> Array:
    """Whether either is non-zero."""
    return jnp.logical_or(input, other)


@op(promote=PROMOTE, differentiable=False)
def logical_xor(input: Array, other: Array) -> Array:
    """Whether exactly one is non-zero."""
    return jnp.logical_xor(input, other)


@op(promote=PROMOTE, differentiable=False)
def logical_not(input: Array) -> Array:
    """Whether each element is zero."""
    return jnp.logical_not(input)


# ---- complex numbers ----


@op(promote=PROMOTE, inplace=False, out=False)
def conj(input: Array) -> Array:
    """The complex conjugate."""
    return jnp.conj(input)


conj.vjp(input=lambda g: conj_of(g))


@op(promote=PROMOTE)
def conj_physical(input: Array) -> Array:
    """The complex conjugate."""
    return jnp.conj(input)


conj_physical.vjp(input=lambda g: conj_of(g))


@op(promote=PROMOTE, where="torch", inplace=False, out=False)
def real(input: Array) -> Array:
    """The real part."""
    return jnp.real(input)


real.vjp(input=lambda g: g)


@op(promote=PROMOTE, where="torch", inplace=False, out=False)
def imag(input: Array) -> Array:
    """The imaginary part."""
    return jnp.imag(input)


imag.vjp(input=lambda g: g * 1j)


@imag.check
def _check_imag(input):
    if kind(input) != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")


@op(promote=PROMOTE)
@opmath
def angle(input: Array) -> Array:
    """The argument of a complex number; 0 or pi for a real one."""
    if input.dtype.kind == "c":
        return jnp.angle(input)
    input = to_float(input)
    turned = jnp.where(input < 0, jnp.asarray(jnp.pi, input.dtype), jnp.zeros((), input.dtype))
    return jnp.where(jnp.isnan(input), input, turned)


angle.inplace = False


def _angle_input(g, input):
    if kind(input) != "c":
        return _zero(g)
    x, y = real(input), imag(input)
    return _over_square(g * (input * 1j), x, y)


angle.vjp(input=_angle_input)


@op(promote=PROMOTE, where="torch", inplace=False)
def complex(real: Array, imag: Array) -> Array:
    """The complex number of a real and an imaginary part."""
    return lax.complex(*jnp.broadcast_arrays(real, imag))


complex.vjp(real=lambda g: real(g), imag=lambda g: imag(g))


def _check_parts(first, second):
    if {first.dtype.name, second.dtype.name} - {"float16", "float32", "float64"}:
        names = [dtypes.scalar_name(s.dtype) for s in (first, second)]
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if first.dtype is not second.dtype:
        names = [dtypes.scalar_name(s.dtype) for s in (first, second)]
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )


complex.check(lambda real, imag: _check_parts(real, imag))


@op(promote=PROMOTE, where="torch", inplace=False)
def polar(abs: Array, angle: Array) -> Array:
    """The complex number of a length and an angle."""
    return lax.complex(*jnp.broadcast_arrays(abs * jnp.cos(angle), abs * jnp.sin(angle)))


polar.vjp(
    abs=lambda g, out: real(conj(g) * sgn(out)),
    angle=lambda g, out: real(g * conj(out * 1j)),
)
polar.check(lambda abs, angle: _check_parts(abs, angle))


# ---- tests of elements ----


def _predicate(fn=None, **options):
    return op(promote=PROMOTE, inplace=False, out=False, differentiable=False, **options)(fn)


@_predicate
def isnan(input: Array) -> Array:
    """Whether each element is nan."""
    return jnp.isnan(input) if input.dtype.kind not in "biu" else jnp.zeros(input.shape, jnp.bool_)


@_predicate
def isinf(input: Array) -> Array:
    """Whether each element is infinite."""
    return jnp.isinf(input) if input.dtype.kind not in "biu" else jnp.zeros(input.shape, jnp.bool_)


@_predicate
def isfinite(input: Array) -> Array:
    """Whether each element is a finite number."""
    return jnp.isfinite(input) if input.dtype.kind not in "biu" else jnp.ones(input.shape, jnp.bool_)


@_predicate
def isreal(input: Array) -> Array:
    """Whether each element has no imaginary part."""
    return jnp.imag(input) == 0 if input.dtype.kind == "c" else jnp.ones(input.shape, jnp.bool_)


@op(promote=PROMOTE, inplace=False, differentiable=False)
def isposinf(input: Array) -> Array:
    """Whether each element is plus infinity."""
    return input == jnp.inf if input.dtype.kind not in "biu" else jnp.zeros(input.shape, jnp.bool_)


@op(promote=PROMOTE, inplace=False, differentiable=False)
def isneginf(input: Array) -> Array:
    """Whether each element is minus infinity."""
    return input == -jnp.inf if input.dtype.kind not in "biu" else jnp.zeros(input.shape, jnp.bool_)


def _real_only(record):
    @record.check
    def check(input):
        if kind(input) == "c":
            raise RuntimeError(f"{record.name} does not support complex inputs.")


for _record in (isposinf, isneginf):
    _real_only(_record)


@op(promote=FLOAT)
def ldexp(input: Scalar, other: Scalar) -> Array:
    """`input * 2 ** other`."""
    input, other = jnp.broadcast_arrays(input, other)
    whole = other == jnp.floor(other)
    exact = jnp.ldexp(jnp.ones_like(other), jnp.where(whole, other, 0).astype(jnp.int32))
    return input * jnp.where(whole, exact, jnp.exp2(other))


ldexp.vjp(
    input=lambda g, other: g * exp2(other),
    other=lambda g, out: g * out * LN2,
)


@op(promote=PROMOTE, inplace=False)
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
