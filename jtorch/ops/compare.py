"""Comparisons of elements, closeness and membership. Knows arrays, never Tensor."""

import math

import jax
import jax.numpy as jnp
from jax import lax

from ..core import dtype as dtypes
from .backend import on_cpu
from .conversion import is_number, like, to_float
from .reduce import all
from .registry import PROMOTE, Array, Scalar, composite, op


@op(promote=PROMOTE, differentiable=False)
def eq(input: Array, other: Scalar) -> Array:
    """Whether the elements are equal."""
    return jnp.equal(input, other)


@op(promote=PROMOTE, differentiable=False, aliases=("not_equal",))
def ne(input: Array, other: Scalar) -> Array:
    """Whether the elements differ."""
    return jnp.not_equal(input, other)


@op(promote=PROMOTE, differentiable=False, aliases=("less",))
def lt(input: Array, other: Scalar) -> Array:
    """Whether `input < other`."""
    return jnp.less(input, other)


@op(promote=PROMOTE, differentiable=False, aliases=("less_equal",))
def le(input: Array, other: Scalar) -> Array:
    """Whether `input <= other`."""
    return jnp.less_equal(input, other)


@op(promote=PROMOTE, differentiable=False, aliases=("greater",))
def gt(input: Array, other: Scalar) -> Array:
    """Whether `input > other`."""
    return jnp.greater(input, other)


@op(promote=PROMOTE, differentiable=False, aliases=("greater_equal",))
def ge(input: Array, other: Scalar) -> Array:
    """Whether `input >= other`."""
    return jnp.greater_equal(input, other)


for _record in (lt, le, gt, ge):
    _record.lack(**{f"{_record.name}_cpu": "complex"})


@op(promote=PROMOTE, inplace=False, out=False, differentiable=False)
def isclose(input: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """Whether `abs(input - other) <= atol + rtol * abs(other)`."""
    close = input == other
    if equal_nan and input.dtype.kind not in "biu":
        close = close | (jnp.isnan(input) & jnp.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if input.dtype.kind in "biu":
        input, other = (to_float(x) for x in (input, other))
    gap = jnp.abs(input - other)
    allowed = like(atol, gap) + jnp.abs(like(rtol, other) * other)
    return close | (jnp.isfinite(gap) & (gap <= allowed))


@isclose.check
def _check_isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.dtype is not other.dtype:
        names = [dtypes.scalar_name(s.dtype) for s in (input, other)]
        raise RuntimeError(f"{names[0]} did not match {names[1]}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0 or math.isnan(tolerance):
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance:g}")


@composite
def allclose(input: Array, other: Array, rtol=1e-05, atol=1e-08, equal_nan: bool = False):
    """Whether all elements are close (see isclose), as a Python bool."""
    return bool(all(isclose(input, other, rtol, atol, equal_nan)))


@op(promote=PROMOTE, elementwise=False, where="torch", differentiable=False, out="exact")
def isin(elements: Scalar, test_elements: Scalar, *, assume_unique: bool = False, invert: bool = False) -> Array:
    """Whether each element is among the test elements."""
    elements, test_elements = jnp.asarray(elements), jnp.asarray(test_elements)
    if not on_cpu() or test_elements.size < FEW_TESTS or elements.size * test_elements.size < MANY_PAIRS:
        return jnp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    tests = lax.sort(test_elements.reshape(-1), is_stable=False)
    with jax.disable_jit(False):  # its loop stays one
        at = jnp.searchsorted(tests, elements)
    found = tests[jnp.minimum(at, tests.size - 1)] == elements
    return ~found if invert else found


FEW_TESTS, MANY_PAIRS = 64, 1 << 20  # with fewer, comparing all pairs is quicker than a search


@isin.check
def _check_isin(elements, test_elements, assume_unique=False, invert=False):
    for x in (elements, test_elements):
        kind = dtypes.of_number(x) if is_number(x) else x.dtype
        if kind.category in (dtypes.BOOL, dtypes.COMPLEX):
            wide = dtypes.complex128 if is_number(x) and kind.is_complex else kind
            raise RuntimeError(f"Unsupported input type encountered for isin(): {dtypes.scalar_name(wide)}")
