"""Values of a graph, where they are used, and the attributes of nodes; how a node prints a constant."""

import itertools

from .. import script_types
from ..core.device import Device
from ..core.dtype import dtype
from ..errors_extend import no_attribute, no_constructor
from ..tensor import Tensor
from . import types

__all__ = ["Use", "Value"]


class Made:
    """A class whose instances come from a graph alone."""

    def __init__(self, *args, **kwargs):
        raise no_constructor(type(self).__name__)

    @classmethod
    def _new(cls, **fields):
        made = object.__new__(cls)
        made.__dict__.update(fields)
        return made


class Use(Made):
    """A place where a value is used: `user`, the node, and `offset`, which of its inputs."""

    def isAfter(self, other) -> bool:
        """Whether it comes after another use."""
        if self.user is other.user:
            return self.offset > other.offset
        return self.user.isAfter(other.user)


class Value(Made):
    """A value of a graph: the result of a node, or an input."""

    def node(self):
        """The node that makes it."""
        return self._node

    def offset(self) -> int:
        """Which result of its node it is."""
        return self._node._outputs.index(self)

    def unique(self) -> int:
        """Its number, its own in the graph."""
        return self._unique

    def debugName(self) -> str:
        """Its name as printed, without the %."""
        return self._name or str(self._unique)

    def setDebugName(self, name):
        """Name it; where the name is taken, with a number behind."""
        names = self._node._graph._names
        names.pop(self._name, None)
        base, n = (
            name.rpartition(".")[0] if name.rpartition(".")[2].isdigit() and "." in name else name,
            itertools.count(1),
        )
        while name in names:
            name = f"{base}.{next(n)}"
        self._name = name
        if name:
            names[name] = self
        return self

    def type(self):
        """Its type: script_types' classes; of a traced tensor with dtype, sizes and strides."""
        return self._type

    def setType(self, type):
        self._type = type
        return self

    def setTypeAs(self, other):
        return self.setType(other._type)

    def inferTypeFrom(self, value):
        """Take the type of a tensor."""
        return self.setType(types.of_value(value))

    def copyMetadata(self, other):
        """Take the name and the type of another value."""
        if other._name:
            self.setDebugName(other._name)
        return self.setType(other._type)

    def isCompleteTensor(self) -> bool:
        """Whether dtype, device and sizes are known."""
        known = getattr(self._type, "sizes", None)
        return known is not None and known() is not None

    def requires_grad(self) -> bool:
        return bool(getattr(self._type, "requiresGrad", lambda: True)())

    requiresGrad = requires_grad

    def toIValue(self):
        """The value of a constant; None of anything else."""
        node = self._node
        if node.kind() != "prim::Constant" or "value" not in node._attributes:
            return None
        value = node._attributes["value"][1]
        if isinstance(value, dtype):
            return types.CODES.get(types.name_of(value))
        return bool(value) if isinstance(self._type, script_types.BoolType) else value

    def uses(self) -> list:
        """Where it is used, in the graph's order."""
        graph = self._node._graph
        users = [*graph._all_nodes(), graph._return]
        return [Use._new(user=n, offset=k) for n in users for k, v in enumerate(n._inputs) if v is self]

    def replaceAllUsesWith(self, other) -> None:
        """Use another value in its place everywhere."""
        for use in self.uses():
            use.user._inputs[use.offset] = other

    def replaceAllUsesAfterNodeWith(self, node, other) -> None:
        """Use another value in its place in what comes after a node."""
        for use in self.uses():
            if use.user.isAfter(node):
                use.user._inputs[use.offset] = other

    def printed(self):
        return f"%{self.debugName()} : {types.words(self._type)}"

    def __repr__(self):
        return f"{self.debugName()} defined in ({self._node})"


_SINGLE = {"f": float, "s": str, "i": int, "c": complex}


class Attributes:
    """The attributes of a node: a setter `k_(name, value)` and a getter `k(name)` for each kind k."""

    def kindOf(self, name) -> str:
        """The kind of an attribute: "i", "s", "t", "fs", ..."""
        return self._attribute(name)[0]

    def _attribute(self, name):
        if name not in self._attributes:
            raise no_attribute(name, self._kind)
        return self._attributes[name]

    def attributeNames(self) -> list:
        return list(self._attributes)

    def hasAttribute(self, name) -> bool:
        return name in self._attributes

    def hasAttributes(self) -> bool:
        return bool(self._attributes)

    def removeAttribute(self, name):
        """Take an attribute away."""
        self._attribute(name)
        del self._attributes[name]
        return self

    def copyAttributes(self, other):
        """Take the attributes of another node."""
        self._attributes = dict(other._attributes)
        return self


def _accessors(kind):
    plural = kind in ("fs", "ss", "is", "gs", "ts", "zs", "tys")
    single = _SINGLE.get(kind.removesuffix("s") if plural else kind, lambda v: v)

    def put(self, name, value):
        self._attributes[name] = (kind, [single(v) for v in value] if plural else single(value))
        return self

    def get(self, name):
        found = self._attribute(name)
        if found[0] != kind:
            raise no_attribute(name, f"{self._kind}, where it is of kind {found[0]!r}, not {kind!r},")
        return found[1]

    return put, get


for _kind in ("f", "fs", "c", "s", "ss", "i", "is", "g", "gs", "ival", "t", "ts", "z", "zs", "ty", "tys"):
    for _name, _fn in zip((f"{_kind}_", _kind), _accessors(_kind)):
        setattr(Attributes, _name, _fn)


def _number(x):
    return repr(x).removesuffix("0") if x == int(x) and abs(x) < 1e16 else repr(x)


def shown(kind, value):
    """An attribute as printed."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(shown(kind.removesuffix("s"), v) for v in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, Tensor):
        return f"{{{value.item():g}}}" if value.dim() == 0 else "<Tensor>"
    if isinstance(value, dtype):
        return str(types.CODES.get(types.name_of(value), value))
    if isinstance(value, (str, Device)):
        escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return _number(value)
    return str(value)
