"""Tensors made from Python and numpy data and from sizes."""

import builtins
import importlib
import math
import operator
from collections.abc import Iterable

import jax
import numpy as np

from . import deprecations, errors, errors_arguments, errors_autograd, errors_storage, literals
from .autograd.derive import differentiable
from .core import device as devices
from .core import dtype as dtypes
from .core import halves, shapes, wide
from .core import storage as storages
from .core.dtype import dtype as DType
from .core.program import Plan
from .core.record import tls
from .core.spec import LARGEST, Spec
from .core.storage import Storage
from .dispatch import copy_to_out, function_of, zeros_value
from .dispatch.statics import numpy_number
from .dispatch.write import overlaps
from .ops import registry
from .tensor import CONSTANTS as TENSOR_CONSTANTS
from .tensor import Tensor, make, wrap
from .tracebacks import shorten


class MemoryFormat(metaclass=dtypes.Constants):
    """A torch.memory_format."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


MemoryFormat.__qualname__ = "memory_format"
_format = dtypes.constants(MemoryFormat)


class Layout_(metaclass=dtypes.Constants):
    """A torch.layout."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


Layout_.__qualname__ = "layout"
layout_of = dtypes.constants(Layout_)
contiguous_format = TENSOR_CONSTANTS["contiguous"] = _format("contiguous_format")
preserve_format = _format("preserve_format")
channels_last = _format("channels_last")
channels_last_3d = _format("channels_last_3d")
strided = layout_of("strided")
TENSOR_CONSTANTS["strided"] = strided
sparse_coo = layout_of("sparse_coo")
sparse_csr = layout_of("sparse_csr")
sparse_csc = layout_of("sparse_csc")
sparse_bsr = layout_of("sparse_bsr")
sparse_bsc = layout_of("sparse_bsc")


def strides_for(shape, memory_format):
    """The strides of a fresh tensor in a memory format."""
    if memory_format is None or memory_format is contiguous_format:
        return shapes.contiguous_strides(tuple(shape))
    if not isinstance(memory_format, MemoryFormat):
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {errors.type_name(memory_format)}")
    want = 4 if memory_format is channels_last else 5
    if len(shape) != want:
        raise RuntimeError(f"required rank {want} tensor to use {memory_format.name} format")
    return shapes.channels_last_strides(tuple(shape))


def size_of(args, name=None) -> tuple:
    """A size given as ints or as one sequence; `name`: the function that errors speak of."""
    given = args
    if len(args) == 1 and not isinstance(args[0], int) and not (isinstance(args[0], Tensor) and args[0].ndim == 0):
        first = args[0]
        if isinstance(first, (tuple, list)):
            args = first
    try:
        if args and type(args[0]) is bool:
            raise TypeError  # True is an int to Python; PyTorch looks at the first one alone
        return tuple(s if type(s) is int else operator.index(s) for s in args)
    except TypeError:
        at, bad = next((i, s) for i, s in enumerate(args) if isinstance(s, bool) or not _whole(s))
        raise errors_arguments.size_element(name, at, bad, args is given) from None


def _whole(s) -> bool:
    try:
        operator.index(s)
    except TypeError:
        return False
    return True


def nonnegative(size, name):
    for s in size:
        if s < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(size)}")
    return size


def dtype_or_default(dtype, default=None, name=None) -> DType:
    if dtype is None:
        return default or dtypes.default.dtype
    if type(dtype) is DType:
        return dtype
    if type(dtype) is type and dtype in dtypes.PYTHON:
        return dtypes.PYTHON[dtype]
    if isinstance(dtype, DType):
        dtype.np  # noqa: B018  raises for what is a name alone
    raise TypeError(
        f"{name + '(): ' if name else ''}argument 'dtype' must be torch.dtype, not {errors.type_name(dtype)}"
    )


def sparse_zeros(layout, size, dtype, device, requires_grad):
    """A tensor of a sparse layout without values."""
    made = importlib.import_module("jtorch.sparse.constructors").empty_of
    return made(layout.name.removeprefix("sparse_"), tuple(size), dtype, device, requires_grad)


def _layout(layout):
    if layout is not None and layout is not strided:
        raise errors.unsupported(f"{layout} layout", "a strided tensor and its to_sparse()")


