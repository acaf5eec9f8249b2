"""Objects between processes: pickled by cloudpickle where it is there, large memory beside the pickle, not in it."""

import functools
import importlib
import io
import mmap
import os
import pickle
import types

import numpy as np

from ..convert import as_elements
from ..core import dtype as dtypes
from ..creation import lent
from ..tensor import Tensor, make
from . import failures

__all__ = ["dumps", "loads"]

SMALL = 4096  # fewer bytes travel inside the pickle


def dumps(obj, beside: list | None = None) -> bytes:
    """`obj` as bytes; memory of more than SMALL bytes is appended to `beside`, as memoryviews, if that is given."""

    def keep(buffer):
        raw = buffer.raw()
        if raw.nbytes <= SMALL:
            return True
        beside.append(raw)
        return False

    file = io.BytesIO()
    _pickler()(file, 5, buffer_callback=None if beside is None else keep).dump(obj)
    return file.getvalue()


def loads(data, buffers=()):
    """The object again. Arrays and tensors are views of `buffers`: nothing is copied."""
    return pickle.loads(data, buffers=buffers)


@functools.cache
def _pickler():
    """The pickler's class: cloudpickle's, or a plain one that says what cloudpickle would be needed for."""
    try:
        base = importlib.import_module("cloudpickle").Pickler
    except ModuleNotFoundError:
        base = _Plain

    class Pickler(base):
        """Tensors and memory maps as what they are."""

        def reducer_override(self, obj):
            if isinstance(obj, Tensor):
                return _reduce_tensor(obj)
            if type(obj) is np.memmap:
                made = _reduce_memmap(obj)
                if made is not None:
                    return made
            if type(obj) is types.CodeType and types.CodeType in self.dispatch_table:
                make, given, *_ = self.dispatch_table[types.CodeType](obj)
                return _code, (obj.co_filename, make, given)
            return super().reducer_override(obj)

    return Pickler


def _code(filename, make, given):
    """Code with its file, which cloudpickle takes away: tracebacks of a worker show a program's lines."""
    return make(*given).replace(co_filename=filename)


class _Plain(pickle.Pickler):
    """Without cloudpickle a function or class must be found by its name in a module that can be imported."""

    def reducer_override(self, obj):
        if callable(obj) and hasattr(obj, "__qualname__") and not isinstance(obj, type(len)):
            name = obj.__qualname__
            if getattr(obj, "__module__", None) == "__main__" or "<lambda>" in name or "<locals>" in name:
                raise failures.needs_cloudpickle(name)
        return NotImplemented


# --- tensors -----------------------------------------------------------------------------------------------------------


def _reduce_tensor(t):
    spec = t._spec
    if spec.device.type != "cpu":
        raise failures.on_accelerator(spec.device)
    if t._edge is not None:
        raise failures.on_tape()
    array = as_elements(t)
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    flat = array.transpose(order)
    if not flat.flags.c_contiguous:
        order = list(range(array.ndim))
        flat = np.ascontiguousarray(array)
    state = {k: v for k, v in t.__dict__.items() if k not in ("_acc", "_post_hooks")}
    permuted = None if order == sorted(order) else tuple(order)
    raw = pickle.PickleBuffer(flat.reshape(-1).view(np.uint8))
    return _tensor, (raw, spec.dtype.name, flat.shape, permuted, type(t), t._rg, state)


def _tensor(raw, name, shape, permuted, cls, requires_grad, state):
    """A tensor in memory that this process has for itself."""
    flat = np.frombuffer(raw, np.uint8)
    if not flat.flags.writeable:
        flat = flat.copy()
    array = flat.view(dtypes.ALL[name].memory).reshape(shape)
    if permuted is not None:
        array = array.transpose(np.argsort(permuted))
    made = lent(array)
    if cls is not Tensor:
        made = make(made._storage, made._spec, 0, cls)
    made._rg = requires_grad
    made.__dict__.update(state)
    return made


# --- memory maps: the file, not its contents -----------------------------------------------------------------------------


def _reduce_memmap(array):
    """How to map the same part of the same file; None where that cannot be said."""
    memory = getattr(array, "_mmap", None)
    if memory is None or array.filename is None or not array.flags.c_contiguous or not array.size:
        return None
    start = np.frombuffer(memory, np.uint8).ctypes.data
    within = array.ctypes.data - start
    base = array
    while isinstance(base.base, np.memmap):
        base = base.base
    offset = base.offset - base.offset % mmap.ALLOCATIONGRANULARITY + within
    mode = "r+" if array.mode == "w+" else array.mode
    if not os.path.exists(array.filename):
        return None
    return np.memmap, (os.path.abspath(array.filename), array.dtype, mode, offset, array.shape)
