"""Bessel and Airy functions, which PyTorch does not differentiate. Knows arrays, never Tensor."""

import math

import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np

from .chebyshev import AI, AI_FAR, AI_P, AI_Q, J0, J1, K0, K0_FAR, K1, K1_FAR, P0, P1, Q0, Q1, Y0, Y1, series
from .registry import Array
from .special import flat


def _wave(x, p, q, order):
    """P cos - Q sin and P sin + Q cos of the phase: the functions far from 0."""
    s = 128 / (x * x) - 1
    top, side = series(p, s), series(q, s) * 8 / x
    phase = x - (2 * order + 1) * math.pi / 4
    height = jnp.sqrt(2 / (math.pi * x))
    cos, sin = jnp.cos(phase), jnp.sin(phase)
    return height * (top * cos - side * sin), height * (top * sin + side * cos)


def _split(x, border):
    """x where it is at most the border, x beyond it; each is harmless elsewhere."""
    return jnp.minimum(x, border), jnp.maximum(x, border)


def _j(x, near, p, q, order):
    low, high = _split(jnp.abs(x), 8.0)
    inner = series(near, low * low / 32 - 1)
    outer = _wave(high, p, q, order)[0]  # nan at infinity, as torch has it
    return jnp.where(jnp.abs(x) <= 8, inner * low if order else inner, outer)


@flat
def bessel_j0(input: Array) -> Array:
    """The Bessel function of the first kind of order 0."""
    return _j(input, J0, P0, Q0, 0)


@flat
def bessel_j1(input: Array) -> Array:
    """The Bessel function of the first kind of order 1."""
    return jnp.where(input < 0, -1, 1) * _j(input, J1, P1, Q1, 1)


def _second_kind(x, inner, p, q, order):
    """Y: -inf at 0, nan below and, as torch has it, at infinity."""
    out = jnp.where(x <= 8, inner, _wave(jnp.maximum(x, 8.0), p, q, order)[1])
    return jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, jnp.nan, out)).astype(x.dtype)


@flat
def bessel_y0(input: Array) -> Array:
    """The Bessel function of the second kind of order 0."""
    x = jnp.clip(input, np.finfo(np.float32).tiny, 8.0)
    inner = series(Y0, x * x / 32 - 1) + 2 / math.pi * jnp.log(x) * _j(x, J0, P0, Q0, 0)
    return _second_kind(input, inner, P0, Q0, 0)


@flat
def bessel_y1(input: Array) -> Array:
    """The Bessel function of the second kind of order 1."""
    x = jnp.clip(input, np.finfo(np.float32).tiny, 8.0)
    log_part = jnp.log(x) * _j(x, J1, P1, Q1, 1) - 1 / x
    return _second_kind(input, series(Y1, x * x / 32 - 1) * x + 2 / math.pi * log_part, P1, Q1, 1)


def _k(x, near, far, scaled):
    """K by its two series: inf at 0, nan below."""
    low, high = _split(jnp.maximum(x, np.finfo(np.float32).tiny), 2.0)
    inner = near(low) * (jnp.exp(low) if scaled else 1)
    high = jnp.where(jnp.isinf(high), 2.0, high)
    outer = series(far, 4 / high - 1) / jnp.sqrt(high) * (1 if scaled else jnp.exp(-high))
    out = jnp.where(x <= 2, inner, jnp.where(jnp.isinf(x), 0, outer))
    return jnp.where(x == 0, jnp.inf, jnp.where(x < 0, jnp.nan, out)).astype(x.dtype)


def _k0_near(x):
    return series(K0, x * x / 2 - 1) - jnp.log(x / 2) * jsp.i0(x)


def _k1_near(x):
    return series(K1, x * x / 2 - 1) / x + jnp.log(x / 2) * jsp.i1(x)


@flat
def modified_bessel_i0(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 0."""
    return jsp.i0(input)


@flat
def modified_bessel_i1(input: Array) -> Array:
    """The modified Bessel function of the first kind of order 1."""
    return jsp.i1(input)


@flat
def modified_bessel_k0(input: Array) -> Array:
    """The modified Bessel function of the second kind of order 0."""
    return _k(input, _k0_near, K0_FAR, False)


@flat
def modified_bessel_k1(input: Array) -> Array:
    """The modified Bessel function of the second kind of order 1."""
    return _k(input, _k1_near, K1_FAR, False)


@flat
def scaled_modified_bessel_k0(input: Array) -> Array:
    """exp(input) * modified_bessel_k0(input)."""
    return _k(input, _k0_near, K0_FAR, True)


@flat
def scaled_modified_bessel_k1(input: Array) -> Array:
    """exp(input) * modified_bessel_k1(input)."""
    return _k(input, _k1_near, K1_FAR, True)


@flat
def spherical_bessel_j0(input: Array) -> Array:
    """sin(input) / input, 1 at 0."""
    small = jnp.abs(input) < 1e-4
    x = jnp.where(small | jnp.isinf(input), 1, input)
    near = 1 - input * input / 6
    return jnp.where(jnp.isinf(input), 0, jnp.where(small, near, jnp.sin(x) / x)).astype(input.dtype)


@flat
def airy_ai(input: Array) -> Array:
    """The Airy function Ai."""
    middle = series(AI, (jnp.clip(input, -5.0, 2.0) * 2 + 3) / 7)
    right, left = jnp.clip(input, 2.0, 1e4), jnp.maximum(-input, 5.0)
    rate = right * jnp.sqrt(right) * (2 / 3)
    first = 2 / 3 * 2.0**1.5
    decay = series(AI_FAR, 2 * first / rate - 1) * jnp.exp(-rate) / (2 * math.sqrt(math.pi) * right**0.25)
    phase = left * jnp.sqrt(left) * (2 / 3)
    s = 2 * (2 / 3 * 5.0**1.5 / phase) ** 2 - 1
    turn = phase + math.pi / 4
    wave = jnp.sin(turn) * series(AI_P, s) - jnp.cos(turn) * series(AI_Q, s) / phase
    wave = wave / (math.sqrt(math.pi) * left**0.25)
    out = jnp.where(input > 2, decay, jnp.where(input < -5, wave, middle))
    return jnp.where(jnp.isinf(input), jnp.asarray(jnp.nan, input.dtype), out)  # as torch has it
