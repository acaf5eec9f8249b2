"""Orthogonal polynomials, of any degree that an element may ask for. Knows arrays, never Tensor."""

import jax.numpy as jnp
from jax import lax

from .registry import Array, Scalar
from .special import flat


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


@flat
def chebyshev_polynomial_t(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the first kind of degree n."""
    return _polynomial(input, n, _FIRST["t"], _chebyshev)


@flat
def chebyshev_polynomial_u(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the second kind of degree n."""
    return _polynomial(input, n, _FIRST["u"], _chebyshev)


@flat
def chebyshev_polynomial_v(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the third kind of degree n."""
    return _polynomial(input, n, _FIRST["v"], _chebyshev)


@flat
def chebyshev_polynomial_w(input: Scalar, n: Scalar) -> Array:
    """The Chebyshev polynomial of the fourth kind of degree n."""
    return _polynomial(input, n, _FIRST["w"], _chebyshev)


@flat
def shifted_chebyshev_polynomial_t(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_t at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["t"], _chebyshev)


@flat
def shifted_chebyshev_polynomial_u(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_u at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["u"], _chebyshev)


@flat
def shifted_chebyshev_polynomial_v(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_v at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["v"], _chebyshev)


@flat
def shifted_chebyshev_polynomial_w(input: Scalar, n: Scalar) -> Array:
    """chebyshev_polynomial_w at 2 * input - 1."""
    return _polynomial(2 * input - 1, n, _FIRST["w"], _chebyshev)


@flat
def hermite_polynomial_h(input: Scalar, n: Scalar) -> Array:
    """The physicist's Hermite polynomial of degree n."""
    return _polynomial(input, n, lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q)


@flat
def hermite_polynomial_he(input: Scalar, n: Scalar) -> Array:
    """The probabilist's Hermite polynomial of degree n."""
    return _polynomial(input, n, lambda x: x, lambda k, x, p, q: x * p - k * q)


@flat
def laguerre_polynomial_l(input: Scalar, n: Scalar) -> Array:
    """The Laguerre polynomial of degree n."""
    return _polynomial(input, n, lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))


@flat
def legendre_polynomial_p(input: Scalar, n: Scalar) -> Array:
    """The Legendre polynomial of degree n."""
    return _polynomial(input, n, lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))
