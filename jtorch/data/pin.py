"""pin_memory: the transfer of a batch to the accelerator starts before the program asks for it."""

from collections.abc import Mapping, Sequence

from .. import errors
from ..core import device as devices
from ..tensor import Tensor

__all__ = ["pin", "pinned"]


def pinned(loader):
    """What a loader does to each batch; None where there is nothing to do."""
    if not loader.pin_memory:
        return None
    if devices.accelerator() is None:
        errors.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
        )
        return None
    place = devices.resolve(loader.pin_memory_device or devices.accelerator())
    return lambda batch: pin(batch, place)


def pin(batch, place):
    """Start the transfer of every tensor in `batch`; the tensors stay where they are until they are moved.

    `x.to(place)` then takes the copy that is under way, unless `x` has been written to in between.
    """
    if isinstance(batch, Tensor):
        host = batch._storage.host
        if host is not None and host.spec is batch._spec and batch._spec.device is devices.cpu:
            host.start(place)
    elif isinstance(batch, str | bytes):
        return batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            pin(value, place)
    elif isinstance(batch, Sequence):
        for value in batch:
            pin(value, place)
    elif hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    return batch