def finish(t, requires_grad=False, out=None):
    """The last step of every factory: requires_grad and out=."""
    if out is not None:
        copy_to_out(out, t)
        return out
    if requires_grad:
        if requires_grad is not True:
            raise errors_arguments.flag("requires_grad", requires_grad)
        if not differentiable(t._spec):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t._rg = True
        if "transforms" in tls.me.extra:
            TENSOR_CONSTANTS["leaf"](t)
    return t


def constant(name, fn, spec) -> Tensor:
    """A tensor from a recorded node without operands; its plan is cached by name and spec."""
    key = (name, spec)
    plan = _constants.get(key)
    if plan is None:
        plan = _constants[key] = Plan(None, name, fn, (), specs=(spec,))
    me = tls.me
    graph = me.graph if me.graph.device is spec.device else me.graph_on(spec.device)
    return wrap(graph.recn(plan, ())[0], spec)


_constants: dict = {}


def from_array(array: np.ndarray, device, dtype=None, strides=None) -> Tensor:
    """A tensor of a numpy array that nobody will write to again. strides: those of the tensor, where they are not row-major."""
    d = dtypes.of(array.dtype) if dtype is None else dtype
    array = dtypes.held(array, d)
    spec = Spec.dense(array.shape, d, device) if strides is None else Spec.of(array.shape, strides, d, device)
    if device.type == "meta":
        return wrap(zeros_value(spec), spec)
    if storages.on_host.always and device is devices.cpu:
        return _over(storages.as_memory(np.array(array, order="C"), d.memory))
    return wrap(storages.to_device(np.asarray(array, order="C"), device), spec)


