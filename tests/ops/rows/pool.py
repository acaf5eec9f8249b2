"""Rows of jtorch/ops/pool.py, adaptive_pool.py and unpool.py."""

from .. import defined
from . import T, row

ROWS = [
    row("nn.functional.max_pool1d"),
    row("nn.functional.max_pool2d"),
    row("nn.functional.max_pool3d"),
    row("nn.functional.avg_pool1d"),
    row("nn.functional.avg_pool2d"),
    row("nn.functional.avg_pool3d"),
    row("nn.functional.adaptive_avg_pool1d"),
    row("nn.functional.adaptive_avg_pool2d"),
    row("nn.functional.adaptive_avg_pool3d"),
    row("nn.functional.adaptive_max_pool1d"),
    row("nn.functional.adaptive_max_pool2d"),
    row("nn.functional.adaptive_max_pool3d"),
    row("nn.functional.max_unpool1d"),
    row("nn.functional.max_unpool2d"),
    row("nn.functional.max_unpool3d"),
    row(
        "nn.functional.fractional_max_pool2d",
        only=defined.unless(lambda s: s.kwargs.get("_random_samples") is None),
        random=True,
    ),
    row(
        "nn.functional.fractional_max_pool3d",
        only=defined.unless(lambda s: s.kwargs.get("_random_samples") is None),
        random=True,
    ),
    row("max_pool1d_with_indices", samples=[(T(2, 3, 8), [2])]),
    row("nn.functional.max_pool2d_with_indices", samples=[(T(2, 3, 8, 8), [2, 2])]),
    row("nn.functional.max_pool3d_with_indices", samples=[(T(1, 2, 6, 6, 6), [2, 2, 2])]),
    row("nn.functional.lp_pool1d", samples=[[T(2, 3, 8), 2.0, 2]]),
    row("nn.functional.lp_pool2d", samples=[[T(2, 3, 8, 8), 2.0, 2]]),
    row("nn.functional.lp_pool3d", samples=[[T(1, 2, 4, 4, 4), 2.0, 2]]),
    row("nn.functional.adaptive_max_pool2d_with_indices", samples=[[T(1, 2, 6, 6), [3, 3]]]),
    row("nn.functional.adaptive_max_pool3d_with_indices", samples=[[T(1, 2, 4, 4, 4), [2, 2, 2]]]),
    row(
        "nn.functional.fractional_max_pool2d_with_indices",
        samples=[[T(1, 2, 6, 6), 2, [3, 3]]],
        only=defined.nothing,
        random=True,
    ),
    row(
        "nn.functional.fractional_max_pool3d_with_indices",
        samples=[[T(1, 2, 4, 4, 4), 2, [2, 2, 2]]],
        only=defined.nothing,
        random=True,
    ),
]
