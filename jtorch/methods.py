"""Tensor methods that are not rows of the op table, attached to Tensor."""

import importlib

import numpy as np

from . import complex_views, creation, errors, operators, random_tensors, unavailable
from .convert import array_protocol, array_wrap, as_numpy, caster, cpu, cuda, jax_array, numpy, to, type_, type_as
from .copying import (
    as_subclass,
    contains,
    deepcopy,
    iterate,
    make_subclass,
    make_wrapper_subclass,
    reduce_ex,
    represent,
    shallow_copy,
)
from .core import dtype as dtypes
from .core import sharing
from .filling import fill_random, memory_order
from .inplace_random import bernoulli_, cauchy_, exponential_, geometric_, log_normal_, normal_, random_, uniform_
from .legacy import legacy_new, new
from .ops import registry
from .reshaping import (
    batch_hermitian,
    broadcast_to,
    clone,
    contiguous,
    dim_order,
    flatten,
    hermitian,
    is_contiguous,
    matrix_transposed,
    one_by_one,
    op_named,
    ravel,
    reshape,
    reshape_as,
    sum_to_size,
    transposed,
    view,
)
from .storage_api import CLASSES, NAMES, TypedStorage, UntypedStorage, storage, untyped_storage
from .tensor import Tensor
from .writing import copy_, fill_, layout_inplace, resize_, resize_as_, set_, zero_


def new_factory(name):
    make_one = getattr(creation, name)

    def create(self, *args, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **kw):
        if not args and "size" not in kw:
            raise errors.missing_argument(f"new_{name}", "size")
        if name == "full" and args and isinstance(args[0], int):
            raise errors.argument("new_full", "size", "tuple of ints", args[0], 1)
        kind, place = dtype or self._spec.dtype, device or self._spec.device
        try:
            return make_one(*args, dtype=kind, device=place, requires_grad=requires_grad, **kw)
        except TypeError as error:
            if str(error).startswith(f"{name}()"):
                raise TypeError(f"new_{error}") from None
            raise

    create.__name__ = "new_" + name
    create.__doc__ = make_one.__doc__
    return create


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor with a copy of `data`, in the dtype and on the device of this one."""
    if isinstance(data, Tensor):
        errors.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor)."
        )
        data = to(data.detach(), dtype=dtype or self._spec.dtype, device=device or self._spec.device)
        return data.clone().requires_grad_(requires_grad)
    return creation.tensor(
        data, dtype=dtype or self._spec.dtype, device=device or self._spec.device, requires_grad=requires_grad
    )


def is_set_to(self, tensor) -> bool:
    """Whether both are the same view of the same storage."""
    return self._storage is tensor._storage and self._offset == tensor._offset and self._spec is tensor._spec


def _unseen(self, array):
    """Fill with values behind autograd's back: PyTorch does not count these writes."""
    storage = self._storage
    version = storage.version
    in_memory = np.asarray(array).transpose(memory_order(self._spec.strides))
    fill_random(self, lambda s: in_memory, "")
    storage.version = version
    return self


def _part_setter(part):
    def assign(self, value):
        if isinstance(value, Tensor):
            part(self).copy_(value)
        else:
            part(self)[...] = value

    return assign


