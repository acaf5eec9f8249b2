"""torch._C._functions: nodes of the tape by the names under which PyTorch has them in C++."""

from ...autograd.function import Refusal, Undefined, behind
from ...autograd.node import AccumulateGrad, Node, class_of
from ...autograd.saved import plain
from ...tensor import Tensor, edge_of


def _apply(node, tensors):
    """The tensors, each with its place among a node's results."""
    found = tuple(behind(t, node, k) for k, t in enumerate(tensors))
    return found[0] if len(found) == 1 else found


class UndefinedGrad:
    """Called with tensors: the same, whose gradients do not come through."""

    def __call__(self, *tensors):
        edges = tuple(edge_of(t) for t in tensors)
        return _apply(
            class_of("UndefinedGradBackward", Undefined)("UndefinedGradBackward", edges, _specs(tensors)), tensors
        )


class DelayedError(Node):
    """Called with tensors: the same, whose gradients raise `msg`. num_inputs: how many there are."""

    def __init__(self, msg, num_inputs):
        self.message = msg

    def __call__(self, *tensors):
        edges = tuple(edge_of(t) if isinstance(t, Tensor) else None for t in tensors)
        node = class_of("Error", Refusal)("torch::autograd::Error", edges, _specs(tensors))
        node.message = self.message
        return _apply(node, tensors)


def _specs(tensors):
    return tuple(plain(t._spec) for t in tensors)


__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]
