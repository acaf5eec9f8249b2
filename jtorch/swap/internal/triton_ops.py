"""torch.sparse._triton_ops and _triton_ops_meta: sparse block products in Triton's kernels. XLA compiles here, so they raise."""

from ...unavailable import refusing

_NAMES = (
    "bsr_dense_addmm bsr_dense_mm broadcast_batch_dims dump get_meta launch_kernel minimize prepare_inputs ptr_stride_extractor "
    "scatter_mm tile_to_blocksize tune_bsr_dense_addmm update"
)
__all__ = _NAMES.split()

globals().update(
    {n: refusing(f"sparse._triton_ops.{n}", "kernels of Triton", "torch.sparse.mm, or torch.matmul") for n in __all__}
)
