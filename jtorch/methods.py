"""Tensor methods that are not rows of the op table: copies, conversions, numpy, storage, printing, pickling."""

import builtins
import copy

import jax
import numpy as np

from . import complex_views, creation, errors, operators, printing
from .autograd.node import PythonNode
from .core import device as devices
from .core import draw, shapes
from .core import dtype as dtypes
from .core import storage as storages
from .core.dtype import dtype as DType
from .core.layout import view_strides
from .core.record import tls
from .core.spec import Size, Spec
from .core.storage import Storage
from .creation import (
    MemoryFormat,
    channels_last,
    contiguous_format,
    fill_random,
    full_of,
    generator_of,
    preserve_format,
    size_of,
    strides_for,
)  # fmt: skip
from .dispatch import (
    call_view,
    check_inplace,
    function_of,
    inplace,
    write_on_tape,
    zeros_value,
)  # fmt: skip
from .dispatch.generate import build_view
from .ops import registry
from .tensor import Tensor, edge_of, make, value_of, wrap


def _op(name):
    return function_of(registry.OPS[name])


_lookup = operators.lookup


def _view(name, t, *statics):
    return call_view(registry.VIEWS[name], t, statics)


# --- shape -------------------------------------------------------------------------------------------------------------


def reshape(input, *shape) -> Tensor:
    """The same elements in another shape: a view where one layout can say it, else a copy."""
    size = size_of(shape)
    spec = input._spec
    size = shapes.infer_size(size, spec.numel)
    if view_strides(tuple(spec.shape), spec.strides, size) is None:
        return _lookup("_unsafe_view")(clone(input, memory_format=contiguous_format), size)
    return _view("view", input, size)


def reshape_function(input, shape) -> Tensor:
    """The same elements in another shape: a view where one layout can say it, else a copy."""
    return reshape(input, shape)


def view(self, *size, dtype=None) -> Tensor:
    """The same storage in another shape, or read as another dtype."""
    if dtype is not None or (len(size) == 1 and isinstance(size[0], DType)):
        return view_dtype(self, dtype or size[0])
    return _view("view", self, size_of(size))


