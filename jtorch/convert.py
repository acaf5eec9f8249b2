"""Tensors in other dtypes, on other devices, and as numpy and jax arrays."""

import inspect
import re

import numpy as np

from . import creation, errors, errors_func
from .autograd.node import PythonNode
from .core import device as devices
from .core import dtype as dtypes
from .core import shapes
from .core import storage as storages
from .core.dtype import dtype as DType
from .core.lanes import is_traced
from .core.pending import NO_DATA
from .core.record import tls
from .core.spec import Spec
from .creation import MemoryFormat, channels_last, channels_last_3d, contiguous_format, preserve_format
from .ops import formats
from .reshaping import clone, contiguous, op_named, with_strides
from .tensor import Tensor, edge_of, value_of, wrap
from .tracebacks import shorten


def to(self, *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None) -> Tensor:
    """The tensor on another device or in another dtype; itself when nothing would change."""
    try:
        if len(args) > 1 or args and (dtype is not None or device is not None):
            _check_forms(args, {"device": device, "dtype": dtype})
        flags = []  # non_blocking, copy
        for a in args:
            if isinstance(a, DType) or type(a) is type and a in dtypes.PYTHON:
                dtype = a
            elif isinstance(a, Tensor):
                dtype, device = a._spec.dtype, a._spec.device
            elif isinstance(a, bool):
                flags.append(a)
            elif isinstance(a, MemoryFormat):
                memory_format = a
            elif a is not None:
                device = a
        copy = flags[1] if len(flags) > 1 else copy
        spec = self._spec
        place = spec.device if device is None else devices.resolve(device)
        if dtype is None:
            dtype = spec.dtype
        elif type(dtype) is not DType:
            dtype = creation.dtype_or_default(dtype)
        same_format = memory_format in (None, preserve_format) or memory_format is suggested_format(self)
        if place is spec.device and dtype is spec.dtype:
            if not copy and same_format:
                return self
            return clone(self, memory_format=memory_format or preserve_format)
        made = self
        if dtype is not spec.dtype:
            made = op_named("_to_copy")(made, dtype=dtype)
            made = with_strides(made, tuple(shapes.empty_like_strides(tuple(spec.shape), spec.strides)))
        if place is not spec.device:
            made = to_device(made, place)
        if memory_format not in (None, preserve_format):
            made = contiguous(made, memory_format)
        return made
    except Exception as error:
        shorten(error)
        raise


# The kinds of positional arguments that `to` takes, a letter each: place, dtype, tensor, None, flag.
_FORMS = re.compile("([pn]([dn]f{0,2})?|[dtf]f{0,2})?")


def _check_forms(args, named):
    """Refuse arguments of `to` that contradict each other, or come in another order than in one of its forms."""
    kinds = "".join(
        "n" if a is None
        else "f" if isinstance(a, bool)
        else "d" if isinstance(a, DType) or type(a) is type and a in dtypes.PYTHON
        else "t" if isinstance(a, Tensor)
        else "p" if isinstance(a, (str, int, devices.device))
        else "?"
        for a in args
    )  # fmt: skip
    named = {name: value for name, value in named.items() if value is not None}
    if _FORMS.fullmatch(kinds) is None or "device" in named or "dtype" in named and kinds not in ("n", "p"):
        forms = "(device, dtype, non_blocking, copy), (dtype, non_blocking, copy) or (tensor, non_blocking, copy)"
        raise errors.combination("to", args, forms, named)


def suggested_format(t):
    """The format that PyTorch takes a tensor to be in: the channels last, or else row-major, whatever its strides."""
    if not formats.suggests_channels_last(t._spec):
        return contiguous_format
    return channels_last if t.ndim == 4 else channels_last_3d


def to_device(t, place):
    host = t._storage.host
    value = host.arrived(place.jax) if host is not None and host.spec is t._spec else None
    if place.type == "meta" and not is_traced(value_of(t)):
        value = NO_DATA
    elif value is None:
        value = value_of(t)
        if not is_traced(value):
            value = storages.moved(value, place)
    spec = Spec.of(
        tuple(t._spec.shape),
        tuple(shapes.empty_like_strides(tuple(t._spec.shape), t._spec.strides)),
        t._spec.dtype,
        place,
    )
    made = wrap(value, spec)
    edge = edge_of(t) if tls.me.grad else None
    if edge is not None:
        made._edge = (DeviceCopy(edge, t._spec, spec), 0)
    return made


class DeviceCopy(PythonNode):
    """The tape's step for a copy between devices: the gradient goes back."""

    __slots__ = ("source",)

    def __init__(self, edge, source, spec):
        super().__init__("ToCopyBackward0", (edge,), (spec,))
        self.source = source

    def apply(self, g):
        return (to(g, device=self.source.device),)


