"""Helpers that PyTorch's loader keeps beside its public names: torch.utils.data._utils."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...tensor import Tensor

__all__ = ["np_str_obj_array_pattern", "pin_memory"]
_collate_fn_t, _worker_init_fn_t = Callable[[list], Any], Callable[[int], None]
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def _generate_state(base_seed, worker_id) -> list:
    """The words from which a worker seeds numpy."""
    words = np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4)
    return [int(w) for w in words]


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


def _set_SIGCHLD_handler() -> None:
    """Accepted: workers are watched by the process that forks them."""