def view_dtype(self, dtype) -> Tensor:
    """The same memory read as another element type."""
    spec = self._spec
    if dtype is spec.dtype:
        return _view("alias", self)
    old, new = spec.dtype.itemsize, dtype.itemsize
    shape, strides, offset = list(spec.shape), list(spec.strides), self._offset
    if old != new and not shape:
        raise RuntimeError(f"self.dim() cannot be 0 to view {spec.dtype} as {dtype} (different element sizes)")
    if old > new:
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {spec.dtype} as {dtype} (different element sizes), but got {strides[-1]}"
            )
        ratio = old // new
        shape[-1] *= ratio
        strides = [s * ratio for s in strides[:-1]] + [1]
        offset *= ratio
    elif old < new:
        ratio = new // old
        if shape[-1] % ratio:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {ratio} to view {spec.dtype} as {dtype} (different element sizes), but "
                f"got {shape[-1]}"
            )
        if offset % ratio:
            raise RuntimeError(
                f"self.storage_offset() must be divisible by {ratio} to view {spec.dtype} as {dtype} (different element "
                f"sizes), but got {offset}"
            )
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {spec.dtype} as {dtype} (different element sizes), but got {strides[-1]}"
            )
        if any(s % ratio for s in strides[:-1]):
            bad = next(i for i, s in enumerate(strides[:-1]) if s % ratio)
            raise RuntimeError(
                f"self.stride({bad}) must be divisible by {ratio} to view {spec.dtype} as {dtype} (different element sizes), "
                f"but got {strides[bad]}"
            )
        shape[-1] //= ratio
        strides = [s // ratio for s in strides[:-1]] + [1]
        offset //= ratio
    made = make(self._storage, Spec.of(tuple(shape), tuple(strides), dtype, spec.device), offset)
    return made


def reshape_as(self, other) -> Tensor:
    """The same elements in the shape of another tensor."""
    return reshape(self, tuple(other._spec.shape))


def sum_to_size(self, *size) -> Tensor:
    """The sum over the dimensions along which `size` would broadcast to this tensor's shape."""
    size, shape = size_of(size), tuple(self._spec.shape)
    lead = len(shape) - len(size)
    if lead < 0 or any(n not in (1, m) for n, m in zip(size, shape[lead:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    if not size:
        return _lookup("sum")(self)
    dims = tuple(d for d, m in enumerate(shape) if d < lead or size[d - lead] == 1 and m != 1)
    made = _lookup("sum")(self, dims, True) if dims else self
    return reshape(made, size) if lead else made


def broadcast_shapes(*sizes):
    """The shape to which tensors of these shapes broadcast."""
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in sizes]
    try:
        return Size(shapes.broadcast(*sizes)) if sizes else Size(())
    except RuntimeError:
        raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape") from None


def flatten(input, start_dim=0, end_dim=-1) -> Tensor:
    """Dimensions start_dim .. end_dim joined into one."""
    spec = input._spec
    first, last = shapes.wrap_dim(start_dim, spec.ndim), shapes.wrap_dim(end_dim, spec.ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if spec.ndim == 0:
        return reshape(input, 1)
    if first == last:
        return input
    shape = spec.shape
    joined = 1
    for n in shape[first : last + 1]:
        joined *= n
    return reshape(input, (*shape[:first], joined, *shape[last + 1 :]))


def ravel(input) -> Tensor:
    """All elements in one dimension."""
    return reshape(input.contiguous(), -1)


def contiguous(self, memory_format=contiguous_format) -> Tensor:
    """The tensor itself when it is laid out so already, else a copy that is."""
    if is_contiguous(self, memory_format):
        return self
    return clone(self, memory_format=memory_format)


def is_contiguous(self, memory_format=contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of the format."""
    spec = self._spec
    if memory_format is contiguous_format:
        return spec.contiguous
    want = 4 if memory_format is channels_last else 5
    return spec.ndim == want and shapes.is_channels_last(tuple(spec.shape), spec.strides)


def clone(input, *, memory_format=preserve_format) -> Tensor:
    """A copy, differentiable."""
    made = _op("clone")(input)
    spec = made._spec
    if memory_format is None or memory_format is preserve_format:
        strides = tuple(shapes.empty_like_strides(tuple(input._spec.shape), input._spec.strides))
    else:
        strides = tuple(strides_for(spec.shape, memory_format))
    return _with_strides(made, strides)


def _with_strides(t, strides):
    """A fresh tensor's storage declared to lie in memory with these (dense) strides."""
    spec = t._spec
    if spec.strides != strides:
        spec = Spec.of(tuple(spec.shape), strides, spec.dtype, spec.device)
        t._spec = t._storage.spec = spec
    return t


def transposed(self) -> Tensor:
    """The dimensions in reverse order."""
    n = self._spec.ndim
    if n == 2:
        return _view("t", self)
    if n not in (0, 1, 2):
        errors.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
            "error in a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange("
            "x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return _view("permute", self, tuple(builtins.range(n - 1, -1, -1)))


def matrix_transposed(self) -> Tensor:
    """The last two dimensions swapped."""
    if self._spec.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self._spec.ndim}-D tensor."
        )
    return _view("transpose", self, -2, -1)


def _hermitian(self) -> Tensor:
    if self._spec.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self._spec.ndim}-D tensor.")
    return _op("conj")(transposed(self)) if self.is_complex() else transposed(self)


def _batch_hermitian(self) -> Tensor:
    return _op("conj")(matrix_transposed(self)) if self.is_complex() else matrix_transposed(self)


# --- conversion --------------------------------------------------------------------------------------------------------


def to(self, *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None) -> Tensor:
    """The tensor on another device or in another dtype; itself when nothing would change."""
    flags = []  # non_blocking, copy
    for a in args:
        if isinstance(a, DType):
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
        dtype = creation._dtype(dtype)
    same_format = memory_format in (None, preserve_format) or is_contiguous(self, memory_format)
    if place is spec.device and dtype is spec.dtype:
        if not copy and same_format:
            return self
        return clone(self, memory_format=memory_format or preserve_format)
    made = self
    if dtype is not spec.dtype:
        made = _op("_to_copy")(made, dtype)
        made = _with_strides(made, tuple(shapes.empty_like_strides(tuple(spec.shape), spec.strides)))
    if place is not spec.device:
        made = _to_device(made, place)
    if memory_format not in (None, preserve_format):
        made = contiguous(made, memory_format)
    return made


def _to_device(t, place):
    value = value_of(t)
    if not isinstance(value, jax.core.Tracer):
        value = jax.device_put(storages.realise(value), place.jax)
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


def type_(self, dtype=None, non_blocking=False):
    """The old-style type name, or the tensor in another dtype."""
    if dtype is None:
        space = "torch." if self._spec.device is devices.cpu else f"torch.{self._spec.device.type}."
        return f"{space}{LEGACY_NAMES[self._spec.dtype.name]}"
    if isinstance(dtype, str):
        name = dtype.rsplit(".", 1)[-1]
        dtype = next(dtypes.ALL[k] for k, v in LEGACY_NAMES.items() if v == name)
    elif isinstance(dtype, type):
        dtype = getattr(dtype, "dtype", None) or creation._dtype(dtype)
    return to(self, dtype=dtype)


LEGACY_NAMES = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor", "int32": "IntTensor", "int64": "LongTensor",
    "bool": "BoolTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
}  # fmt: skip


def _caster(dtype, name):
    def cast(self, memory_format=preserve_format):
        return to(self, dtype=dtype)

    cast.__name__ = name
    cast.__doc__ = f"The tensor as {dtype}."
    return cast


def type_as(self, other) -> Tensor:
    """The tensor in the dtype and on the device of another."""
    return to(self, dtype=other._spec.dtype, device=other._spec.device)


def cpu(self, memory_format=preserve_format) -> Tensor:
    """The tensor in host memory."""
    return to(self, device=devices.cpu)


def cuda(self, device=None, non_blocking=False, memory_format=preserve_format) -> Tensor:
    """The tensor on the accelerator."""
    return to(self, device="cuda" if device is None else device)


# --- writing -----------------------------------------------------------------------------------------------------------


def copy_(self, src, non_blocking=False) -> Tensor:
    """Write the elements of `src`, broadcast and converted."""
    if not isinstance(src, Tensor):
        src = creation.tensor(src)
    if tls.me.grad:
        check_inplace(self, (src,))
    a, b = self._spec, src._spec
    if tuple(a.shape) != tuple(b.shape):
        try:
            wanted = shapes.broadcast(tuple(a.shape), tuple(b.shape))
        except RuntimeError:
            wanted = None
        if wanted != tuple(a.shape):
            if wanted is None:
                shapes.broadcast(tuple(a.shape), tuple(b.shape))
            raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(wanted)}")
        src = _view("expand", src, tuple(a.shape))
    if b.device is not a.device:
        src = _to_device(src, a.device)
    if b.dtype is not a.dtype:
        src = _op("_to_copy")(src, a.dtype)
    if a.numel > 1 and any(s == 0 and n > 1 for n, s in zip(a.shape, a.strides)):
        raise errors.overlap()
    edge = edge_of(src) if tls.me.grad else None
    if edge is not None:
        # A node of its own, as torch has it: the written tensor's history is a copy of the source's.
        src = _op("_copy")(src) if "_copy" in registry.OPS else _op("clone")(src)
        edge = edge_of(src)
    write_on_tape(self, value_of(src), *(edge if edge is not None else (None, 0)))
    return self


