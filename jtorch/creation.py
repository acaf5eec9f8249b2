"""Tensors made from Python and numpy data, from sizes, and from random numbers."""

import builtins
import math
import operator

import jax
import numpy as np

from . import errors, literals
from .autograd.derive import differentiable
from .core import device as devices
from .core import draw, rng, shapes
from .core import dtype as dtypes
from .core import storage as storages
from .core.dtype import dtype as DType
from .core.program import Plan
from .core.record import tls
from .core.spec import Spec
from .core.storage import Storage
from .dispatch import check_inplace, copy_to_out, function_of, overlaps, write_on_tape, zeros_value
from .ops import registry
from .tensor import CONSTANTS as TENSOR_CONSTANTS
from .tensor import Tensor, make, wrap


class MemoryFormat:
    """A torch.memory_format."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


MemoryFormat.__name__ = MemoryFormat.__qualname__ = "memory_format"


class Layout_:
    """A torch.layout."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


Layout_.__name__ = Layout_.__qualname__ = "layout"
contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last")
channels_last_3d = MemoryFormat("channels_last_3d")
strided = Layout_("strided")
TENSOR_CONSTANTS["strided"] = strided
sparse_coo = Layout_("sparse_coo")
sparse_csr = Layout_("sparse_csr")
sparse_csc = Layout_("sparse_csc")
sparse_bsr = Layout_("sparse_bsr")
sparse_bsc = Layout_("sparse_bsc")


def strides_for(shape, memory_format):
    """The strides of a fresh tensor in a memory format."""
    if memory_format is None or memory_format is contiguous_format:
        return shapes.contiguous_strides(tuple(shape))
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
        return tuple(s if type(s) is int else operator.index(s) for s in args)
    except TypeError:
        at, bad = next((i, s) for i, s in enumerate(args) if not hasattr(s, "__index__"))
        raise errors.size_element(name, at, bad, args is given) from None


def _nonnegative(size, name):
    for s in size:
        if s < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(size)}")
    return size


def _dtype(dtype, default=None, name=None) -> DType:
    if dtype is None:
        return default or dtypes.default.dtype
    if type(dtype) is DType:
        return dtype
    if type(dtype) is type and dtype in dtypes.PYTHON:
        return dtypes.PYTHON[dtype]
    if isinstance(dtype, DType):
        dtype.np  # noqa: B018  raises for what is a name alone
    raise TypeError(f"{name + '(): ' if name else ''}argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")


def _layout(layout):
    if layout is not None and layout is not strided:
        raise errors.unsupported(f"{layout} layout", "a strided tensor")


def finish(t, requires_grad=False, out=None):
    """The last step of every factory: requires_grad and out=."""
    if out is not None:
        copy_to_out(out, t)
        return out
    if requires_grad:
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


def from_array(array: np.ndarray, device, dtype=None) -> Tensor:
    """A tensor of a numpy array that nobody will write to again."""
    d = dtypes.of(array.dtype) if dtype is None else dtype
    if array.dtype != d.np:
        array = array.astype(d.np)
    if device.type == "meta":
        spec = Spec.dense(array.shape, d, device)
        return wrap(zeros_value(spec), spec)
    if storages.on_host.always and device is devices.cpu:
        return _over(np.array(array, order="C"))
    array = np.asarray(array, order="C")
    return wrap(storages.to_device(array, device), Spec.dense(array.shape, d, device))


