"""torch.distributed as PyTorch has it where it was built without: is_available() is False, one process sees all devices."""

import enum
import importlib

__all__ = ["is_available", "is_initialized"]


def is_available() -> bool:
    """False: processes do not talk to each other; one process computes on all devices that jax shows it."""
    return False


def is_initialized() -> bool:
    """False: there is no process group."""
    return False


def is_torchelastic_launched() -> bool:
    """False."""
    return False


def is_nccl_available() -> bool:
    """False."""
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


class ProcessGroup:
    """A group of processes: there is none. For annotations and isinstance."""


class ReduceOp(enum.Enum):
    """How values of several processes become one; for arguments of collectives."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


def __getattr__(name):
    if name in ("device_mesh", "fsdp", "nn", "optim", "rpc", "tensor"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