def _strides_like(data):
    """The strides of a copy of a numpy array, which keeps the order of its dimensions; None for what is no array, or empty.

    ValueError: negative strides.
    """
    if not isinstance(data, np.ndarray) or not data.size:
        return None
    _refuse_negative(data)
    return shapes.empty_like_strides(data.shape, tuple(s // data.itemsize for s in data.strides))


def _refuse_negative(array):
    strides = array.strides
    if strides and min(strides) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )


# --- from data ---------------------------------------------------------------------------------------------------------


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """A new leaf tensor with a copy of `data` (numbers, nested sequences, numpy arrays, tensors)."""
    try:
        if isinstance(data, Tensor):
            errors.warn(
                "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
            )
            made = data.detach().clone()
            if dtype is not None or device is not None:
                made = made.to(device=device, dtype=dtype)
            return finish(made.detach(), requires_grad)
        place = devices.resolve(device)
        array, inferred, python = literals.read(data, dtype)
        d = dtype_or_default(dtype, inferred, "tensor")
        return finish(from_array(literals.convert(array, d, python), place, d, _strides_like(data)), requires_grad)
    except Exception as error:
        shorten(error)
        raise


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """`data` as a tensor: itself when it is one already, sharing memory with numpy where possible."""
    if isinstance(data, Tensor):
        if dtype is None and device is None:
            return data
        return data.to(device=device, dtype=dtype)
    place = devices.resolve(device)
    if isinstance(data, np.ndarray) and place is devices.cpu and dtype in (None, dtypes.of(data.dtype)):
        return from_numpy(data)
    array, inferred, python = literals.read(data, dtype)
    d = dtype_or_default(dtype, inferred, "as_tensor")
    return from_array(literals.convert(array, d, python), place, d, _strides_like(data))


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor:
    """`obj` as a tensor, copied or not as `copy` says (None: only where needed).

    Of a tensor the history is kept, unless `requires_grad` is False: that cuts it, and turns a leaf's flag off.
    """
    if isinstance(obj, Tensor):
        if requires_grad is None and obj.requires_grad:
            deprecations.say("asarray")
        moved = obj.to(device=device, dtype=dtype)
        if copy and moved is obj:
            moved = obj.clone()
        if copy is False and moved is not obj:
            raise _no_alias(obj.dtype, obj.device, moved)
        if requires_grad is False and moved.requires_grad:
            return moved.requires_grad_(False) if moved.is_leaf else moved.detach()
        return moved.requires_grad_(True) if requires_grad and not moved.requires_grad else moved
    if _is_buffer(obj):
        made = frombuffer(obj, dtype=dtypes.default.dtype if dtype is None else dtype)
        made = (made.clone() if copy else made).to(device=devices.resolve(device))
    elif copy or not isinstance(obj, np.ndarray):
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        made = tensor(obj, dtype=dtype, device=device)
    else:
        made = as_tensor(obj, dtype, device)
        have = dtypes.of(obj.dtype)
        if copy is False and (made.dtype is not have or made.device is not devices.cpu):
            raise _no_alias(have, devices.cpu, made)
    return finish(made, bool(requires_grad))


def _no_alias(dtype, device, made) -> ValueError:
    """asarray(copy=False) of what has another dtype, or is elsewhere."""
    if made.device is not device:
        return ValueError(f"can't alias tensor from device '{device}' to '{made.device}'.")
    have, want = dtypes.scalar_name(dtype), dtypes.scalar_name(made.dtype)
    return ValueError(f"can't alias tensor with dtype '{have}' into dtype '{want}'.")


def _is_buffer(x) -> bool:
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__dlpack__"):
        return False
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def from_numpy(array) -> Tensor:
    """A CPU tensor that shares memory with a numpy array, both ways."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    item = array.dtype.itemsize
    dtypes.of(array.dtype.newbyteorder("="))  # raises where there is no such dtype
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    _refuse_negative(array)
    if any([s % item for s in array.strides]):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    if not array.flags.writeable:
        errors.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to "
            "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
            "writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
        )
        once = array[tuple(slice(0, 1 if s == 0 else None) for s in array.strides)]
        made = from_array(np.array(once), devices.cpu)
        if once.shape == array.shape:
            return made
        strides = tuple(0 if s == 0 else kept for s, kept in zip(array.strides, made._spec.strides))
        return make(made._storage, Spec.of(array.shape, strides, made._spec.dtype, devices.cpu))
    return _over(array)


def lent(array: np.ndarray) -> Tensor:
    """A CPU tensor on memory that nobody else will write to; jax may use it as it is."""
    return _over(array, True)


def _over(array, lent=False):
    """A tensor that lives in the memory of a numpy array."""
    d, item = dtypes.of(array.dtype), array.dtype.itemsize
    strides = tuple([s // item for s in array.strides])
    spec = Spec.of(array.shape, strides, d, devices.cpu)
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    storage = Storage(None, None)
    if array.flags.c_contiguous and array.size and type(array) is type(owner) is np.ndarray:
        flat = array.reshape(-1)  # refers to the owner
        whole = spec if spec.contiguous else Spec.dense((array.size,), d, devices.cpu)
        storages.adopt(storage, flat, owner, whole, lent)
        return make(storage, spec, 0)
    extent = 1 + builtins.sum((n - 1) * s for n, s in zip(array.shape, strides)) if array.size else 0
    # Cut out of the owner itself, so that the buffer holds one reference to it and none to `array`. What `astype` makes of a turned
    # array is turned too, and owns its memory.
    start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    in_memory = owner.transpose(sorted(builtins.range(owner.ndim), key=lambda d: -owner.strides[d]))
    if in_memory.flags.c_contiguous:
        flat = in_memory.reshape(-1).view(np.uint8)[start : start + extent * item].view(array.dtype)
    else:  # with gaps, over memory that is no array's
        owner, flat = array, np.lib.stride_tricks.as_strided(array, (extent,), (item,))
    whole = (
        spec if array.size and shapes.is_dense(tuple(array.shape), strides) else Spec.dense((extent,), d, devices.cpu)
    )
    storages.adopt(storage, flat, owner, whole, lent)
    return make(storage, spec, 0)


def from_jax(array) -> Tensor:
    """A tensor over a jax array (also a tracer): nothing is copied."""
    device = devices.cpu if isinstance(array, jax.core.Tracer) else devices.of_array(array)
    return wrap(array, Spec.dense(tuple(array.shape), dtypes.of(array.dtype), device))


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor:
    """A 1-D tensor on the memory of a Python buffer."""
    try:
        size, item = memoryview(buffer).nbytes, dtype.itemsize
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count < 0 and (size - offset) % item:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({item})"
        )
    if count > 0 and offset + count * item > size:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than actual "
            f"buffer length ({size} bytes)"
        )
    array = np.frombuffer(buffer, dtype.np, max(count, -1), offset)
    if array.flags.writeable:
        t = from_numpy(array)
    else:
        errors.warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to "
            "the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest "
            "of this program."
        )
        t = from_array(array, devices.cpu)
    return finish(t, requires_grad)


def scalar_tensor(s, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None) -> Tensor:
    """A 0-d tensor of the default dtype unless told otherwise."""
    if isinstance(s, (str, list, tuple)) or s is None:
        raise errors.argument("scalar_tensor", "s", "Number", s, 1)
    d = dtype_or_default(dtype)
    if isinstance(s, (int, float, complex)):
        s = dtypes.element(s, d)
    return tensor(s, dtype=d, device=device, requires_grad=requires_grad)


# --- from sizes --------------------------------------------------------------------------------------------------------


def full_of(spec, value, varies=False) -> Tensor:
    """A tensor with this spec, each element `value`. varies: it is a number that may be another one the next time, of which 0 is one too."""
    if spec.nbytes > LARGEST:
        raise errors_storage.storage_overflow(spec.shape)
    if type(value) is int and wide.is_wide(value):
        value = np.uint64(wide.check(value)) if spec.dtype.category == dtypes.INT else float(wide.check(value))
    if (
        storages.on_host.always
        and spec.device is devices.cpu
        and spec is Spec.dense(spec.shape, spec.dtype, spec.device)
    ):
        return _over(storages.as_memory(np.full(tuple(spec.shape), value, spec.dtype.np), spec.dtype.memory))
    if (
        value == 0
        and not varies
        and type(value) is not complex
        and not (type(value) is float and math.copysign(1, value) < 0)
    ):
        return wrap(zeros_value(spec), spec)
    kind = type(value)
    key = (spec, kind)
    plan = _fills.get(key)
    if plan is None:
        shape, np_dtype = tuple(spec.shape), spec.dtype.np

        def fill(x):
            x = x if isinstance(x, jax.Array) else jax.numpy.asarray(x)
            x = x.astype(np_dtype)
            return jax.numpy.broadcast_to(halves.rounded(x) if spec.dtype is dtypes.complex32 else x, shape)

        plan = _fills[key] = Plan(None, "full", fill, (), (kind,), specs=(spec,))
    me = tls.me
    graph = me.graph if me.graph.device is spec.device else me.graph_on(spec.device)
    return wrap(graph.recn(plan, (), (value,))[0], spec)


_fills: dict = {}


def _sized(name, value, args, size, dtype, device, requires_grad, out, memory_format, layout=None, default=None):
    if layout is not None and layout is not strided and type(value) is int and value == 0 and out is None:
        return sparse_zeros(layout, size_of(args) if size is None else size_of((size,)), dtype, device, requires_grad)
    _layout(layout)
    if not args and size is None:
        raise errors.missing_argument(name, "size")
    shape = nonnegative(size_of(args if size is None else (size,), name), name)
    if out is not None:
        check_out(name, dtype, out)
        dtype = dtype or out.dtype
        device = device or out.device
    d = dtype_or_default(dtype, default, name)
    spec = Spec.of(shape, tuple(strides_for(shape, memory_format)), d, devices.resolve(device))
    return finish(full_of(spec, value, name == "full"), requires_grad, out)


def zeros(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor of zeros of this size."""
    try:
        return _sized("zeros", 0, args, size, dtype, device, requires_grad, out, None, layout)
    except Exception as error:
        shorten(error)
        raise


def ones(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor of ones of this size."""
    try:
        return _sized("ones", 1, args, size, dtype, device, requires_grad, out, None, layout)
    except Exception as error:
        shorten(error)
        raise


def empty(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None
) -> Tensor:  # fmt: skip
    """A tensor of this size; its contents, unspecified in PyTorch, are zeros."""
    try:
        return _sized("empty", 0, args, size, dtype, device, requires_grad, out, memory_format, layout)
    except Exception as error:
        shorten(error)
        raise


def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor with these strides; contents zeros."""
    _layout(layout)
    for at, (name, given) in enumerate((("size", size), ("stride", stride)), 1):
        if not isinstance(given, Iterable):
            raise errors_arguments.no_tuple("empty_strided", name, at, given)
    shape, strides = tuple(size), tuple(stride)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    if any(s < 0 for s in strides):
        raise errors_storage.storage_overflow(shape, strides)
    d, place = dtype_or_default(dtype), devices.resolve(device)
    extent = 1 + builtins.sum((n - 1) * s for n, s in zip(shape, strides)) if math.prod(shape) else 0
    base = Spec.dense((extent,), d, place)
    spec = Spec.of(shape, strides, d, place)
    if shapes.is_dense(shape, strides):
        return finish(wrap(zeros_value(Spec.dense(shape, d, place)), spec), requires_grad)
    return finish(make(Storage(zeros_value(base), base), spec, 0), requires_grad)


def empty_permuted(size, physical_layout, **options) -> Tensor:
    """A tensor whose dimensions lie in memory in the order `physical_layout`."""
    n = len(size)
    if len(physical_layout) != n:
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {n} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for i, d in enumerate(physical_layout):
        if not 0 <= d < n:
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {n - 1}, but got {d} at index {i}).  NB: negative dims "
                "not currently supported; file an issue if you want it."
            )
    if len(set(physical_layout)) != n:
        raise RuntimeError("Duplicate dim not allowed")
    strides, step = [0] * n, 1
    for d in reversed(physical_layout):
        strides[d] = step
        step *= max(size[d], 1)
    return empty_strided(size, strides, **options)