def fill_(self, value) -> Tensor:
    """Write one value everywhere."""
    if isinstance(value, Tensor):
        if value._spec.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value._spec.ndim} dimensions."
            )
        return copy_(self, value)
    if 0 in self._spec.strides:
        # Elements that share memory are written once.
        once = self
        for d, (n, s) in enumerate(zip(self._spec.shape, self._spec.strides)):
            if s == 0 and n > 1:
                once = _view("_narrow", once, d, 0, 1)
        if once is not self:
            fill_(once, value)
            return self
    if tls.me.grad:
        check_inplace(self)
        if edge_of(self) is not None:
            return inplace(registry.OPS["filled"], (self, value))  # what is written does not depend on what was there
    spec = self._spec
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex) and not spec.dtype.is_complex:
        raise errors.not_representable(spec.dtype)
    filled = full_of(Spec.dense(tuple(spec.shape), spec.dtype, spec.device), value)
    write_on_tape(self, filled._storage.value, None)
    return self


def zero_(self) -> Tensor:
    """Write zeros."""
    if tls.me.grad and edge_of(self) is not None and 0 not in self._spec.strides:
        return inplace(registry.OPS["zeroed"], (self,))
    return fill_(self, 0)


def set_(self, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
    """Make this tensor a view of another storage."""
    if source is None:
        spec = Spec.dense((0,), self._spec.dtype, self._spec.device)
        self._storage, self._spec, self._offset = Storage(zeros_value(spec), spec), spec, 0
        return self
    if isinstance(source, Tensor):
        self._storage = source._storage
        if size is None:
            self._spec, self._offset = source._spec, source._offset
            return self
    else:
        self._storage = source._storage
        if size is None:
            size = (self._storage.base.nbytes // self._spec.dtype.itemsize,)
    size = tuple(size)
    stride = shapes.contiguous_strides(size) if stride is None else tuple(stride)
    self._spec = Spec.of(size, tuple(stride), self._spec.dtype, self._storage.base.device)
    self._offset = storage_offset
    return self


def resize_(self, *size, memory_format=contiguous_format) -> Tensor:
    """Change the shape in place; the storage grows when it must, new elements are zeros."""
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    size = size_of(size)
    spec = self._spec
    new = Spec.of(size, tuple(strides_for(size, memory_format)), spec.dtype, spec.device)
    need = self._offset + new.numel
    base = self._storage.base
    have = base.nbytes // spec.dtype.itemsize
    if need > have:
        old = storages.numpy_of(self._storage, Spec.dense((have,), spec.dtype, spec.device), 0) if have else np.zeros(0)
        flat = np.zeros(need, spec.dtype.np)
        flat[:have] = old[:have]
        self._storage.value = storages.to_device(flat, spec.device)
        self._storage.spec = Spec.dense((need,), spec.dtype, spec.device)
    self._storage.version += 1
    self._spec = new
    return self


def resize_as_(self, other, memory_format=contiguous_format) -> Tensor:
    """`resize_` to the shape of another tensor."""
    return resize_(self, tuple(other._spec.shape))


def _swap_meta(self, made):
    """Let a tensor take the layout of a view of itself (transpose_, squeeze_...)."""
    self._spec = made._spec
    self._offset = made._offset
    if made._edge is not None:
        self._edge = made._edge
        self._base_edge = made._base_edge if self._base is not None else None
    return self


def _written_name(view):
    """The node of a view op that changes its operand has the number after those of the plain forms."""
    if isinstance(view.grad_name, str):
        return view.grad_name.removesuffix("0") + "1"
    plain = view.grad_name

    def name(*args):
        got = plain(*args)
        return got[:-1] + str(int(got[-1]) + 3)

    return name


def _layout_inplace(name):
    def change(self, *args, **kwargs):
        if tls.me.grad:
            check_inplace(self)
        made = written(self, *args, **kwargs)
        self._storage.version += 1
        return _swap_meta(self, made)

    view = copy.copy(registry.VIEWS[registry.ALIASES.get(name, name)])
    view.plans = {}
    view.grad_name = _written_name(view)
    written = build_view(view)
    change.__name__ = name + "_"
    change.__doc__ = f"`{name}`, in place."
    return change


# --- numpy and jax -----------------------------------------------------------------------------------------------------


def numpy(self, *, force=False):
    """A numpy array that shares memory with this CPU tensor: each sees the other's writes."""
    if force:
        self = cpu(self.detach())
    if self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._spec.device is not devices.cpu:
        raise TypeError(
            f"can't convert {self._spec.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    if self._spec.dtype.name in ("bfloat16",) or self._spec.dtype.name.startswith("float8"):
        raise TypeError(f"Got unsupported ScalarType {dtypes.scalar_name(self._spec.dtype)}")
    if isinstance(self._storage.value, jax.core.Tracer):
        raise errors.data_dependent("numpy")
    storages.share(self._storage)
    return storages.host_view(self._storage, self._spec, self._offset)


def as_numpy(t) -> np.ndarray:
    """The elements as a numpy array that must not be written to; nothing becomes shared."""
    return storages.numpy_of(t._storage, t._spec, t._offset)


def array_protocol(self, dtype=None, copy=None):
    if self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    made = numpy(self)
    return made if dtype is None else made.astype(dtype, copy=False)


def jax_array(self):
    """The tensor as a jax.Array: nothing is copied where the storage holds just this tensor."""
    return storages.realise(value_of(self))


# --- storage -----------------------------------------------------------------------------------------------------------


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


# --- printing, copying, pickling ---------------------------------------------------------------------------------------


def represent(self, *, tensor_contents=None):
    spec = self._spec
    value = self._storage.value
    if isinstance(value, jax.core.Tracer):
        return f"tensor(<traced {spec.dtype.name}{list(spec.shape)}>)"
    edge = None if self._rg else edge_of(self)
    with_param = isinstance(self, _parameter_class())
    return printing.format_tensor(
        as_numpy(self), dtype=spec.dtype, shape=tuple(spec.shape), requires_grad=self.requires_grad,
        grad_fn_name=None if edge is None else type(edge[0]).__name__, device=None if spec.device is devices.cpu else str(spec.device), is_param=with_param,
    )  # fmt: skip


def _parameter_class():
    return PARAMETER[0] or ()


PARAMETER: list = [None]  # set by nn.parameter


def deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self._edge is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    key = ("storage", id(self._storage))
    new_storage = memo.get(key)
    if new_storage is None:
        base = self._storage.base
        value = storages.read(self._storage, base, 0)
        new_storage = memo[key] = Storage(value, base)
        memo[("keep", id(self._storage))] = self._storage
    made = make(new_storage, self._spec, self._offset, type(self))
    made._rg = self._rg
    memo[id(self)] = made
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    for k, v in self.__dict__.items():
        if k not in ("_acc", "_post_hooks"):
            made.__dict__[k] = copy.deepcopy(v, memo)
    return made


def shallow_copy(self):
    made = make(self._storage, self._spec, self._offset, type(self))
    made._rg = self._rg
    made.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("_acc", "_post_hooks")})
    return made


def reduce_ex(self, protocol):
    if self._edge is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
        )
    base = self._storage.base
    whole = storages.numpy_of(self._storage, base, 0)
    state = {k: v for k, v in self.__dict__.items() if k not in ("_acc", "_post_hooks")}
    return (
        rebuild,
        (type(self), np.array(whole), base.strides, base.dtype, str(base.device), tuple(self._spec.shape), self._spec.strides,
         self._spec.dtype, self._offset, self._rg, state),
    )  # fmt: skip


