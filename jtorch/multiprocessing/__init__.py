"""torch.multiprocessing: Python's own, and `spawn`. Tensors travel by pickling, as copies."""

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_python.__all__, "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_strategy = ["file_descriptor"]


def get_all_sharing_strategies() -> set:
    """The names that set_sharing_strategy takes."""
    return {"file_descriptor", "file_system"}


def set_sharing_strategy(new_strategy) -> None:
    """Accepted: tensors travel as copies. Raises AssertionError for an unknown name."""
    assert new_strategy in get_all_sharing_strategies()
    _strategy[0] = new_strategy


def get_sharing_strategy() -> str:
    """What set_sharing_strategy was told."""
    return _strategy[0]


def __getattr__(name):
    return getattr(_python, name)
