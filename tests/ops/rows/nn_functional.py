"""Rows of public functions: nn_functional."""

from .. import defined
from . import PROPERTIES, T, row

EIGHT_BITS = [(T(2, 16), T(16, 16), T(), T())]

ROWS = [
    row("_softmax_backward_data"),
    row("nn.functional.linear_cross_entropy"),
    row("native_group_norm", skip=("layout",), why="torch refuses inputs that are not contiguous"),
    row("native_batch_norm"),
    row("_native_batch_norm_legit"),
    row("_batch_norm_with_update", skip=("out",), why="torch refuses the out= that its own database promises"),
    row("_upsample_bilinear2d_aa"),
    row("max_pool2d_with_indices_backward"),
    row("torch.ops.aten._safe_softmax.default"),
    row("nn.functional.threshold"),
    row("native_dropout_backward"),
    row(
        "nn.functional.multi_head_attention_forward",
        only=defined.unless(lambda s: s.args[9] and s.kwargs.get("training")),
        why="random where the sample asks for dropout",
    ),
    row("_scaled_mm", samples=EIGHT_BITS, skip=PROPERTIES, why="of 8-bit floats alone: tests/test_functions.py"),
    row("_scaled_mm_v2", samples=EIGHT_BITS, skip=PROPERTIES, why="of 8-bit floats alone: tests/test_functions.py"),
    row("grid_sampler_2d"),
    row("grid_sampler_3d"),
    row("nn.functional.pdist"),
]