# --- from data ---------------------------------------------------------------------------------------------------------


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """A new leaf tensor with a copy of `data` (numbers, nested sequences, numpy arrays, tensors)."""
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
    array, inferred, python = literals.read(data)
    d = _dtype(dtype, inferred, "tensor")
    return finish(from_array(literals.convert(array, d, python), place, d), requires_grad)


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """`data` as a tensor: itself when it is one already, sharing memory with numpy where possible."""
    if isinstance(data, Tensor):
        if dtype is None and device is None:
            return data
        return data.to(device=device, dtype=dtype)
    place = devices.resolve(device)
    if isinstance(data, np.ndarray) and place is devices.cpu and dtype in (None, dtypes.of(data.dtype)):
        return from_numpy(data)
    array, inferred, python = literals.read(data)
    d = _dtype(dtype, inferred, "as_tensor")
    return from_array(literals.convert(array, d, python), place, d)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False) -> Tensor:
    """`obj` as a tensor, copied or not as `copy` says (None: only where needed)."""
    if isinstance(obj, Tensor):
        moved = obj.to(device=device, dtype=dtype)
        if copy and moved is obj:
            moved = obj.clone()
        if copy is False and moved is not obj:
            raise ValueError("can't alias tensor with different dtype or device")
        if requires_grad:
            return moved.detach().requires_grad_(True) if moved._edge is None else moved
        return moved.detach() if moved.requires_grad else moved
    made = (
        tensor(obj, dtype=dtype, device=device)
        if copy or not isinstance(obj, np.ndarray)
        else as_tensor(obj, dtype, device)
    )
    return finish(made, requires_grad)


def from_numpy(array) -> Tensor:
    """A CPU tensor that shares memory with a numpy array, both ways."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtypes.of(array.dtype)  # raises where there is no such dtype
    item = array.dtype.itemsize
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if any(s % item for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    if not array.flags.writeable:
        errors.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to "
            "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
            "writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
        )
        return from_array(np.array(array), devices.cpu)
    return _over(array)


def lent(array: np.ndarray) -> Tensor:
    """A CPU tensor on memory that nobody else will write to; jax may use it as it is."""
    return _over(array, True)


def _over(array, lent=False):
    """A tensor that lives in the memory of a numpy array."""
    d, item = dtypes.of(array.dtype), array.dtype.itemsize
    strides = tuple(s // item for s in array.strides)
    spec = Spec.of(tuple(array.shape), strides, d, devices.cpu)
    extent = 1 + builtins.sum((n - 1) * s for n, s in zip(array.shape, strides)) if array.size else 0
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    # Cut out of the owner itself, so that the buffer holds one reference to it and none to `array`.
    start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    flat = owner.reshape(-1, order="A").view(np.uint8)[start : start + extent * item].view(array.dtype)
    storage = Storage(None, None)
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
    array = np.frombuffer(buffer, dtype.np, count, offset)
    t = from_numpy(array) if array.flags.writeable else from_array(array, devices.cpu)
    return finish(t, requires_grad)


def scalar_tensor(value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None) -> Tensor:
    """A 0-d tensor of the default dtype unless told otherwise."""
    return tensor(value, dtype=_dtype(dtype), device=device, requires_grad=requires_grad)


# --- from sizes --------------------------------------------------------------------------------------------------------


def full_of(spec, value) -> Tensor:
    """A tensor with this spec, each element `value`."""
    if (
        storages.on_host.always
        and spec.device is devices.cpu
        and spec is Spec.dense(spec.shape, spec.dtype, spec.device)
    ):
        return _over(np.full(tuple(spec.shape), value, spec.dtype.np))
    if value == 0 and type(value) is not complex and not (type(value) is float and math.copysign(1, value) < 0):
        return wrap(zeros_value(spec), spec)
    kind = type(value)
    key = (spec, kind)
    plan = _fills.get(key)
    if plan is None:
        shape, np_dtype = tuple(spec.shape), spec.dtype.np

        def fill(x):
            x = x if isinstance(x, jax.Array) else jax.numpy.asarray(x)
            return jax.numpy.broadcast_to(x.astype(np_dtype), shape)

        plan = _fills[key] = Plan(None, "full", fill, (), (kind,), specs=(spec,))
    me = tls.me
    graph = me.graph if me.graph.device is spec.device else me.graph_on(spec.device)
    return wrap(graph.recn(plan, (), (value,))[0], spec)


_fills: dict = {}


def _sized(name, value, args, size, dtype, device, requires_grad, out, memory_format, layout=None, default=None):
    _layout(layout)
    shape = _nonnegative(size_of(args if size is None else (size,), name), name)
    if out is not None:
        _fits_out(dtype, out)
        dtype = dtype or out.dtype
        device = device or out.device
    d = _dtype(dtype, default, name)
    spec = Spec.of(shape, tuple(strides_for(shape, memory_format)), d, devices.resolve(device))
    return finish(full_of(spec, value), requires_grad, out)


def zeros(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor of zeros of this size."""
    return _sized("zeros", 0, args, size, dtype, device, requires_grad, out, None, layout)