DeviceCopy.__name__ = DeviceCopy.__qualname__ = "ToCopyBackward0"  # by which it is printed


def type_(self, dtype=None, non_blocking=False, *, memory_format=None):
    """The old-style type name, or the tensor in another dtype."""
    try:
        if dtype is None:
            space = "torch." if self._spec.device is devices.cpu else f"torch.{self._spec.device.type}."
            name = self._spec.dtype.name
            return f"{space}{LEGACY_NAMES.get(name) or name[:1].upper() + name[1:].replace('int', 'Int') + 'Tensor'}"
        if isinstance(dtype, str):
            known = {f"torch.{v}": dtypes.ALL[k] for k, v in LEGACY_NAMES.items()}
            name = dtype.replace("torch.cuda.", "torch.")
            if name not in known:
                raise ValueError(f"invalid type: {dtype!r}")
            place = self._spec.device if name == dtype else "cuda"
            return to(self, dtype=known[name], device=place, memory_format=memory_format)
        if dtype is Tensor:
            return to(self, dtype=dtypes.default.dtype, memory_format=memory_format)
        if isinstance(dtype, type):
            if hasattr(dtype, "place"):  # torch.FloatTensor and its like
                return to(self, dtype=dtype.dtype, device=dtype.place, memory_format=memory_format)
            dtype = creation.dtype_or_default(dtype)
        if not isinstance(dtype, DType):
            raise TypeError("dtype must be a type, str, or dtype object")
        return to(self, dtype=dtype, memory_format=memory_format)
    except Exception as error:
        shorten(error)
        raise


LEGACY_NAMES = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor", "int32": "IntTensor", "int64": "LongTensor",
    "bool": "BoolTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
    "complex32": "ComplexHalfTensor",
}  # fmt: skip


def caster(dtype, name):
    def cast(self, memory_format=preserve_format):
        return to(self, dtype=dtype, memory_format=memory_format)

    cast.__name__ = name
    cast.__doc__ = f"The tensor as {dtype}."
    return cast


def typename(obj) -> str:
    """The name of an object's type, or of a type or function itself, with its module; a tensor's is the old-style one."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if isinstance(obj, type) or inspect.isroutine(obj) else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "", "builtins") else f"{module}.{named.__qualname__}"


def type_as(self, other) -> Tensor:
    """The tensor in the dtype and on the device of another."""
    return to(self, dtype=other._spec.dtype, device=other._spec.device)


def cpu(self, memory_format=preserve_format) -> Tensor:
    """The tensor in host memory."""
    return to(self, device=devices.cpu, memory_format=memory_format)


def cuda(self, device=None, non_blocking=False, memory_format=preserve_format) -> Tensor:
    """The tensor on the accelerator."""
    return to(self, device="cuda" if device is None else device, memory_format=memory_format)


def numpy(self, *, force=False):
    """A numpy array that shares memory with this CPU tensor: each sees the other's writes."""
    try:
        if force:
            self = cpu(self.detach())
        if tls.me.grad and self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._spec.device is not devices.cpu:
            raise TypeError(
                f"can't convert {self._spec.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        if self._spec.dtype.name in ("bfloat16", "complex32") or self._spec.dtype.name.startswith("float8"):
            raise TypeError(f"Got unsupported ScalarType {dtypes.scalar_name(self._spec.dtype)}")
        if is_traced(self._storage.value):
            raise errors_func.data_dependent("numpy")
        storages.share(self._storage)
        return storages.host_view(self._storage, self._spec, self._offset)
    except Exception as error:
        shorten(error)
        raise


def as_numpy(t) -> np.ndarray:
    """The elements as a numpy array that must not be written to; nothing becomes shared."""
    return storages.numpy_of(t._storage, t._spec, t._offset)


def as_elements(t) -> np.ndarray:
    """The elements as they are in memory, which tells the dtype: not so `as_numpy`, where complex32 and complex64 are one."""
    return storages.as_memory(as_numpy(t), t._spec.dtype.memory)


def array_protocol(self, dtype=None, copy=None):
    made = numpy(self)
    return made if dtype is None else made.astype(dtype, copy=False)


def array_wrap(self, array, context=None, return_scalar=False):
    """The result of a numpy function of this tensor, as a tensor; truth values as numbers."""
    array = array.astype(np.uint8) if array.dtype == bool else array
    return creation.from_numpy(array)


def jax_array(self):
    """The tensor as a jax.Array: nothing is copied where the storage holds just this tensor."""
    return storages.realise(value_of(self))
