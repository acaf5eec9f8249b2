"""Tensors of sparse layouts: dense tensors of indices and values under one shape. How they are asked, and what they know of themselves.

A sparse tensor has no memory of its own: its storage refuses to be read, so that nothing can act on it silently. Every public function
that gets one asks `__layout_function__`, which looks into HANDLERS and raises where there is no meaning.
"""

import numpy as np

from .. import creation, errors, errors_nn, errors_sparse, functions
from ..autograd.mode import no_grad
from ..convert import as_numpy
from ..core import dtype as dtypes
from ..core import storage as storages
from ..core.record import tls
from ..core.spec import Spec
from ..core.storage import Storage
from ..dispatch import override
from ..tensor import Tensor, make, wrap

HANDLERS: dict = {}  # name of a function or method -> what computes it where a sparse tensor is among the arguments
_PLURAL = {"csr": ("crow_indices", "col_indices"), "csc": ("ccol_indices", "row_indices")}
_PLURAL |= {"bsr": _PLURAL["csr"], "bsc": _PLURAL["csc"]}


def handles(*names):
    """Decorate the function that computes these names for sparse tensors."""

    def enter(fn):
        for name in names:
            HANDLERS[name] = fn
        return fn

    return enter


# namespaces in which a name means what it means in torch
_PLAIN = ("torch", "Tensor", "nn.functional", "special", "_C._nn")
_names: dict = {}


def name_of(public) -> str:
    """The name of a public function as HANDLERS has it: `torch.masked.sum` is not `sum`."""
    found = _names.get(public)
    if found is None:
        space = next((space for (space, _), made in functions.made() if made is public), "torch")
        found = _names[public] = public.__name__ if space in _PLAIN else f"{space}.{public.__name__}"
    return found


class NoStorage(Storage):
    """In the place of a storage: a version, and errors."""

    __slots__ = ()

    def __init__(self, spec):
        self.spec = spec
        self.version = tls.me.born

    @property
    def value(self):
        raise errors_sparse.no_storage()

    def data_ptr(self):
        raise errors_sparse.no_data_ptr()


