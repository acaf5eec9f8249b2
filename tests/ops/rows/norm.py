"""Rows of jtorch/ops/norm.py."""

from . import row

ROWS = [
    row("nn.functional.layer_norm"),
    row(
        "native_layer_norm",
        skip=("gradgrad",),
        why="torch's mean and deviation do not require a gradient; here they do, and it is zero",
    ),
    row("nn.functional.rms_norm"),
    row("nn.functional.group_norm"),
    row("nn.functional.local_response_norm"),
    row("nn.functional.normalize"),
    row("nn.functional.cosine_similarity"),
    row("nn.functional.pairwise_distance"),
]
