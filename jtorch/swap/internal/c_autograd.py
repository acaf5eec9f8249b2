"""torch._C._autograd, and what torch._C has of the tape: questions about the running backward pass."""

from ...autograd import forward_ad
from ...autograd.node import AccumulateGrad, Node, SavedTensor
from ...core.record import tls


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks on saved tensors may be put."""
    return not tls.me.extra.get("saved_hooks_disabled")


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the running backward pass keeps its graph."""
    run = tls.me.extra.get("run")
    return run is None or run.keep


def current_graph_task_id() -> int:
    """What tells the running backward pass from others; -1 outside of one."""
    run = tls.me.extra.get("run")
    return -1 if run is None else id(run)


def will_engine_execute_node(node) -> bool:
    """Whether the running backward pass comes to this node."""
    if not isinstance(node, (Node, AccumulateGrad)):
        raise RuntimeError("_will_engine_execute_node expects an grad_fn, but got " + type(node).__name__)
    run = tls.me.extra.get("run")
    if run is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    target = node.variable if isinstance(node, AccumulateGrad) else node
    if target is not node and not run.accumulate and (target, 0) in run.captures:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is currently not "
            "supported."
        )
    return run.reaches((target, 0)) and (target is not node or run.needed is None or node in run.needed)


def set_fwd_grad_enabled(mode) -> None:
    """Whether operations compute tangents."""
    forward_ad._enable(bool(mode))


__all__ = ["SavedTensor"]
