"""DLPack: arrays of other libraries as tensors, and tensors as theirs, without a copy where both can write."""

import jax
import numpy as np

from . import errors
from .core import device as devices
from .core import storage as storages
from .core.dtype import complex32
from .creation import from_jax, from_numpy, strided
from .tensor import Tensor, value_of

_CPU = 1


class _Capsule:
    """A bare capsule as the object with a protocol that numpy and jax want."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (_CPU, 0)


def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """A tensor on the memory of an array of another library, or of a DLPack capsule (of CPU memory)."""
    if isinstance(ext_tensor, Tensor):
        _check_export(ext_tensor)
        made = ext_tensor.detach()
    elif isinstance(ext_tensor, np.ndarray):
        made = from_numpy(ext_tensor)
    elif hasattr(ext_tensor, "__dlpack__"):
        made = _from_other(ext_tensor)
    else:
        try:
            made = _from_other(_Capsule(ext_tensor))
        except ValueError:
            raise RuntimeError(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
                "have already constructed a tensor from it once."
            ) from None
    if device is not None:
        made = made.to(device)
    return made.clone() if copy else made


class _Writable:
    """A read-only numpy array as the same memory to write to, by numpy's protocol for arrays."""

    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def _from_other(source) -> Tensor:
    if source.__dlpack_device__()[0] == _CPU and not isinstance(source, jax.Array):
        try:
            array = np.from_dlpack(source)
        except (RuntimeError, BufferError):
            pass  # a dtype that numpy lacks
        else:
            if not array.flags.writeable and isinstance(source, _Capsule):
                # numpy takes what a bare capsule holds for constant, PyTorch does not
                array = np.asarray(_Writable(array))
            return from_numpy(array if array.flags.writeable else array.copy(order="K"))
    return from_jax(jax.dlpack.from_dlpack(source))


def to_dlpack(tensor):
    """A DLPack capsule of a tensor's memory."""
    return tensor.detach().__dlpack__()


def _check_export(t):
    if t.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if t.layout is not strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")


def export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """Tensor.__dlpack__: CPU memory is shared with numpy first, so that the consumer may write to it."""
    _check_export(self)
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None and self.device is devices.cpu:
        raise AssertionError("stream should be None on cpu.")
    if self.dtype is complex32:
        raise errors.unsupported("torch.complex32 in DLPack", "view_as_real(), which shares its memory,")
    if self.device is devices.cpu and self.dtype.name in _SHARED:
        options = {} if max_version is None else {"max_version": max_version}
        return self.numpy().__dlpack__(**options)
    return storages.realise(value_of(self)).__dlpack__(stream=stream)


def export_device(self):
    """Tensor.__dlpack_device__."""
    return (_CPU, 0) if self.device is devices.cpu else storages.realise(value_of(self)).__dlpack_device__()


_SHARED = frozenset(
    ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
     "complex64", "complex128")
)  # fmt: skip


Tensor.__dlpack__ = export
Tensor.__dlpack_device__ = export_device
