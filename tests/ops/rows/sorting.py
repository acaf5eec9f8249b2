"""Rows of jtorch/ops/sorting.py."""

from .. import defined
from . import row

ROWS = [
    row("sort", only=defined.sort, why="among equal values any index is right"),
    row("argsort", only=defined.argsort, why="among equal values any index is right"),
    row("topk", only=defined.picked(1), why="among equal values any index is right"),
    row("kthvalue", only=defined.picked(1), why="among equal values any index is right"),
    row("searchsorted"),
    row("bucketize"),
    row(
        "unique",
        only=defined.unique,
        skip=("traced",),
        why="with sorted=False the order is free; the shape depends on values",
    ),
    row("unique_consecutive", skip=("traced",), why="the shape of the result depends on values"),
    row("msort"),
]