class SparseTensor(Tensor):
    """A tensor of a sparse layout. Made by `coo` and `compressed`; isinstance(x, torch.Tensor) holds.

    _at: its index tensors, (indices,) or (compressed, plain); _of: its values, off the tape. _padded: in the place of both, for the
    gradient of an embedding with a padding index: (indices, values, padding index), filtered when somebody looks at the parts. How many are
    left depends on the data, and a training loop need not know.
    """

    def __new__(cls, *args, **kwargs):
        raise TypeError("sparse tensors are made by torch.sparse_coo_tensor, sparse_csr_tensor and their like")

    def __getattr__(self, name):
        if name in ("_at", "_of", "_whole") and "_padded" in self.__dict__:
            indices, values, padding = self._padded
            keep = dense(np.flatnonzero(host(indices)[0] != padding), self._spec.device)
            with no_grad():
                self._at, self._of = (indices.index_select(1, keep),), values.index_select(0, keep)
            self._whole = self._of._spec.shape[0] < 2
            del self._padded
            return self.__dict__[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @classmethod
    def __layout_function__(cls, public, args, kwargs):
        holder = getattr(public, "__self__", None)
        if isinstance(holder, property):
            name = holder.fget.__name__
        else:
            name = name_of(public)
        found = HANDLERS.get(name)
        if found is not None:
            return found(*args, **kwargs)
        if name.endswith("_") and not name.endswith("__"):
            out_of_place = HANDLERS.get(name[:-1])
            if out_of_place is not None:
                if getattr(out_of_place, "coalesces", False) and is_coo(args[0]) and not args[0]._whole:
                    raise errors_sparse.inplace_uncoalesced(name)
                return write(args[0], out_of_place(*args, **kwargs), name)
        kind = next((x for x in override.overloaded(args, kwargs) if isinstance(x, SparseTensor)), None)
        raise errors_sparse.no_kernel(name, kind is None or kind._kind == "coo")

    # -- metadata

    @property
    def layout(self):
        return getattr(creation, f"sparse_{self._kind}")

    @property
    def is_sparse(self):
        return self._kind == "coo"

    @property
    def is_sparse_csr(self):
        return self._kind == "csr"

    def stride(self, dim=None):
        """RuntimeError: sparse tensors have none."""
        raise errors_sparse.no_strides(self._kind)

    def storage_offset(self):
        """0 for coordinates; RuntimeError for compressed layouts."""
        if self._kind == "coo":
            return 0
        raise errors_sparse.no_offset(self._kind)

    def is_contiguous(self, memory_format=None):
        """False."""
        if self._kind == "coo":
            return False
        raise errors_sparse.no_contiguity(self._kind)

    def data_ptr(self):
        """RuntimeError: there is no memory."""
        raise errors_sparse.no_data_ptr()

    def untyped_storage(self):
        """NotImplementedError: there is no storage."""
        raise errors_sparse.no_storage(self._kind)

    storage = _typed_storage = untyped_storage

    def numpy(self, *, force=False):
        """TypeError: to_dense first."""
        raise errors_sparse.no_numpy(self._kind)

    def __array__(self, dtype=None, copy=None):
        raise errors_sparse.no_numpy(self._kind)

    def __jax_array__(self):
        raise errors_sparse.no_storage()

    def tolist(self):
        """RuntimeError: to_dense first."""
        raise errors_sparse.no_data_ptr()

    def item(self):
        """The value of a tensor with one element."""
        return self._item()

    def _item(self, control=False):
        return HANDLERS["to_dense"](self.detach())._item(control)

    def type(self, dtype=None, non_blocking=False, **kwargs):
        """The name of the type, such as "torch.sparse.FloatTensor", or the tensor in another dtype."""
        if dtype is None:
            if self._kind != "coo":
                raise errors_sparse.no_type()
            plain = make(Storage(None, self._spec), self._spec)
            return plain.type().replace("torch.", "torch.sparse.", 1)
        return self.to(dtype)

    # -- parts

    def sparse_dim(self) -> int:
        """How many dimensions are indexed."""
        return self._at[0]._spec.shape[0] if self._kind == "coo" else 2

    def dense_dim(self) -> int:
        """How many dimensions each value has."""
        if self._kind == "coo":
            return self._of._spec.ndim - 1
        return self._of._spec.ndim - self._at[1]._spec.ndim - 2 * self._blocked

    @property
    def _blocked(self):
        return self._kind in ("bsr", "bsc")

    @property
    def _batch(self):
        """How many dimensions of a compressed tensor are batches."""
        return 0 if self._kind == "coo" else self._at[0]._spec.ndim - 1

    def _nnz(self) -> int:
        """The number of values that are stored."""
        return self._of._spec.shape[0] if self._kind == "coo" else self._at[1]._spec.shape[-1]

    def is_coalesced(self) -> bool:
        """Whether the indices are sorted and each is there once."""
        if self._kind != "coo":
            raise errors_sparse.wrong_layout("is_coalesced", "sparse coordinate tensor", self._kind)
        return self._whole

    def _indices(self):
        """The indices as they are stored: (sparse dimensions, nnz)."""
        self._must_be_coo("_indices")
        return self._at[0]

    def _values(self):
        """The values as they are stored, off the tape."""
        self._must_be_coo("_values")
        return self._of

    def indices(self):
        """The indices of a coalesced tensor."""
        if self._kind != "coo":
            raise errors_sparse.wrong_layout("indices", "sparse coordinate tensor", self._kind)
        if not self._whole:
            raise errors_sparse.uncoalesced("indices")
        in_region()
        return self._at[0].detach()

    def values(self):
        """The values, as a tensor through which gradients flow."""
        if self._kind == "coo" and not self._whole:
            raise errors_sparse.uncoalesced("values")
        return HANDLERS["values"](self)

    def _rows(self):
        """(indices, values) for an update of rows that drops what is outside: nothing has to be left out first."""
        found = self.__dict__.get("_padded")
        if found is None:
            return self._at[0], self._of
        in_region()
        indices, values, padding = found
        return indices.masked_fill(indices == padding, -1), values

    def crow_indices(self):
        """Where each row starts: csr and bsr."""
        return self._index("crow_indices", "row")

    def col_indices(self):
        """The columns: csr and bsr."""
        return self._index("col_indices", "row")

    def ccol_indices(self):
        """Where each column starts: csc and bsc."""
        return self._index("ccol_indices", "column")

    def row_indices(self):
        """The rows: csc and bsc."""
        return self._index("row_indices", "column")

    def _index(self, name, which):
        in_region()
        names = _PLURAL.get(self._kind, ())
        if name not in names:
            raise errors_sparse.wrong_layout(name, f"sparse {which} compressed tensor", self._kind)
        return self._at[names.index(name)].detach()

    def _must_be_coo(self, name):
        in_region()
        if self._kind != "coo":
            raise errors_sparse.no_kernel(name, False)

    # -- off the tape

    def detach(self):
        """The same indices and values, off the tape."""
        if "_padded" in self.__dict__:
            return padded(self._spec.shape, *self._padded)
        return like(self, self._at, self._of, self._whole, storage=self._storage)

    @property
    def data(self):
        return like(self, self._at, self._of, self._whole)

    @data.setter
    def data(self, other):
        if not isinstance(other, SparseTensor):
            raise errors.incompatible_data(other)
        take(self, other)

    def __iter__(self):
        if self._spec.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(HANDLERS["unbind"](self))


# Attributes of Tensor that hold for every layout as they are, and need not be asked for.
for _name in (
    "shape", "size", "dtype", "device", "ndim", "dim", "ndimension", "numel", "nelement", "element_size", "itemsize",
    "is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference", "is_quantized", "is_mkldnn", "is_nested",
    "is_cuda", "is_cpu", "is_meta", "get_device", "requires_grad", "requires_grad_", "is_leaf", "grad_fn", "output_nr", "grad",
    "_version", "_is_view", "retains_grad", "retain_grad", "detach_", "register_hook", "register_post_accumulate_grad_hook", "backward",
    "__len__", "__bool__", "__float__", "__int__", "__complex__", "__index__", "is_same_size", "is_shared", "is_pinned", "share_memory_",
    "resolve_conj", "resolve_neg", "pin_memory", "__format__",
):  # fmt: skip
    setattr(SparseTensor, _name, vars(Tensor)[_name])
override.LAYOUTS.add(SparseTensor)


# --- making -------------------------------------------------------------------------------------------------------------


def build(kind, shape, at, of, whole=False, storage=None) -> SparseTensor:
    """A sparse tensor off the tape, unchecked."""
    if not override.STATE.armed:
        override.arm()
    in_region()
    spec = Spec.dense(tuple(shape), of._spec.dtype, of._spec.device)
    t = make(NoStorage(spec) if storage is None else storage, spec, 0, SparseTensor)
    t._kind, t._at, t._of = kind, at, of
    t._whole = whole or kind == "coo" and of._spec.shape[0] < 2
    return t


def in_region():
    """Say to an open compiled region that it sees a sparse tensor, whose parts may be others at the next call."""
    scope = tls.me.scope
    if scope is not None:
        scope.unprovable = "sparse tensors: their parts are looked up at each call"


def coo(shape, indices, values, whole=False) -> SparseTensor:
    """A tensor of coordinates off the tape, unchecked."""
    return build("coo", shape, (indices,), values, whole)


def like(t, at, of, whole=False, storage=None) -> SparseTensor:
    """A tensor of the layout of `t` with other parts, off the tape."""
    return build(t._kind, t._spec.shape, at, of, whole, storage)


def padded(shape, indices, values, padding) -> SparseTensor:
    """A tensor of coordinates without the values at one index, which are left out once somebody looks."""
    made = coo(shape, indices, values)
    del made._at, made._of, made._whole
    made._padded = indices, values, padding
    return made


def take(t, other):
    """Give `t` the parts of another."""
    t.__dict__.pop("_padded", None)
    t._kind, t._at, t._of, t._whole, t._spec = other._kind, other._at, other._of, other._whole, other._spec
    t._storage.spec = other._spec


_RESHAPING = ("t_", "transpose_", "swapaxes_", "swapdims_", "unsqueeze_")


def write(t, result, name):
    """What an op in place does: `t` becomes the result, history included."""
    if not isinstance(t, SparseTensor):
        return t.copy_(HANDLERS["to_dense"](result))
    if not isinstance(result, SparseTensor):
        raise errors_sparse.no_dense_result(name)
    if t._kind != "coo" and name in _RESHAPING:
        raise errors_sparse.transposed_in_place(t._kind)
    if t._rg and tls.me.grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if not dtypes.can_cast(result._spec.dtype, t._spec.dtype):
        raise errors_nn.result_cast(result._spec.dtype, t._spec.dtype)
    if result._spec.dtype is not t._spec.dtype:
        result = result.to(t._spec.dtype)
    if tuple(result._spec.shape) != tuple(t._spec.shape) and name not in _RESHAPING:
        raise errors.inplace_shape(name, t._spec.shape, result._spec.shape)
    take(t, result)
    t._edge = result._edge
    t._storage.version += 1
    return t


def into(out, result):
    """The result, written to out= where it is given."""
    if out is None:
        return result
    if not isinstance(out, SparseTensor):
        if isinstance(result, SparseTensor):
            raise errors_sparse.dense_out()
        if tuple(out._spec.shape) != tuple(result._spec.shape):
            out.resize_(tuple(result._spec.shape))
        return out.copy_(result)
    if not isinstance(result, SparseTensor):
        raise errors_sparse.no_dense_result("out=")
    if tuple(out._spec.shape) != tuple(result._spec.shape):
        take(out, like(result, result._at, result._of.to(out._spec.dtype), result._whole))
        return out
    return write(out, result, "out=")


# --- indices on the host ------------------------------------------------------------------------------------------------


def host(t) -> np.ndarray:
    """The values of a dense tensor as numpy. How many values a result has depends on indices, so they are worked out on the host:
    a program for each number would be compiled otherwise."""
    return np.asarray(as_numpy(t))


def dense(array, device) -> Tensor:
    """A dense tensor of a numpy array that nobody else writes to."""
    return wrap(storages.to_device(array, device), Spec.dense(array.shape, dtypes.of(array.dtype), device))


def is_sparse(x) -> bool:
    return isinstance(x, SparseTensor)


def is_coo(x) -> bool:
    return isinstance(x, SparseTensor) and x._kind == "coo"


def sparse_shape(t) -> tuple:
    """The lengths of the indexed dimensions."""
    return tuple(t._spec.shape[: t.sparse_dim()])


def linear(indices: np.ndarray, shape) -> np.ndarray:
    """Coordinates as one number each, in row-major order."""
    flat = np.zeros(indices.shape[1], np.int64)
    for row, n in zip(indices, shape):
        flat = flat * n + row
    return flat


def unravel(flat: np.ndarray, shape) -> np.ndarray:
    """The inverse of `linear`."""
    rows = []
    for n in reversed(shape):
        flat, row = np.divmod(flat, max(n, 1))
        rows.append(row)
    return np.stack(rows[::-1]).astype(np.int64) if rows else np.zeros((0, len(flat)), np.int64)
