"""Rows of jtorch/ops/batchnorm.py."""

from . import row

ROWS = [
    row("nn.functional.batch_norm"),
    row("nn.functional.instance_norm"),
]
