"""Rows of jtorch/ops/join.py."""

from . import row

ROWS = [
    row("cat"),
    row("stack"),
    row("flip"),
    row("roll"),
    row("rot90"),
    row("repeat"),
    row("atleast_1d"),
    row("atleast_2d"),
    row("atleast_3d"),
    row("hstack"),
    row("vstack"),
    row("dstack"),
    row("column_stack"),
    row("block_diag"),
    row("broadcast_tensors"),
    row("broadcast_to"),
    row("meshgrid"),
    row("cartesian_prod"),
    row("combinations"),
    row("fliplr"),
    row("flipud"),
    row("tile"),
    row("repeat_interleave"),
]
