"""The graph that a model records, as TensorBoard draws it: a node for each op, in the scope of the module that ran it."""

import jax
from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ... import errors
from ...autograd.mode import no_grad
from ...core.pending import array_of
from ...core.record import Pending, tls
from ...tensor import Tensor, value_of

__all__ = ["graph_of"]


def graph_of(model, inputs, verbose: bool = False) -> GraphDef:
    """Run `model(*inputs)` once, off the tape, and give what was recorded; the model must not need a value in between."""
    inputs = inputs if isinstance(inputs, list | tuple) else (inputs,)
    # copies: an array that numpy shares is read anew at each use
    inputs = [x.detach().clone() if isinstance(x, Tensor) else x for x in inputs]
    me = tls.me
    before = me.mode
    me.set_mode("auto")
    scopes = _Scopes(model)
    try:
        me.flush("add_graph")
        with no_grad(), scopes:
            outputs = model(*inputs)
        outputs = _tensors(outputs)
        values = [value_of(t) for t in outputs]
        graph = next((v.graph for v in values if type(v) is Pending and not v.graph.done), None)
        if graph is None:
            raise errors.unsupported(
                "a graph of a model whose forward needs a value, or computes nothing",
                "a model that prints, branches and indexes without reading tensors",
            )
        made = _nodes(graph, scopes, model, inputs, list(zip(outputs, values)))
    finally:
        me.set_mode(before)
    if verbose:
        print(made)
    return made


def _tensors(tree):
    leaves = jax.tree_util.tree_leaves(tree, is_leaf=lambda x: isinstance(x, Tensor))
    return [t for t in leaves if isinstance(t, Tensor)]


def _identity(value):
    """What a graph knows the value of a tensor by: the array, also where it was recorded once."""
    return id(array_of(value) if type(value) is Pending else value)


class _Scopes:
    """Remembers, while a model runs, which module had recorded how much when it began and ended."""

    def __init__(self, model):
        self.root = type(model).__name__
        self.names = {id(m): name for name, m in model.named_modules()}
        self.kinds = {id(m): type(m).__name__ for m in model.modules()}
        self.model = model
        self.ranges = []  # (first result, end, scope), inner ones first

    def scope(self, module):
        """Where a module lies: Model/Sequential[layers]/Linear[0]."""
        parts, path = [self.root], ""
        for part in filter(None, self.names[id(module)].split(".")):
            path = f"{path}.{part}".lstrip(".")
            parts.append(f"{type(self.model.get_submodule(path)).__name__}[{part}]")
        return "/".join(parts)

    def __enter__(self):
        begun = []

        def begin(module, args):
            begun.append(tls.me.graph.state.count)

        def end(module, args, output):
            self.ranges.append((begun.pop(), tls.me.graph.state.count, self.scope(module)))

        self.hooks = [
            hook
            for m in self.model.modules()
            for hook in (m.register_forward_pre_hook(begin), m.register_forward_hook(end))
        ]

    def __exit__(self, *exc):
        for hook in self.hooks:
            hook.remove()

    def of(self, result):
        """The innermost module in which a result was recorded."""
        return next((scope for first, end, scope in self.ranges if first <= result < end), self.root)


def _shapes(specs):
    shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in s.shape]) for s in specs]
    return AttrValue(list=AttrValue.ListValue(shape=shapes))


def _node(name, op, inputs, specs, words=""):
    node = NodeDef(name=name, op=op, input=inputs)
    node.attr["attr"].s = words.encode()
    node.attr["_output_shapes"].CopyFrom(_shapes(specs))
    return node


def _nodes(graph, scopes, model, inputs, outputs):
    names, nodes = {}, []  # id of a value in the recorded graph -> name of its node
    for k, t in enumerate(_tensors(inputs)):
        index = graph.index_of.get(_identity(value_of(t)))
        name = f"input/input.{k + 1}"
        nodes.append(_node(name, "IO Node", [], [t._spec]))
        if index is not None:
            names[index] = name
    state = [*model.named_parameters(), *model.named_buffers()]
    for name, t in state:
        index = graph.index_of.get(_identity(value_of(t)))
        if index is not None and index not in names:
            owner, _, leaf = name.rpartition(".")
            names[index] = f"{scopes.scope(model.get_submodule(owner))}/{leaf}"
            nodes.append(_node(names[index], "Parameter", [], [t._spec], name))
    recorded = graph.state.nodes()
    for step in recorded:
        plan = step.plan
        for i in step.ids:
            if i not in names:  # an array made outside
                names[i] = f"{scopes.root}/constant_{~i}"
                nodes.append(_node(names[i], "Constant", [], []))
        name = f"{scopes.of(step.first)}/{plan.name}_{step.first}"
        numbers = "" if not isinstance(step.numbers, tuple) else ", ".join(map(str, step.numbers))
        nodes.append(_node(name, plan.name, [names[i] for i in step.ids], plan.specs, numbers))
        names.update({step.first + k: name for k in range(plan.n_out)})
    for k, (t, value) in enumerate(outputs):
        pending = type(value) is Pending and value.graph is graph
        index = value.index if pending else graph.index_of.get(_identity(value))
        source = [names[index]] if index in names else []
        nodes.append(_node(f"output/output.{k + 1}", "IO Node", source, [t._spec]))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))