def rebuild(cls, array, base_strides, base_dtype, device, shape, strides, dtype, offset, requires_grad, state):
    """A tensor out of a pickle."""
    try:
        place = devices.resolve(device)
    except (AssertionError, RuntimeError):
        place = devices.cpu
    base = Spec.of(array.shape, tuple(base_strides), base_dtype, place)
    made = make(Storage(storages.to_device(array, place), base), Spec.of(shape, strides, dtype, place), offset, cls)
    made._rg = requires_grad
    made.__dict__.update(state)
    return made


def make_subclass(cls, data, require_grad=False):
    """A tensor of class `cls` on the storage of `data`, off the tape."""
    made = make(data._storage, data._spec, data._offset, cls)
    made._rg = bool(require_grad)
    if require_grad and not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made


def as_subclass(self, cls):
    """A view of this tensor of class `cls`, which results of ops on it have too."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    made = _view("alias", self)
    made.__class__ = cls
    return made


def legacy_new(cls, *args, dtype=None, device=None, requires_grad=False):
    """torch.Tensor(...): sizes, or data as float32."""
    d = dtype or dtypes.default.dtype
    if len(args) == 1 and isinstance(args[0], Tensor):
        return make(args[0]._storage, args[0]._spec, args[0]._offset, cls)
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray)) and not _is_size(args[0]):
        made = creation.tensor(args[0], dtype=d)
    else:
        made = creation.empty(*args, dtype=d) if args else creation.empty(0, dtype=d)
    return make(made._storage, made._spec, 0, cls)


def _is_size(x):
    return type(x).__name__ == "Size"


def iterate(self):
    if self._spec.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(_view("unbind", self, 0))


def contains(self, element):
    if isinstance(element, (Tensor, int, float, complex, bool)):
        return bool(_op("any")(_op("eq")(self, element)))
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


# --- random, in place --------------------------------------------------------------------------------------------------


def uniform_(self, from_=0, to=1, *, generator=None, **named) -> Tensor:
    """Uniform numbers from [from, to)."""
    low = named.get("from", from_)
    if low > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")
    g = generator_of(generator)
    return fill_random(self, lambda s: creation.draw_uniform(g, s, self._spec.dtype, float(low), float(to)))


def normal_(self, mean=0, std=1, *, generator=None) -> Tensor:
    """Normal numbers."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    g = generator_of(generator)
    return fill_random(self, lambda s: creation.draw_normal(g, s, self._spec.dtype, float(mean), float(std)))


