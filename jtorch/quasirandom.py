"""torch.quasirandom: points of Sobol's sequences, PyTorch's own for a seed.

S. Joe and F. Y. Kuo, Constructing Sobol sequences with better two-dimensional projections, 2008, whose direction numbers scipy brings.
"""

import functools
import importlib
import pathlib

import numpy as np

from . import functions as torch
from .core import device as devices
from .random_tensors import Generator

__all__ = ["SobolEngine"]

_BITS = 30


@functools.cache
def _tables():
    """(polynomials, their first direction numbers), a row a dimension."""
    folder = pathlib.Path(importlib.import_module("scipy.stats").__file__).parent
    with np.load(folder / "_sobol_direction_numbers.npz") as found:
        return found["poly"].astype(np.int64), found["vinit"].astype(np.int64)


def _directions(dimension):
    """The direction numbers (dimension, bits), each shifted to its place."""
    polynomials, first = (t[:dimension] for t in _tables())
    v = np.ones((dimension, _BITS), np.int64)
    degrees = np.array([int(p).bit_length() - 1 for p in polynomials])
    for m in sorted(set(degrees[1:])):
        rows = np.flatnonzero(degrees == m)
        rows = rows[rows > 0]
        poly = polynomials[rows]
        v[rows, :m] = first[rows, :m]
        for j in range(m, _BITS):
            new = v[rows, j - m]
            for k in range(m):
                bit = (poly >> (m - 1 - k)) & 1
                new = new ^ bit * (v[rows, j - 1 - k] << (k + 1))
            v[rows, j] = new
    return v << np.arange(_BITS - 1, -1, -1)


def _scrambled(state, lower):
    """The direction numbers, each multiplied by the lower triangular matrix of its dimension, in numbers modulo 2."""
    lower = lower.copy()
    lower[:, np.arange(_BITS), np.arange(_BITS)] = 1
    bits = (state[:, :, None] >> np.arange(_BITS - 1, -1, -1)) & 1  # (dimension, column, bit), highest first
    found = np.einsum("dpk,djk->djp", lower, bits) % 2
    return (found << np.arange(_BITS - 1, -1, -1)).sum(-1)


class SobolEngine:
    """Points of a Sobol sequence in [0, 1)^dimension.

    Args:
        dimension: from 1 to 21201
        scramble: whether digits are scrambled by a random matrix and shifted (A. Owen, 1998)
        seed: of the scrambling
    """

    MAXBIT = _BITS
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        state, shift = _directions(dimension), np.zeros(dimension, np.int64)
        if scramble:
            generator = None
            if seed is not None:
                generator = Generator()
                generator.manual_seed(seed)
            draw = functools.partial(torch.randint, 2, generator=generator, device=devices.cpu)
            shift = draw((dimension, _BITS)).numpy() @ (1 << np.arange(_BITS))
            state = _scrambled(state, np.tril(draw((dimension, _BITS, _BITS)).numpy()))
        self._state, self._shift = state, shift
        self.sobolstate, self.shift = (torch.as_tensor(x, device=devices.cpu) for x in (state, shift))
        self._first = (self.shift / 2**_BITS).double()  # in the default dtype of now, whatever is drawn
        self.num_generated = 0

    @property
    def quasi(self):
        """The whole numbers of the last point."""
        return torch.as_tensor(self._points(max(self.num_generated - 1, 0), 1)[0], device=devices.cpu)

    def _points(self, start, n):
        """The whole numbers of n points from a place on: each is the sum modulo 2 that the Gray code of its place chooses."""
        places = np.arange(start, start + n, dtype=np.int64)
        gray, found = places ^ (places >> 1), np.repeat(self._shift[None], n, 0)
        for bit in range(int(start + n).bit_length()):
            chosen = ((gray >> bit) & 1).astype(bool)
            found[chosen] ^= self._state[:, bit]
        return found

    def draw(self, n=1, out=None, dtype=None):
        """The next n points, (n, dimension)."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        points = self._points(self.num_generated, n) * 2.0**-_BITS
        if n and not self.num_generated:
            points[0] = self._first.numpy()
        self.num_generated += n
        made = torch.as_tensor(points, device=devices.cpu).to(dtype)
        if out is None:
            return made
        out.resize_(made.shape).copy_(made)
        return out

    def draw_base2(self, m, out=None, dtype=None):
        """The next 2**m points. ValueError: together with those drawn before their number is no power of 2."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Back to the first point."""
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Leave out n points."""
        self.num_generated += n
        return self

    def __repr__(self):
        parts = [f"dimension={self.dimension}"]
        parts += ["scramble=True"] if self.scramble else []
        parts += [f"seed={self.seed}"] if self.seed is not None else []
        return f"SobolEngine({', '.join(parts)})"