def full(
    size,
    fill_value,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """A tensor of this size, each element `fill_value`; its dtype is that of the value unless told otherwise."""
    try:
        if not isinstance(size, Iterable) or isinstance(size, Tensor | str):
            raise errors_arguments.no_tuple("full", "size", 1, size)
        check_out("full", dtype, out)
        fill_value = _number_to_fill("full", fill_value)
        default = _kind_to_fill("full", fill_value, out.dtype if dtype is None and out is not None else dtype)
        return _sized("full", fill_value, (), size, dtype, device, requires_grad, out, None, layout, default)
    except Exception as error:
        shorten(error)
        raise


def _number_to_fill(function, value):
    if isinstance(value, Tensor):
        if value._spec.ndim:
            raise errors.argument(function, "fill_value", "Number", value, 2)
        return value.item()
    return numpy_number(value) if isinstance(value, np.generic) else value


def _kind_to_fill(name, value, dtype):
    """The dtype that a number has by itself, once it is one that `dtype` can hold."""
    if not isinstance(value, (int, float, complex)):
        raise errors.argument(name, "fill_value", "Number", value, 2)
    default = dtypes.of_number(value)
    dtypes.check_number(value, dtype_or_default(dtype, default))
    return default


def strides_like(spec, memory_format):
    """Strides of what is made in a tensor's likeness."""
    if memory_format is None or memory_format is preserve_format:
        return tuple(shapes.empty_like_strides(tuple(spec.shape), spec.strides))
    return tuple(strides_for(tuple(spec.shape), memory_format))


def _like(t, value, dtype, device, requires_grad, memory_format, layout=None, varies=False):
    if layout is not None and layout is not strided and type(value) is int and value == 0:
        return sparse_zeros(layout, t.shape, dtype or t._spec.dtype, device or t._spec.device, requires_grad)
    _layout(layout)
    if not isinstance(t, Tensor):
        raise errors.argument("full_like", "input", "Tensor", t, 1)
    spec = t._spec
    d = dtype_or_default(dtype, spec.dtype)
    place = spec.device if device is None else devices.resolve(device)
    shape = tuple(spec.shape)
    made = full_of(Spec.of(shape, strides_like(spec, memory_format), d, place), value, varies)
    return finish(made, requires_grad)


def zeros_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
) -> Tensor:
    """Zeros in the shape, dtype and strides of `input`."""
    return _like(input, 0, dtype, device, requires_grad, memory_format, layout)


