"""Rows of jtorch/ops/linear.py."""

from .. import defined
from . import T, row

ROWS = [
    row("nn.functional.linear"),
    row("nn.functional.bilinear"),
    row("nn.functional.embedding"),
    row("nn.functional.embedding_bag"),
    row(
        "nn.functional.dropout",
        only=defined.dropped,
        random=True,
    ),
    row(
        "nn.functional.alpha_dropout",
        only=defined.unless(lambda s: s.kwargs.get("training", True) and s.kwargs.get("p", 0.5) > 0),
        random=True,
    ),
    row(
        "nn.functional.feature_alpha_dropout",
        only=defined.unless(lambda s: s.kwargs.get("training", True) and s.kwargs.get("p", 0.5) > 0),
        random=True,
    ),
    row(
        "nn.functional.dropout2d",
        only=defined.dropped,
        random=True,
    ),
    row(
        "nn.functional.dropout3d",
        only=defined.dropped,
        random=True,
    ),
    row("embedding", samples=[[T(5, 3), T(2, 4, kind="int")]]),
    row("dropout", samples=[[T(3, 4), 0.5, False]]),
    row("alpha_dropout", samples=[[T(3, 4), 0.5, False]]),
    row("feature_dropout", samples=[[T(3, 4), 0.5, False]]),
    row("nn.functional.dropout1d", samples=[[T(3, 4, 2), 0.5, False]]),
    row(
        "dropout_", samples=[[T(3, 4), 0.0, True]], skip=("grad", "gradgrad"), why="written in place: a leaf is refused"
    ),
]
