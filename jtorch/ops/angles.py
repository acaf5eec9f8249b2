"""Trigonometric functions and remainders of floats for XLA's CPU compiler, which calls the C library for each element. Knows arrays only.

Here they are arithmetic, which is vectorised: sines and tangents of float32 within a rounding, of float64 within 1.5 and 2.1, angles
within 3 units in the last place, remainders exact. `benchmarks/kernels_parts.py` has both beside the calls.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from .backend import differentiated_as, on_cpu, one_of
from .quotients import quotient

__all__ = ["arccos", "arcsin", "arctan", "arctan2", "cos", "rem", "sin", "tan"]

# arctan(t) / t on [0, 1], as the Chebyshev interpolants in t * t that are nearest within a rounding; highest powers first
_SERIES = {
    4: (
        -0.0006633954571104787, 0.00473248419342192, -0.015828322749149415, 0.033826218952786875, -0.05395668057137172, 0.07228278345377252,
        -0.08974171958363882, 0.11091922963683302, -0.14283813255743194, 0.19999901102171555, -0.3333333129088999, 0.9999999999293037,
    ),
    8: (
        5.423577712204974e-06, -6.81501430177686e-05, 0.00040788678988090015, -0.0015537533402612332, 0.004255114826480494,
        -0.00899743399427727, 0.015464694610323185, -0.022566714208211488, 0.029121244608854832, -0.03455686749628989, 0.03905116247694501,
        -0.04318126899721664, 0.04754388759047033, -0.05261641609130929, 0.058821133510041305, -0.06666637679954038, 0.07692305086458488,
        -0.09090908923813586, 0.11111111103899986, -0.14285714285522452, 0.1999999999999728, -0.3333333333333332, 1.0,
    ),
}  # fmt: skip
# sin(r) / r - 1 and cos(r) - 1, both over r * r, for |r| up to a quarter of pi, in r * r; highest powers first. Of float64 the cosine is
# less a half of r * r too, over r ** 4.
_SINE = {
    4: (2.7249933080411684e-06, -0.00019840086849906447, 0.008333331875084345, -0.16666666663856952),
    8: (
        1.5896909952115501e-10, -2.5050760253406863e-08, 2.7557313707070068e-06, -0.00019841269829857949, 0.00833333333332249,
        -0.16666666666666632,
    ),
}  # fmt: skip
_COSINE = {
    4: (-2.7237139326388085e-07, 2.4799862220229737e-05, -0.0013888885091682172, 0.04166666663740158, -0.4999999999996394),
    8: (
        -1.1359647557788195e-11, 2.087572321298175e-09, -2.7557314351390663e-07, 2.480158728947673e-05, -0.001388888888887411,
        0.0416666666666666,
    ),
}  # fmt: skip
# half of pi: twice 33 bits, whose products with what is below 2**20 are exact, and the rest; in two parts for float32
_QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
_FAR = 1e6  # from there on angles are the C library's
_NEAR = 2.0**28  # quotients below this are exact as float64, and so are their products with a float32
_NEAR_WIDE = 2.0**26  # the same of float64, whose divisor is taken in two parts of 26 and 27 bits
_MANY = 1 << 12  # elements: fewer are as quick one by one, or by numpy
_MORE = 1 << 15  # of tangents and float64: what two forms take to compile comes back within some hundred runs


def _is_ours(x) -> bool:
    return on_cpu() and x.dtype in (jnp.float32, jnp.float64)


def _within(t):
    """arctan of [0, 1]."""
    return t * _polynomial(t * t, _SERIES[t.dtype.itemsize])


def _polynomial(x, factors):
    """The polynomial with these factors, highest powers first."""
    total, *rest = factors
    for factor in rest:
        total = total * x + jnp.asarray(factor, x.dtype)
    return total


def _arctan(x):
    size = jnp.abs(x)
    steep = size > 1
    part = _within(jnp.where(steep, 1 / size, size))
    return jnp.copysign(jnp.where(steep, jnp.asarray(np.pi / 2, x.dtype) - part, part), x)


def _arctan2(y, x):
    y, x = jnp.broadcast_arrays(y, x)
    up, along = jnp.abs(y), jnp.abs(x)
    low, high = jnp.minimum(up, along), jnp.maximum(up, along)
    part = _within(jnp.where(high == 0, 0, jnp.where(low == jnp.inf, 1, low / high)))
    part = jnp.where(up > along, jnp.asarray(np.pi / 2, y.dtype) - part, part)
    return jnp.copysign(jnp.where(jnp.signbit(x), jnp.asarray(np.pi, y.dtype) - part, part), y)


def _arcsin(x):
    return _arctan2(x, jnp.sqrt((1 - x) * (1 + x)))


def _arccos(x):
    return 2 * _arctan2(jnp.sqrt(1 - x), jnp.sqrt(1 + x))


def _chosen(ours, plain):
    fast = differentiated_as(ours, plain)
    return lambda x, *more: (fast if _is_ours(x) else plain)(x, *more)


arctan = _chosen(_arctan, jnp.arctan)
arctan2 = _chosen(_arctan2, jnp.arctan2)
arcsin = _chosen(_arcsin, jnp.arcsin)
arccos = _chosen(_arccos, jnp.arccos)


def _turned(x):
    """Quarters of a turn in x, |x| below `_FAR`, and the sine and the cosine of the rest: of float32 computed in float64."""
    a = x.astype(jnp.float64)
    turns = jnp.round(a * (2 / np.pi))
    sines, cosines = _SINE[x.dtype.itemsize], _COSINE[x.dtype.itemsize]
    if x.dtype == jnp.float32:
        rest = jnp.where(turns == 0, a, (a - turns * _QUARTER[0]) - turns * (_QUARTER[1] + _QUARTER[2]))
        square = rest * rest
        sine, cosine = rest * (1 + square * _polynomial(square, sines)), 1 + square * _polynomial(square, cosines)
        return turns.astype(jnp.int32), sine, cosine
    near = a - turns * _QUARTER[0]
    rest = jnp.where(turns == 0, a, near - turns * _QUARTER[1])
    rounded = ((near - rest) - turns * _QUARTER[1]) - turns * _QUARTER[2]
    low = jnp.where(turns == 0, 0, rounded)
    square = rest * rest
    cube, half = square * rest, square * 0.5
    sine = rest - ((square * (0.5 * low - cube * _polynomial(square, sines[:-1])) - low) - cube * sines[-1])
    cosine = 1 - half
    cosine = cosine + (((1 - cosine) - half) + (square * square * _polynomial(square, cosines) - rest * low))
    return turns.astype(jnp.int32), sine, cosine


def _wave(x, ahead):
    """The sine of x and so many quarters of a turn."""
    turns, sine, cosine = _turned(x)
    which = turns + ahead
    out = jnp.where(which & 1 == 0, sine, cosine)
    return jnp.where(which & 2 == 0, out, -out).astype(x.dtype)


def _tan(x):
    turns, sine, cosine = _turned(x)
    odd = turns & 1 == 1
    return (jnp.where(odd, -cosine, sine) / jnp.where(odd, sine, cosine)).astype(x.dtype)


def _near(near, plain, least):
    """`near` of angles below `_FAR`, from as many elements on as `least` says for the dtype."""

    def ours(x):
        return one_of(jnp.all(jnp.abs(x) < _FAR), lambda: near(x), lambda: plain(x))

    fast = differentiated_as(ours, plain)
    return lambda x: fast(x) if _is_ours(x) and x.size >= least[x.dtype.itemsize] else plain(x)


sin = _near(lambda x: _wave(x, 0), jnp.sin, {4: _MANY, 8: _MORE})
cos = _near(lambda x: _wave(x, 1), jnp.cos, {4: _MANY, 8: _MORE})
tan = _near(_tan, jnp.tan, {4: _MORE, 8: _MORE})


def rem(x, y):
    """The remainder of truncated division of arrays of one shape and dtype."""
    if not _is_ours(x) or x.size < _MANY:
        return lax.rem(x, y)
    return differentiated_as(_rem, lax.rem)(x, y)


def _rem(x, y):
    a, b = x.astype(jnp.float64), y.astype(jnp.float64)
    times = jnp.trunc(quotient(a, b))
    if x.dtype == jnp.float32:
        rest = a - times * b
        far = jnp.isfinite(times) & (jnp.abs(times) >= _NEAR)
    else:
        high = _rounded_up(b)
        rest = (a - times * high) - times * (b - high)
        far = jnp.isfinite(a) & (b != 0) & (jnp.abs(times) >= _NEAR_WIDE) | jnp.isinf(high) & jnp.isfinite(b)
    up = (rest != 0) & ((rest < 0) != (a < 0))  # the quotient was rounded up
    rest = jnp.where(up, rest + jnp.copysign(b, a), rest)
    rest = jnp.where(jnp.isinf(b) & jnp.isfinite(a), a, rest)
    near = jnp.copysign(rest, a).astype(x.dtype)
    return one_of(jnp.any(far), lambda: lax.rem(x, y), lambda: near)


def _rounded_up(b):
    """26 bits of a float64, away from 0, so that less than b is taken off what is left of a multiple: both differences are exact."""
    low = (1 << 27) - 1
    return lax.bitcast_convert_type((lax.bitcast_convert_type(b, jnp.int64) + low) & ~low, jnp.float64)
