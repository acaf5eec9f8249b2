"""Rows of jtorch/ops/create.py."""

from . import T, row

ROWS = [
    row("full"),
    row("arange"),
    row("linspace"),
    row("logspace"),
    row("eye"),
    row("tril_indices"),
    row("triu_indices"),
    row("vander", samples=[(T(4),), (T(4), 3), (T(3), 3, True)]),
]
