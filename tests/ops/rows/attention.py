"""Rows of jtorch/ops/attention.py."""

from .. import defined
from . import row

ROWS = [
    row(
        "nn.functional.scaled_dot_product_attention",
        only=defined.unless(lambda s: s.kwargs.get("dropout_p")),
        why="random where the sample asks for dropout",
    ),
]
