"""Special functions with derivatives: error, gamma, entropy, zeta. Knows arrays, never Tensor."""

import builtins
import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
from jax import lax

from .. import errors
from ..core import dtype as dtypes
from ..core.shapes import contiguous_strides
from .backend import differentiated_as, on_cpu
from .chebyshev import ERFCX, series
from .conversion import constant, is_number, kind, opmath, rounded
from .logic import logical_and, logical_or, where
from .reduce import logsumexp  # noqa: F401  torch.special.logsumexp is registered there
from .registry import FLOAT, PROMOTE, Array, Scalar, Unwritten, composite, op
from .rounding import sgn
from .transcendental import exp, log

# ---- error and gamma functions ----


@op(promote=FLOAT, where="torch Tensor special")
def erf(input: Array) -> Array:
    """The error function."""
    return lax.erf(input)


erf.vjp(input=lambda g, input: g * exp(-(input * input)) * (2 / math.sqrt(math.pi)))


@op(promote=FLOAT, where="torch Tensor special")
def erfc(input: Array) -> Array:
    """1 - erf(input)."""
    return lax.erfc(input)


erfc.vjp(input=lambda g, input: g * exp(-(input * input)) * (-2 / math.sqrt(math.pi)))


@op(promote=FLOAT, where="torch Tensor special")
def erfinv(input: Array) -> Array:
    """The inverse of the error function."""
    return lax.erf_inv(input)


erfinv.guards(input=True, out=False)


erfinv.vjp(input=lambda g, out: g * exp(out * out) * (math.sqrt(math.pi) / 2))


@op(promote=FLOAT, where="torch Tensor special.gammaln")
def lgamma(input: Array) -> Array:
    """The logarithm of the absolute value of the gamma function."""
    # XLA's has 4.8e-7 at 1, as what a table of factorials begins with: its numbers would all be printed with exponents
    return jnp.where((input == 1) | (input == 2), jnp.zeros((), input.dtype), lax.lgamma(input))


lgamma.vjp(input=lambda g, input: g * digamma(input))


@op(promote=FLOAT, where="torch Tensor special special.psi")
@opmath
def digamma(input: Array) -> Array:
    """The logarithmic derivative of the gamma function."""
    pole = jnp.copysign(jnp.asarray(jnp.inf, input.dtype), -input)
    return jnp.where(input == 0, pole, _digamma(input))


@jax.custom_jvp
def _digamma(x):
    return lax.digamma(x)


_digamma.defjvps(lambda t, out, x: t * _trigamma(x))


digamma.vjp(input=lambda g, input: g * polygamma_of(input, 1))


@op(name="polygamma", promote=FLOAT, where="Tensor", out=False)
@opmath
def polygamma_of(input: Array, n: int) -> Array:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma.fn(input)
    if n == 1:
        return _trigamma(input)
    order = jnp.full_like(input, n + 1)
    factor = float(math.factorial(n)) if n <= 170 else math.inf  # 170! is the last that a double holds
    return (-1.0) ** (n + 1) * factor * _zeta(order, input)


@jax.custom_jvp
def _zeta(order, x):
    """The Hurwitz zeta function; left of 0, which lax.zeta gets wrong, by steps to the right of it, or by reflection if those
    were many."""
    steps = jnp.where(x <= 0, jnp.minimum(jnp.ceil(1 - x), _FAR), 0)  # not of nan: the largest counts for all

    def advance(state):
        k, total = state
        return k + 1, total + jnp.where(k < steps, (x + k) ** -order, 0)

    last = jnp.max(steps, initial=0)
    start = (jnp.zeros((), x.dtype), jnp.zeros_like(x))
    skipped = lax.while_loop(lambda state: state[0] < last, advance, start)[1]
    far = (x > 1e9) & (x < jnp.inf)  # where the integral of t ** -order is all there is, which lax.zeta loses
    near = skipped + lax.zeta(order, jnp.where(far, 1e9, x + steps))
    out = jnp.where(far, (1 / (order - 1) + 0.5 / x) * x ** (1 - order) + 0 * near, near)
    deep = x < -_FAR
    out = lax.cond(jnp.any(deep), lambda: jnp.where(deep, _reflected_zeta(order, x), out), lambda: out)
    whole = (x <= 0) & (x == jnp.floor(x))
    out = jnp.where(order > 1e20, jnp.where(x < 1, jnp.inf, jnp.where(x == 1, 1, jnp.nan)), out)
    out = jnp.where(whole | (order == 1), jnp.inf, out)
    undefined = (order < 1) | ((x < 0) & ~whole & (order != jnp.floor(order)))
    return jnp.where(undefined & (order != 1), jnp.nan, out)


