"""FxGraphDrawer: a graph as a picture, by the package pydot."""

from ..graph_module import GraphModule

try:
    import pydot
except ImportError:
    pydot = None

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "placeholder": "AliceBlue",
    "call_module": "LemonChiffon1",
    "get_param": "Yellow2",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}


class FxGraphDrawer:
    """Draws a GraphModule, and those inside it apart.

    Args:
        graph_module: what to draw
        name: the picture's name
        ignore_getattr, ignore_parameters_and_buffers: leave those nodes out
        skip_node_names_in_args: show what a node takes by dtype and shape alone
        parse_stack_trace: show the line that a node comes from, where its meta has it
        dot_graph_shape: of the boxes
        normalize_args: accepted

    RuntimeError: pydot is not installed.
    """

    def __init__(
        self, graph_module, name, ignore_getattr=False, ignore_parameters_and_buffers=False, skip_node_names_in_args=True,
        parse_stack_trace=False, dot_graph_shape=None, normalize_args=False,
    ):  # fmt: skip
        if pydot is None:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite Python package manager."
            )
        self._name = name
        self._hidden = {
            op for op, left_out in (("get_attr", ignore_getattr or ignore_parameters_and_buffers),) if left_out
        }
        self._without_tensors = ignore_parameters_and_buffers
        self._names_in_args = not skip_node_names_in_args
        self._shape = dot_graph_shape or "record"
        self._traces = parse_stack_trace
        self._graphs = {name: self._draw(graph_module, name)}
        for path, module in graph_module.named_modules():
            if path and isinstance(module, GraphModule):
                self._graphs[f"{name}_{path.replace('.', '_')}"] = self._draw(module, f"{name}_{path}")

    def get_dot_graph(self, submod_name=None):
        """The picture, a pydot.Dot; that of a module inside by its name."""
        return self._graphs[self._name if submod_name is None else submod_name]

    get_main_dot_graph = get_dot_graph

    def get_submod_dot_graph(self, submod_name):
        """The picture of a module inside."""
        return self._graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict:
        """All pictures by their names."""
        return self._graphs

    def _draw(self, module, name):
        picture = pydot.Dot(name, rankdir="TB")
        nodes = [n for n in module.graph.nodes if n.op not in self._hidden]
        for node in nodes:
            picture.add_node(self._box(node.name, self._label(module, node), _COLORS.get(node.op, "Wheat1")))
            if node.op == "call_module" and not self._without_tensors:
                called = module.get_submodule(node.target)
                for kind, tensors in (("parameter", called.named_parameters()), ("buffer", called.named_buffers())):
                    for inner, t in tensors:
                        path = f"{node.name}.{inner}"
                        label = f"{{{path}|op_code=get_{kind}{t.dtype}[{', '.join(map(str, t.shape))}]\\n}}"
                        picture.add_node(self._box(path, label, "Salmon"))
                        picture.add_edge(pydot.Edge(path, node.name))
        for node in nodes:
            for source in node.all_input_nodes:
                if source.op not in self._hidden:
                    picture.add_edge(pydot.Edge(source.name, node.name))
        return picture

    def _box(self, name, label, color):
        style = {"shape": self._shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000"}
        return pydot.Node(name, label=label, **style)

    def _label(self, module, node):
        fields = [f"name=%{node.name}", f"op_code={node.op}\\n"]
        if node.op == "call_module":
            called = module.get_submodule(node.target)
            fields[-1] += f"\\n{type(called).__module__}.{type(called).__name__}\\n"
            fields.append("".join(f"{part.strip().replace('=', ': ')}\\n" for part in called.extra_repr().split(",")))
        else:
            fields.append(f"target={node._pretty_target()}\\n")
        if self._names_in_args and node.args:
            fields.append(f"args={node.args}\\n")
        fields.append(f"num_users={len(node.users)}\\n")
        meta = node.meta.get("tensor_meta")
        if meta is not None and hasattr(meta, "dtype"):
            fields.append(f"dtype={meta.dtype}\\nshape={tuple(meta.shape)}\\nstride={meta.stride}\\n")
        if self._traces and node.meta.get("stack_trace"):
            fields.append(node.meta["stack_trace"].strip().rpartition("\n")[2].strip())
        for mark in "<>{}|":
            fields = [f.replace(mark, f"\\{mark}") for f in fields]
        return "{" + "|".join(fields) + "}"