def ones(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor of ones of this size."""
    return _sized("ones", 1, args, size, dtype, device, requires_grad, out, None, layout)


def empty(
    *args, size=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None
) -> Tensor:  # fmt: skip
    """A tensor of this size; its contents, unspecified in PyTorch, are zeros."""
    return _sized("empty", 0, args, size, dtype, device, requires_grad, out, memory_format, layout)


def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor with these strides; contents zeros."""
    _layout(layout)
    shape, strides = tuple(size), tuple(stride)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    d, place = _dtype(dtype), devices.resolve(device)
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
    *args,
    fill_value=None,
    size=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """A tensor of this size, each element `fill_value`; its dtype is that of the value unless told otherwise."""
    if size is None:
        size, args = args[0], args[1:]
    if fill_value is None:
        (fill_value,) = args
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    elif isinstance(fill_value, np.generic):
        fill_value = fill_value.item()
    return _sized(
        "full", fill_value, (), size, dtype, device, requires_grad, out, None, layout, dtypes.of_number(fill_value)
    )


def _like(t, value, dtype, device, requires_grad, memory_format, layout=None):
    _layout(layout)
    spec = t._spec
    d = _dtype(dtype, spec.dtype)
    place = spec.device if device is None else devices.resolve(device)
    shape = tuple(spec.shape)
    if memory_format is None or memory_format is preserve_format:
        strides = tuple(shapes.empty_like_strides(shape, spec.strides))
    else:
        strides = tuple(strides_for(shape, memory_format))
    return finish(full_of(Spec.of(shape, strides, d, place), value), requires_grad)


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
    if isinstance(fill_value, (Tensor, np.generic)):
        fill_value = fill_value.item()
    return _like(input, fill_value, dtype, device, requires_grad, memory_format, layout)


def _fits_out(dtype, out):
    """torch's error for an explicit dtype that is not that of out=."""
    if out is not None and dtype is not None and _dtype(dtype) is not out.dtype:
        want, have = (dtypes.scalar_name(d) for d in (_dtype(dtype), out.dtype))
        raise RuntimeError(f"dtype {want} does not match dtype of out parameter ({have})")


def factory(record, args, dtype, device, requires_grad, out, **statics):
    """A creation op of the table, on a device."""
    place = devices.resolve(device)
    op = registry.OPS[record]
    with place:
        t = function_of(op)(*args, dtype=dtype, **statics)
    return finish(t, requires_grad, out)


def _between(name, start, end, steps, more, dtype, device, requires_grad, out):
    """linspace or logspace between two ends, each a number or a tensor of one, which stays unread."""
    for which, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor) and x.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {x.ndim} dimension(s)."
            )
    if dtype is None and out is not None:
        dtype = out.dtype
    if any(x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex) for x in (start, end)):
        dtype = dtype or dtypes.default.complex
        if not dtype.is_complex:
            raise errors.inferred_complex(name, dtype)
    dtype, steps = _dtype(dtype), _count(name, start, end, steps)
    if isinstance(start, Tensor) or isinstance(end, Tensor):
        place = devices.resolve(device)
        start, end = ((x if isinstance(x, Tensor) else tensor(x, dtype=_widest(x))).to(place) for x in (start, end))
        name += "_between"
    return factory(name, (start, end, steps, *more), dtype, device, requires_grad, out)


