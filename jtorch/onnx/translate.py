"""From an exported program to the nodes of an ONNX graph, call by call."""

from ..autograd.mode import no_grad
from ..export.program import InputKind
from ..fx.node import Node, map_arg
from ..tensor import Tensor
from ..utils import _pytree
from . import errors
from .builder import Builder, Value
from .operators import TABLE


class Translation:
    """One exported program, translated.

    The program runs once on its example inputs, which tells the dtype and shape of each value. What follows from parameters,
    buffers and numbers alone becomes a constant; the rest are nodes.
    """

    def __init__(self, program):
        self.program = program
        self.examples = {}  # node -> what it is for the example inputs
        self.found = {}  # node -> its Value, or a list of them
        self.moves = set()  # nodes that depend on the inputs
        self.memory = {}  # id of a storage -> the nodes whose tensors lie in it
        self.inputs = []
        self.outputs = []  # (value, name) of each result that is no None
        self.builder = Builder(any(None in check[0] for check in program.checks if check[0] != "value"))
        self.order = {node: k for k, node in enumerate(program.graph.nodes)}
        with no_grad():
            self.placeholders()
            for node in program.graph.nodes:
                if node.op == "output":
                    self.outputs = [
                        (self.value(x), x.name if isinstance(x, Node) else f"output_{k}")
                        for k, x in enumerate(node.args[0])
                        if isinstance(x, (Node, int, float))
                    ]
                elif node.op != "placeholder":
                    self.call(node)

    def placeholders(self):
        given = iter(_pytree.tree_leaves(self.program.example_inputs))
        nodes = self.program.graph.find_nodes(op="placeholder")
        for spec, node in zip(self.program.graph_signature.input_specs, nodes):
            if spec.kind is not InputKind.USER_INPUT:
                value = self.program.value_of(spec.target).detach()
                # A forward writes to buffers, and the module is to keep what it has.
                self.run_as(node, value if spec.kind is InputKind.PARAMETER else value.clone())
                continue
            self.examples[node] = value = next(given)
            if isinstance(value, Tensor):
                self.run_as(node, value.detach().clone())
                self.moves.add(node)
                self.found[node] = Value(self.builder.name(node.name), value.dtype, value.shape)
                self.inputs.append(self.found[node])

    def value(self, x):
        """What stands for an argument in the ONNX graph: a Value, a list of them, or the thing itself."""
        if not isinstance(x, Node):
            return x
        if x not in self.found:
            example = self.examples[x]
            if isinstance(example, Tensor):
                name = x.target if x.op == "placeholder" else x.name
                for spec in self.program.graph_signature.input_specs:
                    if spec.arg.name == x.name:
                        name = spec.target
                example = self.builder.constant(name, example)
            elif isinstance(example, (list, tuple)):
                example = type(example)(self.builder.value(t) if isinstance(t, Tensor) else t for t in example)
            self.found[x] = example
        return self.found[x]

    def run_as(self, node, example):
        """Note what a node is for the example inputs, and where that lies."""
        self.examples[node] = example
        for t in _pytree.tree_leaves(example):
            if isinstance(t, Tensor):
                self.memory.setdefault(id(t._storage), []).append(node)

    def call(self, node):
        args, kwargs = map_arg((tuple(node.args), dict(node.kwargs)), self.examples.__getitem__)
        target = node.args[0] if node.args and isinstance(node.args[0], Node) else None
        written = self.examples.get(target)
        version = written._version if isinstance(written, Tensor) else None
        example = _run(node, args, kwargs)
        writes = version is not None and written._version != version
        same = self.check_write(node, written) if writes else []
        self.run_as(node, example)
        if not any(n in self.moves for n in node.all_input_nodes):
            for n in same:
                self.found.pop(n, None)  # a constant of what it was before
            return
        self.moves.add(node)
        given, options = map_arg((tuple(node.args), dict(node.kwargs)), self.value)
        given = given[:1] if node.target is getattr else given
        self.found[node] = self.translate(node, _name(node), example, given, options)
        for n in same:
            self.found[n] = self.found[node]
            self.moves.add(n)

    def check_write(self, node, written):
        """A write in place becomes a new value: of all nodes that are this tensor. No other view of it may be seen again."""
        same, where = [], _place(written)
        for other in self.memory[id(written._storage)]:
            example = self.examples[other]
            if isinstance(example, Tensor) and _place(example) == where:
                same.append(other)
            elif any(self.order[user] > self.order[node] for user in other.users):
                raise errors.shared_write(node)
        return same

    def translate(self, node, name, example, args, kwargs):
        builder = self.builder
        record = TABLE.get(name) or TABLE.get(name.removesuffix("_"))
        if record is None:
            raise errors.no_operator(name)
        first = example[0] if isinstance(example, (list, tuple)) and example else example
        builder.dtype = first.dtype if isinstance(first, Tensor) else None
        builder.shape = tuple(first.shape) if isinstance(first, Tensor) else ()
        builder.example = example
        kwargs = {k: v for k, v in kwargs.items() if k not in ("inplace", "_stacklevel", "out") or k in record.names}
        try:
            bound = record.signature.bind(builder, *args, **kwargs)
        except TypeError as error:
            raise errors.arguments(name, error) from None
        found = record(*bound.args, **bound.kwargs)
        return _as_run(builder, found, example)


def _as_run(builder, found, example):
    """Results with the dtypes and shapes that they have for the example inputs."""
    if isinstance(found, (list, tuple)) and isinstance(example, (list, tuple)):
        flat = (
            [x for e in example for x in (e if isinstance(e, tuple) else [e])] if len(found) > len(example) else example
        )
        found = [_as_run(builder, f, e) for f, e in zip(found, flat)]
        if flat is not example:  # an LSTM's state is a pair in the second place
            return [found[0], tuple(found[1:])]
        return found
    if isinstance(found, Value) and isinstance(example, Tensor):
        found = builder.value(found, example.dtype)
        return Value(found.name, found.dtype, example.shape)
    return found


def _name(node):
    """The operator that a node calls, by the last part of its name."""
    if isinstance(node.target, str):
        return node.target
    if node.target is getattr:
        return node.args[1]
    return getattr(node.target, "__name__", str(node.target)).rpartition(".")[2]


def _place(t):
    """Where in its storage a tensor lies."""
    return t.dtype, tuple(t.shape), t.stride(), t.storage_offset()


def _run(node, args, kwargs):
    if node.op == "call_method":
        return getattr(args[0], node.target)(*args[1:], **kwargs)
    if node.op == "call_function":
        return node.target(*args, **kwargs)
    raise errors.no_operator(f"{node.op} {node.target}")
