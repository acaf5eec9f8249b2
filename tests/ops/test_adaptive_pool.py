"""Pooling to a size that is given, beside PyTorch's: which element of a window is the largest, where several are and where none is a number."""

import numpy as np
import pytest

from tests.oracle import both

SHAPES = {1: ((2, 3, 11), 4), 2: ((2, 3, 11, 9), (4, 5)), 3: ((2, 5, 7, 4), (2, 3, 3))}


def _values(shape, kind):
    x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)
    if kind == "nan":
        x[x == 3] = np.nan
    if kind == "infinite":
        x = np.where(x > -2, -np.inf, np.where(x == -3, 0.0, -0.0)).astype(np.float32)
    return x


@pytest.mark.parametrize("kind", ["ties", "nan", "infinite"])
@pytest.mark.parametrize("n", SHAPES)
def test_largest_of_uneven_windows(n, kind):
    shape, target = SHAPES[n]

    def program(t):
        x = t.tensor(_values(shape, kind), requires_grad=True)
        pool = getattr(t.nn.functional, f"adaptive_max_pool{n}d")
        largest, where = pool(x, target, return_indices=True)
        (largest * t.arange(largest.numel()).reshape(largest.shape)).nansum().backward()
        return largest.detach(), where, x.grad, pool(x.detach().double(), target)

    both(program)
