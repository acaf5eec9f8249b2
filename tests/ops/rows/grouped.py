"""Rows of jtorch/ops/grouped.py."""

from .. import defined
from . import PROPERTIES, T, row

UNSUPPORTED = dict(skip=PROPERTIES, why="refused with a word on what to use instead")

ROWS = [
    row("conv_tbc", samples=[[T(5, 2, 3), T(2, 3, 4), T(4)], [T(5, 2, 3), T(3, 3, 4), T(4), 1]]),
    row(
        "nn.functional.grouped_mm",
        samples=[[T(2, 4, 8), T(2, 8, 4)]],
        skip=("layout",),
        why="torch refuses strided inputs",
    ),
    row("_grouped_mm", samples=[[T(2, 4, 8), T(2, 8, 4)]], skip=("layout",), why="torch refuses strided inputs"),
    row(
        "_int_mm",
        samples=[
            [T(3, 4, kind="int8"), T(4, 2, kind="int8")],
            [T(3, 4, kind="int8"), T(4, kind="int8")],
            [T(3, 4), T(4, 2, kind="int8")],
            [T(3, 4, kind="int8"), T(4, 2)],
        ],
        skip=("out",),
        why="PyTorch's error for an out= of another dtype comes from the product itself",
    ),
    row("nn.functional.scaled_mm", samples=[[T(2, 2), T(2, 2)]], **UNSUPPORTED),
    row("nn.functional.scaled_grouped_mm", samples=[[T(2, 2), T(2, 2)]], **UNSUPPORTED),
    row(
        "binomial",
        samples=[[T(3), T(3)]],
        only=defined.nothing,
        random=True,
        skip=("value", "layout"),
        why="probabilities outside of [0, 1]",
    ),
]
