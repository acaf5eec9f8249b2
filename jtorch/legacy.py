"""Constructors from before dtypes were arguments: torch.Tensor(...), tensor.new(...), torch.FloatTensor(...) and its like."""

import operator

import numpy as np

from . import creation, deprecations, errors, errors_arguments, errors_storage
from .convert import LEGACY_NAMES
from .copying import as_subclass
from .core import device as devices
from .core import dtype as dtypes
from .storage_api import TypedStorage, UntypedStorage
from .tensor import Size, Tensor, make

_FORMS = (
    "(tuple of ints size), (object data), (Tensor other) or (Storage storage), each with torch.device device = None"
)


def legacy_new(cls, *args, **named) -> Tensor:
    """torch.Tensor(...): sizes, data in the default dtype, or another tensor or storage, which it then shares."""
    made = _new(args, named, dtypes.default.dtype, devices.cpu, any_dtype=True)
    if made._base is None:
        return make(made._storage, made._spec, made._offset, cls)
    made.__class__ = cls  # a view of a tensor, with its history
    return made


def new(self, *args, **named) -> Tensor:
    """torch.Tensor(...) with the dtype and the device of this tensor."""
    return _new(args, named, self._spec.dtype, self._spec.device)


def _new(args, named, dtype, place, any_dtype=False):
    device = named.pop("device", None)
    if set(named) - {"size", "data", "other", "storage"} or len(args) + len(named) > 1 and named:
        raise errors.combination("new", args, _FORMS, named)
    if device is not None and devices.resolve(device) is not place:
        raise errors_arguments.legacy_device(place, devices.resolve(device))
    args = args or tuple(named.values())
    if not args:
        return creation.empty(0, dtype=dtype, device=place)
    first = args[0]
    if len(args) > 1 or isinstance(first, Size) or "size" in named or _whole(first):
        return creation.empty(*args, dtype=dtype, device=place)
    if isinstance(first, Tensor):
        if first._spec.dtype is not dtype and not any_dtype:
            raise errors_arguments.legacy_dtype(dtype, first._spec.dtype)
        return as_subclass(first, Tensor)
    if isinstance(first, UntypedStorage):
        return first._flat(dtype)
    if isinstance(first, TypedStorage):
        if first.dtype is not dtype:
            raise errors_storage.another_dtype(False, first.dtype, dtype, legacy=True)
        return first._flat()
    if isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(first, dict) or not (hasattr(first, "__len__") and hasattr(first, "__getitem__")):
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return creation.tensor(first, dtype=dtype, device=place)


def _whole(x) -> bool:
    if isinstance(x, (bool, Tensor, np.ndarray)):
        return False
    try:
        operator.index(x)
    except TypeError:
        return False
    return True


class _LegacyType(type):
    """A class that only makes Tensors and recognises those of its dtype and device."""

    def __call__(cls, *args, **named):
        return _new(args, named, cls.dtype, devices.resolve(cls.place))

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == cls.place


def _make(name, dtype, place):
    return _LegacyType(
        name,
        (),
        {
            "dtype": dtype,
            "place": place,
            "is_cuda": place == "cuda",
            "is_sparse": False,
            "layout": creation.strided,
            "__module__": "torch",
            "__doc__": f"Makes tensors of {dtype} on {place}.",
        },
    )


CLASSES = {name: _make(name, dtypes.ALL[d], "cpu") for d, name in LEGACY_NAMES.items()}
CUDA_CLASSES = {name: _make(name, dtypes.ALL[d], "cuda") for d, name in LEGACY_NAMES.items()}


def set_default_tensor_type(t, set_default_dtype, set_default_device) -> None:
    """The old way to set the default dtype and device, by a class such as torch.cuda.FloatTensor or its name."""
    deprecations.say("set_default_tensor_type")
    if isinstance(t, str):
        space, _, name = t.rpartition(".")
        found = (CUDA_CLASSES if space == "torch.cuda" else CLASSES).get(name)
    else:
        found = t
    if not isinstance(found, _LegacyType):
        raise TypeError("invalid type object" if not isinstance(t, str) else f"invalid type object: {t}")
    if not found.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if found.place != devices.get_default().type:
        set_default_device(found.place)
    set_default_dtype(found.dtype)