def bernoulli_(self, p=0.5, *, generator=None) -> Tensor:
    """0 or 1, each 1 with probability `p` (a number or a tensor)."""
    if self._spec.dtype.is_complex:
        raise errors.not_implemented("bernoulli_scalar_cpu_", self._spec.dtype)
    g = generator_of(generator)
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    prob = as_numpy(_view("expand", p, tuple(self._spec.shape))) if isinstance(p, Tensor) else float(p)
    return fill_random(self, lambda s: draw.bernoulli(g, prob, s, self._spec.dtype.np))


def random_(self, *args, generator=None, **named) -> Tensor:
    """Integers: over the dtype's range, [0, to), or [from, to)."""
    if self._spec.dtype.is_complex:
        if args or named:
            raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
        raise errors.not_implemented("random_kernel_cpu", self._spec.dtype)
    g = generator_of(generator)
    d = self._spec.dtype.np
    low = named.get("from")
    high = named.get("to")
    if len(args) == 2:
        low, high = args
    elif len(args) == 1:
        high = args[0]
    if high is None and low is None:
        return fill_random(self, lambda s: draw.random(g, s, d))
    if high is None:
        return fill_random(self, lambda s: draw.random_from(g, int(low), s, d))
    low, high = creation.int_bounds(0 if low is None else int(low), int(high), self._spec.dtype)
    return fill_random(self, lambda s: draw.randint(g, low, high, s, d))


