"""The bytes behind tensors, as objects."""

from .convert import as_numpy
from .core import dtype as dtypes
from .core.spec import Spec
from .tensor import make
from .writing import resize_


class UntypedStorage:
    """The bytes behind tensors."""

    _name = "torch.storage.UntypedStorage"

    def __init__(self, storage, dtype=dtypes.uint8):
        self._storage = storage
        self.dtype = dtype

    @property
    def device(self):
        return self._storage.base.device

    def data_ptr(self):
        return self._storage.data_ptr()

    _cdata = property(lambda self: id(self._storage))

    def nbytes(self):
        return self._storage.base.nbytes

    def size(self):
        return self._storage.base.nbytes // self.dtype.itemsize

    def __len__(self):
        return self.size()

    def element_size(self):
        return self.dtype.itemsize

    def _flat(self):
        n = self._storage.base.nbytes // self.dtype.itemsize
        return make(self._storage, Spec.dense((n,), self.dtype, self._storage.base.device))

    def tolist(self):
        return as_numpy(self._flat()).tolist()

    def __getitem__(self, i):
        got = self._flat()[i]
        return got.item() if got.ndim == 0 else got.tolist()

    def __setitem__(self, i, value):
        self._flat()[i] = value

    def __iter__(self):
        return iter(self.tolist())

    def clone(self):
        flat = self._flat().clone()
        return type(self)(flat._storage, self.dtype)

    def cpu(self):
        return self

    def fill_(self, value):
        self._flat().fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        self._flat().copy_(source._flat())
        return self

    def resize_(self, nbytes):
        resize_(self._flat(), nbytes // self.dtype.itemsize)
        return self

    def untyped(self):
        return UntypedStorage(self._storage)

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self):
        return id(self._storage)

    def __repr__(self):
        values = "\n ".join(str(x) for x in self.tolist())
        name = type(self).__name__
        tail = (
            f"[{self._name}(device={self.device}) of size {self.size()}]"
            if name != "TypedStorage"
            else (f"[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]")
        )
        return f" {values}\n{tail}"


class TypedStorage(UntypedStorage):
    """A storage seen as elements of one dtype."""


def untyped_storage(self) -> UntypedStorage:
    """The storage behind the tensor, as bytes."""
    return UntypedStorage(self._storage)


def storage(self) -> TypedStorage:
    """The storage behind the tensor, as elements of its dtype."""
    return TypedStorage(self._storage, self._spec.dtype)