def ones_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
) -> Tensor:
    """Ones in the shape, dtype and strides of `input`."""
    return _like(input, 1, dtype, device, requires_grad, memory_format, layout)


def empty_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
) -> Tensor:
    """A tensor in the shape, dtype and strides of `input`; contents zeros."""
    return _like(input, 0, dtype, device, requires_grad, memory_format, layout)


def full_like(
    input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
) -> Tensor:  # fmt: skip
    """`fill_value` in the shape, dtype and strides of `input`."""
    fill_value = _number_to_fill("full_like", fill_value)
    if isinstance(input, Tensor):
        _kind_to_fill("full_like", fill_value, dtype or input._spec.dtype)
    return _like(input, fill_value, dtype, device, requires_grad, memory_format, layout, True)


def check_out(name, dtype, out):
    """torch's errors for an out= that is no tensor, and for an explicit dtype that it does not have."""
    if out is not None and not isinstance(out, Tensor):
        raise errors.argument(name, "out", "Tensor", out)
    if out is not None and tls.me.grad and out.requires_grad:
        raise errors_autograd.off_tape(f"aten::{name}")
    if out is not None and dtype is not None and dtype_or_default(dtype) is not out.dtype:
        want, have = (dtypes.scalar_name(d) for d in (dtype_or_default(dtype), out.dtype))
        raise RuntimeError(f"dtype {want} does not match dtype of out parameter ({have})")
    if out is not None and name in _SEQUENCES and overlaps(out._spec):
        raise errors.overlap()


