"""torch.fx without graphs: `wrap` works, the classes are there to derive from and to ask isinstance of, tracing says what to do."""

from .. import errors
from ..nn.modules.module import Module

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "symbolic_trace", "wrap"]


def wrap(fn_or_name):
    """Accepted: a function that tracing would not look into."""
    return fn_or_name


def symbolic_trace(root, concrete_args=None):
    """Raises NotImplementedError: programs are recorded as they run, not traced with proxies."""
    raise errors.unsupported("torch.fx.symbolic_trace", instead="the module itself, or torch.compile(module)")


class _Untraceable:
    """Raises when made, as symbolic_trace."""

    def __init__(self, *args, **kwargs):
        raise errors.unsupported(
            f"torch.fx.{type(self).__name__}", instead="the module itself, or torch.compile(module)"
        )


class Proxy(_Untraceable):
    """The class of values while tracing: nothing is of it."""


class Node(_Untraceable):
    """The class of a graph's nodes: nothing is of it."""


class Graph(_Untraceable):
    """The class of graphs: nothing is of it."""


class Tracer(_Untraceable):
    """The class of tracers."""


class Interpreter(_Untraceable):
    """The class of interpreters of graphs."""


class Transformer(Interpreter):
    """The class of interpreters that make graphs."""


class GraphModule(Module):
    """The class of traced modules: nothing is of it."""

    def __init__(self, root, graph, class_name="GraphModule"):
        raise errors.unsupported("torch.fx.GraphModule", instead="the module itself, or torch.compile(module)")
