"""Special functions: error, gamma, Bessel and orthogonal polynomials. Knows arrays, never Tensor."""

import builtins
import math

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax

from .. import errors
from ..core import dtype as dtypes
from ..core.shapes import contiguous_strides
from .arithmetic import sgn
from .conversion import constant, is_number, kind, opmath, rounded
from .logic import logical_and, logical_or, where
from .reduce import logsumexp  # noqa: F401  torch.special.logsumexp is registered there
from .registry import FLOAT, PROMOTE, Array, Scalar, Unwritten, composite, op
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
    return lax.lgamma(input)


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
    out = jnp.where(whole | (order == 1), jnp.inf, out)
    undefined = (order < 1) | ((x < 0) & ~whole & (order != jnp.floor(order)))
    return jnp.where(undefined & (order != 1), jnp.nan, out)


_FAR = 64


def _reflected_zeta(order, x):
    """For whole orders: the terms left of 0 are those of two series to the right, the one less the other."""
    first = x - jnp.floor(x)
    left = lax.zeta(order, 1 - first) - lax.zeta(order, 1 - x)
    return lax.zeta(order, first) + jnp.where(order % 2 == 0, left, -left)


def _trigamma(x):
    """zeta(2, x), left of 1/2 by reflection: zeta(2, 1 - x) + zeta(2, x) = (pi / sin(pi x)) ** 2."""
    left = x < 0.5
    right = _zeta(jnp.full_like(x, 2), jnp.where(left, 1 - x, x))
    right = jnp.where(jnp.isposinf(x), 0, right)
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


def _series(coefficients, t):
    """A sum of Chebyshev polynomials of t in [-1, 1], by Clenshaw's recurrence."""
    last = before = jnp.zeros_like(t)
    for c in reversed(coefficients[1:]):
        last, before = 2 * t * last - before + jnp.asarray(c, t.dtype), last
    return t * last - before + jnp.asarray(coefficients[0], t.dtype)


def _erfcx(x):
    y = jnp.abs(x)
    far = jnp.where(jnp.isinf(y), 1.0, (y - 3.75) / (y + 3.75)).astype(x.dtype)
    right = _series(_ERFCX, far) / (1 + 2 * y)
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


@op(promote=PROMOTE, where="special torch.igamma Tensor.igamma Tensor.gammainc")
@opmath
def gammainc(input: Array, other: Array) -> Array:
    """The regularized lower incomplete gamma function of order `input`."""
    input, other = jnp.broadcast_arrays(input, other)
    return jnp.where((input == 0) & (other > 0), jnp.ones((), input.dtype), lax.igamma(input, other))


@op(promote=PROMOTE, where="special torch.igammac Tensor.igammac Tensor.gammaincc")
@opmath
def gammaincc(input: Array, other: Array) -> Array:
    """The regularized upper incomplete gamma function of order `input`."""
    return lax.igammac(*jnp.broadcast_arrays(input, other))


def _gamma_slope(input, other):
    return exp((input - 1) * log(other) - other - lgamma(input))


gammainc.vjp(input=Unwritten("igamma: input"), other=lambda g, input, other: g * _gamma_slope(input, other))
gammaincc.vjp(input=Unwritten("igammac: input"), other=lambda g, input, other: -g * _gamma_slope(input, other))
gammainc.targets.remove("Tensor.gammainc")
gammaincc.targets.remove("Tensor.gammaincc")
gammainc.grad_name, gammaincc.grad_name = "IgammaBackward0", "IgammacBackward0"
gammainc.shown, gammaincc.shown = "igamma", "igammac"

# ---- Bessel and Airy functions, which torch does not differentiate ----


def _flat(fn):
    lacks = {f"{fn.__name__}_cpu": "half complex"}
    return op(promote=FLOAT, where="special", inplace=False, differentiable=False, lacks=lacks)(opmath(fn))


def _wave(x, p, q, order):
    """P cos - Q sin and P sin + Q cos of the phase: the functions far from 0."""
    s = 128 / (x * x) - 1
    top, side = _series(p, s), _series(q, s) * 8 / x
    phase = x - (2 * order + 1) * math.pi / 4
    height = jnp.sqrt(2 / (math.pi * x))
    cos, sin = jnp.cos(phase), jnp.sin(phase)
    return height * (top * cos - side * sin), height * (top * sin + side * cos)


def _split(x, border):
    """x where it is at most the border, x beyond it; each is harmless elsewhere."""
    return jnp.minimum(x, border), jnp.maximum(x, border)


