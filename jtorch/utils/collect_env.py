"""torch.utils.collect_env: what is installed and where it runs, for bug reports: `python -m jtorch doctor` says more."""

import platform
import sys
from collections import namedtuple
from importlib import metadata

import jax

from .. import version
from ..core import device as devices

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

_FIELDS = (
    "torch_version", "is_debug_build", "cuda_compiled_version", "gcc_version", "os", "libc_version", "python_version",
    "python_platform", "is_cuda_available", "nvidia_gpu_models", "pip_packages", "jax_version", "jax_devices",
)  # fmt: skip
SystemEnv = namedtuple("SystemEnv", _FIELDS)
_PACKAGES = ("jax", "jaxlib", "numpy", "optax", "ml_dtypes", "opt_einsum", "jtorch-xla")


def _installed(name):
    try:
        return f"{name}=={metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return None


def get_env_info() -> SystemEnv:
    """The facts, by PyTorch's names and jax's."""
    on_gpu = devices.accelerator() == "cuda"
    return SystemEnv(
        version.torch, False, version.cuda, "not used", platform.platform(), "-".join(platform.libc_ver()), sys.version.replace("\n", " "),
        platform.platform(), str(devices.accelerator() is not None), [d.device_kind for d in jax.devices()] if on_gpu else [],
        [p for p in map(_installed, _PACKAGES) if p], jax.__version__, [str(d) for d in jax.devices()],
    )  # fmt: skip


def get_pretty_env_info() -> str:
    """The facts as lines of text."""
    return "\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in get_env_info()._asdict().items())


def main() -> None:
    """Print them."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
