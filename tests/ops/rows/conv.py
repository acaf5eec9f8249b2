"""Rows of jtorch/ops/conv.py."""

from . import T, row

ROWS = [
    row("nn.functional.conv1d"),
    row("nn.functional.conv2d"),
    row("nn.functional.conv3d"),
    row("nn.functional.conv_transpose1d"),
    row("nn.functional.conv_transpose2d"),
    row("nn.functional.conv_transpose3d"),
    row("convolution", samples=[(T(2, 3, 5, 5), T(4, 3, 3, 3), T(4), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)]),
]