def _j(x, near, p, q, order):
    low, high = _split(jnp.abs(x), 8.0)
    inner = _series(near, low * low / 32 - 1)
    outer = _wave(high, p, q, order)[0]  # nan at infinity, as torch has it
    return jnp.where(jnp.abs(x) <= 8, inner * low if order else inner, outer)


@_flat
def bessel_j0(input: Array) -> Array:
    """The Bessel function of the first kind of order 0."""
    return _j(input, _J0, _P0, _Q0, 0)


@_flat
def bessel_j1(input: Array) -> Array:
    """The Bessel function of the first kind of order 1."""
    return jnp.where(input < 0, -1, 1) * _j(input, _J1, _P1, _Q1, 1)


def _second_kind(x, inner, p, q, order):
    """Y: -inf at 0, nan below and, as torch has it, at infinity."""
    out = jnp.where(x <= 8, inner, _wave(jnp.maximum(x, 8.0), p, q, order)[1])
    return jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, jnp.nan, out)).astype(x.dtype)


@_flat
def bessel_y0(input: Array) -> Array:
    """The Bessel function of the second kind of order 0."""
    x = jnp.clip(input, np.finfo(np.float32).tiny, 8.0)
    inner = _series(_Y0, x * x / 32 - 1) + 2 / math.pi * jnp.log(x) * _j(x, _J0, _P0, _Q0, 0)
    return _second_kind(input, inner, _P0, _Q0, 0)


@_flat
def bessel_y1(input: Array) -> Array:
    """The Bessel function of the second kind of order 1."""
    x = jnp.clip(input, np.finfo(np.float32).tiny, 8.0)
    log_part = jnp.log(x) * _j(x, _J1, _P1, _Q1, 1) - 1 / x
    return _second_kind(input, _series(_Y1, x * x / 32 - 1) * x + 2 / math.pi * log_part, _P1, _Q1, 1)


def _k(x, near, far, scaled):
    """K by its two series: inf at 0, nan below."""
    low, high = _split(jnp.maximum(x, np.finfo(np.float32).tiny), 2.0)
    inner = near(low) * (jnp.exp(low) if scaled else 1)
    high = jnp.where(jnp.isinf(high), 2.0, high)
    outer = _series(far, 4 / high - 1) / jnp.sqrt(high) * (1 if scaled else jnp.exp(-high))
    out = jnp.where(x <= 2, inner, jnp.where(jnp.isinf(x), 0, outer))
    return jnp.where(x == 0, jnp.inf, jnp.where(x < 0, jnp.nan, out)).astype(x.dtype)


def _k0_near(x):
    return _series(_K0, x * x / 2 - 1) - jnp.log(x / 2) * jsp.i0(x)


def _k1_near(x):
    return _series(_K1, x * x / 2 - 1) / x + jnp.log(x / 2) * jsp.i1(x)


