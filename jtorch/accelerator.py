"""torch.accelerator: the one kind of accelerator that jax sees here, if any."""

import jax

from . import errors, streams
from .core import device as devices
from .core import dtype as dtypes
from .streams import current_stream, set_stream

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count", "device_index",
    "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip

_current = [0]


def is_available() -> bool:
    """Whether jax has an accelerator as its default backend."""
    return devices.accelerator() is not None


def device_count() -> int:
    """How many accelerators this process can use."""
    return len(jax.local_devices()) if is_available() else 0


def current_accelerator(check_available=False):
    """The device of the accelerator's kind, or None."""
    name = devices.accelerator()
    return None if name is None else devices.Device(name)


def current_device_index() -> int:
    """The index of the accelerator that `cuda` without a number means."""
    return _current[0]


def set_device_index(device) -> None:
    """Make another accelerator the current one."""
    index = device if isinstance(device, int) else devices.Device(device).index
    if index is not None and index >= 0:
        devices.resolve(devices.Device(devices.accelerator() or "cuda", index))
        _current[0] = index


current_device_idx = current_device_index
set_device_idx = set_device_index


class device_index:
    """Context: another accelerator is the current one."""

    def __init__(self, device):
        self.index = device
        self.before = None

    def __enter__(self):
        self.before = _current[0]
        if self.index is not None:
            set_device_index(self.index)
        return self

    def __exit__(self, *exc):
        _current[0] = self.before


def synchronize(device=None) -> None:
    """Run what this thread has recorded and wait until all of it is computed."""
    streams.wait()


def memory_stats(device=None) -> dict:
    """The device's allocator statistics in bytes, as jax reports them; empty where it reports none."""
    if not is_available():
        return {}
    index = (
        _current[0] if device is None else (device if isinstance(device, int) else devices.Device(device).index or 0)
    )
    return dict(jax.local_devices()[index].memory_stats() or {})


def memory_allocated(device=None) -> int:
    """Bytes in use on the device."""
    return int(memory_stats(device).get("bytes_in_use", 0))


def max_memory_allocated(device=None) -> int:
    """The most bytes that have been in use on the device."""
    return int(memory_stats(device).get("peak_bytes_in_use", 0))


def memory_reserved(device=None) -> int:
    """Bytes that the device's allocator holds: its pool, or what is in use where jax does not tell."""
    stats = memory_stats(device)
    return int(stats.get("pool_bytes", stats.get("bytes_reserved", 0)) or stats.get("bytes_in_use", 0))


def max_memory_reserved(device=None) -> int:
    """The most bytes that the device's allocator has held."""
    stats = memory_stats(device)
    return int(stats.get("peak_pool_bytes", 0) or stats.get("peak_bytes_in_use", 0))


def get_memory_info(device=None) -> tuple[int, int]:
    """(free, total) bytes of the device, as far as jax may use it."""
    stats = memory_stats(device)
    total = int(stats.get("bytes_limit", 0))
    return total - int(stats.get("bytes_in_use", 0)), total


def get_device_capability(device=None) -> dict:
    """{"supported_dtypes": the dtypes that tensors can have there}. Raises RuntimeError without an accelerator."""
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return {"supported_dtypes": set(dtypes.ALL.values())}


def reset_peak_memory_stats(device=None) -> None:
    """Accepted: jax keeps its peak for the life of the process."""


reset_accumulated_memory_stats = reset_peak_memory_stats


def empty_cache() -> None:
    """Accepted: XLA's allocator keeps its pool."""


empty_host_cache = empty_cache


class Graph:
    """Raises: a recorded program is captured by torch.compile."""

    def __init__(self, *args, **kwargs):
        raise errors.unsupported("device graphs", instead="torch.compile(fn): its programs are launched as one")