_FAR = 64


def _reflected_zeta(order, x):
    """For whole orders: the terms left of 0 are those of two series to the right, the one less the other."""
    first = x - jnp.floor(x)
    left = lax.zeta(order, 1 - first) - lax.zeta(order, 1 - x)
    return lax.zeta(order, first) + jnp.where(order % 2 == 0, left, -left)


# Bernoulli's numbers 2, 4 ... 20: what zeta(2, y) has behind 1 / y + 1 / (2 y * y), each over the next odd power of y
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
)  # fmt: skip


@jax.custom_jvp
def _zeta_two(x):
    """zeta(2, x) from 1/2 on: the first terms, and the series of the rest, in a tenth of the time that the sum of `lax.zeta` takes."""
    steps, terms = (10, 10) if x.dtype == jnp.float64 else (6, 5)
    y, total = x + steps, jnp.zeros_like(x)
    for factor in _BERNOULLI[terms - 1 :: -1]:
        total = (total + factor) / (y * y)
    total = (total + 1) / y + 0.5 / (y * y)
    for k in range(steps - 1, -1, -1):
        total = total + 1 / ((x + k) * (x + k))
    return total


@_zeta_two.defjvp
def _zeta_two_slope(primals, tangents):
    (x,) = primals
    return _zeta_two(x), -2 * _zeta(jnp.full_like(x, 3), x) * tangents[0]


def _trigamma(x):
    """zeta(2, x), left of 1/2 by reflection: zeta(2, 1 - x) + zeta(2, x) = (pi / sin(pi x)) ** 2."""
    left = x < 0.5
    right = _zeta_two(jnp.where(left, 1 - x, x))
    return jnp.where(left, (jnp.pi / jnp.sin(jnp.pi * x)) ** 2 - right, right)


@_zeta.defjvp
def _zeta_slope(primals, tangents):
    """By x alone: the derivative by the order has no closed form, in torch neither."""
    order, x = primals
    return _zeta(order, x), -order * _zeta(order + 1, x) * tangents[1]


polygamma_of.derives_in_place()
polygamma_of.vjp(input=lambda g, input, n: g * polygamma_of(input, n + 1))


@polygamma_of.check
def _check_polygamma(input, n):
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if kind(input) == "c":
        raise errors.not_implemented(("digamma", "trigamma", "polygamma")[builtins.min(n, 2)], input.dtype)


@composite(name="polygamma_n_first", where="torch.polygamma special.polygamma", out=True)
def polygamma(n: int, input: Array):
    """The n-th derivative of digamma."""
    return polygamma_of(input, n)


def _mvlgamma_out(want, have):
    if not dtypes.can_cast(want, have):
        raise errors.out_dtype(
            want, have, "mvlgamma: result type {want} can't be cast to the desired output type {have}"
        )


@op(
    promote=FLOAT,
    where="torch Tensor special.multigammaln",
    out=_mvlgamma_out,
    lacks={"arange_cpu": "complex"},
    strides=lambda outs, input, p: (contiguous_strides(tuple(input.shape)),),  # a sum over a last dimension of p
)
@opmath
def mvlgamma(input: Array, p: int) -> Array:
    """The logarithm of the multivariate gamma function of dimension p."""
    steps = builtins.sum(lax.lgamma(input - i / 2) for i in range(p))
    return steps + jnp.asarray(p * (p - 1) / 4 * math.log(math.pi), input.dtype)


