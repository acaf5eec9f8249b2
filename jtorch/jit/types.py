"""Types of values in a graph that say more than those of schemas: tensors of known sizes, classes; and how IR writes a type."""

from .. import script_types
from ..core import dtype as dtypes
from ..core.device import Device
from ..errors_extend import not_registered
from ..script_types import Type
from ..tensor import Tensor

__all__ = ["ClassType", "InterfaceType"]

SCALAR_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "complex32": "ComplexHalf",
}  # fmt: skip
DTYPES = {word: dtypes.ALL[name] for name, word in SCALAR_NAMES.items() if name in dtypes.ALL}
# What a dtype is as a number in a graph.
CODES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex32": 8,
    "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 15,
}  # fmt: skip


def name_of(dtype) -> str:
    """ "float32" of torch.float32."""
    return str(dtype).removeprefix("torch.")


class _Sized(script_types.TensorType):
    """The type of tensors of one dtype, device and shape."""

    def __init__(self, dtype, sizes, strides, device, requires_grad):
        self._of = dtype, sizes, strides, device, requires_grad

    def kind(self) -> str:
        return "TensorType"

    def _key(self):
        return self._of

    def scalarType(self) -> str:
        """ "Float" of float32."""
        return SCALAR_NAMES.get(name_of(self._of[0]), name_of(self._of[0]))

    def dtype(self):
        return self._of[0]

    def sizes(self):
        """The shape as a list."""
        return None if self._of[1] is None else list(self._of[1])

    varyingSizes = sizes

    def strides(self):
        return None if self._of[2] is None else list(self._of[2])

    def dim(self):
        return None if self._of[1] is None else len(self._of[1])

    def device(self):
        return self._of[3]

    def requiresGrad(self) -> bool:
        return bool(self._of[4])

    requires_grad = requiresGrad

    def undefined(self) -> bool:
        return False

    def isSubtypeOf(self, other) -> bool:
        """Whether every value of this type is one of the other."""
        return super().isSubtypeOf(other) or other is script_types.TensorType.get()

    @property
    def annotation_str(self) -> str:
        return "Tensor"

    def str(self) -> str:
        _, sizes, strides, device, grad = self._of
        parts = [str(n) for n in sizes] if sizes is not None else ["*"]
        if strides:
            parts.append(f"strides=[{', '.join(map(str, strides))}]")
        if grad is not None:
            parts.append(f"requires_grad={int(grad)}")
        if device is not None:
            parts.append(f"device={device}")
        return f"{self.scalarType()}({', '.join(parts)})"

    def __repr__(self):
        return "Tensor"


_Sized.__name__ = "TensorType"


def of_tensor(t) -> Type:
    """The type of a tensor, with what is known of it."""
    return _Sized(t.dtype, tuple(t.shape), tuple(t.stride()), Device(str(t.device)), t.requires_grad)


class ClassType(Type):
    """The type of a module in a graph. TypeError from a program: no class is registered by its name, since nothing is scripted."""

    def __init__(self, name):
        raise not_registered()

    @classmethod
    def of(cls, module):
        """The type of a module's class."""
        kind = type(getattr(module, "_inner", module))  # of a scripted module, the class that was scripted
        home = kind.__module__.replace("jtorch.", "torch.")
        return cls.named(f"__torch__.{'' if home == '__main__' else home + '.'}{kind.__name__}")

    @classmethod
    def named(cls, name):
        """The type of a qualified name."""
        made = object.__new__(cls)
        made._name = name
        return made

    def _key(self):
        return self._name

    def name(self) -> str:
        """The class's name."""
        return self._name.rpartition(".")[2]

    def qualified_name(self) -> str:
        return self._name

    def method_names(self) -> list:
        """What of it is in a graph."""
        return ["forward"]

    def str(self) -> str:
        return self._name


class InterfaceType(Type):
    """The type of a scripted interface. TypeError from a program: none is registered, since nothing is scripted."""

    def __init__(self, name):
        raise not_registered()


def words(kind: Type) -> str:
    """A type as IR writes it: `int[]`, `Tensor?`, `(int, Tensor)`."""
    if isinstance(kind, script_types.ListType):
        return f"{words(kind.getElementType())}[]"
    if isinstance(kind, script_types.OptionalType):
        return f"{words(kind.getElementType())}?"
    if isinstance(kind, script_types.TupleType):
        return f"({', '.join(map(words, kind.elements()))})"
    if isinstance(kind, script_types.DictType):
        return f"Dict({words(kind.getKeyType())}, {words(kind.getValueType())})"
    return kind.str()


_PYTHON = {
    bool: script_types.BoolType, int: script_types.IntType, float: script_types.FloatType, str: script_types.StringType,
    complex: script_types.ComplexType, type(None): script_types.NoneType, Device: script_types.DeviceObjType,
    dtypes.dtype: script_types.IntType,
}  # fmt: skip


def of_value(value) -> Type:
    """The type of a Python value in a graph."""
    if isinstance(value, Tensor):
        return of_tensor(value)
    if isinstance(value, tuple):
        return script_types.TupleType([of_value(v) for v in value])
    if isinstance(value, list):
        return script_types.ListType(of_value(value[0]) if value else script_types.TensorType.get())
    found = _PYTHON.get(type(value))
    return found.get() if found is not None else script_types.PyObjectType.get()
