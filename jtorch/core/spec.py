"""Spec: the interned metadata of a tensor (shape, strides, dtype, device), compared by identity."""

import math
import operator

import jax

from .. import errors_storage
from . import shapes
from .device import Device
from .dtype import complex128
from .dtype import dtype as DType

_tuple = tuple.__new__


class Size(tuple):
    """The shape of a tensor: a tuple of ints with `numel`."""

    __slots__ = ()
    _shown = "torch.Size"

    def __new__(cls, sizes=()):
        made = _tuple(cls, sizes)
        for i, n in enumerate(made):
            if type(n) is not int:
                return _tuple(cls, [_int(i, n) for i, n in enumerate(made)])
        return made

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n):
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __getitem__(self, i):
        got = tuple.__getitem__(self, i)
        return _tuple(Size, got) if type(i) is slice else got

    def __reduce__(self):
        return (Size, (tuple(self),))


def _int(i, n) -> int:
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')") from None


class Spec:
    """Shape, strides, dtype and device of a tensor. Equal ones are the same object: use `Spec.of`."""

    __slots__ = ("shape", "strides", "dtype", "device", "ndim", "numel", "contiguous", "nbytes", "aval")
    _shown = "Tensor"  # in errors about arguments, of which checks see the specs

    @staticmethod
    def of(shape, strides, dtype: DType, device: Device) -> "Spec":
        key = (shape, strides, dtype, device)
        spec = _SPECS.get(key)
        if spec is None:
            size = _tuple(Size, shape)
            if size.numel() > LARGEST:
                raise errors_storage.numel_overflow()
            if dtype is complex128 and device.type == "tpu":
                raise errors_storage.no_complex128()
            spec = _SPECS[key] = Spec.__new__(Spec)
            spec.shape = shape = size
            spec.strides = tuple(strides)
            spec.dtype = dtype
            spec.device = device
            spec.ndim = len(shape)
            spec.numel = shape.numel()
            spec.contiguous = spec.numel == 0 or _is_contiguous(shape, strides)
            spec.nbytes = spec.numel * dtype.itemsize
            spec.aval = jax.ShapeDtypeStruct(tuple(shape), dtype.np)
        return spec

    @staticmethod
    def dense(shape, dtype: DType, device: Device) -> "Spec":
        """The contiguous spec of a shape."""
        key = (shape, dtype, device)
        spec = _DENSE.get(key)
        if spec is None:
            if math.prod(shape) * dtype.itemsize > LARGEST:
                raise errors_storage.storage_overflow(shape)  # XLA would end the process
            spec = _DENSE[key] = Spec.of(tuple(shape), shapes.contiguous_strides(shape), dtype, device)
        return spec

    def with_dtype(self, dtype: DType) -> "Spec":
        return Spec.of(self.shape, self.strides, dtype, self.device)

    def __repr__(self):
        return f"Spec({tuple(self.shape)}, {self.strides}, {self.dtype}, {self.device})"


def extent(spec) -> int:
    """How many elements of memory lie between the first and the last element of a tensor, these included."""
    return 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides)) if spec.numel else 0


LARGEST = 2**63 - 1
_SPECS: dict[tuple, Spec] = {}
_DENSE: dict[tuple, Spec] = {}


def _is_contiguous(shape, strides) -> bool:
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n != 1:
            if s != expected:
                return False
            expected *= n
    return True
