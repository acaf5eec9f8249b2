"""torch.multiprocessing: Python's own, and `spawn`. Shared tensors travel as handles to their memory, others as copies."""

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

from .. import errors_storage
from ..core import sharing
from ..tensor import Tensor
from .context import CONTEXT
from .context import Process as Process
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
    "get_all_sharing_strategies", "get_sharing_strategy", "init_reductions", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip


def init_reductions() -> None:
    """Tell Python's pickler for processes of tensors: shared ones travel as handles, and none with a history."""
    sharing.reduction().ForkingPickler.register(Tensor, _reduce)


def _reduce(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise errors_storage.history_to_process()
    return tensor.__reduce_ex__(2)


init_reductions()
for _name in _python.__all__:
    if hasattr(_python.context.BaseContext, _name) and _name != "Process":
        globals()[_name] = getattr(CONTEXT, _name)

_strategy = ["file_descriptor"]


def get_all_sharing_strategies() -> set:
    """The names that set_sharing_strategy takes."""
    return {"file_descriptor", "file_system"}


def set_sharing_strategy(new_strategy) -> None:
    """Accepted: memory is always handed over by its descriptor. Raises AssertionError for an unknown name."""
    known = get_all_sharing_strategies()
    assert new_strategy in known, f"invalid sharing strategy {new_strategy!r}, expected one of {known}"
    _strategy[0] = new_strategy


def get_sharing_strategy() -> str:
    """What set_sharing_strategy was told."""
    return _strategy[0]


def __getattr__(name):
    return getattr(_python, name)
