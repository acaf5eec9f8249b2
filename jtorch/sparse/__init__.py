"""torch.sparse: functions of sparse tensors. The tensors themselves are in `base`, and what computes with them around it."""

from . import arithmetic, conversions, reductions, saving, shaping, unary
from .base import SparseTensor
from .constructors import check_sparse_tensor_invariants
from .extras import CLASSES, REFUSED, as_sparse_gradcheck
from .matmul import sampled_addmm, spdiags
from .matmul import sparse_addmm as addmm
from .matmul import sparse_mm as mm
from .reductions import log_softmax, softmax
from .reductions import sparse_sum as sum

globals().update(CLASSES | REFUSED)
__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum",
    *CLASSES, *REFUSED,
]  # fmt: skip
_ = arithmetic, conversions, reductions, saving, shaping, unary, SparseTensor