def exponential_(self, lambd=1, *, generator=None) -> Tensor:
    """Exponential numbers with rate `lambd`."""
    if not self._spec.dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {dtypes.scalar_name(self._spec.dtype)}"
        )
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    g = generator_of(generator)
    return fill_random(self, lambda s: draw.exponential(g, s, self._spec.dtype.np, float(lambd)))


def cauchy_(self, median=0, sigma=1, *, generator=None) -> Tensor:
    """Cauchy numbers."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    if not self._spec.dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified "
            f"{errors.c_type(self._spec.dtype)}"
        )
    g = generator_of(generator)
    return fill_random(self, lambda s: draw.cauchy(g, s, self._spec.dtype.np, float(median), float(sigma)))


def log_normal_(self, mean=1, std=2, *, generator=None) -> Tensor:
    """Exponentials of normal numbers."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    if not self._spec.dtype.is_floating_point:
        raise errors.not_implemented("log_normal_cpu", self._spec.dtype)
    g = generator_of(generator)
    return fill_random(self, lambda s: draw.log_normal(g, s, self._spec.dtype.np, float(mean), float(std)))


def geometric_(self, p, *, generator=None) -> Tensor:
    """The number of trials up to the first success of probability `p`."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if self._spec.dtype.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise errors.not_implemented("geometric_cpu", self._spec.dtype)
    g = generator_of(generator)
    return fill_random(self, lambda s: draw.geometric(g, float(p), s, self._spec.dtype.np))


# --- factories on a tensor ----------------------------------------------------------------------------


def new_factory(name):
    make_one = getattr(creation, name)

    def create(self, *args, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **kw):
        return make_one(
            *args,
            dtype=dtype or self._spec.dtype,
            device=device or self._spec.device,
            requires_grad=requires_grad,
            **kw,
        )

    create.__name__ = "new_" + name
    create.__doc__ = make_one.__doc__
    return create


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A tensor with a copy of `data`, in the dtype and on the device of this one."""
    if isinstance(data, Tensor):
        return (
            to(data.detach(), dtype=dtype or data._spec.dtype, device=device or data._spec.device)
            .clone()
            .requires_grad_(requires_grad)
        )
    return creation.tensor(
        data, dtype=dtype or self._spec.dtype, device=device or self._spec.device, requires_grad=requires_grad
    )


def is_set_to(self, tensor) -> bool:
    """Whether both are the same view of the same storage."""
    return self._storage is tensor._storage and self._offset == tensor._offset and self._spec is tensor._spec


def apply_(self, function):
    """Replace each element by function(element): a Python loop, for CPU tensors."""
    array = np.array(as_numpy(self))
    flat = array.reshape(-1)
    flat[:] = [function(x) for x in flat.tolist()]
    return fill_random(self, lambda s: array)


def map_(self, other, function):
    """Replace each element by function(element, other's element)."""
    a, b = np.array(as_numpy(self)), np.broadcast_to(as_numpy(other), self.shape)
    flat = np.array([function(x, y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist())], a.dtype)
    return fill_random(self, lambda s: flat.reshape(a.shape))


