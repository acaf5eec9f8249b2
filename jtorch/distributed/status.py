"""Errors and levels of torch.distributed, and questions that need no other process."""

import datetime
import enum
import os

from ..core import device as devices

__all__ = [
    "DebugLevel", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError",
    "default_pg_timeout", "get_debug_level", "get_default_backend_for_device", "is_backend_available", "set_debug_level", "set_debug_level_from_env", "supports_complex",
]  # fmt: skip

default_pg_timeout = datetime.timedelta(minutes=30)


class DistError(RuntimeError):
    """The base of what talking to other processes raises."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


class QueueEmptyError(DistStoreError):
    """A queue of a store that has nothing."""


class DebugLevel(enum.Enum):
    """How much is checked."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level = [DebugLevel.OFF]


def get_debug_level() -> DebugLevel:
    """What was set."""
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Kept: nothing is checked."""
    _level[0] = level


def set_debug_level_from_env() -> None:
    """Take the level from TORCH_DISTRIBUTED_DEBUG. Raises RuntimeError for a word that is none."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    _level[0] = DebugLevel[word]


DEFAULT_BACKENDS = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}


def get_default_backend_for_device(device) -> str:
    """The backend that PyTorch takes for a device. Raises ValueError for a device of another kind."""
    kind = devices.Device(device).type
    found = DEFAULT_BACKENDS.get(kind)
    if found is None:
        raise ValueError(f"Default backend not registered for device : {kind}")
    return found


def is_backend_available(backend: str) -> bool:
    """Whether several processes can use it, on the CPU: gloo."""
    return backend.lower() == "gloo"


def supports_complex(reduceOp) -> bool:
    """Whether complex numbers can be reduced so: not by the largest, smallest, product or bits."""
    word = str(getattr(reduceOp, "name", reduceOp)).rpartition(".")[2].upper()
    return word not in ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")
