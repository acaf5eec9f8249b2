"""Values of vmap: one for each slice, all in one array, and the recorded operations on them.

An operation of which an operand has lanes is recorded for all of them at once, as jax.vmap of its plan. So what runs inside a vmap is
recorded as what runs outside, with the tape and all; nothing has to be traced by jax at each call.
"""

import jax
import numpy as np

from .. import errors_func
from .program import Plan
from .spec import Spec


class ByTracing(BaseException):
    """What a function does inside a transformation is left to jax, which traces it. Programs do not see it."""


class Lane:
    """A value for each slice of a vmap, along the first dimension of `value`. level: of the vmap, larger for inner ones."""

    __slots__ = ("value", "level", "size")

    def __init__(self, value, level, size):
        self.value, self.level, self.size = value, level, size

    def __array__(self, *args, **kwargs):
        """Raises ByTracing inside a vmap by lanes, RuntimeError outside, where its vmap is over."""
        raise unknown()

    __jax_array__ = __array__


class Slices(np.ndarray):
    """The numbers of all slices of a vmap, as what checks values sees them."""


inside = None  # whether a vmap by lanes runs in this thread; autograd sets it


def unknown() -> BaseException:
    """What to raise where a value is wanted of what has one for each slice."""
    return ByTracing() if inside is None or inside() else errors_func.escaped()


def is_traced(value) -> bool:
    """Whether a value is not one but stands for many: a tracer of jax, or the slices of a vmap."""
    return type(value) is Lane or isinstance(value, jax.core.Tracer)


def call(graph, plan, operands, numbers=()):
    """The results of a node some of whose operands have lanes; None if none has."""
    level, size = 0, None
    for v in operands:
        if type(v) is Lane and v.level > level:
            level, size = v.level, v.size
    if not level:
        return None
    mask = tuple([type(v) is Lane and v.level == level for v in operands])
    inner = [v.value if m else v for v, m in zip(operands, mask)]
    if plan.lanes is None:
        plan.lanes = {}
    many = plan.lanes.get((size, mask))
    if many is None:
        many = plan.lanes[size, mask] = _many(plan, size, mask, numbers)
    if graph.done:
        graph = graph.owner.graph_on(plan.device)
    return [Lane(v, level, size) for v in graph.recn(many, inner, numbers)]


def _many(plan, size, mask, numbers):
    """A plan for all lanes."""
    n, fn = len(mask), plan.fn
    axes = tuple(0 if m else None for m in mask)

    def lanes(*args):
        return jax.vmap(lambda *some: fn(*some, *args[n:]), axes, axis_size=size)(*args[:n])

    def of_all(spec):
        return Spec.dense((size, *spec.shape), spec.dtype, spec.device)

    operands = tuple(of_all(s) if m else s for s, m in zip(plan.operands, mask))
    made = Plan(None, plan.name, lanes, operands, plan.kinds, plan.runtime, tuple(map(of_all, plan.specs)), plan.device)
    made.more = plan.more
    made.channels = plan.channels
    made.jit.eval_shape(*[s.aval for s in operands], *numbers)  # it raises what jax cannot make lanes of
    return made


__all__ = ["ByTracing", "Lane", "Slices", "call", "is_traced"]
