"""The types that schemas of operators speak of: torch.IntType, torch.ListType and their like, compared by what they say."""

from .errors_extend import no_constructor, not_unified

_PLAIN = {
    "AnyType": "Any", "BoolType": "bool", "ComplexType": "complex", "DeviceObjType": "Device", "FloatType": "float",
    "IntType": "int", "NoneType": "NoneType", "NumberType": "number", "PyObjectType": "PyObject", "StreamObjType": "Stream",
    "StringType": "str", "SymBoolType": "bool", "SymIntType": "int", "TensorType": "Tensor",
}  # fmt: skip
_NUMBERS = ("IntType", "FloatType", "ComplexType")

__all__ = [
    *_PLAIN, "AwaitType", "DictType", "EnumType", "FutureType", "InferredType", "ListType", "OptionalType", "RRefType", "TupleType",
    "Type", "UnionType", "unify_type_list",
]  # fmt: skip


class Type:
    """The class of all types. Equal are types of one kind with equal parts."""

    __hash__ = None
    _parts = ()

    def __init__(self, *args):
        raise no_constructor("Type")

    def kind(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def str(self):
        """The type as a schema writes it."""
        return _PLAIN[self.kind()]

    @property
    def annotation_str(self):
        return self.str()

    def __repr__(self):
        return self.str()

    def containedTypes(self) -> list:
        """The types of its parts."""
        return list(self._parts)

    def is_interface_type(self) -> bool:
        return False

    def __eq__(self, other):
        return isinstance(other, Type) and self.kind() == other.kind() and self._key() == other._key()

    def _key(self):
        return self._parts

    def isSubtypeOf(self, other) -> bool:
        """Whether every value of this type is one of the other."""
        if self == other or isinstance(other, AnyType):
            return True
        if isinstance(other, NumberType):
            return self.kind() in _NUMBERS
        if isinstance(other, (OptionalType, UnionType)):
            return any(self.isSubtypeOf(p) for p in _members(other))
        return False


def _members(union):
    return (*union._parts, NoneType.get()) if isinstance(union, OptionalType) else union._parts


def _plain(name):
    cls = type(name, (Type,), {"__module__": "torch", "__doc__": f"The type `{_PLAIN[name]}`; `get()` gives it."})
    only = object.__new__(cls)
    cls.get = staticmethod(lambda: only)
    return cls


AnyType, BoolType, ComplexType, DeviceObjType, FloatType, IntType, NoneType = map(_plain, list(_PLAIN)[:7])
NumberType, PyObjectType, StreamObjType, StringType, SymBoolType, SymIntType, TensorType = map(_plain, list(_PLAIN)[7:])
TensorType.getInferred = TensorType.get


class _OfOne(Type):
    """A type made of one other."""

    def __init__(self, a):
        self._parts = (a,)

    def getElementType(self):
        """The type it is made of."""
        return self._parts[0]

    def str(self):
        return f"{self.kind().removesuffix('Type')}[{self._parts[0]}]"


class FutureType(_OfOne):
    """A value that is computed meanwhile."""


class AwaitType(_OfOne):
    """A value that is computed when asked for."""


class RRefType(_OfOne):
    """A value in another process."""


class ListType(_OfOne):
    """A list of values of one type."""

    ofInts = classmethod(lambda cls: cls(IntType.get()))
    ofFloats = classmethod(lambda cls: cls(FloatType.get()))
    ofBools = classmethod(lambda cls: cls(BoolType.get()))
    ofStrings = classmethod(lambda cls: cls(StringType.get()))
    ofTensors = classmethod(lambda cls: cls(TensorType.get()))
    ofComplexDoubles = classmethod(lambda cls: cls(ComplexType.get()))


class OptionalType(_OfOne):
    """A value of one type, or None."""

    ofTensor = classmethod(lambda cls: cls(TensorType.get()))

    def isSubtypeOf(self, other) -> bool:
        return super().isSubtypeOf(other) or all(p.isSubtypeOf(other) for p in _members(self))


class DictType(Type):
    """A dict with keys of one type and values of one type."""

    def __init__(self, key, value):
        self._parts = (key, value)

    def getKeyType(self):
        return self._parts[0]

    def getValueType(self):
        return self._parts[1]

    def str(self):
        return f"Dict[{self._parts[0]}, {self._parts[1]}]"


class TupleType(Type):
    """A tuple with a type for each place."""

    def __init__(self, elements):
        self._parts = tuple(elements)

    def elements(self) -> list:
        """The types of its places."""
        return list(self._parts)

    def str(self):
        return f"Tuple[{', '.join(p.str() for p in self._parts) or '()'}]"

    def isSubtypeOf(self, other) -> bool:
        if isinstance(other, TupleType) and len(other._parts) == len(self._parts):
            return all(a.isSubtypeOf(b) for a, b in zip(self._parts, other._parts))
        return super().isSubtypeOf(other)


class UnionType(Type):
    """A value of one of several types. One type or None is an OptionalType."""

    def __new__(cls, types):
        rest = [t for t in types if not isinstance(t, NoneType)]
        return OptionalType(rest[0]) if len(types) == 2 and len(rest) == 1 else object.__new__(cls)

    def __init__(self, types):
        self._parts = tuple(types)

    def str(self):
        return f"Union[{', '.join(p.str() for p in self._parts)}]"

    def _key(self):
        return sorted(p.str() for p in self._parts)

    def isSubtypeOf(self, other) -> bool:
        return super().isSubtypeOf(other) or all(p.isSubtypeOf(other) for p in self._parts)


class EnumType(Type):
    """The members of an enum.

    Args: its qualified name, the type of its values, its members.
    """

    def __init__(self, qualified_name, value_type, members, *args):
        self._name, self._value, self._members = qualified_name, value_type, tuple(members)

    def str(self):
        return self._name

    def _key(self):
        return self._name, self._value, self._members


class InferredType:
    """A type that was found, or the reason why none was."""

    def __init__(self, found):
        self._found = found

    def success(self) -> bool:
        return isinstance(self._found, Type)

    def type(self):
        return self._found if self.success() else None

    def reason(self):
        return None if self.success() else self._found


def unify_type_list(types):
    """The one type that values of all these types have. RuntimeError: there is none."""
    if not types:
        raise not_unified("Cannot get unified type from empty list")
    found = types[0]
    for k, t in enumerate(types[1:], 1):
        if t.isSubtypeOf(found):
            continue
        if found.isSubtypeOf(t):
            found = t
        elif isinstance(t, NoneType) or isinstance(found, NoneType):
            found = OptionalType(found if isinstance(t, NoneType) else t)
        else:
            raise not_unified(
                f"Could not unify type list since element {k} of type {t} did not match the types before it ({found})"
            )
    return found
