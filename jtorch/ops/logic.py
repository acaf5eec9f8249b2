"""Elementwise choices, bits, logic and tests. Knows arrays, never Tensor."""

import jax.numpy as jnp
import numpy as np

from .. import errors
from ..core import dtype as dtypes
from .conversion import SAME_UNARY, is_number, kind
from .registry import PROMOTE, Array, Scalar, composite, op


# ---- choice ----
@op(promote=PROMOTE, out="Expected out type to be {want} but got {have}")
def where(condition: Array, input: Scalar, other: Scalar) -> Array:
    """`input` where the condition holds, else `other`."""
    return jnp.where(condition != 0 if condition.dtype != np.bool_ else condition, input, other)


where.unpromoted = ("condition",)


@where.check
def _check_numbers(condition, input, other):
    numbers = [x for x in (input, other) if isinstance(x, int | float)]
    if len(numbers) == 1:
        (whole,) = [x for x in (input, other) if x is not numbers[0]]
        kind = getattr(whole, "dtype", None)
        if kind is not None and kind.category == dtypes.INT and isinstance(numbers[0], int):
            dtypes.check_number(numbers[0], kind)


where.targets = []  # torch.where has a form with the condition alone, and as a method `self` comes second: see below
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
    if condition.dtype is dtypes.uint8:
        errors.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version "
            "of PyTorch. Use a boolean condition instead."
        )


@composite(name="where_function", where="torch.where")
def where_function(condition: Array, input=None, other=None, *, out=None):
    """`input` where the condition holds, else `other`; where it holds, as indices, if neither is given."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if out is None:
        return where(condition, input, other)
    for place, (name, x) in enumerate((("input", input), ("other", other)), 2):
        if is_number(x):
            raise errors.argument("where", name, "Tensor", x, place)
    return where(condition, input, other, out=out)


@composite(name="where_method", where="Tensor.where")
def where_method(input, condition, other):
    """`input` where the condition holds, else `other`."""
    return where(condition, input, other)


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


@op(promote=PROMOTE, out=SAME_UNARY)
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


for _record, _name, _kinds in (
    (gcd, "gcd_cpu", "bool float complex"),
    (lcm, "lcm_cpu", "bool float complex"),
    (bitwise_and, "bitwise_and_cpu", "float complex"),
    (bitwise_or, "bitwise_or_cpu", "float complex"),
    (bitwise_xor, "bitwise_xor_cpu", "float complex"),
    (bitwise_not, "bitwise_not_cpu", "uint16 uint32 uint64 float complex"),
    (bitwise_left_shift, "lshift_cpu", "bool uint16 uint32 uint64 float complex"),
    (bitwise_right_shift, "rshift_cpu", "bool uint16 uint32 uint64 float complex"),
):
    _record.differentiable = False
    _record.lack(**{_name: _kinds})


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


for _record in (logical_and, logical_or, logical_xor, logical_not):
    _record.untracked = True


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


@op(promote=PROMOTE, inplace=False, differentiable=False, out="isposinf does not support non-boolean outputs.")
def isposinf(input: Array) -> Array:
    """Whether each element is plus infinity."""
    return input == jnp.inf if input.dtype.kind not in "biu" else jnp.zeros(input.shape, jnp.bool_)


@op(promote=PROMOTE, inplace=False, differentiable=False, out="isneginf does not support non-boolean outputs.")
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
