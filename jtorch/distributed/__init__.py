"""torch.distributed for one process: a group of one, so that scripts made for torchrun run. is_available() is False, as where PyTorch
was built without it: one process computes on all devices that jax shows it."""

import importlib

from . import single, status, stores
from .single import *  # noqa: F403
from .status import *  # noqa: F403
from .stores import *  # noqa: F403

__all__ = ["is_available", "is_torchelastic_launched", *single.__all__, *status.__all__, *stores.__all__]


def is_available() -> bool:
    """False: processes do not talk to each other. What needs no other process works all the same."""
    return False


def is_torchelastic_launched() -> bool:
    """False."""
    return False


def is_nccl_available() -> bool:
    """False."""
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def __getattr__(name):
    if name in ("autograd", "checkpoint", "device_mesh", "elastic", "fsdp", "launcher", "nn", "optim", "rpc", "tensor"):
        return importlib.import_module(f".{name}", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
