"""torch._utils: helpers on lists of tensors, and errors carried between processes."""

import copyreg
import importlib
import sys
import traceback

from ... import copying
from ... import functions as torch
from ...accelerator import device_count
from ...compiler import is_compiling
from ...core.device import Device, accelerator

# What tensors pickled by PyTorch name: they are read by `pickle.load` too.
from ...files.rebuild import (  # noqa: F401
    _rebuild_device_tensor_from_cpu_tensor,
    _rebuild_device_tensor_from_numpy,
    _rebuild_meta_tensor_no_storage,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_wrapper_subclass,
)
from ...sundries import classproperty
from ...tensor import Tensor

__all__ = ["ExceptionWrapper", "KeyErrorMessage", "classproperty", "is_compiling"]


def _get_obj_state(obj):
    """What pickle would keep of an object: its attributes, with slots a pair of both dicts."""
    if type(obj).__getstate__ is not object.__getstate__:
        return obj.__getstate__()
    slots = copyreg._slotnames(obj.__class__)
    attributes = getattr(obj, "__dict__", None)
    attributes = copying.own_state(obj) if isinstance(obj, Tensor) else attributes
    if not slots or isinstance(obj, Tensor):
        return attributes
    return attributes, {n: getattr(obj, n) for n in slots if hasattr(obj, n)}


def _set_obj_state(obj, state):
    """Give an object the attributes of `_get_obj_state`; returns it. RuntimeError: a tuple of other than two."""
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            setattr(obj, name, value)
    return obj


def _flatten_dense_tensors(tensors):
    """One vector of all elements of tensors of one dtype."""
    return (
        tensors[0].contiguous().view(-1) if len(tensors) == 1 else torch.cat([t.contiguous().view(-1) for t in tensors])
    )


def _unflatten_dense_tensors(flat, tensors):
    """Views of a vector with the shapes of these tensors, in order."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(p.view_as(t) for p, t in zip(parts, tensors))


def _take_tensors(tensors, size_limit):
    """Lists of consecutive tensors of one type, each of at most size_limit bytes where one tensor alone is not larger."""
    groups = {}
    for tensor in tensors:
        group = groups.setdefault(tensor.type(), [[], 0])
        if group[1] + tensor.nbytes > size_limit and group[0]:
            yield group[0]
            group = groups[tensor.type()] = [[], 0]
        group[0].append(tensor)
        group[1] += tensor.nbytes
    for group, _size in groups.values():
        if group:
            yield group


def _reorder_tensors_as(tensors, ordered_tensors):
    """`tensors`, grouped by type, in the order of `ordered_tensors`."""
    by_type = {}
    for t in tensors:
        by_type.setdefault(t.type(), []).append(t)
    queues = {k: iter(v) for k, v in by_type.items()}
    return tuple(next(queues[t.type()]) for t in ordered_tensors)


class KeyErrorMessage(str):
    """Text whose repr is itself, so that a KeyError shows its lines."""

    __slots__ = ()

    def __repr__(self):
        return self


class ExceptionWrapper:
    """An error with its traceback as text, for another process or thread to raise."""

    def __init__(self, exc_info=None, where="in background"):
        if exc_info is None:
            exc_info = sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raise the error, with the text of the first one's traceback as its message."""
        msg = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            msg = KeyErrorMessage(msg)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=msg)
        try:
            error = self.exc_type(msg)
        except Exception:
            raise RuntimeError(msg) from None
        raise error


def _get_available_device_type():
    """The kind of accelerator, or None."""
    return accelerator()


def _get_device_module(device):
    """torch.cpu, torch.cuda...: the module of a kind of device."""
    kind = getattr(device, "type", device)
    try:
        return importlib.import_module(f"jtorch.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None


def _get_device_index(device, optional=False, allow_cpu=False) -> int:
    """The index of a device; 0 for one without (with optional=True), -1 for the CPU. Raises ValueError."""
    if isinstance(device, int):
        return device
    d = Device(device) if isinstance(device, str) else device
    if d is not None and d.type == "cpu":
        if allow_cpu:
            return -1
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    index = None if d is None else d.index
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index or 0


def _get_all_device_indices() -> list[int]:
    """The indices of the accelerators."""
    return list(range(device_count()))


def _type(self, dtype=None, non_blocking=False, **kwargs):
    """Tensor.type."""
    return self.type(dtype) if dtype is not None else self.type()


def _element_size(dtype) -> int:
    """Bytes of one element."""
    return dtype.itemsize


def _handle_complex(tensor):
    """A complex tensor as pairs of real numbers, another as it is."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor
