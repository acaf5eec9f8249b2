"""Rows of public functions: operators."""

from . import row

ROWS = [
    row("__radd__"),
    row("__rdiv__", skip=("errors",), why="the bad input is a call on the class, which Python never makes"),
    row("__rmul__"),
    row("__rand__"),
    row("__ror__"),
    row("__rxor__"),
    row("__rmatmul__"),
    row("__rmod__"),
    row("__rpow__"),
    row("__rsub__"),
    row("__getitem__"),
]
