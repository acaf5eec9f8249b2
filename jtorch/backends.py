"""torch.backends: settings of the libraries that PyTorch calls. XLA takes their place, so most are kept and change nothing."""

import contextlib
import sys
import types

from . import settings
from .core import device as devices


class _Backend(types.ModuleType):
    """One namespace of settings; it also answers `import jtorch.backends.<name>`."""

    def __init__(self, name, doc, **contents):
        super().__init__(f"{__name__}.{name}", doc)
        self.__dict__.update(contents)
        sys.modules[self.__name__] = self


def _flags(backend, names):
    """A context manager that sets some settings of a backend and puts them back."""

    @contextlib.contextmanager
    def flags(**values):
        unknown = set(values) - set(names)
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument '{sorted(unknown)[0]}'")
        before = {name: getattr(backend, name) for name in values}
        backend.__dict__.update(values)
        try:
            yield
        finally:
            backend.__dict__.update(before)

    return flags


class _Matmul(types.SimpleNamespace):
    """Settings of matrix products; allow_tf32 is set_float32_matmul_precision by another name."""

    @property
    def allow_tf32(self):
        return settings.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed):
        settings.set_float32_matmul_precision("high" if allowed else "highest")


def _no():
    return False


def _yes():
    return True


def _on_cuda():
    return devices.accelerator() == "cuda"


cudnn = _Backend(
    "cudnn", "XLA picks its own algorithms: the settings are accepted.", enabled=True, benchmark=False, benchmark_limit=10,
    deterministic=False, allow_tf32=True, is_available=_on_cuda, is_acceptable=lambda tensor: False, version=lambda: None,
)  # fmt: skip
cudnn.flags = _flags(cudnn, ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"))
cuda = _Backend(
    "cuda", "Settings of matrix products and attention on NVIDIA GPUs: accepted.",
    matmul=_Matmul(
        allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True,
        allow_fp16_accumulation=False, fp32_precision="none",
    ),
    is_built=_on_cuda, flash_sdp_enabled=_yes, math_sdp_enabled=_yes, mem_efficient_sdp_enabled=_yes,
    cudnn_sdp_enabled=_yes, enable_flash_sdp=lambda enabled: None, enable_math_sdp=lambda enabled: None,
    enable_mem_efficient_sdp=lambda enabled: None, enable_cudnn_sdp=lambda enabled: None,
)  # fmt: skip
mps = _Backend("mps", "Apple's GPUs.", is_available=_no, is_built=_no, is_macos_or_newer=lambda major, minor: False)
mkl = _Backend("mkl", "XLA brings its own matrix products.", is_available=_no)
mkldnn = _Backend("mkldnn", "XLA brings its own convolutions.", is_available=_no, enabled=True, deterministic=False)
mkldnn.flags = _flags(mkldnn, ("enabled", "deterministic"))
openmp = _Backend("openmp", "XLA brings its own threads.", is_available=_no)
nnpack = _Backend("nnpack", "XLA brings its own convolutions.", is_available=_no)
opt_einsum = _Backend(
    "opt_einsum", "einsum plans its contractions itself.", enabled=True, strategy="auto", is_available=_yes
)

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum"]
