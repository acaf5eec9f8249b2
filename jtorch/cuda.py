"""torch.cuda: the accelerator under the name that old scripts use."""

import importlib

from . import accelerator, creation
from .core import device as devices

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_rng_state",
    "is_available", "is_bf16_supported", "manual_seed", "manual_seed_all", "max_memory_allocated", "memory_allocated",
    "memory_reserved", "reset_peak_memory_stats", "seed", "set_device", "set_rng_state", "synchronize",
]  # fmt: skip

is_available = accelerator.is_available
device_count = accelerator.device_count
current_device = accelerator.current_device_index
set_device = accelerator.set_device_index
synchronize = accelerator.synchronize
empty_cache = accelerator.empty_cache
memory_allocated = accelerator.memory_allocated
max_memory_allocated = accelerator.max_memory_allocated
memory_reserved = accelerator.memory_allocated
reset_peak_memory_stats = accelerator.reset_peak_memory_stats


def manual_seed(seed) -> None:
    """Seed the generator: there is one for all devices."""
    creation.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seed the generator from the system's entropy."""
    creation.seed()


def get_rng_state(device=None):
    """The generator's state."""
    return creation.get_rng_state()


def set_rng_state(new_state, device=None) -> None:
    """Set the generator's state."""
    creation.set_rng_state(new_state)


def is_bf16_supported(including_emulation=True) -> bool:
    """XLA computes in bfloat16 on every accelerator."""
    return is_available()


def get_device_name(device=None) -> str:
    """The accelerator's name, as jax gives it."""
    return _jax_device(device).device_kind


def get_device_capability(device=None) -> tuple[int, int]:
    """The compute capability of an NVIDIA GPU."""
    text = str(getattr(_jax_device(device), "compute_capability", "0.0"))
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def _jax_device(device):
    return devices.resolve("cuda" if device is None else device).jax


def __getattr__(name):
    """torch.cuda.amp: the old names of torch.amp, for CUDA."""
    if name == "amp":
        return importlib.import_module(".amp.cuda", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