_SEQUENCES = ("arange", "range", "linspace", "logspace")


def factory(record, args, dtype, device, requires_grad, out, **statics):
    """A creation op of the table, on a device."""
    place = devices.resolve(device)
    op = registry.OPS[record]
    with place:
        t = function_of(op)(*args, dtype=dtype, **statics)
    if out is not None and t.ndim == 1 and out.numel() == t.numel():
        t = t.view(out.shape)  # a sequence fills what has room for it, of any shape
    return finish(t, requires_grad, out)


def _between(name, start, end, steps, more, dtype, device, requires_grad, out):
    """linspace or logspace between two ends, each a number or a tensor of one, which stays unread."""
    for which, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor) and x.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {x.ndim} dimension(s)."
            )
    if not all(isinstance(x, (Tensor, int, float, complex, np.generic)) for x in (start, end)):
        raise errors.combination(
            name, (start, end, steps), "(Number start, Number end, int steps), or tensors for the ends"
        )
    if dtype is None and out is not None:
        dtype = out.dtype
    if any(x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex) for x in (start, end)):
        dtype = dtype or dtypes.default.complex
        if not dtype.is_complex:
            raise errors.inferred_complex(name, dtype)
    dtype, steps = dtype_or_default(dtype), _count(name, start, end, steps)
    if steps > 0:
        if dtype is dtypes.bool_ and steps > 1:
            raise errors.not_implemented(f"{name}_cpu", dtype)
        for x in (start, end)[:steps]:  # of one number the end is not looked at
            if not isinstance(x, Tensor) and dtype is not dtypes.bool_:
                dtypes.check_number(x, dtype)
    if dtype.category > dtypes.INT:
        start, end = (float(x) if type(x) is int and wide.is_wide(x) else x for x in (start, end))
    if isinstance(start, Tensor) or isinstance(end, Tensor):
        ends = [x.device for x in (start, end) if isinstance(x, Tensor)]
        device = place = next((d for d in ends if d.type == "meta"), devices.resolve(device))
        start, end = (
            x.to(place) if isinstance(x, Tensor) else tensor(x, dtype=_widest(x), device=place) for x in (start, end)
        )
        name += "_between"
    return factory(name, (start, end, steps, *more), dtype, device, requires_grad, out)


def _widest(x):
    """The dtype that holds any Python number of this kind."""
    return dtypes.complex128 if isinstance(x, complex) else dtypes.float64 if isinstance(x, float) else dtypes.int64


def _count(name, start, end, steps):
    """The number of steps, which torch wants as an integer."""
    steps = number_of(steps, name, "steps")
    if not isinstance(steps, int) or isinstance(steps, bool):
        kinds = ", ".join(type(x).__name__ for x in (start, end, steps))
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})")
    return steps


def number_of(x, function="arange", name="end"):
    if isinstance(x, Tensor) and x._spec.ndim:
        raise errors.argument(function, name, "Number", x, 1)
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


