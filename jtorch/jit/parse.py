"""Reading a graph from the text that printing it gives."""

import re

from .. import script_types
from ..core.device import Device
from ..creation import tensor
from ..errors_extend import ir_syntax
from . import types
from .ir import Graph

__all__ = ["parse_ir"]

_TOKEN = re.compile(
    r"""(?P<skip>[ \t]+|,\ scope:[^\n#]*|\#[^\n]*)|(?P<newline>\n\s*)|(?P<string>"(?:\\.|[^"\\])*")|(?P<value>%[\w.]+)
    |(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|-?inf|nan)|(?P<name>[A-Za-z_][\w.]*(?:::[\w.]+)*)|(?P<mark>->|[^\s])""",
    re.X,
)
_SIMPLE = {
    "Tensor": script_types.TensorType, "int": script_types.IntType, "float": script_types.FloatType, "bool": script_types.BoolType,
    "str": script_types.StringType, "NoneType": script_types.NoneType, "Device": script_types.DeviceObjType, "Any": script_types.AnyType,
    "complex": script_types.ComplexType, "Scalar": script_types.NumberType, "number": script_types.NumberType,
    "PyObject": script_types.PyObjectType,
}  # fmt: skip


class _Reader:
    def __init__(self, text, parse_tensor_constants):
        self.text, self.tensors = text, parse_tensor_constants
        self.tokens = []
        for m in _TOKEN.finditer(text):
            if m.lastgroup != "skip":
                self.tokens.append((m.lastgroup, m.group(), m.start()))
        self.tokens.append(("eof", "eof", max(len(text.rstrip()) - 1, 0)))
        self.at = 0
        self.known = {}

    def fail(self, want):
        _, word, at = self.tokens[self.at]
        raise ir_syntax(f"expected {want} but found {word!r}", self.text, at)

    def lines(self):
        while self.tokens[self.at][0] == "newline":
            self.at += 1

    def peek(self, word):
        return self.tokens[self.at][1] == word and self.tokens[self.at][0] in ("mark", "name")

    def take(self, word) -> bool:
        if self.peek(word):
            self.at += 1
            return True
        return False

    def expect(self, word):
        if not self.take(word):
            self.fail(word)

    def of(self, group, want=None):
        if self.tokens[self.at][0] != group:
            self.fail(want or group)
        self.at += 1
        return self.tokens[self.at - 1][1]

    def many(self, item, end):
        found = []
        self.skip_lines_in()
        while not self.take(end):
            found.append(item())
            self.skip_lines_in()
            if not self.peek(end):
                self.expect(",")
                self.skip_lines_in()
        return found

    def skip_lines_in(self):
        while self.tokens[self.at][0] == "newline":
            self.at += 1

    # types

    def type(self):
        if self.take("("):
            found = script_types.TupleType(self.many(self.type, ")"))
        else:
            found = self.named(self.of("name", "a type"))
        while True:
            if self.peek("[") and self.tokens[self.at + 1][1] == "]":
                self.at += 2
                found = script_types.ListType(found)
            elif self.take("?"):
                found = script_types.OptionalType(found)
            else:
                return found

    def named(self, name):
        if name in types.DTYPES:
            parts = self.many(self.part, ")") if self.take("(") else None
            sizes = None if parts is None else [p for p in parts if not isinstance(p, tuple)]
            named = dict(p for p in parts or () if isinstance(p, tuple))
            known = sizes is not None and None not in sizes and (bool(sizes) or "strides" not in named)
            made = types._Sized(
                types.DTYPES[name], tuple(sizes) if known else None, named.get("strides"),
                named.get("device"), None if "requires_grad" not in named else bool(named["requires_grad"]),
            )  # fmt: skip
            return made
        if name == "Dict":
            self.expect("(")
            return script_types.DictType(*self.many(self.type, ")"))
        if name.startswith("__torch__."):
            return types.ClassType.named(name)
        if name not in _SIMPLE:
            self.at -= 1
            self.fail("a type")
        return _SIMPLE[name].get()

    def part(self):
        """A size, None for `*`, or a (name, value)."""
        if self.take("*"):
            return None
        if self.tokens[self.at][0] == "number":
            return int(self.of("number"))
        name = self.of("name")
        self.expect("=")
        if self.take("["):
            return name, tuple(int(n) for n in self.many(lambda: self.of("number"), "]"))
        if name == "device":
            word = self.of("name")
            return name, Device(word + (":" + self.of("number") if self.take(":") else ""))
        return name, int(self.of("number"))

    # nodes

    def declared(self):
        """A name with its type, where one is given."""
        name = self.of("value", "%")[1:]
        return name, self.type() if self.take(":") else script_types.TensorType.get()

    def used(self):
        at = self.at
        name = self.of("value", "%")[1:]
        if name not in self.known:
            raise ir_syntax(f"\nCannot find a variable with name '{name}':", self.text, self.tokens[at][2])
        return self.known[name]

    def literal(self):
        """(kind, value) of an attribute."""
        group, word, _ = self.tokens[self.at]
        if self.take("["):
            found = self.many(self.literal, "]")
            return (found[0][0] if found else "i") + "s", [v for _, v in found]
        if self.take("{"):
            number = self.of("number")
            self.expect("}")
            return "t", tensor(_number(number))
        if group == "string":
            self.at += 1
            return "s", word[1:-1].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
        if group == "number":
            self.at += 1
            value = _number(word)
            return "f" if isinstance(value, float) else "i", value
        if self.take("<"):
            self.fail("a value (tensors are not written out)")
        return self.fail("a value")

    def attribute(self):
        name = self.of("name")
        self.expect("=")
        return name, *self.literal()

    def node(self, graph, block):
        declared = [self.declared()]
        while self.take(","):
            declared.append(self.declared())
        self.expect("=")
        kind = self.of("name", "the kind of a node")
        if "::" not in kind and kind:
            self.expect(":")
        attributes = self.many(self.attribute, "]") if self.take("[") else ()
        self.expect("(")
        node = graph.create(kind, self.many(self.used, ")"), 0)
        for name, found, value in attributes:
            node._attributes[name] = (found, value)
        for name, found in declared:
            self.known[name] = node.addOutput().setType(found)
        if kind == "prim::Constant" and attributes and isinstance(declared[0][1], script_types.DeviceObjType):
            node._attributes["value"] = ("ival", Device(node._attributes["value"][1]))
        node._into(block, len(block._nodes))
        self.lines()
        while self.tokens[self.at][1].startswith("block") and kind in ("prim::If", "prim::Loop"):
            self.inner(graph, node.addBlock())

    def inner(self, graph, block):
        self.at += 1
        self.expect("(")
        for name, kind in self.many(self.declared, ")"):
            self.known[name] = block.addInputToBlock().setType(kind)
        self.expect(":")
        self.lines()
        while not self.take("->"):
            self.node(graph, block)
        self.expect("(")
        for value in self.many(self.used, ")"):
            block.registerOutput(value)
        self.lines()

    def graph(self):
        made = Graph()
        self.lines()
        if not self.take("graph"):
            self.at += 1
        self.expect("(")
        for name, kind in self.many(self.declared, ")"):
            self.known[name] = made.addInput("" if name.isdigit() else name).setType(kind)
        self.expect(":")
        self.lines()
        while not self.take("return"):
            self.node(made, made.block())
        self.expect("(")
        for value in self.many(self.used, ")"):
            made.registerOutput(value)
        return made


def _number(word):
    try:
        return int(word)
    except ValueError:
        return float(word)


def parse_ir(input, parse_tensor_constants=False) -> Graph:
    """The graph of a text such as `str(graph)`. RuntimeError, with the place: it is none."""
    return _Reader(input, parse_tensor_constants).graph()


def read_type(text):
    """The type that IR writes as `text`."""
    return _Reader(text, False).type()
