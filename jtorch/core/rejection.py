"""Gamma, Poisson and binomial numbers as PyTorch's CPU generator gives them: numpy arrays in and out.

Their methods draw until a number is accepted, each element beginning where the one before has stopped, so the elements are gone through
one by one, with the C library's functions (1 to 6 µs an element). What does not depend on the others is computed for all at once.
"""

import math

import numpy as np

from .draw import _unit64
from .exactly import libm
from .rng import Generator

_TWO_PI = 2.0 * math.pi


class Stream(list):
    """Uniform numbers from [0, 1), more than are needed; `close` gives back those that were not used."""

    def __init__(self, gen: Generator, about: int):
        self.gen, self.before, self.step = gen, gen.mark(), max(64, about)
        super().__init__(_unit64(gen, self.step).tolist())

    def grow(self):
        """More of them."""
        self.extend(_unit64(self.gen, self.step).tolist())

    def close(self, used: int):
        """Leave the generator as if only the first `used` had been drawn."""
        self.gen.rewind(self.before)
        self.gen.words64(used)


def gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma numbers of these concentrations, in float64. float32 concentrations are computed with as PyTorch does, in float32.

    Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); below 1 by their boost.
    """
    alpha = np.ascontiguousarray(alpha).reshape(-1)
    wide = alpha.astype(np.float32) if alpha.dtype.itemsize < 4 else alpha
    one = wide.dtype.type
    small = wide < 1
    d = (np.where(small, wide + one(1), wide) - one(np.float32(1) / np.float32(3))).astype(np.float64)
    with np.errstate(invalid="ignore"):
        c = 1.0 / np.sqrt(9.0 * d)
    units, cubes = _accept(gen, d.tolist(), c.tolist(), small.tolist(), (wide == 0).tolist(), alpha.size)
    out = d * np.array(cubes)
    boosted = np.flatnonzero(small & (wide != 0))
    if boosted.size:
        power = (one(1) / wide[boosted]).astype(np.float64)
        scale = np.fromiter(
            map(math.pow, (1.0 - np.array(units)[boosted]).tolist(), power.tolist()), np.float64, boosted.size
        )
        out[boosted] = scale * d[boosted] * np.array(cubes)[boosted]
    out[wide == 0] = 0.0
    return out


def _accept(gen, d, c, small, zero, n):
    """(the uniform number of the boost, the accepted cube) of each element."""
    u, o = Stream(gen, 3 * n), 0
    log, sqrt, log1p, cos, sin = math.log, math.sqrt, math.log1p, math.cos, math.sin
    kept, gen.next_normal = gen.next_normal, None
    units, cubes = [0.0] * n, [0.0] * n
    for i in range(n):
        if zero[i]:
            continue
        while o + 8 > len(u):
            u.grow()
        if small[i]:
            units[i] = u[o]
            o += 1
        di, ci = d[i], c[i]
        if ci != ci:  # a negative concentration, for which PyTorch does not end
            cubes[i] = ci
            continue
        while True:
            if kept is None:
                if o + 8 > len(u):
                    u.grow()
                radius, angle = sqrt(-2.0 * log1p(-u[o + 1])), _TWO_PI * u[o]
                o += 2
                x, kept = radius * cos(angle), radius * sin(angle)
            else:
                x, kept = kept, None
            y = 1.0 + ci * x
            if y <= 0:
                continue
            v = y * y * y
            w = 1.0 - u[o]
            o += 1
            xx = x * x
            if w < 1.0 - _SQUEEZE * xx * xx or log(w) < 0.5 * xx + di * (1.0 - v + log(v)):
                cubes[i] = v
                break
    u.close(o)
    gen.next_normal = kept
    return units, cubes


_SQUEEZE = float(np.float32(0.0331))


def dirichlet(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Dirichlet numbers of the concentrations in the last dimension, in the dtype of these."""
    parts = np.maximum(gamma(gen, alpha.astype(np.float64)), np.finfo(np.float64).tiny).reshape(alpha.shape)
    one = alpha.dtype.type(1)
    drawn = (parts / parts.sum(-1, keepdims=True)).astype(alpha.dtype)
    return np.clip(drawn, np.finfo(alpha.dtype).tiny, np.nextafter(one, 0 * one))