def _check_bounds(*numbers):
    """Whether the bounds and the step of arange are real numbers."""
    first, last, by = numbers
    for x in numbers:
        if isinstance(x, complex):
            raise errors.not_representable(dtypes.float64)
        if not isinstance(x, (int, float)):
            if first == 0 and by == 1 and last is not None:
                raise errors.argument("arange", "end", "Number", last, 1)
            raise errors.combination(
                "arange", numbers if by != 1 else numbers[:2], "(Number end) or (Number start, Number end, Number step)"
            )


def arange(
    *args,
    start=None,
    end=None,
    step=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """Numbers from start (0) up to, but not including, end, by step (1)."""
    try:
        if len(args) > 3:
            raise errors.combination(
                "arange", args, "(Number end), (Number start, Number end) or (Number start, Number end, Number step)"
            )
        given = [number_of(a) for a in args]
        if len(given) == 1 and end is None:
            first, last, by = 0 if start is None else start, given[0], step
        elif not given:
            first, last, by = 0 if start is None else start, end, step
        else:
            first = given[0]
            last = given[1] if len(given) > 1 else end
            by = given[2] if len(given) > 2 else step
        first, last, by = number_of(first), number_of(last), 1 if by is None else number_of(by)
        _check_bounds(first, last, by)
        check_out("arange", dtype, out)
        if any(type(x) is int and wide.is_wide(x) for x in (first, last, by)):
            raise errors.not_representable(dtypes.int64)
        if dtype is None:
            dtype = (
                out.dtype
                if out is not None
                else (dtypes.int64 if all(isinstance(x, int) for x in (first, last, by)) else dtypes.default.dtype)
            )
        return factory("arange", (first, last, by), dtype_or_default(dtype), device, requires_grad, out)
    except Exception as error:
        shorten(error)
        raise


def range(start, end, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Deprecated by PyTorch: numbers from start up to and including end."""
    errors.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    d = dtype_or_default(dtype if out is None or dtype is not None else out.dtype)
    if d is dtypes.bool_ or d.is_complex:
        raise errors.not_implemented("range_cpu", d)
    whole = not d.is_floating_point
    if whole:
        if not all(map(math.isfinite, (start, end, step))):
            raise errors.not_representable(dtypes.int64)
        start, end, step = int(start), int(end), int(step)
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise errors.unsupported_range(start, end)
    count = int(math.floor((end - start) / step)) + 1
    end = start + step * (count if whole else count - 0.5)
    return arange(start, end, step, out=out, dtype=d, device=device, requires_grad=requires_grad)


def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """`steps` numbers evenly spaced from start to end."""
    try:
        check_out("linspace", dtype, out)
        return _between("linspace", start, end, steps, (), dtype, device, requires_grad, out)
    except Exception as error:
        shorten(error)
        raise


def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """`steps` numbers from base**start to base**end, evenly spaced on a logarithmic scale."""
    check_out("logspace", dtype, out)
    return _between("logspace", start, end, steps, (base,), dtype, device, requires_grad, out)


def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The n by m matrix with ones on the diagonal."""
    try:
        for at, (name, size) in enumerate((("n", n), ("m", m)), 1):
            if isinstance(size, (bool, float)):
                raise errors.argument("eye", name, "int", size, at)
        check_out("eye", dtype, out)
        dtype = out.dtype if dtype is None and out is not None else dtype
        return factory("eye", (n, m), dtype_or_default(dtype), device, requires_grad, out)
    except Exception as error:
        shorten(error)
        raise


def tril_indices(row, col, offset=0, *, dtype=dtypes.int64, device=None, layout=None):
    """Row and column indices of the lower triangle of a row by col matrix, shape (2, n)."""
    return factory("tril_indices", (row, col, offset), dtype_or_default(dtype, dtypes.int64), device, False, None)


def triu_indices(row, col, offset=0, *, dtype=dtypes.int64, device=None, layout=None):
    """Row and column indices of the upper triangle of a row by col matrix, shape (2, n)."""
    return factory("triu_indices", (row, col, offset), dtype_or_default(dtype, dtypes.int64), device, False, None)
