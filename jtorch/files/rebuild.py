"""The functions that files name to make tensors from storages. Everything they are given is checked."""

import importlib
from math import prod

from .. import creation
from ..autograd.derive import differentiable
from ..autograd.mode import no_grad
from ..convert import to
from ..copying import make_wrapper_subclass
from ..core import device as devices
from ..core import dtype as dtypes
from ..core import shapes
from ..core.pending import NO_DATA
from ..core.spec import Spec
from ..core.storage import Storage
from ..dispatch.dispatched import has_dispatch
from ..dispatch.override import LAYOUTS
from ..nn.parameter import Parameter
from ..reshaping import op_named
from ..storage_api import TypedStorage
from ..tensor import Tensor, make
from . import errors
from .state import replace, session

_MAX_DIMS = 64
_MAX = (1 << 63) - 1


def _ints(x, what) -> tuple:
    if (
        not isinstance(x, (tuple, list))
        or len(x) > _MAX_DIMS
        or any(type(n) is not int or not 0 <= n <= _MAX for n in x)
    ):
        raise errors.bad_layout(f"its {what} is no list of at most {_MAX_DIMS} sizes")
    return tuple(x)


def tensor_on(storage, dtype, offset, size, stride) -> Tensor:
    """A tensor of this layout on a storage of a file, which it must not leave."""
    size, stride = _ints(size, "size"), _ints(stride, "stride")
    (offset,) = _ints((offset,), "storage offset")
    if not isinstance(storage, TypedStorage) or not isinstance(dtype, dtypes.dtype) or len(size) != len(stride):
        raise errors.bad_layout("its storage, dtype, size and stride do not fit together")
    numel = prod(size)
    if numel * dtype.itemsize > _MAX:
        raise errors.bad_layout("Storage size calculation overflowed")
    nbytes = storage.nbytes()
    if numel and (offset + 1 + sum((n - 1) * s for n, s in zip(size, stride))) * dtype.itemsize > nbytes:
        raise errors.outside_storage(size, stride, offset, nbytes)
    core = storage._storage
    spec = Spec.of(size, stride, dtype, core.base.device)
    if core.host is not None:
        _take_shape(core.host, spec, offset)
    return make(core, spec, offset)


def _take_shape(host, spec, offset):
    """Let a storage just read have the dtype and the layout of its first tensor, which then reads it as it stands."""
    whole, dtype = host.spec, spec.dtype
    if whole.ndim != 1:
        return
    if whole.dtype is dtypes.uint8 and dtype is not dtypes.uint8 and whole.numel % dtype.itemsize == 0:
        host.buffer = host.buffer.view(dtype.memory)  # dtypes without a storage class are stored as bytes
        whole = host.spec = Spec.dense((host.buffer.size,), dtype, whole.device)
    if (
        not offset
        and 0 < spec.numel == whole.numel
        and dtype is whole.dtype
        and shapes.is_dense(tuple(spec.shape), spec.strides)
    ):
        host.spec = spec


def _finish(made, requires_grad, metadata) -> Tensor:
    if metadata:
        if not isinstance(metadata, dict):
            raise errors.bad_layout("its metadata is no dict")
        with no_grad():
            # jtorch computes conjugates and negations at once: the result has a storage of its own.
            for name, op in (("conj", "conj_physical"), ("neg", "neg")):
                if metadata.get(name):
                    session.later(replace, made, op_named(op))
    if requires_grad:
        if not differentiable(made._spec):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        made._rg = True
    return made