@mvlgamma.check
def _check_mvlgamma(input, p):
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype.name == "bool":
        raise RuntimeError("The input tensor may not be a boolean tensor.")


@op(promote=FLOAT, where="torch Tensor special")
def logit(input: Array, eps: float | None = None) -> Array:
    """log(x / (1 - x)), of `input` clamped to [eps, 1 - eps] where eps is given."""
    if eps is not None:
        low = jnp.asarray(eps, input.dtype)
        high = 1 - low
        # The lower end goes first where they are out of order (eps > 0.5).
        input = jnp.where(input < low, low, jnp.minimum(input, high))
    x = input.astype(jnp.float32) if input.dtype.itemsize == 2 else input
    rest = rounded(1 - x, input.dtype)  # torch rounds each step of this one
    return jnp.log(rounded(x / rest, input.dtype)).astype(input.dtype)


def _logit_input(g, input, eps):
    slope = g / (input * (1 - input))
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    return where(logical_or(input < low, input > high), math.nan if eps is None else 0.0, slope)


logit.vjp(input=_logit_input)


@op(promote=FLOAT, where="torch Tensor special")
@opmath
def xlogy(input: Scalar, other: Scalar) -> Array:
    """`input * log(other)`, 0 where `input` is 0."""
    product = input * jnp.log(other)
    return jnp.where(jnp.isnan(other), other, jnp.where(input == 0, jnp.zeros_like(product), product))


xlogy.vjp(
    input=lambda g, input, other: g * _log_beside(input, other),
    other=lambda g, input, other: g * input / other,
)


def _log_beside(input, other):
    flat = logical_and(input == 0, other <= 0)
    return where(flat, 0.0, log_of(where(flat, 1.0, other)))


def log_of(x):
    """The logarithm of a factor in a derivative that may be a number."""
    if not is_number(x):
        return log(x)
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


@op(promote=FLOAT, where="torch Tensor special")
@opmath
def sinc(input: Array) -> Array:
    """sin(pi x) / (pi x), 1 at 0."""
    return jnp.sinc(input)


# ---- entropy and the normal distribution ----


@op(promote=FLOAT, where="special")
@opmath
def entr(input: Array) -> Array:
    """-input * log(input), 0 at 0 and -inf below."""
    inside = -input * jnp.log(jnp.where(input > 0, input, 1))
    outside = jnp.where(input < 0, -jnp.inf, input).astype(input.dtype)  # 0 and nan are themselves
    return jnp.where(input > 0, inside, jnp.where(input == 0, jnp.zeros_like(input), outside))


entr.vjp(input=lambda g, input: g * (-log(input) - 1))


@op(promote=FLOAT, where="special")
def ndtr(input: Array) -> Array:
    """The area under the standard normal density up to each element."""
    half = input.dtype  # torch rounds each step, and loses the far left like this
    x = input.astype(jnp.float32) if half.itemsize == 2 else input
    inside = rounded(lax.erf(rounded(x * math.sqrt(0.5), half)), half)
    return (rounded(1 + inside, half) * 0.5).astype(half)


@op(promote=FLOAT, where="special")
@opmath
def ndtri(input: Array) -> Array:
    """The inverse of ndtr."""
    inner = jsp.ndtri(jnp.where((input > 0) & (input < 1), input, 0.5))
    edge = jnp.where(input == 0, -jnp.inf, jnp.where(input == 1, jnp.inf, jnp.nan)).astype(input.dtype)
    return jnp.where((input > 0) & (input < 1), inner, edge)


ndtri.vjp(input=lambda g, out: g * exp(out * out / 2) * math.sqrt(2 * math.pi))


@op(promote=FLOAT, where="special")
@opmath
def log_ndtr(input: Array) -> Array:
    """The logarithm of ndtr, exact far below 0."""
    low = input < -1
    scaled = _erfcx(jnp.where(low, input, 0) * -math.sqrt(0.5))
    tail = jnp.log(scaled / 2) - input * input / 2
    return jnp.where(low, tail, jnp.log1p(-lax.erfc(input * math.sqrt(0.5)) / 2))


log_ndtr.vjp(input=lambda g, input: g / erfcx(input * -math.sqrt(0.5)) * math.sqrt(2 / math.pi))


