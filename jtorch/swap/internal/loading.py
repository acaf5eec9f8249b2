"""Helpers that PyTorch's loader keeps beside its public names: torch.utils.data._utils."""

import dataclasses
import os
import queue
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...data import failures
from ...data.datapipes.graph_settings import apply_sharding
from ...data.worker import get_worker_info
from ...tensor import Tensor
from .loader import HAS_NUMPY, IS_WINDOWS, MP_STATUS_CHECK_INTERVAL  # noqa: F401
from .utils import ExceptionWrapper

__all__ = ["ManagerWatchdog", "np_str_obj_array_pattern", "pin_memory"]
_collate_fn_t, _worker_init_fn_t = Callable[[list], Any], Callable[[int], None]
np_str_obj_array_pattern = re.compile(r"[SaUO]")


class ManagerWatchdog:
    """In a worker: whether the process that started it is still there."""

    def __init__(self):
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether it is."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


@dataclasses.dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """In place of a batch: the worker's part of an iterable dataset is through."""

    worker_id: int


@dataclasses.dataclass(frozen=True)
class _ResumeIteration:
    """In place of an index: another pass begins."""

    seed: int | None = None


def _sharding_worker_init_fn(worker_init_fn, world_size, rank_id, worker_id) -> None:
    """Give a worker's data pipe its share among the workers of all processes."""
    info = get_worker_info()
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank_id)
    if worker_init_fn is not None:
        worker_init_fn(worker_id)


def pin_memory(data, device=None):
    """The data with every tensor's pin_memory() in its place, inside containers too."""
    if (
        isinstance(data, Tensor)
        or not isinstance(data, (str, bytes, Mapping, Sequence))
        and hasattr(data, "pin_memory")
    ):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return type(data)({k: pin_memory(v, device) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(v, device) for v in data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return type(data)([pin_memory(v, device) for v in data])
    return data


def _pin_memory_loop(in_queue, out_queue, device_id, done_event, device) -> None:
    """Pin what comes out of one queue and put it into the other, until the event."""
    while not done_event.is_set():
        try:
            number, data = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        out_queue.put((number, data))


def _set_SIGCHLD_handler() -> None:
    """Accepted: workers are watched by the process that forks them."""


def _set_worker_signal_handlers() -> None:
    """Accepted: a worker that is killed is noticed by who waits for its batch."""


_pids: dict[int, tuple[int, ...]] = {}  # of loaders that start workers by themselves


def _set_worker_pids(key: int, pids: tuple[int, ...]) -> None:
    if key in _pids:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    _pids[key] = tuple(pids)


def _remove_worker_pids(key: int) -> None:
    if key not in _pids:
        raise ValueError(f"Cannot find worker information for _BaseDataLoaderIter with id {key}")
    del _pids[key]


def _error_if_any_worker_fails() -> None:
    """Raise for a worker that was killed or has failed; without waiting, and leaving its status to who waits."""
    for key, pids in _pids.items():
        for pid in pids:
            try:
                end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if end is not None and (end.si_code != os.CLD_EXITED or end.si_status):
                _pids[key] = ()
                raise failures.how(pid, end.si_status if end.si_code == os.CLD_EXITED else -end.si_status)