def _without_gradients(name, *tensors):
    if any(t.requires_grad for t in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _as_elements(t, results, shape):
    """What a Python function gave for each element, as an array."""
    for x in results:
        if not hasattr(x, "__float__" if t.dtype.is_floating_point else "__index__") and not isinstance(
            x, (float, complex)
        ):
            raise TypeError(
                f"must be real number, not {errors.type_name(x)}"
                if t.dtype.is_floating_point
                else f"'{errors.type_name(x)}' object cannot be interpreted as an integer"
            )
    return np.array(results, t.dtype.np).reshape(shape)


def _same_type(name, t, others):
    """Raise unless the other tensors of map_ have the type of the first."""
    for i, x in enumerate(others, 1):
        argument = "other" if len(others) == 1 else "xy"[i - 1]
        if not isinstance(x, Tensor):
            raise errors.argument(name, argument, "Tensor", x, i)
        if x.type() != t.type():
            raise TypeError(f"{name}: expected {t.type()} for '{argument}' (got {x.type()})")


def apply_(self, function):
    """Replace each element by function(element): a Python loop, for CPU tensors."""
    _without_gradients("apply_", self)
    if self.device.type == "meta":
        return self
    array = np.array(as_numpy(self))
    return _unseen(self, _as_elements(self, [function(x) for x in array.reshape(-1).tolist()], array.shape))


def map_(self, other, function):
    """Replace each element by function(element, other's element)."""
    _same_type("map_", self, [other])
    _without_gradients("map_", self, other)
    a, b = np.array(as_numpy(self)), np.broadcast_to(as_numpy(other), self.shape)
    found = [function(x, y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist())]
    return _unseen(self, _as_elements(self, found, a.shape))


def map2_(self, x, y, function):
    """Replace each element by function(element, x's element, y's element)."""
    _same_type("map2_", self, [x, y])
    _without_gradients("map2_", self, x, y)
    a = np.array(as_numpy(self))
    others = [np.broadcast_to(as_numpy(t), self.shape).reshape(-1).tolist() for t in (x, y)]
    return _unseen(
        self, _as_elements(self, [function(*each) for each in zip(a.reshape(-1).tolist(), *others)], a.shape)
    )


def equal(input, other) -> bool:
    """Whether shape and all elements are the same."""
    if not isinstance(other, Tensor):
        raise errors.argument("equal", "other", "Tensor", other, 2)
    if tuple(input.shape) != tuple(other.shape):
        return False
    if input.device is not other.device:
        raise RuntimeError("Cannot compare two tensors on different devices")
    return bool(op_named("all")(op_named("eq")(input, other)).item()) if input.numel() else True


def to_dense(self, dtype=None, *, masked_grad=None):
    """This tensor: it is dense already. A sparse one with all its elements."""
    return self if dtype is None else to(self, dtype=dtype)


def of_sparse(name):
    """The function of this name that makes or takes sparse tensors; the package `sparse` is imported by its first call."""

    def call(*args, **kwargs):
        importlib.import_module("jtorch.sparse")
        return importlib.import_module("jtorch.sparse.base").HANDLERS[name](*args, **kwargs)

    call.__name__, call.__qualname__ = name, f"Tensor.{name}"
    call.__doc__ = f"See torch.sparse: {name} makes or takes sparse tensors."
    return call


registry.sparse_tables = lambda: importlib.import_module("jtorch.sparse.embedding")
_OF_SPARSE = (
    "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "sparse_mask", "sparse_resize_",
    "sparse_resize_and_clear_", "resize_as_sparse_", "smm", "sspaddmm",
)  # fmt: skip


def share_memory_(self):
    """Move the storage into memory that processes started by torch.multiprocessing can share; nothing on an accelerator."""
    sharing.share(self._storage)
    return self


def _volatile(self) -> bool:
    """Deprecated by PyTorch: False."""
    errors.warn("volatile was removed (Variable.volatile is always False)")
    return False


def _volatile_set(self, value):
    errors.warn('volatile was removed and now has no effect. Use "with torch.no_grad():" instead.')


def _no_name(self):
    """The name of a variable: there is none."""


def _grad_dtype(self):
    """The dtype of this leaf's gradient: its own."""
    return self._spec.dtype


def resize(self, *sizes):
    """Deprecated by PyTorch: the same elements in another shape."""
    errors.warn("non-inplace resize is deprecated")
    return reshape(self, *sizes)


def resize_as(self, tensor):
    """Deprecated by PyTorch: the same elements in the shape of `tensor`."""
    errors.warn("non-inplace resize_as is deprecated")
    return reshape(self, tensor.shape)


def module_load(self, other, assign=False):
    """What `load_state_dict` swaps this tensor with under torch.__future__.set_swap_module_params_on_conversion."""
    return other.detach() if assign else self.copy_(other).detach()


def record_stream(self, stream) -> None:
    """Accepted: memory is given back when programs that use it have run."""


def reinforce(self, reward):
    """Removed from PyTorch; it raises as PyTorch's does."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")


def dense_dim(self) -> int:
    """The number of dimensions that are not sparse: all."""
    return self._spec.ndim


def sparse_dim(self) -> int:
    """The number of sparse dimensions: none."""
    return 0


def const_data_ptr(self) -> int:
    """As `data_ptr`."""
    return self.data_ptr()


def dequantize(self):
    """The tensor in float32."""
    return to(self, dtype=dtypes.float32)


def index(self, indices):
    """`self[indices]`."""
    return self[tuple(indices)]


def storage_type(self) -> type:
    """The class of this tensor's typed storage."""
    name = NAMES.get(self._spec.dtype.name)
    return None if name is None else CLASSES[name]


def slice_inverse(self, src, dim=0, start=None, end=None, step=1):
    """The tensor that `self` is a slice of, `src` giving its shape, strides and offset."""
    return self.as_strided(tuple(src.shape), src.stride(), src.storage_offset())


def is_same_size(self, other) -> bool:
    """Whether the other tensor has the same shape."""
    return same_sized(self, other, 1)


def same_sized(input, other, position=2) -> bool:
    """Whether two tensors have the same shape; position: of the other among the arguments, for the error."""
    if not isinstance(other, Tensor):
        raise errors.argument("is_same_size", "other", "Tensor", other, position)
    return input.shape == other.shape


def is_nonzero(self) -> bool:
    """Whether the one element is not zero. RuntimeError: there is none, or more."""
    return bool(self)


def is_distributed(self) -> bool:
    """False: a tensor lies in this process."""
    return False


def pin_memory(self, device=None):
    """The tensor itself: memory for transfers is jax's affair."""
    return self


def resolve_conj(self):
    """The tensor itself: no tensor is a lazy conjugate."""
    return self


def resolve_neg(self):
    """The tensor itself: no tensor is a lazy negation."""
    return self


_SMALL = (
    dense_dim, sparse_dim, const_data_ptr, dequantize, module_load, record_stream, reinforce, resize, resize_as, index,
    storage_type, slice_inverse, is_same_size, is_nonzero, is_distributed, pin_memory,
    resolve_conj, resolve_neg,
)  # fmt: skip


def install():
    """Attach everything to Tensor; the op table is complete by now."""
    methods = {
        "reshape": reshape, "view": view, "flatten": flatten, "ravel": ravel, "contiguous": contiguous,
        "is_contiguous": is_contiguous, "clone": clone, "to": to, "type": type_, "type_as": type_as, "cpu": cpu, "cuda": cuda,
        "copy_": copy_, "fill_": fill_, "zero_": zero_, "set_": set_, "resize_": resize_, "resize_as_": resize_as_,
        "numpy": numpy, "__array__": array_protocol, "__array_wrap__": array_wrap, "__jax_array__": jax_array,
        "storage": storage, "untyped_storage": untyped_storage,
        "_typed_storage": storage, "__repr__": represent, "__deepcopy__": deepcopy, "__copy__": shallow_copy, "__reduce_ex__": reduce_ex,
        "__iter__": iterate, "__contains__": contains, "uniform_": uniform_, "normal_": normal_, "bernoulli_": bernoulli_,
        "random_": random_, "exponential_": exponential_, "cauchy_": cauchy_, "log_normal_": log_normal_,
        "geometric_": geometric_, "new_tensor": new_tensor, "is_set_to": is_set_to, "apply_": apply_, "map_": map_, "map2_": map2_,
        "reshape_as": reshape_as, "broadcast_to": broadcast_to, "sum_to_size": sum_to_size, "equal": equal, "bernoulli": random_tensors.bernoulli, "multinomial": random_tensors.multinomial,
    }  # fmt: skip
    for name, fn in methods.items():
        if not name.startswith("_") or name.endswith("__"):
            fn.__name__ = name
        setattr(Tensor, name, fn)
    for name in ("empty", "zeros", "ones", "full", "empty_strided"):
        setattr(Tensor, "new_" + name, new_factory(name))
    for name in ("count_nonzero", "hsplit", "vsplit", "dsplit"):
        setattr(Tensor, name, one_by_one(name))
    casts = {
        "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
        "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "chalf": "complex32", "cfloat": "complex64",
        "cdouble": "complex128",
    }  # fmt: skip
    for name, dtype in casts.items():
        setattr(Tensor, name, caster(dtypes.ALL[dtype], name))
    Tensor.T = property(transposed)
    Tensor.mT = property(matrix_transposed)
    Tensor.H = property(hermitian)
    Tensor.mH = property(batch_hermitian)
    Tensor.__array_priority__ = 1000
    Tensor._make_subclass = staticmethod(make_subclass)
    Tensor._make_wrapper_subclass = staticmethod(make_wrapper_subclass)
    Tensor._stack = staticmethod(lambda parts: op_named("stack")(parts))
    Tensor.as_subclass = as_subclass
    Tensor.new = new
    Tensor.__new__ = staticmethod(legacy_new)
    Tensor.share_memory_ = share_memory_
    Tensor.dim_order = dim_order
    Tensor.to_dense = to_dense
    for name in _OF_SPARSE:
        setattr(Tensor, name, of_sparse(name))
    for name in ("transpose", "squeeze", "unsqueeze", "t", "swapaxes", "swapdims", "as_strided"):
        setattr(Tensor, name + "_", layout_inplace(name))
    for name, fn in unavailable.methods().items():
        setattr(Tensor, name, fn)
    for fn in _SMALL:
        setattr(Tensor, fn.__name__, fn)
    Tensor.volatile = property(_volatile, _volatile_set)
    Tensor.name = property(_no_name)
    Tensor.grad_dtype = property(_grad_dtype)
    operators.install()
    for name in ("real", "imag"):
        part = getattr(complex_views, name)
        setattr(Tensor, name, property(part, _part_setter(part)))


__all__ = ["TypedStorage", "UntypedStorage"]
