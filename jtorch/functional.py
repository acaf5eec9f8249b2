"""torch.functional: the functions that PyTorch defines in that module; they are those of `torch`."""

from . import functions

_NAMES = (
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "cdist",
    "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot",
    "unique", "unique_consecutive", "unravel_index",
)  # fmt: skip
__all__ = list(_NAMES)


def __getattr__(name):
    if name in _NAMES:
        return getattr(functions, name)
    raise AttributeError(f"module 'jtorch.functional' has no attribute {name!r}")
