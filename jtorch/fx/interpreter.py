"""Interpreter: runs a graph node by node. Transformer: runs it with proxies, and so makes another graph."""

from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate, map_arg
from .proxy import Proxy, TracerBase


class Interpreter:
    """Runs the nodes of a module's graph one by one. Each kind of node has a method that a subclass may override.

    Args:
        module: a GraphModule, or a module with the targets of `graph`
        garbage_collect_values: let values go after their last use
        graph: the graph, where it is not the module's
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.submodules = dict(self.module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = {}
        if garbage_collect_values:
            last = {}
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in last:
                        last[used] = node
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """What the graph returns for these inputs; `initial_env` has values for nodes that are known already."""
        self.env = {} if initial_env is None else initial_env
        given = self.graph.process_inputs(*args) if enable_io_processing else args
        self.args_iter = iter(given)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    words = f"While executing {node.format_node()}"
                    words = f"{error.args[0]}\n\n{words}" if error.args else words
                    error.args = (words, *error.args[1:])
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                found = self.env[node]
                return self.graph.process_outputs(found) if enable_io_processing else found
        return None

    def boxed_run(self, args_list):
        """run, on a list of inputs that is emptied."""
        args = list(args_list)
        wanted = [n for n in self.graph.nodes if n.op == "placeholder" and not n.target.startswith("*")]
        starred = any(n.op == "placeholder" and n.target.startswith("*") for n in self.graph.nodes)
        if len(args) < len(wanted) or len(args) > len(wanted) and not starred:
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(wanted)} arguments for placeholders but received {len(args)} "
                f"({'missing' if len(args) < len(wanted) else 'extra'} arguments)"
            )
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n):
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        """The value of an input. RuntimeError: too few were given."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as error:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from error

    def get_attr(self, target, args, kwargs):
        """The value of an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """The value of a call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """The value of a call of a method of the first argument."""
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        """The value of a call of a submodule."""
        return self.submodules[target](*args, **kwargs)

    def output(self, target, args, kwargs):
        """What is returned."""
        return args[0]

    def fetch_attr(self, target):
        """The attribute at a path of the module. RuntimeError: there is none."""
        at, path = self.module, target.split(".")
        for k, part in enumerate(path):
            if not hasattr(at, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[: k + 1])}")
            at = getattr(at, part)
        return at

    def fetch_args_kwargs_from_env(self, n):
        """The arguments of a node, as values."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Nested arguments with values in the place of nodes. RuntimeError: a node has none yet."""

        def value(node):
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class _TransformerTracer(TracerBase):
    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, _, __) -> bool:
        return True


_KEPT = ("nn_module_stack", "source_fn_stack", "stack_trace")


class Transformer(Interpreter):
    """An interpreter whose values are proxies: `transform()` gives the module of the graph that it makes.

    Override the methods of Interpreter to change nodes on the way.
    """

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target, args, kwargs):
        """A proxy of an input of the new graph."""
        default = next(iter(args)) if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        """A proxy of an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        """A proxy of a call of a submodule."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        """A proxy of a call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def run_node(self, n):
        """The proxy for one node, with what is known of where that came from."""
        made = super().run_node(n)
        if isinstance(made, Proxy) and n.op != "output":
            made.node.meta |= {k: n.meta[k] for k in _KEPT if k in n.meta and k not in made.node.meta}
        return made

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:

            def strip(a):
                return a.node if isinstance(a, Proxy) else a

            made = self.new_graph.output(map_aggregate(result, strip))
            before = self.graph.output_node()
            made.type, made.meta = before.type, dict(before.meta)
        return GraphModule(self.module, self.new_graph)


__all__ = ["Interpreter", "Transformer"]
