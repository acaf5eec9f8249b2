"""Rows of jtorch/ops/sorting.py."""

from .. import defined
from . import T, row

ROWS = [
    row("sort", only=defined.sort, why="among equal values any index is right"),
    row("argsort", only=defined.argsort, why="among equal values any index is right"),
    row("topk", only=defined.picked(1), why="among equal values any index is right"),
    row("kthvalue", only=defined.picked(1), why="among equal values any index is right"),
    row("searchsorted"),
    row("bucketize"),
    # Random indices are not sorted: more than one of them is in tests/test_dispatch.py.
    row("_convert_indices_from_coo_to_csr", samples=[[T(1, kind="int"), 2], [T(0, kind="int"), 3]]),
    row("_convert_indices_from_csr_to_coo", samples=[[T(1, kind="int"), T(0, kind="int")]]),
    row(
        "unique",
        only=defined.unique,
        skip=("traced",),
        why="with sorted=False the order is free; the shape depends on values",
    ),
    row("unique_consecutive", skip=("traced",), why="the shape of the result depends on values"),
    row("msort"),
]
