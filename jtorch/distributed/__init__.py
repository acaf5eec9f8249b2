"""torch.distributed: processes that compute together, by sockets between their hosts (what PyTorch calls gloo).

One process computes on all devices that jax shows it, so most programs need but one, and a group of one is enough for those made for
torchrun. Several are for CPUs, or for a device each; processes of one host cannot share a TPU.
"""

import importlib
import os

from . import collectives, messages, process_group, status, stores, world
from . import group_methods as group_methods  # gives ProcessGroup its methods
from .buckets import GradBucket
from .collectives import *  # noqa: F403
from .messages import *  # noqa: F403
from .process_group import *  # noqa: F403
from .status import *  # noqa: F403
from .stores import *  # noqa: F403
from .world import *  # noqa: F403

_PARTS = (collectives, messages, process_group, status, stores, world)
__all__ = [
    "GradBucket", "is_available", "is_gloo_available", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "is_ucc_available", "is_xccl_available", *(name for part in _PARTS for name in part.__all__),
]  # fmt: skip


def is_available() -> bool:
    """True: groups of one process or several."""
    return True


def is_torchelastic_launched() -> bool:
    """Whether torchrun has started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_gloo_available() -> bool:
    """True: several processes talk by TCP."""
    return True


def is_nccl_available() -> bool:
    """False."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


_MODULES = frozenset("autograd checkpoint device_mesh elastic fsdp launch launcher nn optim rpc run tensor".split())


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __package__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
