"""For which dtypes PyTorch has its sparse kernels: elsewhere they are refused too."""

from .. import errors
from ..core import dtype as dtypes

WIDE = ("float32", "float64", "complex64", "complex128")
_KERNELS = {
    "sparse_matmul": WIDE, "addmm_out_sparse_csr_impl_mkl": WIDE, "spmm_reduce_kernel": ("float32", "float64", "float16", "bfloat16"),
    "softmax": ("float32", "float64"),
}  # fmt: skip


def check_kernel(name, dtype):
    """NotImplementedError for a dtype that PyTorch has no such kernel for: those that are not listed lack bool."""
    if dtype.name not in _KERNELS[name] if name in _KERNELS else dtype is dtypes.bool_:
        raise errors.not_implemented(name, dtype)