def _widest(x):
    """The dtype that holds any Python number of this kind."""
    return dtypes.complex128 if isinstance(x, complex) else dtypes.float64 if isinstance(x, float) else dtypes.int64


def _count(name, start, end, steps):
    """The number of steps, which torch wants as an integer."""
    steps = _number(steps)
    if not isinstance(steps, int):
        kinds = ", ".join(type(x).__name__ for x in (start, end, steps))
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({kinds})")
    return steps


def _number(x):
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


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
    given = [_number(a) for a in args]
    if len(given) == 1 and end is None:
        first, last, by = 0 if start is None else start, given[0], step
    elif not given:
        first, last, by = 0 if start is None else start, end, step
    else:
        first = given[0]
        last = given[1] if len(given) > 1 else end
        by = given[2] if len(given) > 2 else step
    first, last, by = _number(first), _number(last), 1 if by is None else _number(by)
    _fits_out(dtype, out)
    if dtype is None:
        dtype = (
            out.dtype
            if out is not None
            else (dtypes.int64 if all(isinstance(x, int) for x in (first, last, by)) else dtypes.default.dtype)
        )
    return factory("arange", (first, last, by), _dtype(dtype), device, requires_grad, out)


def range(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """Deprecated by PyTorch: numbers from start up to and including end."""
    errors.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    if end is None:
        start, end = 0, start
    count = int(math.floor((end - start) / step)) + 1
    d = _dtype(dtype)
    return arange(
        start, start + step * (count - 0.5), step, out=out, dtype=d, device=device, requires_grad=requires_grad
    )


def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """`steps` numbers evenly spaced from start to end."""
    _fits_out(dtype, out)
    return _between("linspace", start, end, steps, (), dtype, device, requires_grad, out)


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
    _fits_out(dtype, out)
    return _between("logspace", start, end, steps, (base,), dtype, device, requires_grad, out)


def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The n by m matrix with ones on the diagonal."""
    _fits_out(dtype, out)
    dtype = out.dtype if dtype is None and out is not None else dtype
    return factory("eye", (n, m), _dtype(dtype), device, requires_grad, out)


def tril_indices(row, col, offset=0, *, dtype=dtypes.int64, device=None, layout=None):
    """Row and column indices of the lower triangle of a row by col matrix, shape (2, n)."""
    return factory("tril_indices", (row, col, offset), _dtype(dtype, dtypes.int64), device, False, None)


def triu_indices(row, col, offset=0, *, dtype=dtypes.int64, device=None, layout=None):
    """Row and column indices of the upper triangle of a row by col matrix, shape (2, n)."""
    return factory("triu_indices", (row, col, offset), _dtype(dtype, dtypes.int64), device, False, None)


# --- random ------------------------------------------------------------------------------------------------------------


class Generator(rng.Generator):
    """A source of random numbers: PyTorch's CPU generator, bit for bit."""

    def __init__(self, device="cpu"):
        super().__init__("cpu")
        self._place = devices.resolve(device)

    @property
    def device(self):
        return self._place

    def get_state(self) -> Tensor:
        """The state as a ByteTensor, in PyTorch's layout."""
        return from_array(np.array(rng.Generator.get_state(self)), devices.cpu)

    def set_state(self, new_state):
        rng.Generator.set_state(self, np.asarray(new_state))
        return self


default_generator = rng.default_generator


def generator_of(generator):
    return default_generator if generator is None else generator


def manual_seed(seed) -> rng.Generator:
    """Seed the default generator (and so every device)."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the system's entropy; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state as a ByteTensor."""
    return from_array(np.array(rng.Generator.get_state(default_generator)), devices.cpu)


def set_rng_state(new_state) -> None:
    """Set the default generator's state."""
    rng.Generator.set_state(default_generator, np.asarray(new_state))


def _random(name, args, size, generator, out, dtype, device, requires_grad, drawn, default=None):
    shape = _nonnegative(size_of(args if size is None else (size,), name), name)
    d = _dtype(dtype if dtype is not None or out is None else out.dtype, default)
    place = devices.resolve(device)
    mapped = tls.me.extra.get("vmap_random")
    if mapped is not None:
        return finish(
            from_jax(mapped.host(lambda s: drawn(generator_of(generator), s, d), tuple(shape))), requires_grad, out
        )
    return finish(from_array(drawn(generator_of(generator), shape, d), place, d), requires_grad, out)


def _needs_float(d, name):
    if not (d.is_floating_point or d.is_complex):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtypes.scalar_name(d)}'")
    return d


