"""torch.fx: Python programs as graphs of calls, which can be looked at, changed, and become Python again."""

from ._symbolic_trace import PH as PH
from ._symbolic_trace import ProxyableClassMeta as ProxyableClassMeta
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .codegen import CodeGen as CodeGen
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect", "map_arg", "replace_pattern",
    "symbolic_trace", "wrap",
]  # fmt: skip