def _rebuild_tensor(storage, storage_offset, size, stride):
    dtype = storage.dtype if isinstance(storage, TypedStorage) else None
    return tensor_on(storage, dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    return _finish(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    return _finish(tensor_on(storage, dtype, storage_offset, size, stride), requires_grad, metadata)


def _rebuild_parameter(data, requires_grad, backward_hooks):
    if not isinstance(data, Tensor):
        raise errors.bad_layout("a parameter without a tensor")
    return Parameter(data, bool(requires_grad))


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return set_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func, new_type, args, state):
    if (
        getattr(func, "__module__", "") != __name__
        or not isinstance(new_type, type)
        or not issubclass(new_type, Tensor)
    ):
        raise errors.bad_layout("its class is no class of tensors")
    made = func(*args)
    if type(made) is not new_type and (new_type is not Tensor or type(made) not in LAYOUTS):
        made.__class__ = new_type
    if hasattr(new_type, "__setstate__"):
        made.__setstate__(state)
        return made
    return set_state(made, state)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    size, stride = _ints(size, "size"), _ints(stride, "stride")
    if not isinstance(dtype, dtypes.dtype) or len(size) != len(stride):
        raise errors.bad_layout("its dtype, size and stride do not fit together")
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if prod(size) else 0
    if max(count, prod(size)) * dtype.itemsize > _MAX:
        raise errors.bad_layout("Storage size calculation overflowed")
    base = Spec.dense((count,), dtype, devices.meta)
    return _finish(make(Storage(NO_DATA, base), Spec.of(size, stride, dtype, devices.meta)), requires_grad, None)


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    if not isinstance(data, Tensor) or not isinstance(dtype, dtypes.dtype):
        raise errors.bad_layout("a tensor of another device without its values")
    return _finish(to(data, dtype=dtype, device=session.place(device)), requires_grad, None)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    return _rebuild_device_tensor_from_cpu_tensor(creation.from_numpy(data), dtype, device, requires_grad)


def _refuse(name, what, instead):
    def refuse(*args):
        raise errors.unsupported_record(what, instead)

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


_rebuild_qtensor = _refuse("_rebuild_qtensor", "a quantized tensor", "Save tensor.dequantize() instead.")
_rebuild_nested_tensor = _refuse(
    "_rebuild_nested_tensor", "a nested tensor", "Save tensor.unbind() or a padded tensor instead."
)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    """A tensor subclass without elements of its own: the tensors that it wraps come with its state."""
    size, stride = _ints(size, "size"), _ints(stride, "stride")
    (offset,) = _ints((storage_offset,), "storage offset")
    if not isinstance(cls, type) or not issubclass(cls, Tensor) or not has_dispatch(cls):
        raise errors.bad_layout("its class is no class of tensors with a __torch_dispatch__")
    if not isinstance(dtype, dtypes.dtype) or len(size) != len(stride) or not isinstance(layout, creation.Layout_):
        raise errors.bad_layout("its dtype, size, stride and layout do not fit together")
    place = session.place(device)
    return make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=offset,
        dtype=dtype,
        layout=layout,
        device=place,
        requires_grad=bool(requires_grad),
    )


def _rebuild_sparse_tensor(layout, data):
    kind = layout.name.removeprefix("sparse_") if isinstance(layout, creation.Layout_) else "strided"
    count = 2 if kind == "coo" else 3
    if kind == "strided" or not isinstance(data, tuple) or not count < len(data) <= count + 2:
        raise errors.bad_layout("a sparse tensor without its parts")
    if not all(isinstance(x, Tensor) for x in data[:count]):
        raise errors.bad_layout("a sparse tensor without its parts")
    args = kind, data[:count], _ints(data[count], "size"), *data[count + 1 :]
    if not session.filling:
        return _sparse(*args)
    made = _sparse(*args, trusted=True)
    session.later(_sparse, *args)  # for its errors
    return made


def _sparse(*args, trusted=False):
    try:
        return importlib.import_module("jtorch.sparse.saving").of_parts(*args, trusted=trusted)
    except (RuntimeError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise errors.bad_layout(f"the parts of a sparse tensor do not fit ({error})") from None


_SPARSE = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_LAYOUTS = {f"torch.{name}": getattr(creation, name) for name in _SPARSE}


def _get_layout(name):
    """The layout of this name."""
    found = _LAYOUTS.get(name) if isinstance(name, str) else None
    if found is None:
        raise errors.unsupported_record(f"the layout {name!s:.40}", "Save strided or sparse tensors instead.")
    return found


def set_state(made, state):
    """Give a tensor the attributes that it had: a dict, or a pair of a dict and one of slots."""
    parts = state if isinstance(state, tuple) else (state,)
    if len(parts) > 2 or not all(part is None or isinstance(part, dict) for part in parts):
        raise RuntimeError("Invalid serialized state")
    for part in parts:
        for k, v in (part or {}).items():
            if not isinstance(k, str) or k.startswith("__") or k in Tensor.__slots__:
                raise errors.bad_layout("an attribute of it has a reserved name")
            setattr(made, k, v)
    return made


def set_any_state(made, state):
    """What pickle does with a state."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return made
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        made.__dict__.update(state)
    for k, v in (slots or {}).items():
        setattr(made, k, v)
    return made


OF_TENSORS = tuple(name for name in list(globals()) if name.startswith("_rebuild_") and name != "_rebuild_from_type_v2")
