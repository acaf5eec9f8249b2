"""Rows of jtorch/ops/ctc.py."""

from . import row

ROWS = [
    row("nn.functional.ctc_loss"),
]
