"""Lists and dicts whose items have one type, views of a module's parts, and counters: small classes of torch._C."""

import numbers

from . import errors_extend, script_types
from .core import device as devices
from .sundries import AggregationType
from .tensor import Tensor

__all__ = [
    "BufferDict", "DeserializationStorageContext", "LockingLogger", "LoggerBase", "ModuleDict", "NoopLogger", "ParameterDict",
    "ScriptDict", "ScriptDictIterator", "ScriptDictKeyIterator", "ScriptList", "ScriptListIterator",
]  # fmt: skip

_KINDS = (
    (bool, script_types.BoolType.get()), (numbers.Integral, script_types.IntType.get()), (float, script_types.FloatType.get()),
    (complex, script_types.ComplexType.get()), (str, script_types.StringType.get()), (Tensor, script_types.TensorType.get()),
    (devices.Device, script_types.DeviceObjType.get()), (type(None), script_types.NoneType.get()),
)  # fmt: skip


def _type_of(value):
    """The type of a value. TypeError: there is none."""
    for kind, found in _KINDS:
        if isinstance(value, kind):
            return found
    if isinstance(value, (list, ScriptList)):
        return script_types.ListType(_type_of_all(value) or script_types.TensorType.get())
    if isinstance(value, (dict, ScriptDict)):
        key, item = _type_of_all(value.keys()), _type_of_all(v for _, v in value.items())
        return script_types.DictType(key or script_types.StringType.get(), item or script_types.TensorType.get())
    if isinstance(value, tuple):
        return script_types.TupleType([_type_of(v) for v in value])
    raise errors_extend.wrong_item("value", "TorchScript", value)


def _type_of_all(values):
    found = [_type_of(v) for v in values]
    return script_types.unify_type_list(found) if found else None


def _checked(kind, want, value):
    try:
        fits = _type_of(value).isSubtypeOf(want)
    except TypeError:
        fits = False
    if not fits:
        raise errors_extend.wrong_item(kind, want, value)
    return value


class ScriptListIterator:
    """Over the items of a ScriptList."""

    def __init__(self, items):
        self._left = iter(items)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._left)


class ScriptDictKeyIterator(ScriptListIterator):
    """Over the keys of a ScriptDict."""


class ScriptDictIterator(ScriptListIterator):
    """Over the pairs of a ScriptDict."""


class ScriptList:
    """A list whose items have one type, that of the list it is made of (or a ListType). TypeError: an item of another type."""

    def __init__(self, items):
        typed = isinstance(items, script_types.ListType)
        self._items = [] if typed else list(items)
        self._type = items.getElementType() if typed else _type_of(self._items).getElementType()

    def __len__(self):
        return len(self._items)

    def __contains__(self, value):
        return value in self._items

    def __iter__(self):
        return ScriptListIterator(self._items)

    def __getitem__(self, i):
        return type(self)._of(self._items[i], self._type) if isinstance(i, slice) else self._items[i]

    @classmethod
    def _of(cls, items, kind):
        made = cls(script_types.ListType(kind))
        made._items = items
        return made

    def __setitem__(self, i, value):
        values = [_checked("item", self._type, v) for v in (value if isinstance(i, slice) else [value])]
        self._items[i] = values if isinstance(i, slice) else values[0]

    def __delitem__(self, i):
        del self._items[i]

    def __eq__(self, other):
        return self._items == list(other) if isinstance(other, (list, ScriptList)) else NotImplemented

    __hash__ = None

    def __repr__(self):
        return repr(self._items)

    def append(self, value) -> None:
        """Add an item at the end."""
        self._items.append(_checked("item", self._type, value))

    def insert(self, i, value) -> None:
        """Add an item before a place."""
        self._items.insert(i, _checked("item", self._type, value))

    def extend(self, values) -> None:
        """Add items at the end."""
        self._items.extend([_checked("item", self._type, v) for v in values])

    def pop(self, i=-1):
        """Take an item out."""
        return self._items.pop(i)

    def remove(self, value) -> None:
        """Take out the first item that is equal."""
        self._items.remove(value)

    def count(self, value) -> int:
        """How many items are equal."""
        return self._items.count(value)

    def clear(self) -> None:
        """Take out all."""
        self._items.clear()


class ScriptDict:
    """A dict whose keys and values have one type each, those of the dict it is made of (or a DictType)."""

    def __init__(self, items):
        typed = isinstance(items, script_types.DictType)
        self._items = {} if typed else dict(items)
        kind = items if typed else _type_of(self._items)
        self._key, self._value = kind.getKeyType(), kind.getValueType()

    def __len__(self):
        return len(self._items)

    def __contains__(self, key):
        return key in self._items

    def __iter__(self):
        return ScriptDictKeyIterator(self._items)

    def __getitem__(self, key):
        return self._items[key]

    def __setitem__(self, key, value):
        self._items[_checked("key", self._key, key)] = _checked("value", self._value, value)

    def __delitem__(self, key):
        del self._items[key]

    def __repr__(self):
        return repr(self._items)

    def keys(self):
        """Its keys."""
        return self._items.keys()

    def items(self):
        """Its pairs."""
        return ScriptDictIterator(self._items.items())


class _Parts:
    """The parts of one kind that a module has itself, by name."""

    def __init__(self, module):
        self._module = module

    def items(self) -> list:
        """(name, part), in order."""
        return list(getattr(self._module, self._table).items())

    def contains(self, name) -> bool:
        return name in getattr(self._module, self._table)

    def getattr(self, name):
        """The part of this name; RuntimeError: there is none."""
        if not self.contains(name):
            raise errors_extend.no_part(self._module, name)
        return getattr(self._module, name)

    def setattr(self, name, value) -> None:
        """Put another part in the place of one."""
        self.getattr(name)
        setattr(self._module, name, value)


class ParameterDict(_Parts):
    """The parameters that a module has itself."""

    _table = "_parameters"


class BufferDict(_Parts):
    """The buffers that a module has itself."""

    _table = "_buffers"


class ModuleDict(_Parts):
    """The modules directly inside a module."""

    _table = "_modules"


class LoggerBase:
    """The class of counters."""

    def __init__(self):
        raise errors_extend.no_constructor("LoggerBase")

    def add_stat_value(self, name, value) -> None:
        """Count a value under a name."""


class NoopLogger(LoggerBase):
    """Counts nothing."""

    def __init__(self):
        pass


class LockingLogger(LoggerBase):
    """The sum of the values counted under each name, or their mean."""

    def __init__(self):
        self._values, self._kinds = {}, {}

    def add_stat_value(self, name, value) -> None:
        self._values.setdefault(name, []).append(value)

    def set_aggregation_type(self, name, type) -> None:
        """SUM (at first) or AVG."""
        self._kinds[name] = type

    def get_counter_val(self, name) -> int:
        """The sum, or the mean as a whole number; 0 where nothing was counted."""
        values = self._values.get(name, [0])
        return sum(values) // (len(values) if self._kinds.get(name) is AggregationType.AVG else 1)


class DeserializationStorageContext:
    """Storages by their names in a file, so that each is read once."""

    def __init__(self):
        self._storages = {}

    def has_storage(self, name) -> bool:
        return name in self._storages

    def get_storage(self, name):
        """The storage of this name."""
        return self._storages[name]

    def add_storage(self, name, storage) -> int:
        """Keep a storage; how many there are."""
        self._storages[name] = storage
        return len(self._storages)
