"""Window functions: torch.signal.windows, and torch.hann_window and its like, the same with periods.

A window is a constant of its length and shape parameters: it is computed on the host in double, rounded once.
"""

import jax.numpy as jnp
import numpy as np

from ..core.dtype import dtype as DType
from .registry import Array, op


def _places(M, sym):
    """0, 1, ... M - 1 and the last place of the symmetric window that they belong to."""
    last = M - 1 if sym else M
    return np.arange(M, dtype=np.float64), max(last, 1)


def _result(values, M, dtype) -> Array:
    values = np.ones(1) if M == 1 else values
    return jnp.asarray(np.asarray(values).astype(dtype.np))


def _cosines(M, a, sym, dtype):
    n, last = _places(M, sym)
    total = sum(((-1) ** i * c * np.cos(2 * np.pi * i * n / last) for i, c in enumerate(a)), np.zeros(M))
    return _result(total, M, dtype)


@op(where="", differentiable=False)
def window_general_cosine(M: int, a: tuple, *, sym: bool = True, dtype: DType) -> Array:
    """A sum of cosines with the coefficients `a`, of alternating sign."""
    return _cosines(M, a, sym, dtype)


@op(where="", differentiable=False)
def window_general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType) -> Array:
    """A raised cosine: `alpha - (1 - alpha) * cos`."""
    return _cosines(M, (alpha, 1 - alpha), sym, dtype)


@op(where="", differentiable=False)
def window_hamming(M: int, *, alpha: float = 0.54, beta: float = 0.46, sym: bool = True, dtype: DType) -> Array:
    """The Hamming window: `alpha - beta * cos`."""
    return _cosines(M, (alpha, beta), sym, dtype)


@op(where="", differentiable=False)
def window_hann(M: int, *, sym: bool = True, dtype: DType) -> Array:
    """The Hann window: half a raised cosine."""
    return _cosines(M, (0.5, 0.5), sym, dtype)


@op(where="", differentiable=False)
def window_blackman(M: int, *, sym: bool = True, dtype: DType) -> Array:
    """The Blackman window."""
    return _cosines(M, (0.42, 0.5, 0.08), sym, dtype)


@op(where="", differentiable=False)
def window_nuttall(M: int, *, sym: bool = True, dtype: DType) -> Array:
    """The Nuttall window, of four terms."""
    return _cosines(M, (0.3635819, 0.4891775, 0.1365995, 0.0106411), sym, dtype)


@op(where="", differentiable=False)
def window_bartlett(M: int, *, sym: bool = True, dtype: DType) -> Array:
    """A triangle that ends at zero."""
    n, last = _places(M, sym)
    return _result(1 - np.abs(2 * n / last - 1), M, dtype)


@op(where="", differentiable=False)
def window_cosine(M: int, *, sym: bool = True, dtype: DType) -> Array:
    """Half a period of a sine."""
    n, last = _places(M, sym)
    return _result(np.sin(np.pi * (n + 0.5) / (last + 1)), M, dtype)


@op(where="", differentiable=False)
def window_exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: DType
) -> Array:
    """An exponential decay of rate `tau` on both sides of the centre."""
    n, last = _places(M, sym)
    middle = last / 2 if center is None else center
    return _result(np.exp(-np.abs(n - middle) / tau), M, dtype)


@op(where="", differentiable=False)
def window_gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: DType) -> Array:
    """A bell curve of standard deviation `std`."""
    n, last = _places(M, sym)
    return _result(np.exp(-(((n - last / 2) / std) ** 2) / 2), M, dtype)


@op(where="", differentiable=False)
def window_kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType) -> Array:
    """The Kaiser window: a Bessel function of the distance from the centre."""
    n, last = _places(M, sym)
    inside = np.clip(1 - (2 * n / last - 1) ** 2, 0, None)
    return _result(np.i0(beta * np.sqrt(inside)) / np.i0(beta), M, dtype)


# windows that torch computes by way of another, which then speaks in the errors
FAMILY = dict.fromkeys(("blackman", "general_hamming", "hamming", "hann", "nuttall"), "general_cosine")

# name in torch.signal.windows -> op; torch.<name>_window(L, periodic) is the op with sym=not periodic
WINDOWS = {
    "bartlett": window_bartlett,
    "blackman": window_blackman,
    "cosine": window_cosine,
    "exponential": window_exponential,
    "gaussian": window_gaussian,
    "general_cosine": window_general_cosine,
    "general_hamming": window_general_hamming,
    "hamming": window_hamming,
    "hann": window_hann,
    "kaiser": window_kaiser,
    "nuttall": window_nuttall,
}


def _length_check(name):
    spoken = FAMILY.get(name, name)

    def check(M, *args, dtype, **kwargs):
        if M < 0:
            raise ValueError(f"{spoken} requires non-negative window length, got M={M}")
        if not dtype.is_floating_point:
            raise ValueError(f"{spoken} expects float32 or float64 dtypes, got: {dtype!r}")

    return check


for _name, _record in WINDOWS.items():
    _record.check(_length_check(_name))


@window_general_cosine.check
def _check_coefficients(M, a, **kwargs):
    if not isinstance(a, tuple):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")


@window_exponential.check
def _check_decay(M, *, center, tau, sym, dtype):
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")


@window_gaussian.check
def _check_deviation(M, *, std, **kwargs):
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")


@window_kaiser.check
def _check_beta(M, *, beta, **kwargs):
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
