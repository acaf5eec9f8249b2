"""Layers fused or taken out of a module's graph."""

import copy

from ...nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ...nn.modules.conv import Conv1d, Conv2d, Conv3d
from ...nn.modules.dropout import Dropout
from ...nn.modules.linear import Linear
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = [
    "UnionFind", "extract_subgraph", "fuse", "matches_module_pattern", "optimize_for_inference", "remove_dropout", "replace_node_module",
]  # fmt: skip

_PATTERNS = [
    (Conv1d, BatchNorm1d, fuse_conv_bn_eval),
    (Conv2d, BatchNorm2d, fuse_conv_bn_eval),
    (Conv3d, BatchNorm3d, fuse_conv_bn_eval),
    (Linear, BatchNorm1d, fuse_linear_bn_eval),
]


def matches_module_pattern(pattern, node, modules: dict) -> bool:
    """Whether a node, and the node that it takes first, call modules of exactly these classes: (of the first, of the node)."""

    def calls(n, kind):
        return isinstance(n, Node) and n.op == "call_module" and type(modules.get(n.target)) is kind

    return bool(node.args) and all(calls(n, kind) for kind, n in zip(pattern, (node.args[0], node)))


def replace_node_module(node, modules: dict, new_module) -> None:
    """Have a node call another module, which takes the old one's place."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model, inplace: bool = False, no_trace: bool = False):
    """A module in evaluation whose batch norms behind convolutions and linear layers are part of those.

    `inplace`: of the module itself, not of a copy; `no_trace`: it is a GraphModule already.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for first, second, join in _PATTERNS:
        for node in list(graph.nodes):
            if not matches_module_pattern((first, second), node, modules) or len(node.args[0].users) > 1:
                continue
            norm = modules[node.target]
            if norm.track_running_stats:
                replace_node_module(node.args[0], modules, join(modules[node.args[0].target], norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target, args, kwargs):
        if isinstance(self.submodules[target], Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model):
    """A module without its dropout layers."""
    return _WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(orig_module, nodes: list, inputs: list, outputs: list) -> GraphModule:
    """A module of some of the nodes of a graph."""
    graph, given = Graph(), {}
    for node in inputs:
        given[node] = graph.placeholder(node.name)
    for node in nodes:
        given[node] = graph.node_copy(node, given.__getitem__)
    graph.output([given[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(model, pass_config: dict | None = None, tracer=None):
    """`fuse` and `remove_dropout`, unless `pass_config` says false for "conv_bn_fuse" or "remove_dropout"; the rest is XLA's."""
    wanted = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    if wanted["conv_bn_fuse"]:
        model = fuse(model)
    if wanted["remove_dropout"]:
        model = remove_dropout(model)
    return model if isinstance(model, GraphModule) else symbolic_trace(model)


class UnionFind:
    """Sets of the numbers 0 to n-1 that can be joined."""

    def __init__(self, n: int):
        self.parent: list[int | None] = [None] * n
        self.size = [0] * n

    def make_set(self, v: int) -> None:
        """A set of one number."""
        self.parent[v], self.size[v] = v, 1

    def find(self, v: int) -> int:
        """The number that stands for a set."""
        above = self.parent[v]
        if above == v:
            return v
        self.parent[v] = self.find(above)
        return self.parent[v]

    def join(self, a: int, b: int) -> int:
        """Make the sets of two numbers one; what stands for it."""
        a, b = self.find(a), self.find(b)
        if a != b:
            if self.size[a] < self.size[b]:
                a, b = b, a
            self.parent[b] = a
            self.size[a] += self.size[b]
        return a
