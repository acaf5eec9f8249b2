"""Rows of jtorch/ops/image.py."""

from . import T, row

ROWS = [
    row("nn.functional.pad"),
    row("nn.functional.pixel_shuffle"),
    row("nn.functional.pixel_unshuffle"),
    row("nn.functional.channel_shuffle"),
    row("nn.functional.unfold"),
    row("nn.functional.grid_sample"),
    row("nn.functional.interpolate"),
    row("constant_pad_nd"),
    row("nn.functional.upsample_nearest"),
    row("nn.functional.upsample_bilinear"),
    row("nn.functional.fold", samples=[[T(2, 8, 9), [4, 4], [2, 2]]]),
    row("nn.functional.affine_grid", samples=[[T(2, 2, 3), [2, 3, 4, 5]]]),
    row("affine_grid_generator", samples=[[T(2, 2, 3), [2, 3, 4, 5], True]]),
    row("grid_sampler", samples=[[T(1, 2, 4, 4), T(1, 3, 3, 2), 0, 0, False]]),
    row("nn.functional.upsample", samples=[[T(1, 2, 3, 3), {"scale_factor": 2}]]),
]