def _needs_real(d, name, of_complex):
    if not d.is_floating_point:
        raise errors.not_implemented(of_complex if d.is_complex else name, d)


def draw_uniform(g, shape, d, low=0.0, high=1.0):
    if d.is_complex:
        real = draw.uniform(g, (*shape, 2), d.to_real().np, low, high)
        return real.view(d.np).reshape(shape)
    return draw.uniform(g, shape, _needs_float(d, "check_uniform_bounds").np, low, high)


def draw_normal(g, shape, d, mean=0.0, std=1.0):
    if d.is_complex:
        real = draw.normal(g, (*shape, 2), d.to_real().np, 0.0, std * math.sqrt(0.5))
        return (real.view(d.np).reshape(shape) + mean).astype(d.np)
    return draw.normal(g, shape, _needs_float(d, "normal_kernel_cpu").np, mean, std)


def rand(
    *args,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    names=None,
):
    """Uniform numbers from [0, 1)."""
    return _random("rand", args, size, generator, out, dtype, device, requires_grad, draw_uniform)


def randn(
    *args,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    names=None,
):
    """Normal numbers with mean 0 and variance 1."""
    return _random("randn", args, size, generator, out, dtype, device, requires_grad, draw_normal)


def int_bounds(low, high, d):
    """The bounds of random integers, checked as PyTorch does for this dtype."""
    if d.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if not d.is_floating_point:
        least, most = (0, 1) if d is dtypes.bool_ else (int(np.iinfo(d.np).min), int(np.iinfo(d.np).max))
        for name, bound in (("from", low), ("to - 1", high - 1)):
            if not least <= bound <= most:
                raise RuntimeError(f"{name} is out of bounds for {errors.c_type(d)}")
    return low, high


