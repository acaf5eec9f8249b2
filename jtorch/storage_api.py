"""The bytes behind tensors, as objects: UntypedStorage, TypedStorage and the old classes named after a dtype."""

import collections.abc
import os

import numpy as np

from . import deprecations, errors, errors_storage
from .convert import as_numpy
from .core import buffers, sharing
from .core import device as devices
from .core import dtype as dtypes
from .core import storage as storages
from .core.dtype import dtype as DType
from .core.spec import Spec
from .core.storage import Storage
from .tensor import Tensor, make


class _HostMemory:
    """What both kinds of storages say of host memory: it is not pinned."""

    is_pinned = lambda self, device=None: False
    pin_memory = lambda self, device=None: self

    def share_memory_(self):
        """Move the bytes into memory that other processes can share."""
        sharing.share(self.untyped()._storage)
        return self

    # Who adds up a model's memory asks sys.getsizeof.
    __sizeof__ = lambda self: object.__sizeof__(self) + self.nbytes()


class StorageBase(_HostMemory):
    """The class of storages of bytes, for isinstance."""

    def __init__(self):
        raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")


class UntypedStorage(StorageBase):
    """The bytes behind tensors. Two objects are equal when they stand for the same bytes.

    Args: nothing, a number of bytes, or a sequence of byte values (taken modulo 256); `device`.
    """

    # The loader sets it on a storage that nobody else refers to: moving such a storage copies nothing.
    fresh = False
    is_sparse, is_sparse_csr, filename = False, False, None

    def __init__(self, *args, device=None):
        if len(args) > 1:
            raise TypeError(f"UntypedStorage() takes at most 1 positional argument ({len(args)} given)")
        place = devices.resolve(device)
        source = args[0] if args else 0
        if isinstance(source, (int, np.integer)) and not isinstance(source, bool):
            if source < 0:
                raise RuntimeError(f"UntypedStorage() cannot allocate a negative number of bytes: {int(source)}")
            self._storage = buffers.allocate(int(source), dtypes.uint8, place)
            return
        if not isinstance(source, (collections.abc.Sequence, np.ndarray)):
            raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(source).__name__}")
        wrong = [x for x in source if not isinstance(x, (int, np.integer))]
        if wrong:
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(source).__name__}), but one of "
                f"the items was of type {type(wrong[0]).__name__} instead of int"
            )
        self._storage = buffers.filled([x % 256 for x in source], dtypes.uint8, place)

    @classmethod
    def of(cls, storage) -> "UntypedStorage":
        """The object for a core storage."""
        made = cls.__new__(cls)
        made._storage = storage
        return made

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count=-1, offset=0, *, dtype=None, requires_grad=False):
        """The bytes of a Python buffer, copied, with elements of `dtype` turned to this machine's byte order."""
        return cls.of(buffers.copied(buffer, byte_order, count, offset, dtype))

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """The bytes of a file, mapped into memory; with `shared`, writes go to the file, which grows when it is too short."""
        made = cls.of(buffers.mapped(os.fspath(filename), shared, int(nbytes), dtypes.uint8))
        made.filename = os.fspath(filename) if shared else None
        return made

    @property
    def device(self):
        return self._storage.base.device

    is_cuda = property(lambda self: self.device.type == "cuda")
    _cdata = property(lambda self: id(self._storage))

    def data_ptr(self) -> int:
        return self._storage.data_ptr()

    def nbytes(self) -> int:
        return self._storage.base.nbytes

    size = __len__ = nbytes

    def element_size(self) -> int:
        return 1

    def get_device(self):
        return self.device.index

    def is_shared(self) -> bool:
        return bool(self.filename) or self.is_cuda or sharing.is_shared(self._storage)

    def resizable(self) -> bool:
        host = self._storage.host
        return (
            self.filename is None and not sharing.is_shared(self._storage) and not (host is not None and host.shared())
        )

    def untyped(self):
        return self

    def new(self):
        """An empty storage on the same device."""
        return UntypedStorage(device=self.device)

    def type(self, dtype=None, non_blocking=False):
        """The name of the class."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        raise errors.unsupported("UntypedStorage.type(dtype)", "the methods named after dtypes, such as .float()")

    def _flat(self, dtype=dtypes.uint8) -> Tensor:
        return make(self._storage, Spec.dense((self.nbytes() // dtype.itemsize,), dtype, self.device))

    def tolist(self):
        return storages.memory(self._storage).view(np.uint8).tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, i):
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        size = self.nbytes()
        if isinstance(i, slice):
            start, stop, step = i.indices(size)
            if step != 1:
                raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
            # Both halves live in host memory from here on: that is where two storages can overlap.
            host = storages.share(self._storage)
            part = host.buffer.view(np.uint8)[start : max(start, stop)]
            return UntypedStorage.of(buffers.hosted(part, host.owner, self.device))
        if not isinstance(i, (int, np.integer)):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(i).__name__}")
        if not -size <= i < size:
            raise IndexError(f"index {i} out of range for storage of size {size}")
        return int(storages.memory(self._storage).view(np.uint8)[i])

    def __setitem__(self, i, value):
        self._flat()[i] = value

    def clone(self):
        """A copy of the bytes, on the same device."""
        return UntypedStorage.of(buffers.like(self._storage, self.device))

    __copy__ = clone

    def __deepcopy__(self, memo):
        # The same entry as a tensor's deepcopy makes, so that sharing survives.
        key = ("storage", id(self._storage))
        if key not in memo:
            memo[key] = self.clone()._storage
            memo[("keep", id(self._storage))] = self._storage
        return UntypedStorage.of(memo[key])

    def to(self, *, device, non_blocking=False):
        """The storage on another device; itself when it is there already."""
        place = devices.resolve(device)
        if place is self.device:
            return self
        if self.fresh and self._storage.host is not None:
            host = self._storage.host
            moved = UntypedStorage.of(buffers.hosted(host.buffer, host.owner, place, host.lent))
            self._storage = moved._storage
            return moved
        return UntypedStorage.of(buffers.like(self._storage, place))

    def cpu(self):
        return self.to(device=devices.cpu)

    def cuda(self, device=None, non_blocking=False):
        return self.to(device="cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def fill_(self, value):
        self._flat().fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        """Take over the bytes of a storage of the same size."""
        source = source._untyped_storage if isinstance(source, TypedStorage) else source
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self._flat().copy_(source._flat())
        return self

    def resize_(self, nbytes):
        """Grow to so many bytes, or shrink; the storage itself."""
        item = self._storage.base.dtype.itemsize
        dtype = self._storage.base.dtype if nbytes % item == 0 else dtypes.uint8
        if nbytes != self.nbytes():
            storages.resize(self._storage, nbytes, dtype)
        return self

    def byteswap(self, dtype):
        """Reverse the bytes of each element, in place; of a complex number's two halves each for itself."""
        item = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        if self.nbytes() % item:
            raise RuntimeError(f"the length of data is not a multiple of {item}")
        swapped = np.array(storages.memory(self._storage)).view(f"u{item}").byteswap()
        self._flat().copy_(
            make(
                buffers.hosted(swapped.view(np.uint8), swapped), Spec.dense((self.nbytes(),), dtypes.uint8, devices.cpu)
            )
        )

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self):
        return id(self._storage)

    def __reduce__(self):
        return (UntypedStorage.of, (self._storage,))

    def __repr__(self):
        tail = f"[torch.storage.UntypedStorage(device={self.device}) of size {self.size()}]"
        return _shown(self, tail)