def map2_(self, x, y, function):
    """Replace each element by function(element, x's element, y's element)."""
    a = np.array(as_numpy(self))
    others = [np.broadcast_to(as_numpy(t), self.shape).reshape(-1).tolist() for t in (x, y)]
    flat = np.array([function(*each) for each in zip(a.reshape(-1).tolist(), *others)], a.dtype)
    return fill_random(self, lambda s: flat.reshape(a.shape))


def requires_grad_view(self):
    return self


def equal(input, other) -> bool:
    """Whether shape and all elements are the same."""
    if tuple(input.shape) != tuple(other.shape):
        return False
    if input.device is not other.device:
        raise RuntimeError("Cannot compare two tensors on different devices")
    return bool(_op("all")(_op("eq")(input, other)).item()) if input.numel() else True


def install():
    """Attach everything to Tensor; the op table is complete by now."""
    methods = {
        "reshape": reshape, "view": view, "flatten": flatten, "ravel": ravel, "contiguous": contiguous,
        "is_contiguous": is_contiguous, "clone": clone, "to": to, "type": type_, "type_as": type_as, "cpu": cpu, "cuda": cuda,
        "copy_": copy_, "fill_": fill_, "zero_": zero_, "set_": set_, "resize_": resize_, "resize_as_": resize_as_,
        "numpy": numpy, "__array__": array_protocol, "__jax_array__": jax_array,
        "storage": storage, "untyped_storage": untyped_storage,
        "_typed_storage": storage, "__repr__": represent, "__deepcopy__": deepcopy, "__copy__": shallow_copy, "__reduce_ex__": reduce_ex,
        "__iter__": iterate, "__contains__": contains, "uniform_": uniform_, "normal_": normal_, "bernoulli_": bernoulli_,
        "random_": random_, "exponential_": exponential_, "cauchy_": cauchy_, "log_normal_": log_normal_,
        "geometric_": geometric_, "new_tensor": new_tensor, "is_set_to": is_set_to, "apply_": apply_, "map_": map_, "map2_": map2_,
        "reshape_as": reshape_as, "sum_to_size": sum_to_size, "equal": equal, "bernoulli": creation.bernoulli, "multinomial": creation.multinomial,
    }  # fmt: skip
    for name, fn in methods.items():
        setattr(Tensor, name, fn)
    for name in ("empty", "zeros", "ones", "full", "empty_strided"):
        setattr(Tensor, "new_" + name, new_factory(name))
    casts = {
        "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
        "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
    }  # fmt: skip
    for name, dtype in casts.items():
        setattr(Tensor, name, _caster(dtypes.ALL[dtype], name))
    Tensor.T = property(transposed)
    Tensor.mT = property(matrix_transposed)
    Tensor.H = property(_hermitian)
    Tensor.mH = property(_batch_hermitian)
    Tensor.__array_priority__ = 1000
    Tensor._make_subclass = staticmethod(make_subclass)
    Tensor._stack = staticmethod(lambda parts: _op("stack")(parts))
    Tensor.as_subclass = as_subclass
    Tensor.new = lambda self, *a, **k: legacy_new(Tensor, *a)
    Tensor.__new__ = staticmethod(legacy_new)
    Tensor.pin_memory = lambda self, device=None: self
    Tensor.share_memory_ = lambda self: self
    Tensor.is_same_size = lambda self, other: self._spec.shape == other._spec.shape
    Tensor.resolve_conj = lambda self: self
    Tensor.resolve_neg = lambda self: self
    Tensor.is_distributed = lambda self: False
    Tensor.is_inference_ = Tensor.is_inference
    Tensor.dim_order = lambda self: tuple(sorted(builtins.range(self.ndim), key=lambda d: -self.stride(d)))
    Tensor.is_nonzero = lambda self: bool(self)
    Tensor.to_dense = lambda self, dtype=None: self if dtype is None else to(self, dtype=dtype)
    for name in ("transpose", "squeeze", "unsqueeze", "t", "swapaxes", "swapdims", "as_strided"):
        setattr(Tensor, name + "_", _layout_inplace(name))
    operators.install()
    for name in ("real", "imag"):
        setattr(Tensor, name, property(getattr(complex_views, name)))


__all__ = ["TypedStorage", "UntypedStorage"]
