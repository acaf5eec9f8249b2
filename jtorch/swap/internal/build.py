"""torch.__config__: what was built into this PyTorch. Nothing was: XLA computes."""

import os
import platform

import jax

__all__ = ["parallel_info", "show"]


def show() -> str:
    """A readable description of the build."""
    return f"PyTorch's API on JAX:\n  - jax {jax.__version__}\n  - {platform.platform()}\n"


def parallel_info() -> str:
    """A readable description of how work is divided."""
    return f"XLA's own threads\n\tstd::thread::hardware_concurrency() : {os.cpu_count()}\n"
