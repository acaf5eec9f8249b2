"""The graph of a trace: nodes in blocks, changed and printed as PyTorch's IR is. What a node computes is not known here."""

import contextlib
import itertools

from .. import script_types
from ..errors_extend import used_value
from ..tensor import Tensor
from . import types
from .alias import AliasDb
from .values import Attributes, Made, Value, shown

__all__ = ["Block", "Graph", "Node"]


class Node(Attributes, Made):
    """A node of a graph: its kind (`aten::add`), its inputs and outputs, attributes and blocks."""

    def kind(self) -> str:
        return self._kind

    def matches(self, kind) -> bool:
        """Whether it is of this kind."""
        return self._kind == kind

    def schema(self) -> str:
        """The schema of its operator; graphs of jtorch keep none."""
        return "(no schema)"

    def inputs(self):
        """An iterator of its inputs."""
        return iter(list(self._inputs))

    def outputs(self):
        """An iterator of its results."""
        return iter(list(self._outputs))

    def inputsAt(self, k):
        return self._inputs[k]

    def outputsAt(self, k):
        return self._outputs[k]

    def inputsSize(self) -> int:
        return len(self._inputs)

    def outputsSize(self) -> int:
        return len(self._outputs)

    def hasMultipleOutputs(self) -> bool:
        return len(self._outputs) > 1

    def input(self):
        """Its only input."""
        (found,) = self._inputs
        return found

    def output(self):
        """Its only result."""
        (found,) = self._outputs
        return found

    def namedInput(self, name):
        """The input that the operator's argument of this name has."""
        return self._inputs[self._argument_names.index(name)]

    def blocks(self):
        """An iterator of its blocks: the branches of a prim::If."""
        return iter(list(self._blocks))

    def addBlock(self):
        """A new block in it."""
        made = _new_block(self._graph, self)
        self._blocks.append(made)
        return made

    def owningBlock(self):
        return self._block

    def findNode(self, kind, recurse=True):
        """The first node of a kind in its blocks, or None."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind, recurse=True) -> list:
        """The nodes of a kind in its blocks."""
        return [n for b in self._blocks for n in b.findAllNodes(kind, recurse)]

    def scopeName(self) -> str:
        """The scopes that it was traced in, joined by "/"."""
        return self._scope

    def sourceRange(self) -> str:
        """The line that it was traced from."""
        return self._source

    def getModuleHierarchy(self) -> str:
        return self._scope

    def mustBeNone(self) -> bool:
        return self._kind == "prim::Constant" and isinstance(self._outputs[0]._type, script_types.NoneType)

    def isNondeterministic(self) -> bool:
        """Whether it draws random numbers."""
        return self._kind.partition("::")[2].rstrip("_") in _RANDOM

    def copyMetadata(self, other):
        """Take the scope and the line of another node."""
        self._scope, self._source = other._scope, other._source
        return self

    def hasUses(self) -> bool:
        """Whether a result is used."""
        return any(v.uses() for v in self._outputs)

    def prev(self):
        """The node before it in its block, or the block's inputs' node."""
        nodes = self._block._nodes
        at = nodes.index(self)
        return nodes[at - 1] if at else self._block._param

    def addInput(self, value):
        self._inputs.append(value)
        return value

    def replaceInput(self, k, value):
        """Put a value in the place of input k; the value before."""
        before, self._inputs[k] = self._inputs[k], value
        return before

    def replaceInputWith(self, before, after) -> None:
        """Put a value in the place of another among the inputs."""
        self._inputs[:] = [after if v is before else v for v in self._inputs]

    def removeInput(self, k) -> None:
        del self._inputs[k]

    def removeAllInputs(self) -> None:
        self._inputs.clear()

    def addOutput(self):
        """A further result, of type Tensor."""
        made = self._graph._value(self)
        self._outputs.append(made)
        return made

    def eraseOutput(self, k) -> None:
        """Take a result away. RuntimeError: it is used."""
        _unused(self._outputs[k])
        del self._outputs[k]

    def replaceAllUsesWith(self, other) -> None:
        """Use another node's results in the place of its own."""
        for mine, its in zip(self._outputs, other._outputs):
            mine.replaceAllUsesWith(its)

    def isBefore(self, other) -> bool:
        order = [*self._graph._all_nodes(), self._graph._return]
        return order.index(self) < order.index(other)

    def isAfter(self, other) -> bool:
        return self is not other and not self.isBefore(other)

    def insertBefore(self, other):
        """Put this new node before another."""
        return self._into(other._block, other._block._nodes.index(other))

    def insertAfter(self, other):
        """Put this new node after another."""
        return self._into(other._block, other._block._nodes.index(other) + 1)

    def moveBefore(self, other) -> None:
        self._block._nodes.remove(self)
        self.insertBefore(other)

    def moveAfter(self, other) -> None:
        self._block._nodes.remove(self)
        self.insertAfter(other)

    def _into(self, block, at):
        self._block = block
        block._nodes.insert(at, self)
        return self

    def destroy(self) -> None:
        """Take it out of the graph. RuntimeError: a result is used."""
        for v in self._outputs:
            _unused(v)
            self._graph._names.pop(v._name, None)
        self._inputs.clear()
        if self in self._block._nodes:
            self._block._nodes.remove(self)

    def _text(self, indent="", source=False):
        left = ", ".join(v.printed() for v in self._outputs)
        attributes = ", ".join(f"{k}={shown(*v)}" for k, v in self._attributes.items())
        line = f"{indent}{left} = {self._kind}{f'[{attributes}]' if attributes else ''}"
        line += f"({', '.join('%' + v.debugName() for v in self._inputs)})"
        if source and self._scope:
            line += f", scope: {self._scope}"
        if source and self._source:
            line += f" # {self._source}"
        lines = [line]
        for k, block in enumerate(self._blocks):
            lines.append(f"{indent}  block{k}({', '.join(v.printed() for v in block._param._outputs)}):")
            lines += [n._text(indent + "    ", source) for n in block._nodes]
            lines.append(f"{indent}    -> ({', '.join('%' + v.debugName() for v in block._return._inputs)})")
        return "\n".join(lines)

    def __repr__(self):
        return self._text() + "\n"


