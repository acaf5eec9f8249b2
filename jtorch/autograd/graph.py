"""torch.autograd.graph: nodes and edges of the tape, hooks on what it saves, hooks on several gradients at once."""

import abc
import contextlib
import functools
import threading
from collections import namedtuple
from collections.abc import Iterable

from ..core.record import tls
from ..handles import RemovableHandle
from ..tensor import Tensor, edge_of
from . import node as tape
from .node import AccumulateGrad


class Node(abc.ABC):  # noqa: B024  isinstance(grad_fn, Node) is all it is for
    """What `grad_fn` is: a step of the tape, or the accumulation into a leaf."""


Node.register(tape.Node)
Node.register(AccumulateGrad)


class GradientEdge(namedtuple("GradientEdge", ("node", "output_nr", "ownership_token"), defaults=(None,))):
    """A place that gradients flow through: an output of a node. Can stand for a tensor in `grad` and `backward`."""

    __slots__ = ()


def get_gradient_edge(tensor) -> GradientEdge:
    """The edge along which the gradient of a tensor flows."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    target, k = edge_of(tensor)
    if isinstance(target, tape.Nowhere):
        raise AssertionError("Expected gradient function to be set")
    return GradientEdge(target if isinstance(target, tape.Node) else target._accumulator(), k)


def increment_version(tensor) -> None:
    """Say that a tensor, or each of several, has been written to in a way that autograd does not see."""
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t._storage.version += 1


# --- hooks on saved tensors --------------------------------------------------------------------------------------------


class saved_tensors_hooks:
    """While it holds, `pack_hook(tensor)` decides what the tape keeps of each saved tensor and `unpack_hook` gives it back."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self):
        extra = tls.me.extra
        if extra.get("saved_hooks_disabled"):
            raise RuntimeError(extra["saved_hooks_disabled"])
        extra["saved_hooks"] = (*extra.get("saved_hooks", ()), (self.pack_hook, self.unpack_hook))

    def __exit__(self, *exc):
        extra = tls.me.extra
        if not extra.get("saved_hooks"):
            return  # left once more than entered
        extra["saved_hooks"] = extra["saved_hooks"][:-1]
        if not extra["saved_hooks"]:
            del extra["saved_hooks"]


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors in host memory; they come back to their device when backward needs them."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            return tensor.device, tensor.detach().to("cpu")

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Let `saved_tensors_hooks` raise this error instead of taking effect."""
    extra = tls.me.extra
    before = extra.get("saved_hooks_disabled")
    if extra.get("saved_hooks"):
        raise RuntimeError(error_message)
    extra["saved_hooks_disabled"] = error_message
    try:
        yield
    finally:
        if before is None:
            del extra["saved_hooks_disabled"]
        else:
            extra["saved_hooks_disabled"] = before


class allow_mutation_on_saved_tensors:
    """While it holds, saved tensors may be written to in place: backward uses what they were.

    Saved values are never overwritten here; only the check of the versions has to go. Backward belongs inside all the same.
    """

    def __enter__(self):
        me = tls.me
        if me.extra.get("mutation_allowed"):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self._hooks = saved_tensors_hooks(tape.as_it_is, self._unpack)
        self._hooks.__enter__()
        me.put("mutation_allowed", self)
        return self

    def _unpack(self, tensor):
        if tls.me.extra.get("mutation_allowed") is not self:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context "
                "in which the graph was originally recorded."
            )
        return tensor

    def clear(self):
        """Nothing is held beside the graph."""

    def __exit__(self, *exc):
        tls.me.put("mutation_allowed", None)
        self._hooks.__exit__(*exc)


# --- several gradients -------------------------------------------------------------------------------------------------


class _MultiHandle(RemovableHandle):
    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call fn when the gradients of all these tensors (mode "any": of the first of them) have been computed.

    With "all" it gets a list of gradients, None for tensors that this backward does not reach.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    state, lock = {}, threading.Lock()
    if mode == "any":

        @functools.wraps(fn)
        def once(grad):
            run = _current_run()
            with lock:
                if state.get("run") is run:
                    return
                state["run"] = run
            fn(grad)

        return _MultiHandle([t.register_hook(once) for t in tensors if t.requires_grad])
    tensors = tuple(tensors)
    targets = [edge_of(t) for t in tensors]
    if any(e is None or isinstance(e[0], tape.Nowhere) for e in targets):
        raise AssertionError("Expected gradient function to be set")

    def hook_for(k):
        def collect(grad):
            run = _current_run()
            with lock:
                if state.get("run") is not run:
                    state.update(run=run, left=sum(run.reaches(e) for e in targets), grads=[None] * len(tensors))
                grads = state["grads"]
                grads[k] = grad
                state["left"] -= 1
                ready = state["left"] == 0
            if ready:
                fn(grads)

        return collect

    return _MultiHandle([t.register_hook(hook_for(k)) for k, t in enumerate(tensors)])


def _current_run():
    return tls.me.extra["run"]


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