@op(promote=FLOAT, where="special")
@opmath
def xlog1py(input: Scalar, other: Scalar) -> Array:
    """`input * log1p(other)`, 0 where `input` is 0."""
    product = input * jnp.log1p(other)
    return jnp.where(jnp.isnan(other), other, jnp.where(input == 0, jnp.zeros_like(product), product))


def _log1p_of(x):
    n = constant(x)
    return log(x + 1) if n is None else math.log1p(n) if n > -1 else -math.inf if n == -1 else math.nan


def _by_number(name):
    """PyTorch numbers the node by which argument is a number: none, the first, the second."""
    return lambda args: f"{name}Backward{1 if is_number(args['input']) else 2 if is_number(args['other']) else 0}"


xlogy.grad_name = _by_number("Xlogy")
xlog1py.grad_name = _by_number("SpecialXlog1Py")
xlog1py.vjp(
    input=lambda g, input, other: where(logical_and(input == 0, other <= -1), 0.0, g * _log1p_of(other)),
    other=lambda g, input, other: g * input / (other + 1),
)


def _erfcx(x):
    y = jnp.abs(x)
    far = jnp.where(jnp.isinf(y), 1.0, (y - 3.75) / (y + 3.75)).astype(x.dtype)
    right = series(ERFCX, far) / (1 + 2 * y)
    return jnp.where(x < 0, 2 * jnp.exp(x * x) - right, right)


@op(promote=FLOAT, where="special")
@opmath
def erfcx(input: Array) -> Array:
    """exp(input ** 2) * erfc(input) without overflow or cancellation."""
    return _erfcx(input)


erfcx.vjp(input=lambda g, input, out: g * (out * input * 2 - 2 / math.sqrt(math.pi)))

# ---- modified Bessel functions of the first kind ----


@jax.custom_jvp
def _i0(x):
    return jsp.i0(x)


@jax.custom_jvp
def _i1(x):
    return jsp.i1(x)


# jax gives the derivatives at 0 wrongly
_i0.defjvps(lambda t, out, x: t * _i1(x))
_i1.defjvps(lambda t, out, x: t * (_i0(x) - jnp.where(x == 0, 0.5, out / jnp.where(x == 0, 1, x))))


