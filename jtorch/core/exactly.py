"""Arithmetic as the CPU does it, where numpy's differs: multiply and add with one rounding, the C library's functions."""

import numpy as np

_HALF_ULP = np.uint64(0x10000000)  # of a float32, as bits of a float64
_BELOW_F32 = np.uint64(0x1FFFFFFF)


def fma64(a, b, c):
    """a * b + c in float64, rounded once: product and sum with their errors, then the errors added."""
    if isinstance(c, float) and c == 0.0:
        return a * b
    p = a * b
    a_high, b_high = _upper(a), _upper(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    s = p + c
    back = s - p
    return s + (((p - (s - back)) + (c - back)) + error)


def _upper(x):
    t = x * 134217729.0  # 2**27 + 1, Veltkamp's split
    return t - (t - x)


def fma32(a, b, c):
    """a * b + c of float32 values held in float64, rounded once to float32."""
    p = a * b  # exact
    s = p + c
    tie = (s.view(np.uint64) & _BELOW_F32) == _HALF_ULP
    if tie.any():  # an inexact sum that looks like a tie would round to even; push it to its side
        back = s - p
        error = (p - (s - back)) + (c - back)
        s = np.where(tie & (error != 0), np.nextafter(s, np.where(error > 0, np.inf, -np.inf)), s)
    return s.astype(np.float32)


def libm(function, x: np.ndarray) -> np.ndarray:
    """A function of the C library on each element: numpy's own may differ in the last bit of a double."""
    return np.fromiter(map(function, x.tolist()), np.float64, x.size)
