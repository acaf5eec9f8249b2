"""Rows of jtorch/ops/native.py that PyTorch's database lacks."""

from tests.oracle import torch

from . import T, row

LEAF = dict(skip=("grad", "gradgrad"), why="written in place: a leaf is refused")

ROWS = [
    row("celu_", samples=[[T(3, 4), 1.5]], **LEAF),
    row("selu_", samples=[[T(3, 4)]], **LEAF),
    row("rrelu_", samples=[[T(3, 4)]], **LEAF),
    row("threshold_", samples=[[T(3, 4), 0.1, 2.0]], **LEAF),
    row("alpha_dropout_", samples=[[T(3, 4), 0.0, True]], **LEAF),
    row("feature_dropout_", samples=[[T(3, 4), 0.0, True]], **LEAF),
    row("feature_alpha_dropout_", samples=[[T(3, 4), 0.5, False]], **LEAF),
    row("feature_alpha_dropout", samples=[[T(3, 4), 0.5, False]]),
    row("embedding_renorm_", samples=[[T(4, 3), T(2, 2, kind="int"), 0.5, 2.0]], **LEAF),
    row("as_strided_", samples=[[T(3, 4), [2, 3], [3, 1]]], **LEAF),
    row("Tensor.fill_diagonal_", samples=[[T(3, 4), 2.0], [T(7, 2), 2.0, True], [T(2, 2, 2), 1]], **LEAF),
    row("native_dropout", samples=[[T(3, 4), 0.5, False]]),
    row("_softmax", samples=[[T(3, 4), 1, False], [T(), 0, False]]),
    row("_log_softmax", samples=[[T(3, 4), -2, False]]),
    row(
        "_log_softmax_backward_data",
        samples=[[T(3, 4), T(3, 4), 1, torch.float32]],
        skip=("grad", "gradgrad"),
        why="they are taken in double, and the result has the dtype that is named",
    ),
    row(
        "_masked_softmax",
        samples=[
            [T(3, 4), T(3, 4, kind="bool")],
            [T(2, 2, 3, 3), T(3, 3, kind="bool"), 3, 0],
            [T(2, 2, 3, 3), T(2, 3, kind="bool"), 3, 1],
        ],
    ),
    row("frobenius_norm", samples=[[T(3, 4), [0, 1]], [T(2, 3, 4), [1], True]]),
    row("nuclear_norm", samples=[[T(3, 4)], [T(2, 3, 4), [1, 2], True]]),
    row("norm_except_dim", samples=[[T(3, 4)], [T(2, 3, 4), 1, 1], [T(3, 4), 2, -1]]),
]
