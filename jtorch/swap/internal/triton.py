"""torch.utils._triton: whether Triton's kernels can run. They cannot: XLA compiles here."""

__all__ = ["has_triton", "has_triton_package", "has_triton_tma", "has_triton_tma_device"]


def has_triton_package() -> bool:
    """False."""
    return False


has_triton = has_triton_tma = has_triton_tma_device = has_triton_package
