"""Resampling by whole factors, which adds up slices on the CPU: values and derivatives as PyTorch's."""

import numpy as np
import pytest

from jtorch.ops import taps
from tests.oracle import both

CASES = [
    ((2, 3, 7), "linear", 2, False), ((2, 3, 7), "linear", 3, True), ((2, 3, 90), "linear", 2, False), ((1, 2, 40), "linear", 4, False),
    ((2, 3, 5, 6), "bilinear", 2, False), ((2, 3, 5, 6), "bilinear", (2, 3), False), ((1, 1, 70, 4), "bilinear", 2, False),
    ((1, 2, 3, 1), "bilinear", 2, False), ((1, 2, 3, 4, 5), "trilinear", 2, False), ((1, 2, 3, 4), "bicubic", 2, False),
]  # fmt: skip


@pytest.mark.parametrize("shape, mode, factor, corners", CASES)
def test_whole_factors(shape, mode, factor, corners):
    values = np.random.default_rng(0).standard_normal(shape)

    def program(t):
        x = t.tensor(values, requires_grad=True)
        out = t.nn.functional.interpolate(x, scale_factor=factor, mode=mode, align_corners=corners)
        (by_x,) = t.autograd.grad((out * out).sum(), x, create_graph=True)
        half = t.nn.functional.interpolate(
            x.detach().to(t.bfloat16), scale_factor=factor, mode=mode, align_corners=corners
        )
        return [out, by_x, *t.autograd.grad((by_x * x).sum(), x), half]

    both(program)


def test_where_the_steps_differ_there_are_none():
    assert taps._steps(8, *taps.linear_taps(8, 16, 2.0, False)) is not None
    assert taps._steps(8, *taps.linear_taps(8, 16, None, True)) is not None
    assert taps._steps(40, *taps.linear_taps(40, 160, None, True)) is None
    assert taps._steps(8, *taps.linear_taps(8, 12, 1.5, False)) is None