def poisson(gen: Generator, rates: np.ndarray) -> np.ndarray:
    """Poisson counts of these rates (not negative), as float64.

    Below 10 by products of uniform numbers; from there on by W. Hörmann, "The transformed rejection method for generating
    Poisson random variables", Insurance: Mathematics and Economics 12 (1993).
    """
    rates = np.ascontiguousarray(rates, np.float64).reshape(-1)
    small = rates < 10
    about = int(np.where(small, rates + 1, 3).sum() * 1.1)
    u, o = Stream(gen, about), 0
    limits = libm(math.exp, -np.minimum(rates, 10)).tolist()
    out = [0.0] * rates.size
    for i, rate in enumerate(rates.tolist()):
        if rate >= 10:
            out[i], o = _large_poisson(rate, u, o)
        elif rate:
            limit, product, k = limits[i], 1.0, 0
            while True:
                if o >= len(u):
                    u.grow()
                product *= u[o]
                o += 1
                if product <= limit:
                    break
                k += 1
            out[i] = k
    u.close(o)
    return np.array(out)


def _large_poisson(rate, u, o):
    slam, loglam = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * slam
    a = -0.059 + 0.02483 * b
    inverse = math.log(1.1239 + 1.1328 / (b - 3.4))
    quick = 0.9277 - 3.6224 / (b - 2)
    while True:
        if o + 2 > len(u):
            u.grow()
        left, right = u[o] - 0.5, u[o + 1]
        o += 2
        us = 0.5 - abs(left)
        k = math.floor((2 * a / us + b) * left + rate + 0.43) if us else -1
        if us >= 0.07 and right <= quick:
            return k, o
        if k < 0 or us < 0.013 and right > us:
            continue
        bound = -rate + k * loglam - math.lgamma(k + 1)
        if not right or math.log(right) + inverse - math.log(a / (us * us) + b) <= bound:
            return k, o


def binomial(gen: Generator, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """How often events of these probabilities happen in these numbers of trials, as float64.

    Below 10 expected events by sums of geometric numbers (L. Devroye, "Generating the maximum of independent identically distributed random
    variables", 1980); from there on W. Hörmann, "The generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993).
    """
    single = count.dtype.itemsize < 8
    one = np.float32 if single else np.float64
    count, prob = (np.ascontiguousarray(x, one).reshape(-1) for x in (count, prob))
    rare = np.where(prob <= one(0.5), prob, one(1) - prob)
    rate = libm(math.log1p, -rare.astype(np.float64))
    rate = (rate.astype(np.float32) if single else rate).astype(np.float64).tolist()
    many = (count * rare >= one(10)).tolist()
    deviation = np.sqrt(np.maximum(count * rare * (one(1) - rare), one(0))).astype(np.float64).tolist()
    u, o = Stream(gen, 2 * int((1 + np.fmin(np.abs(count * rare), 3)).sum())), 0
    out = [0.0] * count.size
    each = zip(count.tolist(), prob.tolist(), rare.tolist(), strict=True)
    for i, (n, p, q) in enumerate(each):
        if n <= 0 or p <= 0:
            continue
        if p >= 1:
            out[i] = n
            continue
        if p != p or n != n:
            out[i] = math.nan
            continue
        k, o = _many_trials(n, q, deviation[i], u, o) if many[i] else _few_events(n, rate[i], u, o)
        out[i] = k if p <= 0.5 else n - k
    u.close(o)
    return np.array(out)


def _few_events(n, rate, u, o):
    total, k = 0.0, 0
    while True:
        if o >= len(u):
            u.grow()
        x = u[o]
        o += 1
        total += math.ceil(math.log(x) / rate) if x else math.inf
        if total > n:
            return k, o
        k += 1


def _many_trials(n, p, deviation, u, o):
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    quick = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((n + 1) * p)
    while True:
        if o + 2 > len(u):
            u.grow()
        left, right = u[o] - 0.5, u[o + 1]
        o += 2
        us = 0.5 - abs(left)
        k = math.floor((2 * a / us + b) * left + c) if us else -1
        if us >= 0.07 and right <= quick:
            return k, o
        if k < 0 or k > n:
            continue
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * math.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
            + _stirling(m) + _stirling(n - m) - _stirling(k) - _stirling(n - k)
        )  # fmt: skip
        if not right or math.log(right * alpha / (a / (us * us) + b)) <= bound:
            return k, o


def _stirling(k):
    """What Stirling's formula lacks of the logarithm of k!."""
    if k <= 9:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(_TWO_PI))
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
