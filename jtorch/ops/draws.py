"""Random numbers whose distribution is given by tensors, from a device key (`sampling.py` draws on the host). Knows arrays, never Tensor."""

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
from jax import lax

from ..core import dtype as dtypes
from ..core import rng
from .registry import UNKNOWN, Array, Key, op


@op(where="torch", out="exact")
def binomial(count: Array, prob: Array, generator: object = None, *, key: Key) -> Array:
    """How often an event of probability `prob` happens in `count` trials."""
    shape = jnp.broadcast_shapes(count.shape, prob.shape)
    n = jnp.broadcast_to(count, shape).astype(jnp.float64)
    p = jnp.broadcast_to(prob, shape).astype(jnp.float64)
    u = rng.uniform(key, shape, jnp.float64)

    def halve(_, bounds):
        low, high = bounds  # the cumulative probability of low is below u, that of high is not
        middle = jnp.floor((low + high) / 2)
        below = jsp.betainc(jnp.maximum(n - middle, 1e-300), middle + 1, 1 - p) < u
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    _, drawn = lax.fori_loop(0, 54, halve, (jnp.full(shape, -1.0), n))
    drawn = jnp.where(p <= 0, 0, jnp.where(p >= 1, n, drawn))
    return drawn.astype(count.dtype)


binomial.vjp(count=UNKNOWN, prob=UNKNOWN)


@binomial.check
def _(count, prob, generator=None, *, key=None):
    for name, x in (("count", count), ("prob", prob)):
        if not x.dtype.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {dtypes.scalar_name(x.dtype)}"
            )
    if count.dtype is not prob.dtype:
        raise RuntimeError(
            f"Found dtype {dtypes.scalar_name(prob.dtype)} but expected {dtypes.scalar_name(count.dtype)}"
        )


# --- gamma and Dirichlet ---------------------------------------------------------------------------------------

_WIDER = 1e-4  # a step of the central difference, in units of the concentration's own scale


def _log_gamma_draw(key, concentration):
    """The logarithm of gamma draws: it stays finite where small concentrations underflow.

    Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); below 1 by their boost.
    """
    dtype = jnp.float64 if concentration.dtype == jnp.float64 else jnp.float32
    alpha = concentration.astype(dtype)
    small = alpha < 1
    d = jnp.where(small, alpha + 1, alpha) - 1 / 3
    c = 1 / jnp.sqrt(9 * d)

    def propose(state):
        i, done, value = state
        normal, uniform = rng.split(rng.fold_in(key, i))
        x = rng.normal(normal, alpha.shape, dtype)
        t = 1 + c * x
        log_v = 3 * jnp.log(jnp.where(t > 0, t, 1))
        u = 1 - rng.uniform(uniform, alpha.shape, dtype)
        good = (t > 0) & (jnp.log(u) < x * x / 2 + d * (1 - jnp.exp(log_v) + log_v))
        return i + 1, done | good, jnp.where(good & ~done, jnp.log(d) + log_v, value)

    bad = ~(alpha > 0) | jnp.isinf(alpha)
    state = jnp.uint32(1), bad, jnp.where(alpha == 0, -jnp.inf, alpha).astype(dtype)
    _, _, value = lax.while_loop(lambda s: ~s[1].all(), propose, state)
    u = 1 - rng.uniform(rng.fold_in(key, jnp.uint32(0)), alpha.shape, dtype)
    return jnp.where(small & ~bad, value + jnp.log(u) / jnp.where(bad, 1, alpha), value)


def _at_least_tiny(x, dtype):
    return jnp.maximum(x, jnp.finfo(dtype).tiny).astype(dtype)


@op(where="torch")
def _standard_gamma(input: Array, generator: object = None, *, key: Key) -> Array:
    """Draws of gamma distributions with concentrations `input` and rate 1."""
    return _at_least_tiny(jnp.exp(_log_gamma_draw(key, input)), input.dtype)


_standard_gamma.lack(gamma_cpu="bool int complex")
_standard_gamma.vjp(input=lambda g, input, out: g * _standard_gamma_grad.fn(input, out))


@op(where="", grad_name="StandardGammaBackward0")
def drawn_gamma(input: Array, drawn: Array) -> Array:
    """Gamma draws that are there already, with the gradient of the concentrations that they were drawn for."""
    return drawn


drawn_gamma.vjp(input=lambda g, input, drawn: g * _standard_gamma_grad.fn(input, drawn))


@op(where="torch")
def _standard_gamma_grad(input: Array, output: Array) -> Array:
    """How a gamma draw moves with its concentration: -(dF/da) / (dF/dx) of the cdf F (implicit reparameterisation)."""
    dtype = jnp.float64 if input.dtype == jnp.float64 else jnp.float32
    return lax.random_gamma_grad(input.astype(dtype), output.astype(dtype)).astype(input.dtype)


_standard_gamma_grad.differentiable = False


@op(where="torch")
def _sample_dirichlet(input: Array, generator: object = None, *, key: Key) -> Array:
    """Draws of Dirichlet distributions with concentrations `input` in the last dimension."""
    x = jax.nn.softmax(_log_gamma_draw(key, input), axis=-1)
    return _at_least_tiny(x, input.dtype)


_sample_dirichlet.lack(dirichlet="bool int complex")


def _sample_dirichlet_input(g, input, out):
    slope = _dirichlet_grad.fn(out, input, input.sum(-1, keepdims=True))
    return slope * (g - (out * g).sum(-1, keepdims=True))


_sample_dirichlet.vjp(input=_sample_dirichlet_input)


@op(where="", grad_name="SampleDirichletBackward0")
def drawn_dirichlet(input: Array, drawn: Array) -> Array:
    """Dirichlet draws that are there already, with the gradient of the concentrations that they were drawn for."""
    return drawn


drawn_dirichlet.vjp(input=lambda g, input, drawn: _sample_dirichlet_input(g, input, drawn))


@op(where="torch")
def _dirichlet_grad(x: Array, alpha: Array, total: Array) -> Array:
    """How a component of a Dirichlet draw moves with its concentration, over 1 - x: its marginal is Beta(alpha, total - alpha).

    -(dF/da) / (dF/dx) / (1 - x), dF/da by a central difference in float64 (to about 1e-7 of its size).
    """
    y, a, s = (jnp.asarray(v, jnp.float64) for v in jnp.broadcast_arrays(x, alpha, total))
    b = s - a
    h = _WIDER * jnp.minimum(a, jnp.sqrt(a))
    upper = y * s > a  # from the side where the cdf is small, so that the difference keeps its digits
    first, second = jnp.where(upper, b, a), jnp.where(upper, a, b)
    step_first, step_second = jnp.where(upper, 0, h), jnp.where(upper, h, 0)
    at = jnp.where(upper, 1 - y, y)
    change = jsp.betainc(first + step_first, second + step_second, at)
    change = change - jsp.betainc(first - step_first, second - step_second, at)
    change = jnp.where(upper, -change, change) / (2 * h)
    log_density = (a - 1) * jnp.log(y) + (b - 1) * jnp.log1p(-y) - jsp.betaln(a, b)
    slope = -change / jnp.exp(log_density) / (1 - y)
    return jnp.where(jnp.isfinite(slope), slope, 0).astype(x.dtype)


_dirichlet_grad.differentiable = False
