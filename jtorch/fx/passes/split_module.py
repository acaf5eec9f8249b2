"""split_module: one graph made several modules, which a module around them calls one after the other."""

import copy
import operator
from collections.abc import Callable

from ...nn.modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import map_arg

__all__ = ["Partition", "split_module"]


class Partition:
    """One of the modules: the names of its nodes, of what goes in and comes out, and of the partitions before and after it."""

    def __init__(self, name: str):
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict = {}  # node of the whole graph -> node of this one
        self.targets: dict = {}

    def __repr__(self):
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable,
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool = False,
    keep_original_node_name: bool = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module whose children `submod_...` are the parts of `m`.

    Args:
        m: the module
        root_m: accepted
        split_callback: the name of a node's part
        qualname_map: filled with {name in the new module: name in `m`} of the modules called
        keep_original_order: parts are called in the order in which they come first; else in one that their inputs allow
        keep_original_node_name: nodes keep their names
        keep_original_input_name: inputs of parts have the names of the nodes that they are; else arg_0, arg_1, ...
        partition_affix: goes before the names of the parts
        tuple_return: a part with one result gives a tuple too

    RuntimeError: two parts need one another.
    """
    split = _Split(m, split_callback, partition_affix)
    order = split.order()
    if keep_original_order:
        order = list(split.partitions)
    for name in order:
        split.placeholders(split.partitions[name], keep_original_input_name)
    split.nodes(keep_original_node_name, qualname_map)
    return split.whole(order, not keep_original_order, tuple_return)


class _Split:
    """The whole graph, and its parts as they grow."""

    def __init__(self, m, split_callback, affix):
        self.m = m
        self.by_name = {node.name: node for node in m.graph.nodes}
        self.partitions: dict[str, Partition] = {}
        self.of: dict = {}  # node -> its partition
        for node in m.graph.nodes:
            if node.op not in ("placeholder", "get_attr", "output"):
                name = str(split_callback(node))
                name = name if affix is None else f"{affix}_{name}"
                part = self.of[node] = self.partitions.setdefault(name, Partition(name))
                part.node_names.append(node.name)
        for node in m.graph.nodes:
            if node.op == "output" or node in self.of:
                map_arg((node.args, node.kwargs), lambda source, node=node: self._crosses(source, node))

    def _crosses(self, source, user):
        made, used = self.of.get(source), self.of.get(user)
        if made is not used:
            if made is not None:
                made.outputs.setdefault(source.name)
                if used is not None:
                    made.dependents.setdefault(used.name)
            if used is not None:
                used.inputs.setdefault(source.name)
                if made is not None:
                    used.dependencies.setdefault(made.name)
        return source

    def order(self):
        """The parts, each after those that it needs."""
        left = {name: dict(part.dependencies) for name, part in self.partitions.items()}
        ready = [name for name, needs in left.items() if not needs]
        found = []
        while ready:
            name = ready.pop()
            found.append(name)
            for after in self.partitions[name].dependents:
                left[after].pop(name)
                if not left[after]:
                    ready.append(after)
        if len(found) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return found

    def _value(self, node):
        return operator.attrgetter(node.target)(self.m)

    def _is_module(self, name):
        node = self.by_name[name]
        return node.op == "get_attr" and isinstance(self._value(node), Module)

    def placeholders(self, part, keep_names):
        """Make the inputs of a part; a module among them is one of its own."""
        inputs = [n for n in part.inputs if not self._is_module(n)]
        for k, name in enumerate(inputs):
            node = self.by_name[name]
            made = part.graph.placeholder(name if keep_names else f"arg_{k}", type_expr=node.type)
            made.meta = copy.copy(node.meta)
            part.environment[node] = made
        for name in part.inputs:
            if name not in inputs:
                node = self.by_name[name]
                part.targets[node.target] = self._value(node)
                part.environment[node] = part.graph.get_attr(node.target)
        part.inputs = dict.fromkeys(inputs)

    def nodes(self, keep_names, qualname_map):
        """Copy each node to its part."""
        for node, part in self.of.items():
            target = node.target
            if node.op == "call_module":
                target = node.target.replace(".", "_")
                part.targets[target] = self._value(node)
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = node.target
            args, kwargs = map_arg((node.args, node.kwargs), part.environment.__getitem__)
            made = part.graph.create_node(
                node.op, target, tuple(args), dict(kwargs), name=node.name if keep_names else None, type_expr=node.type
            )
            made.meta = copy.copy(node.meta)
            part.environment[node] = made

    def whole(self, order, inputs_first, tuple_return):
        """The module around the parts."""
        graph, given, attributes = Graph(), {}, {}

        def enter(node):
            if node.op == "placeholder":
                default = node.args if node.args else ()
                made = graph.create_node("placeholder", node.target, default, type_expr=node.type)
            else:
                made = graph.get_attr(node.target)
                attributes[node.target] = self._value(node)
            made.meta = copy.copy(node.meta)
            given[node.name] = made

        for node in self.m.graph.nodes:
            if node.op == "placeholder" or (node.op == "get_attr" and (inputs_first or not order)):
                enter(node)
        for name in order:
            part = self.partitions[name]
            results = tuple(part.environment[self.by_name[n]] for n in part.outputs)
            single = len(results) == 1 and not tuple_return
            part.graph.output(results[0] if single else results)
            for n in part.inputs:
                if n not in given:
                    enter(self.by_name[n])
            attributes[part.submod_name] = GraphModule(part.targets, part.graph)
            called = graph.call_module(part.submod_name, tuple(given[n] for n in part.inputs))
            if single:
                given[next(iter(part.outputs))] = called
            else:
                for k, n in enumerate(part.outputs):
                    given[n] = graph.call_function(operator.getitem, (called, k))
        output = self.m.graph.output_node()
        graph.output(map_arg(output.args[0], lambda n: given[n.name]))
        made = GraphModule(attributes, graph)
        made.meta["partition_names"] = {part.submod_name for part in self.partitions.values()}
        return made
