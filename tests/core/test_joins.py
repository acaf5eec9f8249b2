"""core/joins.py: what is rounded, small or huge on the way is so in a compiled program too."""

import pytest

import jtorch
from jtorch.core import joins
from tests.oracle import torch

# Each with its operands: numbers for single values ("one"), or for eight of each.
WAYS = {
    "rounded by a large number": (lambda x: (x + 12582912.0) - 12582912.0, 1.3),
    "rounded by a large number, taken from": (lambda x: 12582912.0 - (12582912.0 - x), 1.3),
    "lost beside 1": (lambda x: ((1 + x) - 1) * 1e6, 1e-6),
    "log1p by hand": (lambda x: (1 + x).log() * x / ((1 + x) - 1), 1e-6),
    "whole again": (lambda x: (x * 1e-30) * 1e-30, 1e30),
    "nothing, times much": (lambda x: x * 0 * 1e30 * 1e30, 1.0),
    "much in between": (lambda x: x * 1e30 * 1e30 * 1e-30, 1.0),
    "divided twice": (lambda x: x / 1e-30 / 1e-30, 1e-35),
    "divided by two": (lambda x, y: (x + 1) / y / (y + 1), 1e30, 1e25),
    "divided by a quotient": (lambda x, y: (x / y) / (y / x), 1e25, 1e-10),
    "a cube of one number": (lambda x: ((x * 2) * 1e-15) ** 3, "one", 1e13),
    "a product of one number": (lambda x: (x * 2e-15) * (x * 2e-15) * (x * 2e-15), "one", 1e13),
    "an exponential's logarithm": (lambda x: (x + 1).exp().log(), 100.0),
    "exponentials": (lambda x: (x + 1).exp() * (x * -2).exp(), 100.0),
    "a root of a square": (lambda x: ((x * 3) ** 2).sqrt(), 1e30),
    "without its sign": (lambda x: 1 / ((x * -0.0) + 0), 1.0),
}


@pytest.fixture(autouse=True)
def compiled_at_once():
    """Nothing is left to numpy."""
    jtorch.use_deterministic_algorithms(True)
    yield
    jtorch.use_deterministic_algorithms(False)


def _made(library, fn, values, gradient):
    single = values[0] == "one"
    operands = [library.tensor(float(x) if single else [float(x)] * 8) for x in values[single:]]
    operands = [x.requires_grad_(gradient) for x in operands]
    made = fn(*operands)
    if gradient:
        made.sum().backward()
        made = operands[0].grad
    return made.tolist()


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", WAYS)
def test_as_pytorch(name, gradient):
    fn, *values = WAYS[name]
    assert _made(jtorch, fn, values, gradient) == pytest.approx(
        _made(torch, fn, values, gradient), rel=2e-6, abs=0, nan_ok=True
    )


def test_numbers_whose_products_are_exact_are_known():
    assert joins._is_exact(0.25) and joins._is_exact(-2)
    assert not any(map(joins._is_exact, (3, 0.1, 0, 2.0**40, float("inf"), float("nan"))))
