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
    row("allclose"),
]