_RANDOM = {
    "dropout", "alpha_dropout", "feature_dropout", "rrelu", "bernoulli", "multinomial", "normal", "rand", "randn", "randint", "randperm",
    "rand_like", "randn_like", "randint_like", "uniform", "poisson",
}  # fmt: skip


def _unused(value):
    found = value.uses()
    if found:
        raise used_value(value.debugName(), len(found))


class Block(Made):
    """A sequence of nodes with inputs and outputs."""

    def nodes(self):
        """An iterator of its nodes."""
        return iter(list(self._nodes))

    def inputs(self):
        return iter(list(self._param._outputs))

    def outputs(self):
        return iter(list(self._return._inputs))

    def paramNode(self):
        return self._param

    def returnNode(self):
        return self._return

    def owningNode(self):
        """The node that it is a part of, or None."""
        return self._owner

    def addNode(self, kind, inputs):
        """A new node at its end."""
        return self._graph.create(kind, list(inputs), 1)._into(self, len(self._nodes))

    def addInputToBlock(self):
        return self._param.addOutput()

    def registerOutput(self, value) -> int:
        """Return a value; its place among the outputs."""
        self._return._inputs.append(value)
        return len(self._return._inputs) - 1

    def findAllNodes(self, kind, recurse=True) -> list:
        """Its nodes of a kind, with those in their blocks."""
        found = []
        for n in self._nodes:
            found += [n] if n._kind == kind else []
            found += n.findAllNodes(kind) if recurse else []
        return found

    def findNode(self, kind, recurse=True):
        """The first of findAllNodes, or None."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def _all_nodes(self):
        for n in self._nodes:
            yield n
            for block in n._blocks:
                yield from block._all_nodes()
                yield block._return


def _new_node(graph, kind, block=None):
    return Node._new(
        _graph=graph, _kind=kind, _block=block, _inputs=[], _outputs=[], _attributes={}, _blocks=[], _scope="", _source="",
        _recipe=None, _argument_names=(),
    )  # fmt: skip


def _new_block(graph, owner):
    block = Block._new(_graph=graph, _owner=owner, _nodes=[])
    block._param, block._return = _new_node(graph, "prim::Param", block), _new_node(graph, "prim::Return", block)
    return block


class Graph:
    """A graph of nodes. Made empty, by a trace, or from text by parse_ir."""

    def __init__(self):
        self._counter = itertools.count()
        self._names = {}
        self._block = _new_block(self, None)
        self._point = None  # the node before which `insertNode` puts nodes; None: at the end

    @property
    def _return(self):
        return self._block._return

    def _value(self, node, kind=None):
        return Value._new(
            _node=node,
            _unique=next(self._counter),
            _name="",
            _type=script_types.TensorType.get() if kind is None else kind,
        )

    def _all_nodes(self):
        return list(self._block._all_nodes())

    def block(self):
        """Its outermost block."""
        return self._block

    def inputs(self):
        """An iterator of its inputs."""
        return self._block.inputs()

    def outputs(self):
        """An iterator of its outputs."""
        return self._block.outputs()

    def nodes(self):
        """An iterator of its nodes, in order."""
        return self._block.nodes()

    def param_node(self):
        return self._block._param

    def return_node(self):
        return self._block._return

    def findNode(self, kind, recurse=True):
        """The first node of a kind, or None."""
        return self._block.findNode(kind, recurse)

    def findAllNodes(self, kind, recurse=True) -> list:
        """All nodes of a kind."""
        return self._block.findAllNodes(kind, recurse)

    def addInput(self, name=""):
        """A further input."""
        made = self._block.addInputToBlock()
        return made.setDebugName(name) if name else made

    def registerOutput(self, value) -> int:
        """Return a value; its place among the outputs."""
        return self._block.registerOutput(value)

    def eraseInput(self, k) -> None:
        """Take an input away. RuntimeError: it is used."""
        self._block._param.eraseOutput(k)

    def eraseOutput(self, k) -> None:
        """Take an output away."""
        self._block._return.removeInput(k)

    def permuteInputs(self, order) -> None:
        """Put the inputs in another order."""
        held = self._block._param._outputs
        held[:] = [held[k] for k in order]

    def create(self, kind, inputs=(), num_outputs=1):
        """A new node, not yet in the graph; `inputs` may be the number of results."""
        if isinstance(inputs, int):
            inputs, num_outputs = (), inputs
        node = _new_node(self, kind, self._block)
        node._inputs += inputs
        for _ in range(num_outputs):
            node.addOutput()
        return node

    def createClone(self, node, value_map):
        """A copy of a node, of this graph, with inputs `value_map(input)`."""
        made = self.create(node._kind, [value_map(v) for v in node._inputs], len(node._outputs)).copyAttributes(node)
        made.copyMetadata(node)
        made._recipe, made._argument_names = node._recipe, node._argument_names
        for mine, its in zip(made._outputs, node._outputs):
            mine._type = its._type
        return made

    def appendNode(self, node):
        """Put a new node at the end."""
        return node._into(self._block, len(self._block._nodes))

    def prependNode(self, node):
        """Put a new node at the beginning."""
        return node._into(self._block, 0)

    def insertNode(self, node):
        """Put a new node where `setInsertPoint` says."""
        return self.appendNode(node) if self._point is None else node.insertBefore(self._point)

    def setInsertPoint(self, where) -> None:
        """Insert before a node from now on; given a block, at the end."""
        self._point = where if isinstance(where, Node) else None

    def insertPoint(self):
        """The node that is inserted before."""
        return self._block._return if self._point is None else self._point

    @contextlib.contextmanager
    def insert_point_guard(self, where):
        """Context: insert before a node."""
        before, self._point = self._point, where if isinstance(where, Node) else None
        try:
            yield
        finally:
            self._point = before

    def insertConstant(self, value):
        """A prim::Constant; its value in the graph."""
        return self.insertNode(self.constant(value)).output()

    def constant(self, value):
        """A new prim::Constant, not yet in the graph."""
        node = self.create("prim::Constant")
        if value is not None:
            kind = {bool: "i", int: "i", float: "f", str: "s", complex: "c"}.get(type(value))
            node._attributes["value"] = ("t" if isinstance(value, Tensor) else kind or "ival", value)
        node._outputs[0]._type = types.of_value(value)
        return node

    def insert(self, kind, args, kwargs=None):
        """A new node of an operator; constants are made of Python values."""
        given = [v if isinstance(v, Value) else self.insertConstant(v) for v in (*args, *(kwargs or {}).values())]
        node = self.create(kind, given)
        node._argument_names = (*[None] * len(args), *(kwargs or {}))
        return self.insertNode(node).output()

    def insertGraph(self, callee, inputs) -> list:
        """Copy another graph's nodes, with these values as its inputs; the values that it returns."""
        known = dict(zip(map(id, callee.inputs()), inputs))
        for node in callee.nodes():
            self._clone_into(node, known, None)
        return [known[id(v)] for v in callee.outputs()]

    def _clone_into(self, node, known, block):
        made = self.createClone(node, lambda v: known[id(v)])
        known |= zip(map(id, node._outputs), made._outputs)
        self.insertNode(made) if block is None else made._into(block, len(block._nodes))
        for inner in node._blocks:
            copied = made.addBlock()
            for v in inner._param._outputs:
                known[id(v)] = copied.addInputToBlock().setType(v._type)
            for n in inner._nodes:
                self._clone_into(n, known, copied)
            copied._return._inputs = [known[id(v)] for v in inner._return._inputs]

    def copy(self):
        """A graph like this one."""
        made, known = Graph(), {}
        for v in self.inputs():
            known[id(v)] = made.addInput(v._name).setType(v._type)
        for node in self.nodes():
            made._clone_into(node, known, None)
            for mine in node._outputs:
                if mine._name:
                    known[id(mine)].setDebugName(mine._name)
        made._return._inputs = [known[id(v)] for v in self.outputs()]
        return made

    def makeMultiOutputIntoTuple(self) -> None:
        """Return one tuple instead of several values."""
        values = list(self.outputs())
        if len(values) > 1:
            made = self.appendNode(self.create("prim::TupleConstruct", values))
            made._outputs[0]._type = script_types.TupleType([v._type for v in values])
            self._return._inputs = [made.output()]

    def alias_db(self) -> AliasDb:
        """Which of its values may share memory."""
        return AliasDb._new(self)

    def dump_alias_db(self) -> None:
        """Print alias_db()."""
        self.alias_db().dump()

    def lint(self) -> None:
        """RuntimeError where a value is used that is not made before."""
        known = set(map(id, self.inputs()))
        for node in [*self._all_nodes(), self._return]:
            for v in node._inputs:
                if id(v) not in known:
                    raise RuntimeError(f"%{v.debugName()} is not in scope in {node}")
            known |= set(map(id, node._outputs))
            known |= {id(v) for b in node._blocks for v in b._param._outputs}

    def str(self, print_source_ranges=True) -> str:
        """The graph as text."""
        arguments = ",\n      ".join(v.printed() for v in self.inputs())
        body = [n._text("  ", print_source_ranges) for n in self._block._nodes]
        returned = ", ".join("%" + v.debugName() for v in self.outputs())
        return "\n".join([f"graph({arguments}):", *body, f"  return ({returned})", ""])

    def __repr__(self):
        return self.str()