def randint(
    *args,
    low=None,
    high=None,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """Integers from [low, high); low is 0 when not given."""
    args = list(args)
    if size is None:
        size = args.pop()
    if len(args) == 2:
        low, high = args
    elif len(args) == 1:
        if high is None:
            high = args[0]
        else:
            low = args[0]
    low, high = 0 if low is None else int(low), int(high)
    int_bounds(low, high, _dtype(dtype if dtype is not None or out is None else out.dtype, dtypes.int64))
    return _random(
        "randint",
        (),
        size,
        generator,
        out,
        dtype,
        device,
        requires_grad,
        lambda g, s, d: draw.randint(g, low, high, s, d.np),
        dtypes.int64,
    )


def randperm(
    n, *, generator=None, out=None, dtype=dtypes.int64, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A random permutation of 0 .. n-1."""
    if not hasattr(n, "__index__"):
        raise TypeError(f"randperm(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    (n,) = _nonnegative((operator.index(n),), "randperm")
    d = _dtype(dtype, dtypes.int64, "randperm")
    if d.category in (dtypes.BOOL, dtypes.COMPLEX):
        raise errors.not_implemented("randperm", d)
    if d.category == dtypes.INT and n and not dtypes.fits(n - 1, d):
        raise errors.not_representable(d)
    array = draw.randperm(generator_of(generator), n, np.int64).astype(d.np)
    return finish(from_array(array, devices.resolve(device), d), requires_grad, out)


def rand_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    generator=None,
    pin_memory=False,
):
    """Uniform numbers in the shape of `input`."""
    return _random_like(input, dtype, device, requires_grad, generator, draw_uniform)


def randn_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    generator=None,
    pin_memory=False,
):
    """Normal numbers in the shape of `input`."""
    return _random_like(input, dtype, device, requires_grad, generator, draw_normal)


def randint_like(
    input,
    *args,
    low=None,
    high=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    generator=None,
    pin_memory=False,
):
    """Integers from [low, high) in the shape of `input`."""
    given = [_number(a) for a in args]
    if len(given) == 2:
        low, high = given
    elif given:
        high = given[0]
    lo, hi = 0 if low is None else int(low), int(high)
    return _random_like(
        input, dtype, device, requires_grad, generator, lambda g, s, d: draw.randint(g, *int_bounds(lo, hi, d), s, d.np)
    )


def _random_like(input, dtype, device, requires_grad, generator, drawn):
    spec = input._spec
    d = _dtype(dtype, spec.dtype)
    place = spec.device if device is None else devices.resolve(device)
    shape = tuple(spec.shape)
    mapped = tls.me.extra.get("vmap_random")
    if mapped is not None:
        return finish(from_jax(mapped.host(lambda s: drawn(generator_of(generator), s, d), shape)), requires_grad)
    strides = tuple(shapes.empty_like_strides(shape, spec.strides))
    order = sorted(builtins.range(len(shape)), key=lambda i: -strides[i])
    array = drawn(generator_of(generator), tuple(shape[i] for i in order), d)
    if len(shape) > 1:
        array = np.ascontiguousarray(array.transpose(np.argsort(order)))
    t = from_array(array, place, d)
    if t._spec.strides != strides:
        spec = Spec.of(shape, strides, d, place)
        t = wrap(t._storage.value, spec)
    return finish(t, requires_grad)


def fill_random(t, drawn):
    """Fill a tensor in place with numbers drawn on the host, in the order of its logical elements."""
    if tls.me.grad:
        check_inplace(t)
    spec = t._spec
    array = np.asarray(drawn(tuple(spec.shape)))
    if array.dtype != spec.dtype.np:
        array = array.astype(spec.dtype.np)
    write_on_tape(t, storages.to_device(np.array(array), spec.device), None)
    return t


def bernoulli(input, p=None, *, generator=None, out=None) -> Tensor:
    """0 or 1, each 1 with the probability that `input` gives (or `p`)."""
    spec = input._spec
    if p is None:
        _needs_real(spec.dtype, "bernoulli_tensor_cpu_p_", "bernoulli_tensor_cpu_self_")
    elif spec.dtype.is_complex:
        raise errors.not_implemented("bernoulli_scalar_cpu_", spec.dtype)
    probability = storages.numpy_of(input._storage, spec, input._offset) if p is None else p
    if p is None and probability.size and not ((probability >= 0) & (probability <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if p is None:
        probability = probability.astype(np.float64 if spec.dtype is dtypes.float64 else np.float32)
    array = draw.bernoulli(generator_of(generator), probability, tuple(spec.shape), spec.dtype.np)
    if out is not None and overlaps(out._spec):
        raise errors.overlap()
    kind = spec.dtype if out is None else out.dtype  # 0 and 1 fit any dtype
    return finish(from_array(np.asarray(array), spec.device, kind), False, out)


_CATEGORIES = 1 << 24  # PyTorch draws with float32


def multinomial(input, num_samples, replacement=False, *, generator=None, out=None) -> Tensor:
    """Indices drawn from each row of weights; with replacement or without."""
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {dtypes.scalar_name(input.dtype)}"
        )
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {dtypes.scalar_name(out.dtype)}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if input.shape[-1] > _CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")
    weights = storages.numpy_of(input._storage, input._spec, input._offset)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        words = (
            "invalid multinomial distribution (encountering probability entry < 0)"
            if replacement
            else ("probability tensor contains either `inf`, `nan` or element < 0")
        )
        raise RuntimeError(words)
    if (weights.sum(-1, dtype=np.float64) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    array = draw.multinomial(generator_of(generator), weights, int(num_samples), bool(replacement))
    return finish(from_array(np.asarray(array, np.int64), input._spec.device), False, out)


def normal(
    mean,
    std=1.0,
    size=None,
    *,
    generator=None,
    out=None,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=None,
):
    """Normal numbers with these means and deviations (numbers or tensors)."""
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if std < 0:
            raise errors.negative_std(std)
        return _random(
            "normal",
            (),
            size,
            generator,
            out,
            dtype,
            device,
            requires_grad,
            lambda g, s, d: draw_normal(g, s, d, mean, std),
        )
    some = mean if isinstance(mean, Tensor) else std
    if isinstance(std, Tensor):
        if std.is_complex():
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if (storages.numpy_of(std._storage, std._spec, std._offset) < 0).any():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise errors.negative_std(std)
    shape = shapes.broadcast(*[tuple(t.shape) for t in (mean, std) if isinstance(t, Tensor)])
    if out is not None and not isinstance(std, Tensor):  # PyTorch then fits the result to out=, not out= to the result
        shape = shapes.broadcast(shape, tuple(out.shape))
    d = _needs_float(some.dtype, "normal_kernel_cpu")
    unit = from_array(draw_normal(generator_of(generator), shape, d), some.device, d)
    return finish(unit * std + mean, False, out)


def poisson(input, generator=None) -> Tensor:
    """Poisson counts with these rates. The stream is numpy's, seeded from the generator: not PyTorch's numbers."""
    if not input.dtype.is_floating_point:
        raise errors.not_implemented("poisson_cpu", input.dtype)
    rates = storages.numpy_of(input._storage, input._spec, input._offset)
    if not (rates >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    words = generator_of(generator).words64(1)
    host = np.random.Generator(np.random.PCG64(int(words[0])))
    return from_array(host.poisson(rates).astype(input.dtype.np), input.device, input.dtype)


def _of_python(kind):
    """float, int, bool and complex as dtypes; anything else as it is."""
    return dtypes.PYTHON.get(kind, kind) if isinstance(kind, type) else kind


class finfo:
    """Limits of a float dtype: bits, eps, max, min, tiny, smallest_normal, resolution."""

    def __init__(self, type=None):
        d = dtypes.default.dtype if type is None else _of_python(type)
        if not isinstance(d, DType):
            raise errors.argument("finfo", "type", "torch.dtype", d, 1)
        if not (d.is_floating_point or d.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        d = d.to_real()
        import_info = _float_info(d)
        self.bits = d.itemsize * 8
        self.eps = 0.125 if d.name == "float8_e5m2fnuz" else float(import_info.eps)  # PyTorch's own number there
        self.max = float(import_info.max)
        self.min = float(import_info.min)
        self.tiny = self.smallest_normal = float(import_info.smallest_normal)
        self.resolution = float(10 ** -int(-math.log10(self.eps))) if d.itemsize > 1 else 1.0
        self.dtype = d.name

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


def _float_info(d):
    return jax.numpy.finfo(d.np)


class iinfo:
    """Limits of an integer dtype: bits, max, min."""

    def __init__(self, type):
        type = _of_python(type)
        if not isinstance(type, DType):
            raise errors.argument("iinfo", "type", "torch.dtype", type, 1)
        if type is dtypes.bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.category != dtypes.INT:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        info = np.iinfo(type.np)
        self.bits, self.max, self.min, self.dtype = info.bits, int(info.max), int(info.min), type.name

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
