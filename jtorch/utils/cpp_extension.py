"""torch.utils.cpp_extension: there is no C++ of PyTorch here to build against. Questions are answered, building raises."""

import os
import shutil

from .. import errors

__all__ = [
    "BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "check_compiler_ok_for_platform", "get_default_build_root",
    "include_paths", "is_ninja_available", "library_paths", "load", "load_inline",
]  # fmt: skip

CUDA_HOME = CUDNN_HOME = ROCM_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = False
IS_LINUX, IS_WINDOWS = os.name == "posix", os.name == "nt"


def _refusing(name):
    def refuse(*args, **kwargs):
        raise errors.unsupported(
            f"torch.utils.cpp_extension.{name}: extensions are compiled against PyTorch's C++",
            instead="Python over tensors, torch.library.custom_op, or jax.ffi and jax.experimental.pallas for kernels",
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raises: there is no C++ of PyTorch to build against."
    refuse.__unsupported__ = True
    return refuse


load, load_inline, include_paths, library_paths = map(
    _refusing, ("load", "load_inline", "include_paths", "library_paths")
)
CppExtension, CUDAExtension, SyclExtension = map(_refusing, ("CppExtension", "CUDAExtension", "SyclExtension"))


class BuildExtension:
    """The build step of extensions, for setup scripts; without extensions there is nothing for it to do."""

    @classmethod
    def with_options(cls, **options):
        """The class: options are of extensions."""
        return cls


def is_ninja_available() -> bool:
    """Whether the program ninja is there."""
    return shutil.which("ninja") is not None


def check_compiler_ok_for_platform(compiler) -> bool:
    """Whether a compiler is there."""
    return shutil.which(compiler) is not None


def get_default_build_root() -> str:
    """The folder of builds that PyTorch would have used."""
    return os.path.realpath(os.path.join(os.path.expanduser("~"), ".cache", "torch_extensions"))
