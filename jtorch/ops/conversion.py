"""Elementwise copies, conversions and complex parts, and what all elementwise ops share. Knows arrays, never Tensor."""

import builtins
import functools
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from .. import deprecations, errors
from ..core import dtype as dtypes
from ..core import halves
from .registry import PROMOTE, Array, Number, composite, op
from .views import transpose

LN2, LN10 = math.log(2), math.log(10)
_HALF = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))

# ---- helpers ----


def is_number(x) -> builtins.bool:
    return isinstance(x, builtins.int | builtins.float | builtins.complex)


def is_foreign(x) -> builtins.bool:
    """Whether `x` is no tensor, no array that a kernel is given, and nothing that answers for itself by `__torch_function__`."""
    return isinstance(x, np.ndarray | np.generic) or not (hasattr(x, "ndim") or hasattr(type(x), "__torch_function__"))


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
    found = None
    for a in sorted((a for a in args if a is not None), key=is_number):
        d = dtypes.of_number(a) if is_number(a) else a.dtype
        if found is None or not is_number(a) or d.category > found.category:
            found = d if found is None else dtypes.promote(found, d)
    return found


# out= of another dtype, in the words of the kernels that do not convert their result
SAME_UNARY = "Found dtype {have} but expected {want}"
SAME_SCALAR = "expected scalar_type {want} but found {have}"


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


def rounded(x, dtype):
    """float32 values rounded to those of a half-precision dtype: XLA may drop a cast there and back."""
    info = ml_dtypes.finfo(dtype)
    return lax.reduce_precision(x, info.nexp, info.nmant) if np.dtype(dtype) in _HALF else x


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
    return _times(input, value)


@opmath
def _times(input, value):
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


def _exponents(x):
    """Floats as powers of two."""
    if x.dtype == jnp.bfloat16:
        bits = lax.bitcast_convert_type(x, jnp.uint16).astype(jnp.uint32) << 16
    else:
        bits = lax.bitcast_convert_type(x.astype(jnp.float32), jnp.uint32)
    return lax.bitcast_convert_type(dtypes.power_codes(bits).astype(jnp.uint8), ml_dtypes.float8_e8m0fnu)


def _of_exponents(x, np_dtype):
    """Powers of two as floats. XLA takes the least of them for 0, where it calculates with it."""
    code = lax.bitcast_convert_type(x, jnp.uint8).astype(jnp.uint32)
    bits = jnp.where(code == 0, 0x400000, jnp.where(code == 0xFF, 0x7FC00000, code << 23)).astype(jnp.uint32)
    if np_dtype == jnp.bfloat16:
        return lax.bitcast_convert_type((bits >> 16).astype(jnp.uint16), jnp.bfloat16)
    value = lax.bitcast_convert_type(bits, jnp.float32)
    return jnp.where(code == 0, 2.0**-127, value.astype(np_dtype)) if np_dtype == np.float64 else value


def convert(x, np_dtype):
    """`x` in another dtype; floats beyond the range of an integer type wrap as they do on PyTorch's CPU."""
    np_dtype = np.dtype(np_dtype)
    if x.dtype == np_dtype:
        return x
    if np_dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and np_dtype.kind != "c":
        x = jnp.real(x)
    if x.dtype == ml_dtypes.float8_e8m0fnu:
        return convert(_of_exponents(x, np_dtype), np_dtype)
    if np_dtype == ml_dtypes.float8_e8m0fnu:
        return _exponents(x)
    if np_dtype == ml_dtypes.float8_e4m3fn:  # it has no infinity, and PyTorch takes its largest number
        x = jnp.clip(x, -448, 448)
    if dtypes.of(x.dtype).is_floating_point and np_dtype.kind in "iu":
        wide = np.dtype(np.int64 if np_dtype.itemsize >= 8 or np_dtype == np.uint32 else np.int32)
        info = np.iinfo(wide)
        small = builtins.float(jnp.finfo(x.dtype).max) < info.max  # the bounds would be infinite in this dtype
        inside = jnp.isfinite(x) if small else (x >= builtins.float(info.min)) & (x < -builtins.float(info.min))
        return jnp.where(inside, x, 0).astype(wide).astype(np_dtype) + jnp.where(
            inside, jnp.zeros((), np_dtype), np.asarray(info.min, wide).astype(np_dtype)
        )
    return x.astype(np_dtype)


@op(name="_to_copy", where="", elementwise=True, inplace=False, out=False)
def to_dtype(input: Array, *, dtype: dtypes.dtype) -> Array:
    """The tensor in another dtype."""
    out = convert(input, dtype.np)
    return halves.rounded(out) if dtype is dtypes.complex32 else out


@to_dtype.check
def _say_real(input, *, dtype):
    if input.dtype.category == dtypes.COMPLEX and dtype.category != dtypes.COMPLEX and dtype is not dtypes.bool_:
        deprecations.say("real")


to_dtype.grad_name = "ToCopyBackward0"
to_dtype.vjp(input=lambda g: g)


# ---- complex numbers ----


@op(promote=PROMOTE, inplace=False, out=False)
def conj(input: Array) -> Array:
    """The complex conjugate."""
    return jnp.conj(input)


conj.vjp(input=lambda g: conj_of(g))
conj.targets = []  # of real tensors it is the tensor itself: see below


@composite(name="conj_function", where="torch.conj Tensor.conj")
def conj_function(input: Array):
    """The complex conjugate; a real tensor is its own."""
    return conj(input) if kind(input) == "c" else input


@composite
def adjoint(input: Array):
    """The last two dimensions swapped, and complex elements conjugated. The result of a real tensor is a view."""
    if input.ndim == 1:
        raise errors.adjoint_rank(1, "adjoint()")
    if not input.ndim:
        errors.warn("adjoint() is deprecated on 0-D tensors. Consider using x.conj().")
    turned = transpose(input, -2, -1) if input.ndim else input
    return conj(turned) if kind(input) == "c" else turned


@op(promote=PROMOTE, out=SAME_UNARY)
def conj_physical(input: Array) -> Array:
    """The complex conjugate."""
    return jnp.conj(input)


conj_physical.vjp(input=lambda g: conj_of(g))
conj_physical.derives_in_place()
conj_physical.targets = []


@composite(name="conj_physical_function", where="torch.conj_physical Tensor.conj_physical")
def conj_physical_function(input: Array, *, out=None):
    """The complex conjugate; a real tensor is its own."""
    if out is not None:
        return conj_physical(input, out=out)
    return conj_physical(input) if kind(input) == "c" else input


conj_physical_function.inplace = conj_physical


@op(promote=PROMOTE, where="torch", inplace=False, out=False, grad_name="SelectBackward0")
def real(input: Array) -> Array:
    """The real part."""
    return jnp.real(input)


real.vjp(input=lambda g: g)


@op(promote=PROMOTE, where="torch", inplace=False, out=False, grad_name="SelectBackward0")
def imag(input: Array) -> Array:
    """The imaginary part."""
    return jnp.imag(input)


imag.vjp(input=lambda g: g * 1j)


@imag.check
def _check_imag(input):
    if kind(input) != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")


@op(
    promote=PROMOTE,
    where="torch",
    inplace=False,
    out="Expected object of scalar type {want} but got scalar type {have} for argument 'out'",
)
def complex(real: Array, imag: Array) -> Array:
    """The complex number of a real and an imaginary part."""
    parts = [x.astype(jnp.float32) if x.dtype == np.float16 else x for x in (real, imag)]
    return lax.complex(*jnp.broadcast_arrays(*parts))


complex.guards(**{part: lambda call, part=part: part in call["needs"] for part in ("real", "imag")})


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
