"""torch.FloatTensor and its like: constructors named after a dtype, from before dtypes were arguments."""

from .convert import LEGACY_NAMES
from .copying import legacy_new
from .core import dtype as dtypes
from .tensor import Tensor


class _LegacyType(type):
    """A class that only makes Tensors and recognises those of its dtype."""

    def __call__(cls, *args, **options):
        return legacy_new(Tensor, *args, dtype=cls.dtype, **options)

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cpu


def _make(name, dtype):
    return _LegacyType(name, (), {"dtype": dtype, "__module__": "torch", "__doc__": f"Makes tensors of {dtype}."})


CLASSES = {name: _make(name, dtypes.ALL[d]) for d, name in LEGACY_NAMES.items()}


def set_default_tensor_type(t, set_default_dtype) -> None:
    """The old way to set the default dtype, by a class such as torch.DoubleTensor or its name."""
    found = CLASSES.get(t.rsplit(".", 1)[-1]) if isinstance(t, str) else t
    if not isinstance(found, _LegacyType):
        raise TypeError("invalid type object" if not isinstance(t, str) else f"invalid type object: {t}")
    if not found.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_dtype(found.dtype)
