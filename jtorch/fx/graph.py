"""The fx graph: a list of nodes that can be inserted, moved, replaced and removed, and becomes Python code again."""

import copy
from contextlib import contextmanager

from ..nn.modules.module import Module
from . import codegen
from .codegen import CodeGen, PythonCode, _Namespace
from .node import Node, map_arg


class _NodeList:
    """The nodes of a graph in order: iterable both ways, and changing meanwhile is fine."""

    def __init__(self, graph, direction="_next"):
        self.graph, self.direction = graph, direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root, at = self.graph._root, getattr(self.graph._root, self.direction)
        while at is not root:
            if not at._erased:
                yield at
            at = getattr(at, self.direction)

    def __reversed__(self):
        return _NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    def __init__(self, graph, insert):
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self):
        """Nothing: it holds from its making on."""

    def __exit__(self, *exc):
        self.graph._insert = self.before


class Graph:
    """Nodes in an order in which they can run: placeholders, operations, one output."""

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len = 0
        self._used_names = {}
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields = {}

    @property
    def owning_module(self):
        """The GraphModule that it is of, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod):
        self._owning_module = mod

    @property
    def nodes(self) -> _NodeList:
        """All nodes, in order."""
        return _NodeList(self)

    def find_nodes(self, *, op, target=None, sort=True) -> list:
        """The nodes of an op, and of a target where that is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The output."""
        found = next((n for n in reversed(self.nodes) if n.op == "output"), None)
        if found is None:
            raise AssertionError("the graph has no output node")
        return found

    # making nodes

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None) -> Node:
        """A new node where the graph inserts at the moment. `name` is made unique."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        made = Node(self, self._graph_namespace.create_name(candidate, None), op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(made.name, made)
        self._insert(made)
        self._len += 1
        return made

    def _target_to_str(self, target) -> str:
        if callable(target):
            op = getattr(target, "__name__", type(target).__name__)
        else:
            op = target
            if codegen.is_magic(op):
                op = op[2:-2]
        return codegen.snake_case(op)

    def placeholder(self, name, type_expr=None, default_value=...) -> Node:
        """An input; `name` may begin with * or **."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None) -> Node:
        """A parameter or another attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None) -> Node:
        """A call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x) -> Node:
        """A copy of a node of another graph; `arg_transform` gives the nodes of this graph for its inputs."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Copy all nodes of another graph; what its output returns, in nodes of this graph."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], lambda n: val_map[n])
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def erase_node(self, to_erase) -> None:
        """Take a node out. RuntimeError: another uses it."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update(map_arg(to_erase.args, lambda n: None), map_arg(to_erase.kwargs, lambda n: None))

    def inserting_before(self, n=None):
        """Insert before a node, from now on or while the result is used in a `with`."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n=None):
        """Insert after a node, from now on or while the result is used in a `with`."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        before = n._next
        return _InsertPoint(self, before.prepend)

    # the whole

    def eliminate_dead_code(self, is_impure_node=None) -> bool:
        """Take out what nobody reads and what has no effect. Whether something was."""
        self.lint()
        impure = is_impure_node or (lambda n: n.is_impure())
        changed = False
        for node in reversed(self.nodes):
            if not impure(node) and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """RuntimeError where the graph cannot run: an input from another graph or from further down, a name twice, no such target."""
        seen, names = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for given in node._input_nodes:
                if given.graph is not self:
                    raise RuntimeError(
                        f"Argument '{given}' of Node '{node}' does not belong to this Graph, but was used as an argument!"
                    )
                if given not in seen:
                    raise RuntimeError(
                        f"Argument '{given}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph are "
                        f"topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                if node.op in ("get_attr", "call_module"):
                    self._lint_target(node)

    def _lint_target(self, node):
        at, path = self.owning_module, node.target.split(".")
        for k, part in enumerate(path):
            at = getattr(at, part, None)
            if at is None:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of {'.'.join(path[:k])}"
                )
        if node.op == "call_module" and not isinstance(at, Module):
            raise RuntimeError(f"Node {node} target {node.target} {part} of {at} does not reference an nn.Module")

    def python_code(self, root_module, *, verbose=False, **kwargs) -> PythonCode:
        """The graph as the source of a function `forward`; its attributes are those of the name `root_module`."""
        namespace = _Namespace()

        def named(node):
            return namespace.create_name(node.name, node)

        with self._names_by(named):
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose=verbose)

    @contextmanager
    def _names_by(self, fn):
        before = {}
        for node in self.nodes:
            before[node], node._repr_fn = node._repr_fn, fn
        try:
            yield
        finally:
            for node, was in before.items():
                node._repr_fn = was

    def set_codegen(self, made) -> None:
        """Have another CodeGen write the code."""
        self._codegen = made

    def process_inputs(self, *args):
        """Arguments as the graph's inputs take them."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """The graph's output as it is returned."""
        return self._codegen.process_outputs(out)

    @contextmanager
    def on_generate_code(self, make_transformer):
        """Context in which a function may change the lines of the code that is written."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        try:
            yield
        finally:
            self._codegen._body_transformer = before

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(_table(["opcode", "name", "target", "args", "kwargs"], rows))

    def __deepcopy__(self, memo=None):
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        found = made.graph_copy(self, memo_nodes := {}, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            result, before = found
            made.output(result, before.type).meta = copy.copy(before.meta)
        memo[id(self)] = made
        _ = memo_nodes
        return made

    def __str__(self):
        lines = [line for n in self.nodes if (line := n.format_node())]
        return "\n    ".join(["graph():", *lines])

    __repr__ = object.__repr__


def _table(header, rows):
    cells = [[str(c) for c in row] for row in (header, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


__all__ = ["CodeGen", "Graph", "PythonCode"]