@_flat
def modified_bessel_i0(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 0."""
    return jsp.i0(input)


@_flat
def modified_bessel_i1(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 1."""
    return jsp.i1(input)


@_flat
def modified_bessel_k0(input: Array) -> Array:
    """The modified Bessel function of the second kind of order 0."""
    return _k(input, _k0_near, _K0_FAR, False)


@_flat
def modified_bessel_k1(input: Array) -> Array:
    """The modified Bessel function of the second kind of order 1."""
    return _k(input, _k1_near, _K1_FAR, False)


@_flat
def scaled_modified_bessel_k0(input: Array) -> Array:
    """exp(input) * modified_bessel_k0(input)."""
    return _k(input, _k0_near, _K0_FAR, True)


@_flat
def scaled_modified_bessel_k1(input: Array) -> Array:
    """exp(input) * modified_bessel_k1(input)."""
    return _k(input, _k1_near, _K1_FAR, True)


@_flat
def spherical_bessel_j0(input: Array) -> Array:
    """sin(input) / input, 1 at 0."""
    small = jnp.abs(input) < 1e-4
    x = jnp.where(small | jnp.isinf(input), 1, input)
    near = 1 - input * input / 6
    return jnp.where(jnp.isinf(input), 0, jnp.where(small, near, jnp.sin(x) / x)).astype(input.dtype)


@_flat
def airy_ai(input: Array) -> Array:
    """The Airy function Ai."""
    middle = _series(_AI, (jnp.clip(input, -5.0, 2.0) * 2 + 3) / 7)
    right, left = jnp.clip(input, 2.0, 1e4), jnp.maximum(-input, 5.0)
    rate = right * jnp.sqrt(right) * (2 / 3)
    first = 2 / 3 * 2.0**1.5
    decay = _series(_AI_FAR, 2 * first / rate - 1) * jnp.exp(-rate) / (2 * math.sqrt(math.pi) * right**0.25)
    phase = left * jnp.sqrt(left) * (2 / 3)
    s = 2 * (2 / 3 * 5.0**1.5 / phase) ** 2 - 1
    turn = phase + math.pi / 4
    wave = jnp.sin(turn) * _series(_AI_P, s) - jnp.cos(turn) * _series(_AI_Q, s) / phase
    wave = wave / (math.sqrt(math.pi) * left**0.25)
    out = jnp.where(input > 2, decay, jnp.where(input < -5, wave, middle))
    return jnp.where(jnp.isinf(input), jnp.asarray(jnp.nan, input.dtype), out)  # as torch has it


# ---- orthogonal polynomials, of any degree an element may ask for ----


def _polynomial(x, n, first, step):
    """P(0) = 1, P(1) = first(x), P(k + 1) = step(k, x, P(k), P(k - 1)); 0 for a degree that is negative or no number."""
    x, n = jnp.broadcast_arrays(jnp.asarray(x), jnp.asarray(n))
    degree = jnp.where(jnp.isfinite(n), jnp.trunc(n), -1).astype(jnp.int64)
    top = jnp.max(degree, initial=0)
    one = jnp.ones_like(x)

    def advance(state):
        k, p, q, out = state
        out = jnp.where(degree == k, p, out)
        return k + 1, step(k.astype(x.dtype), x, p, q), p, out

    start = (jnp.ones((), jnp.int64), first(x), one, jnp.where(degree == 0, one, jnp.zeros_like(x)))
    return lax.while_loop(lambda state: state[0] <= top, advance, start)[-1]


def _chebyshev(k, x, p, q):
    return 2 * x * p - q


_FIRST = {"t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1}


@_flat
def chebyshev_polynomial_t(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the first kind of degree n."""
    return _polynomial(input, n, _FIRST["t"], _chebyshev)


@_flat
def chebyshev_polynomial_u(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the second kind of degree n."""
    return _polynomial(input, n, _FIRST["u"], _chebyshev)


@_flat
def chebyshev_polynomial_v(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the third kind of degree n."""
    return _polynomial(input, n, _FIRST["v"], _chebyshev)


@_flat
def chebyshev_polynomial_w(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the fourth kind of degree n."""
    return _polynomial(input, n, _FIRST["w"], _chebyshev)


@_flat
def shifted_chebyshev_polynomial_t(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_t at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["t"], _chebyshev)


@_flat
def shifted_chebyshev_polynomial_u(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_u at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["u"], _chebyshev)


@_flat
def shifted_chebyshev_polynomial_v(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_v at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["v"], _chebyshev)


@_flat
def shifted_chebyshev_polynomial_w(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_w at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["w"], _chebyshev)


@_flat
def hermite_polynomial_h(input: Scalar, n: Scalar) -> Array:
    """The physicist's Hermite polynomial of degree n."""
    return _polynomial(input, n, lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q)


@_flat
def hermite_polynomial_he(input: Scalar, n: Scalar) -> Array:
    """The probabilist's Hermite polynomial of degree n."""
    return _polynomial(input, n, lambda x: x, lambda k, x, p, q: x * p - k * q)


@_flat
def laguerre_polynomial_l(input: Scalar, n: Scalar) -> Array:
    """The Laguerre polynomial of degree n."""
    return _polynomial(input, n, lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))


@_flat
def legendre_polynomial_p(input: Scalar, n: Scalar) -> Array:
    """The Legendre polynomial of degree n."""
    return _polynomial(input, n, lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))


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
# ---- Chebyshev coefficients, fitted at 40 digits ----
# J, Y: in x * x / 32 - 1 up to 8 (the logarithm and the pole taken out of Y); P, Q: in 128 / (x * x) - 1 beyond.
# K: in x * x / 2 - 1 up to 2, in 4 / x - 1 beyond, scaled by exp(x) * sqrt(x). AI: on [-5, 2] and beyond.
# ERFCX: (1 + 2 x) erfcx(x), in (x - 3.75) / (x + 3.75).

_J0 = (
    0.15772797147489012, -0.0087234423528522211, 0.2651786132033368, -0.37009499387264977,
    0.15806710233209725, -0.034893769411408884, 0.0048191800694676046, -0.00046062616620627504,
    3.2460328821005083e-05, -1.7619469077621507e-06, 7.6081635924187821e-08, -2.6792535305576728e-09,
    7.8486963144794648e-11, -1.9438346867370164e-12, 4.1253205956343741e-14, -7.5885081254475459e-16,
    1.2218515873961411e-17,
)  # fmt: skip
_J1 = (
    0.081044846325658115, -0.14897514506765211, 0.16099926235720971, -0.08268049176681791,
    0.022213639654966037, -0.0036469406007692759, 0.0004050337728354822, -3.2555548668572587e-05,
    1.9858774049915165e-06, -9.5219847567504361e-08, 3.6871337590971481e-09, -1.178026622695885e-10,
    3.1601545803480032e-12, -7.2217552396517734e-14, 1.4232144003513942e-15, -2.4441972916190464e-17,
)  # fmt: skip
_Y0 = (
    -0.033146113203284942, -0.27447430552974528, 0.17903431407718265, 0.26156734625504663,
    -0.17730201278114358, 0.04719668959576339, -0.0072879624795520789, 0.0007531135932577742,
    -5.6320791410569873e-05, 3.2065325376548008e-06, -1.44072332740187e-07, 5.2487947873305158e-09,
    -1.5837552541812015e-10, 4.0263308183061204e-12, -8.7473412033107693e-14, 1.6434898714919468e-15,
    -2.6977881152566837e-17,
)  # fmt: skip
_Y1 = (
    0.0025380132357417816, -0.016087173047668751, -0.095912045360830742, 0.084451972596523456,
    -0.028328123944594365, 0.0052898975441671133, -0.0006414551451326356, 5.5059828733387439e-05,
    -3.5380800186893499e-06, 1.7707804556154404e-07, -7.1105500498992796e-09, 2.3443379059115162e-10,
    -6.4651518414115946e-12, 1.51429151205002e-13, -3.0511859694473254e-15, 5.3466803857286703e-17,
)  # fmt: skip
_P0 = (
    0.99946034934751871, -0.00053652204681321172, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.8640913772370698e-11, 5.1682623873491928e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.0690340959352359e-15, 6.7480722157338734e-16, -1.0011513723467786e-16,
)  # fmt: skip
_Q0 = (
    -0.015555854605337009, 6.8385199426116493e-05, -7.4144984110606469e-07, 1.7972457247968992e-08,
    -7.2719159368663201e-10, 4.2201219046687385e-11, -3.2067474209966348e-12, 3.0061451253517062e-13,
    -3.3363281853224267e-14, 4.2552250402454608e-15, -6.0999301316400496e-16, 9.6621289703032567e-17,
    -1.6686065214378146e-17, 3.1082440486738143e-18, -6.1911157873581446e-19,
)  # fmt: skip
_P1 = (
    1.0009030408600137, 0.00089898983308594083, -3.9872843004889084e-06, 6.1776339606442988e-08,
    -1.8718907491063067e-09, 8.8168986595823391e-11, -5.7048636403956448e-12, 4.699195515230542e-13,
    -4.6842237839904895e-14, 5.4526748960447171e-15, -7.2211808422740179e-16, 1.0667689114335412e-16,
)  # fmt: skip
_Q1 = (
    0.046777787069535323, -9.6277235491570797e-05, 9.1386152579554545e-07, -2.0959781384083424e-08,
    8.2291933276505541e-10, -4.6863636881769453e-11, 3.5152187949686082e-12, -3.2643156743279e-13,
    3.5967765829165294e-14, -4.5612523950772974e-15, 6.5082829577833837e-16, -1.0269147531823243e-16,
    1.7676355487764791e-17, -3.2834519872981614e-18,
)  # fmt: skip
_K0 = (
    -0.26766369661695139, 0.3442898999246285, 0.035979936515361501, 0.001264615411446926,
    2.2862121031194519e-05, 2.5347910790261494e-07, 1.9045163772202091e-09, 1.0349695257633625e-11,
    4.2598161427910826e-14, 1.3744654358807508e-16,
)  # fmt: skip
_K1 = (
    0.76265011366947388, -0.35315596077654487, -0.12261118082265715, -0.0069757238596398641,
    -0.0001730288957513052, -2.4334061415659684e-06, -2.213387630734726e-08, -1.4114883926335278e-10,
    -6.6669016941993295e-13, -2.427449850519366e-15,
)  # fmt: skip
_K0_FAR = (
    1.2201515410329777, -0.031448101311964502, 0.0015698838857300533, -0.00012849549581627802,
    1.39498137188765e-05, -1.8317555227191195e-06, 2.7668136394450149e-07, -4.6604898976879478e-08,
    8.5740340174142253e-09, -1.6975345093890614e-09, 3.5773972814003283e-10, -7.9574892444773965e-11,
    1.8559491149549264e-11, -4.5145978833745193e-12, 1.1403405882073441e-12, -2.9800969231481784e-13,
    8.0328907750683746e-14, -2.2275133267462965e-14, 6.3400764762766461e-15, -1.8485933779209071e-15,
    5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17,
)  # fmt: skip
_K1_FAR = (
    1.3603130952422213, 0.10392373657681724, -0.0028578168596227792, 0.00019521551847135162,
    -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08,
    -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10, 9.2183151876053146e-11,
    -2.1299678384277909e-11, 5.1396396734823432e-12, -1.2891739609498229e-12, 3.3484196660522431e-13,
    -8.9767051820101463e-14, 2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15,
    -6.0570472706430177e-16, 1.8380935752430455e-16, -5.6894628491936484e-17,
)  # fmt: skip
_AI = (
    0.15168947628223672, -0.0052286924084723654, -0.0071830075633421229, -0.27500858251700783,
    0.15267285652736612, 0.11299722901833571, -0.12930163519980795, 0.021717950423082666,
    0.024911850702736413, -0.014335857421895731, 0.00069668945163959802, 0.0019743989335290189,
    -0.00072303939722521992, -1.6112414526177467e-05, 8.1332736732499388e-05, -2.0775365813975462e-05,
    -1.6054762687164758e-06, 2.0560158255601387e-06, -3.8255205172841781e-07, -4.9138705961841781e-08,
    3.514168642051892e-08, -4.8463850108604963e-09, -8.8978120594222127e-10, 4.3297862486488079e-10,
    -4.4147455974393011e-11, -1.1096862995764342e-11, 4.024832028797832e-12, -2.9609936249846454e-13,
    -1.0257635127287476e-13, 2.9205798768290242e-14, -1.4619955511486232e-15, -7.3550505309176696e-16,
    1.6986548408182807e-16,
)  # fmt: skip
_AI_FAR = (
    0.98440530491715517, -0.014792784850104199, 0.00073271774654267146, -6.1259542341782504e-05,
    6.8347669755726903e-06, -9.2372297354039818e-07, 1.436225340438052e-07, -2.4893194223220961e-08,
    4.7097934400543277e-09, -9.5838637081127331e-10, 2.0745855483677591e-10, -4.737267332192277e-11,
    1.1336099808224236e-11, -2.8277067823193509e-12, 7.3207120951255979e-13, -1.9599793911089723e-13,
    5.4101162570683925e-14, -1.5356466802223836e-14, 4.4723403933000248e-15, -1.3338094674756683e-15,
    4.0665820464562309e-16, -1.2655832256452891e-16, 4.0151263340158709e-17,
)  # fmt: skip
_AI_P = (
    0.99967234154610052, -0.00032554835610553221, 2.0697451559691191e-06, -3.8909617364744242e-08,
    1.3645959446950337e-09, -7.2655634388666822e-11, 5.2346756290629072e-12, -4.749669415821452e-13,
    5.172156139604189e-14, -6.5337252955452842e-15, 9.3392740727772093e-16, -1.4823330512580455e-16,
)  # fmt: skip
_AI_Q = (
    0.069115280401605028, -0.0003251060364586695, 3.9459777438663227e-06, -1.0689290905143409e-07,
    4.8003347189516169e-09, -3.0691067169997637e-10, 2.5517594369013928e-11, -2.6016067317524341e-12,
    3.1236668551191862e-13, -4.2903251712839485e-14, 6.5967105959774347e-15, -1.1168332160416879e-15,
    2.0551350158850327e-16, -4.0680056098438254e-17, 8.589182631392619e-18,
)  # fmt: skip
_ERFCX = (
    1.1775789345674017, -0.0045900545806464776, -0.084249133366517917, 0.059209939998191893,
    -0.026658668435305753, 0.0090749976707052652, -0.0024131635404176081, 0.00049077583652580863,
    -6.916973302501207e-05, 4.1390279860730102e-06, 7.7403830661984903e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.5219598112182866e-09, -7.7544002088313509e-10, -6.3180883408866854e-11,
    2.8687950109306692e-11, 1.9455868545776784e-13, -9.6546967484334797e-13, 3.2525481481486126e-14,
    3.3478119482869987e-14, -1.8645628804147933e-15, -1.2507950530631828e-15, 7.4182352571300219e-17,
    5.0681489050816478e-17,
)  # fmt: skip