class TypedStorage(_HostMemory):
    """A storage seen as elements of one dtype.

    Args: nothing, a number of elements, or a sequence of numbers; `dtype` (the default one unless given), `device`;
    or `wrap_storage`, an UntypedStorage to look at.
    """

    is_sparse = False

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if wrap_storage is not None:
            if args:
                raise errors_storage.bad_arguments(
                    "No positional arguments should be given when using 'wrap_storage'", RuntimeError
                )
            if dtype is None:
                raise errors_storage.bad_arguments("Argument 'dtype' must be specified", RuntimeError)
            if not isinstance(dtype, DType):
                raise errors_storage.bad_arguments(
                    f"Argument 'dtype' must be torch.dtype, not {type(dtype)}", TypeError
                )
            if device is not None:
                raise errors_storage.bad_arguments(
                    "Argument 'device' should not be specified when 'wrap_storage' is given", RuntimeError
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise errors_storage.bad_arguments(
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}", TypeError
                )
            self.dtype = dtype
            self._untyped_storage = wrap_storage
            return
        if len(args) > 1:
            raise errors_storage.bad_arguments("Too many positional arguments", RuntimeError)
        self.dtype = dtypes.default.dtype if dtype is None else dtype
        self._untyped_storage = UntypedStorage.of(_from_argument(args, self.dtype, devices.resolve(device)))

    _dtype = property(lambda self: self.dtype)
    _storage = property(lambda self: self._untyped_storage._storage)
    _cdata = property(lambda self: self._untyped_storage._cdata)
    device = property(lambda self: self._untyped_storage.device)
    is_cuda = property(lambda self: self._untyped_storage.is_cuda)
    filename = property(lambda self: self._untyped_storage.filename)

    @classmethod
    def from_buffer(cls, *args, dtype=None, device=None, **kwargs):
        """The elements in a Python buffer, copied: arguments of UntypedStorage.from_buffer."""
        dtype = cls.dtype if issubclass(cls, _Legacy) else dtypes.default.dtype if dtype is None else dtype
        made = UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=made if device is None else made.to(device=device), dtype=dtype)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """`size` elements of a file, mapped into memory; with `shared`, writes go to the file."""
        dtype = cls.dtype if issubclass(cls, _Legacy) else dtypes.default.dtype
        made = UntypedStorage.of(buffers.mapped(os.fspath(filename), shared, size, dtype))
        made.filename = os.fspath(filename) if shared else None
        return TypedStorage(wrap_storage=made, dtype=dtype)

    def untyped(self):
        return self._untyped_storage

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def get_device(self):
        return self._untyped_storage.get_device()

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def pickle_storage_type(self) -> str:
        """The name of the class that stands for this dtype in files; KeyError for dtypes younger than those classes."""
        return NAMES[self.dtype.name]

    def type(self, dtype=None, non_blocking=False):
        """The name of the class that stands for this dtype."""
        if dtype is not None:
            return self._untyped_storage.type(dtype)
        name = NAMES.get(self.dtype.name)
        space = "torch.cuda" if self.is_cuda else "torch"
        return "torch.storage.TypedStorage" if name is None else f"{space}.{name}"

    def _flat(self) -> Tensor:
        return self._untyped_storage._flat(self.dtype)

    def tolist(self):
        return as_numpy(self._flat()).tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, i):
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(i, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(i, int):
            raise RuntimeError(f"can't index a {TypedStorage} with {type(i)}")
        if not -self.size() <= i < self.size():
            raise IndexError(f"index {i} out of range for storage of size {self.size()}")
        return self._flat()[i].item()

    def __setitem__(self, i, value):
        if not isinstance(i, (int, slice)):
            raise RuntimeError(f"can't index a {TypedStorage} with {type(i)}")
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._flat()[i] = value

    def fill_(self, value):
        self._flat().fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        """Take over the bytes of a storage of the same size."""
        self._untyped_storage.copy_(source)
        return self

    def resize_(self, size):
        """Grow to so many elements, or shrink."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def _with(self, untyped):
        return self if untyped is self._untyped_storage else TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def clone(self):
        return self._with(self._untyped_storage.clone())

    __copy__ = clone

    def __deepcopy__(self, memo):
        return self._with(self._untyped_storage.__deepcopy__(memo))

    def to(self, *, device, non_blocking=False):
        return self._with(self._untyped_storage.to(device=device))

    def cpu(self):
        return self._with(self._untyped_storage.cpu())

    def cuda(self, device=None, non_blocking=False):
        return self._with(self._untyped_storage.cuda(device))

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and other._storage is self._storage and other.dtype is self.dtype

    def __hash__(self):
        return id(self._storage)

    def __reduce__(self):
        return (_typed, (self._untyped_storage, self.dtype))

    def __repr__(self):
        return _shown(
            self, f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"
        )


def _typed(untyped, dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


# --- how the classes make storages --------------------------------------------------------------------------------------


def _from_argument(args, dtype, place) -> Storage:
    source = args[0] if args else 0
    if isinstance(source, (int, np.integer)):
        return buffers.allocate(int(source), dtype, place)
    if isinstance(source, collections.abc.Sequence):
        return buffers.filled(source, dtype, place)
    raise errors_storage.bad_arguments(f"Argument type not recognized: {type(source)}", TypeError)


def _shown(storage, tail) -> str:
    if storage.device.type == "meta":
        return f"...\n{tail}"
    values = "\n ".join(str(x) for x in storage.tolist())
    return f" {values}\n{tail}"


# --- torch.FloatStorage and its like ------------------------------------------------------------------------------------


class _LegacyMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype and not instance.is_cuda


class _Legacy(TypedStorage, metaclass=_LegacyMeta):
    """A class that only makes TypedStorages of its dtype and recognises them."""

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None):
        for name, given in (("device", device), ("dtype", dtype)):
            if given is not None:
                raise errors_storage.refused(cls, f"Keyword argument '{name}' cannot be specified", RuntimeError)
        if wrap_storage is not None and args:
            raise errors_storage.refused(
                cls, "No positional arguments should be given when using 'wrap_storage'", RuntimeError
            )
        if wrap_storage is not None and not isinstance(wrap_storage, UntypedStorage):
            raise errors_storage.refused(
                cls, f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}", TypeError
            )
        if len(args) > 1:
            raise errors_storage.refused(cls, "Too many positional arguments", RuntimeError)
        if args and not isinstance(args[0], (int, np.integer, collections.abc.Sequence)):
            raise errors_storage.refused(cls, f"Argument type not recognized: {type(args[0])}", TypeError)
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)


# The dtypes that have such a class; younger ones are stored as bytes.
NAMES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage",
    "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage", "bool": "BoolStorage",
    "bfloat16": "BFloat16Storage", "complex128": "ComplexDoubleStorage", "complex64": "ComplexFloatStorage",
}  # fmt: skip
CLASSES = {
    name: _LegacyMeta(name, (_Legacy,), {"dtype": dtypes.ALL[d], "__module__": "torch", "__doc__": f"Storages of {d}."})
    for d, name in NAMES.items()
}


def _caster(dtype, name):
    def cast(self):
        values = self._flat().to(dtype)
        return TypedStorage(
            wrap_storage=UntypedStorage.of(
                values.clone()._storage if values._storage is self._storage else values._storage
            ),
            dtype=dtype,
        )

    cast.__name__ = name
    cast.__doc__ = f"A copy with the elements converted to {dtype}."
    return cast


for _name, _dtype in {
    "double": dtypes.float64, "float": dtypes.float32, "half": dtypes.float16, "long": dtypes.int64, "int": dtypes.int32,
    "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool_, "bfloat16": dtypes.bfloat16,
    "complex_double": dtypes.complex128, "complex_float": dtypes.complex64, "float8_e5m2": dtypes.float8_e5m2,
    "float8_e4m3fn": dtypes.float8_e4m3fn, "float8_e5m2fnuz": dtypes.float8_e5m2fnuz,
    "float8_e4m3fnuz": dtypes.float8_e4m3fnuz,
}.items():  # fmt: skip
    setattr(UntypedStorage, _name, _caster(_dtype, _name))
    setattr(TypedStorage, _name, _caster(_dtype, _name))


def untyped_storage(self) -> UntypedStorage:
    """The storage behind the tensor, as bytes."""
    return UntypedStorage.of(self._storage)


def storage(self) -> TypedStorage:
    """The storage behind the tensor, as elements of its dtype."""
    deprecations.say("storage")
    return typed(self)


def typed(self) -> TypedStorage:
    """The same, for jtorch itself."""
    return TypedStorage(wrap_storage=UntypedStorage.of(self._storage), dtype=self._spec.dtype)
