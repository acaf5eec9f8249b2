"""Rows of jtorch/ops/quantize.py."""

from . import T, row

ROWS = [
    row(
        "fake_quantize_per_tensor_affine",
        samples=[[T(3, 4), 0.1, 0, 0, 255], [T(5), 0.5, 2, -8, 7], [T(0), 1.0, 0, 0, 3]],
    ),
    row(
        "fake_quantize_per_channel_affine",
        samples=[[T(3, 4), T(3), T(3), 0, 0, 15]],
    ),
]