@op(promote=FLOAT, where="torch Tensor special")
@opmath
def i0(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 0."""
    return _i0(input)


@op(promote=FLOAT, where="special")
@opmath
def i1(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 1."""
    return _i1(input)


@op(promote=FLOAT, where="special")
@opmath
def i0e(input: Array) -> Array:
    """exp(-abs(input)) * i0(input)."""
    return jsp.i0e(input)


@op(promote=FLOAT, where="special")
@opmath
def i1e(input: Array) -> Array:
    """exp(-abs(input)) * i1(input)."""
    return jsp.i1e(input)


def _over(top, input):
    """top / input, and its limit 1/2 at 0."""
    return where(input == 0, 0.5, top / where(input == 0, 1.0, input))


i0.vjp(input=lambda g, input: g * i1(input))
i0e.vjp(input=lambda g, input, out: g * (i1e(input) - sgn(input) * out))
i1.vjp(input=lambda g, input, out: g * (i0(input) - _over(out, input)))
i1e.vjp(input=lambda g, input, out: g * (i0e(input) - sgn(input) * out - _over(out, input)))
i0e.grad_name, i1.grad_name, i1e.grad_name = (
    "SpecialI0EBackward0",
    "SpecialI1Backward0",
    "SpecialI1EBackward0",
)

# ---- zeta and the incomplete gamma functions ----


@op(promote=FLOAT, where="special")
@opmath
def zeta(input: Scalar, other: Scalar) -> Array:
    """The Hurwitz zeta function of order `input`."""
    return _zeta(*jnp.broadcast_arrays(input, other))


zeta.vjp(input=Unwritten("zeta"), other=lambda g, input, other: g * (-input * zeta(input + 1, other)))


MOST_TERMS = 4000  # of what `_gamma_parts` adds up


def _gamma_parts(a, x, small):
    """The lower and the upper incomplete gamma function in float64, up to a share of `small`: a series for x up to a + 1, a continued fraction
    (Lentz's way) beyond. jax's carry their derivatives along, and take twenty times as long."""
    low = x <= a + 1
    by_series, by_fraction = jnp.where(low, x, 0.5), jnp.where(low, a + 2, x)

    def add(state):
        k, term, total, _ = state
        term = term * by_series / (a + k)
        total = total + term
        return k + 1, term, total, jnp.any(low & (term > small * total))

    def refine(state):
        k, c, d, found, _ = state
        an, b = k * (a - k), by_fraction + 2 * k + 1 - a
        d = 1 / (an * d + b)
        c = b + an / c
        return k + 1, c, d, found * c * d, jnp.any(~low & (jnp.abs(c * d - 1) > small))

    more = lambda state: (state[0] < MOST_TERMS) & state[-1]
    one, start = jnp.ones_like(x), 1 / (by_fraction + 1 - a)
    with jax.disable_jit(False):  # the loops stay some
        total = lax.while_loop(more, add, (jnp.float64(1), one, one, jnp.bool_(True)))[2]
        first = (jnp.float64(1), jnp.full_like(x, 1e300), start, start, jnp.bool_(True))
        fraction = lax.while_loop(more, refine, first)[3]
    share = jnp.exp(a * jnp.log(x) - x - lax.lgamma(a))
    lower, upper = share * total / a, share * fraction
    return jnp.where(low, lower, 1 - upper), jnp.where(low, 1 - lower, upper)


@functools.cache
def _temme(terms, powers):
    """The coefficients of Temme's expansion: rows for powers of 1 / a, columns for powers of eta (DLMF 8.12)."""
    most = powers + 2 * terms + 3
    series = [Fraction(0), Fraction(1)]  # of x / a - 1 in powers of eta
    for n in range(2, most + 1):
        known = builtins.sum(series[j] * series[n + 1 - j] * (n + 1 - j) for j in range(2, n))
        series.append((series[n - 1] - known) / (n + 1))
    first = [Fraction(-1, 3), *((n + 2) * series[n + 2] for n in range(1, powers + 2 * terms))]
    rows = [first]
    for k in range(1, terms):
        stirling = (-1) ** k * math.prod(range(1, 2 * k + 2, 2)) * series[2 * k + 1]
        rows.append([stirling * first[n] + (n + 2) * rows[-1][n + 2] for n in range(powers + 2 * (terms - k))])
    return [[float(v) for v in row[:powers]] for row in rows]


def _polynomial(x, coefficients):
    """By powers of x, the constant first."""
    return functools.reduce(lambda total, c: total * x + c, reversed(coefficients))


def _near_gamma(a, x, upper, coefficients):
    """The incomplete gamma function in float64 for x near a large a, where series and fraction take some sqrt(a) terms."""
    mu = (x - a) / a
    z = mu / (2 + mu)
    half = z * mu - 2 * z**3 * _polynomial(
        z * z, [1 / (2 * j + 3) for j in range(12)]
    )  # mu - log1p(mu), to the last digit
    eta = jnp.sign(mu) * jnp.sqrt(2 * half)
    total = _polynomial(1 / a, [_polynomial(eta, row) for row in coefficients])
    rest = jnp.exp(-a * half) / jnp.sqrt(2 * jnp.pi * a) * total
    side = 1 if upper else -1
    return 0.5 * lax.erfc(side * eta * jnp.sqrt(a / 2)) + side * rest


def _incomplete_gamma(a, x, upper):
    a, x = jnp.broadcast_arrays(a, x)
    usual = (a > 0) & (x > 0) & jnp.isfinite(a) & jnp.isfinite(x)
    near = usual & (a > 20) & (jnp.abs(x - a) < 0.3 * a)
    coefficients = _temme(4, 12) if x.dtype == jnp.float32 else _temme(10, 20)
    beside = [jnp.where(near, v, 32).astype(jnp.float64) for v in (a, x)]
    with jax.disable_jit(False):
        by_normal = lax.cond(
            jnp.any(near), lambda a, x: _near_gamma(a, x, upper, coefficients), lambda a, x: jnp.zeros_like(a), *beside
        )
    rest = usual & ~near
    of = lambda a, x: (lax.igammac if upper else lax.igamma)(a, x)  # of float32 it is off by 0.02 at (30000, 30000)
    if on_cpu():
        small = 1e-10 if x.dtype == jnp.float32 else 5e-16
        of = differentiated_as(lambda a, x: _gamma_parts(a, x, small)[upper], of)
    found = of(*(jnp.where(rest, v, 1).astype(jnp.float64) for v in (a, x)))
    found = jnp.where(near, by_normal, found).astype(x.dtype)
    all_of_it, none = (0, 1) if upper else (1, 0)
    found = jnp.where(jnp.isnan(a) | jnp.isnan(x), jnp.nan, found)
    found = jnp.where(jnp.isinf(x), all_of_it, found)
    found = jnp.where(jnp.isinf(a), jnp.where(jnp.isinf(x), jnp.nan, none), found)
    found = jnp.where(x == 0, none, found)
    found = jnp.where(a == 0, jnp.where(x > 0, all_of_it, jnp.nan), found)
    return jnp.where((a < 0) | (x < 0), jnp.nan, found).astype(x.dtype)


@op(promote=PROMOTE, where="special torch.igamma Tensor.igamma Tensor.gammainc")
@opmath
def gammainc(input: Array, other: Array) -> Array:
    """The regularized lower incomplete gamma function of order `input`."""
    return _incomplete_gamma(input, other, False)


@op(promote=PROMOTE, where="special torch.igammac Tensor.igammac Tensor.gammaincc")
@opmath
def gammaincc(input: Array, other: Array) -> Array:
    """The regularized upper incomplete gamma function of order `input`."""
    return _incomplete_gamma(input, other, True)


def _gamma_slope(input, other):
    return exp((input - 1) * log(other) - other - lgamma(input))


gammainc.vjp(input=Unwritten("igamma: input"), other=lambda g, input, other: g * _gamma_slope(input, other))
gammaincc.vjp(input=Unwritten("igammac: input"), other=lambda g, input, other: -g * _gamma_slope(input, other))
gammainc.targets.remove("Tensor.gammainc")
gammaincc.targets.remove("Tensor.gammaincc")
gammainc.grad_name, gammaincc.grad_name = "IgammaBackward0", "IgammacBackward0"
gammainc.shown, gammaincc.shown = "igamma", "igammac"
gammainc.passes = gammaincc.passes = 32  # turns of the loops, about


def flat(fn):
    """The record of a function of torch.special that PyTorch does not differentiate."""
    lacks = {f"{fn.__name__}_cpu": "half complex"}
    return op(promote=FLOAT, where="special", inplace=False, differentiable=False, lacks=lacks)(opmath(fn))


# ---- what PyTorch has no kernels for ----

for _record in (entr, ndtri, log_ndtr, erfcx, i0e, i1, i1e):
    _record.inplace = False
    half = " half" if _record in (ndtri, log_ndtr, erfcx) else ""
    _record.lack(**{f"{_record.name}_cpu": "complex" + half})
    if not _record.grad_name.startswith("Special"):
        _record.grad_name = "Special" + _record.grad_name
for _record in (zeta, xlog1py):
    _record.inplace = False
    _record.lack(**{f"{_record.name}_cpu": "complex"})
zeta.lack(zeta_cpu="half")
zeta.grad_name = _by_number("SpecialZeta")
ndtr.inplace = False
ndtr.grad_name = "MulBackward1"
ndtr.lack(erf_vml_cpu="complex")
gammainc.lack(igamma_cpu="bool int complex")
gammaincc.lack(igammac_cpu="bool int complex")
digamma.lack(digamma="complex")
logit.lack(logit_cpu="complex")
xlogy.lack(xlogy_cpu="complex")
for _record in (erf, erfc, erfinv, lgamma, i0):
    _record.lack(**{f"{_record.name}_vml_cpu": "complex"})
