"""Rows of jtorch/ops/compare.py."""

from . import row

ROWS = [
    row("eq"),
    row("ne"),
    row("lt"),
    row("le"),
    row("gt"),
    row("ge"),
    row("isclose"),
    row("isin"),
    row("allclose", skip=("traced",), why="the result is a Python value"),
]
