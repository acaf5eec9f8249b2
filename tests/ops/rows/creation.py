"""Rows of public functions: creation."""

from .. import defined
from . import row

ROWS = [
    row("cauchy", only=defined.nothing, random=True),
    row(
        "exponential",
        only=defined.within(0),
        random=True,
    ),
    row("geometric", only=defined.within(1), random=True),
    row(
        "log_normal",
        only=defined.within(0),
        random=True,
    ),
    row("normal", only=defined.nothing, random=True),
    row(
        "uniform",
        only=defined.within(lambda s: s.args[0], lambda s: s.args[1]),
        random=True,
    ),
    row("empty_like", only=defined.nothing, random=True, why="uninitialised memory"),
    row("zeros_like"),
    row("ones_like"),
    row("randn", only=defined.nothing, random=True),
    row("randn_like", only=defined.nothing, random=True),
    row(
        "rand_like",
        only=defined.within(0, 1),
        random=True,
    ),
    row("randint", only=defined.integers, random=True),
    row(
        "randint_like",
        only=defined.integers,
        random=True,
    ),
    row("full_like"),
    row("new_zeros"),
    row("new_ones"),
    row("ones"),
    row("zeros"),
    row("new_empty", only=defined.nothing, random=True, why="uninitialised memory"),
    row("new_empty_strided", only=defined.nothing, random=True, why="uninitialised memory"),
    row("empty_strided", only=defined.nothing, random=True, why="uninitialised memory"),
    row("empty", only=defined.nothing, random=True, why="uninitialised memory"),
    row("empty_permuted", only=defined.nothing, random=True, why="uninitialised memory"),
    row("scalar_tensor"),
    row("new_full"),
    row(
        "multinomial",
        only=defined.within(0, lambda s: s.input.shape[-1] - 1),
        random=True,
    ),
    row(
        "bernoulli",
        only=defined.within(0, 1),
        random=True,
    ),
]
