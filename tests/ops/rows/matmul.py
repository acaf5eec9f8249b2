"""Rows of jtorch/ops/matmul.py, einsum.py and vectors.py."""

from . import T, row

ROWS = [
    row("mm"),
    row("bmm"),
    row("mv"),
    row("dot"),
    row("vdot"),
    row("matmul"),
    row("inner"),
    row("outer"),
    row("addmm"),
    row("addmv"),
    row("addbmm"),
    row(
        "Tensor.addbmm_",
        samples=[(T(3, 4), T(2, 3, 5), T(2, 5, 4))],
        skip=("grad", "gradgrad"),
        why="a leaf is refused",
    ),
    row("baddbmm"),
    row("addr"),
    row("linalg.multi_dot"),
    row("linalg.matrix_power"),
    row("tensordot"),
    row("kron"),
    row("linalg.cross"),
    row("linalg.vecdot"),
    row("cdist"),
    row("einsum"),
    row("cross"),
    row("chain_matmul", samples=[(T(2, 3), T(3, 4), T(4, 2))]),
]
