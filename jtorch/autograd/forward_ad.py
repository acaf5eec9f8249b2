"""torch.autograd.forward_ad: dual tensors. Inside a dual level every op on a dual tensor also computes its tangent."""

import contextlib
from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core.program import Plan
from ..core.record import tls
from ..creation import zeros_like
from ..dispatch import call_view, inplace
from ..dispatch.call import Call, _draw_keys, _plan_of, slow
from ..dispatch.results import finish
from ..errors_autograd import dual_tangent, no_gradient_of, tangent_size
from ..ops import registry
from ..tensor import Tensor, edge_of, value_of, wrap
from .custom import set_tangent, tangent_of
from .derive import differentiable, tangents_by_rules
from .engine import Run, apply_plan
from .levels import levels
from .liveness import used_inputs

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ("primal", "tangent"))


class _Level:
    """One dual level: tangents belong to it and mean nothing after its end. of_func: whether it is `torch.func.jvp`'s."""

    def __init__(self, before, of_func=False):
        self.before = before  # the hook there was, which autocast casts in, before tangents are computed
        self.around = getattr(before, "around", None)
        self.outer = before if self.around is None else before.other
        self.of_func = of_func
        self.recorded = None  # the nodes of the call that runs

    def install(self, me):
        me.special = self.handle if self.around is None else self.around(self.handle)

    def remove(self, me):
        if self.handle in (me.special, getattr(me.special, "other", None)):
            me.special = self.before

    def handle(self, op, args, out=None, inplace_call=False):
        tensors = list(_tensors(args if out is None else (*args, out)))
        dual = any(tangent_of(t) is not None for t in tensors)
        if dual and out is not None:
            raise NotImplementedError(
                f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= function"
            )
        if not dual or op.dynamic and not op.differentiable:
            return self.outer(op, args, out, inplace_call) if self.outer is not None else (False, None)
        me = tls.me
        here, me.special = me.special, self.outer
        try:
            return True, _picked(op, args) if op.dynamic else _dual_call(op, args, inplace_call)
        finally:
            me.special = here


def _tensors(args):
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from _tensors(a)


def _picked(op, args):
    if not op.picks:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name} that does not support it because it has not been implemented yet."
        )
    result, tangent = slow(op, args), tangent_of(args[0])
    if tangent is not None:
        _give(result, slow(op, (tangent, *args[1:])), False)
    return result


def _dual_call(op, args, inplace_call):
    call = Call(op, args)
    _draw_keys(call)
    plan = _plan_of(op, call)
    if op.keeps_history and not differentiable(plan.specs[0]):
        raise no_gradient_of(plan.specs[0].dtype)
    given = [tangent_of(t) if isinstance(t, Tensor) else None for t in call.tensors]
    edges = [edge_of(t) if tls.me.grad and isinstance(t, Tensor) else None for t in call.tensors]
    moved = _tangents(plan, [value_of(t) for t in call.tensors], edges, call.numbers, given) if plan.diff else ()
    level = tls.me.extra["dual"]
    level.recorded = []
    try:
        if inplace_call:
            result = inplace(op, args)
            outs = [result]
        else:
            handled, result = (False, None) if level.outer is None else level.outer(op, args)  # a mode sees the call
            result = result if handled else finish(plan, tls.me, call.tensors, call.numbers)
            outs = result if isinstance(result, tuple) else (result,)
    finally:
        nodes, level.recorded = level.recorded, None
    if nodes and moved:
        # A later write goes into the tangents themselves.
        kept = [None if t is None else wrap(value_of(t), t._spec, edge_of(t)) for t in given]
        nodes[0].metadata[_SAVED] = (level, kept, moved)
    for t, made in zip(outs, moved):
        if made is not None:
            _give(t, made, inplace_call)
    if inplace_call and not plan.diff and tangent_of(result) is not None:
        tangent_of(result).zero_()  # what is written does not move
    return result


def _tangents(plan, values, edges, numbers, given):
    """For each result of a plan its tangent, or None: one more op over operands and tangents, recorded and put on the tape."""
    moving = tuple(k for k, t in enumerate(given) if t is not None and differentiable(plan.operands[k]))
    if not moving:
        return [None] * plan.n_out
    derived = _plans.get((plan, moving))
    if derived is None:
        derived = _plans[plan, moving] = _tangent_plan(plan, moving)
    derived, used = derived
    tensors = [given[k] for k in moving]
    values = [*values, *map(value_of, tensors)]
    edges = [*edges, *(edge_of(t) if tls.me.grad else None for t in tensors)]
    outs, edges = apply_plan(derived, values, [e if k in used else None for k, e in enumerate(edges)], numbers)
    made = iter([wrap(v, s, e) for v, s, e in zip(outs, derived.specs, edges)])
    return [next(made) if differentiable(s) else None for s in plan.specs]


_plans: dict = {}


def _tangent_plan(plan, moving):
    """(the plan of the tangents, the positions of what they depend on)."""
    n, m = len(plan.operands), len(moving)
    smooth = [k for k, s in enumerate(plan.specs) if differentiable(s)]
    specs = tuple(_dense(plan.specs[k]) for k in smooth)
    ruled = tangents_by_rules(plan, moving)

    def kernel(*args):
        primals, numbers = args[:n], args[n + m :]
        if ruled is not None:
            return ruled(primals, args[n : n + m], numbers)
        tangents = {k: t.astype(primals[k].dtype) for k, t in zip(moving, args[n : n + m])}
        if plan.op is not None and plan.op.tangents is not None:
            full = [tangents[k] if k in tangents else _zero(p) for k, p in enumerate(primals)]
            got = plan.op.tangents(primals, full, numbers)
        else:  # along those that move alone: 0 times the infinite slope of another is nan

            def along(*given):
                moved = dict(zip(moving, given))
                return plan.fn(*[moved.get(k, p) for k, p in enumerate(primals)], *numbers)

            got = jax.jvp(along, [primals[k] for k in moving], list(tangents.values()))[1]
        got = (got,) if plan.n_out == 1 else got
        got = [got[k].astype(s.dtype.np) for k, s in zip(smooth, specs)]
        return got[0] if len(got) == 1 else tuple(got)

    operands = (*plan.operands, *[_dense(plan.operands[k]) for k in moving])
    derived = Plan(None, f"{plan.name}_jvp", kernel, operands, plan.kinds, plan.runtime, specs)
    derived.channels = plan.channels
    derived.grad_name = f"{plan.name.capitalize()}JvpBackward0"
    samples = [s.aval for s in operands] + [kind(1) for kind in plan.kinds]
    return derived, used_inputs(jax.make_jaxpr(kernel)(*samples).jaxpr)


def _zero(primal):
    if not jnp.issubdtype(primal.dtype, jnp.inexact):
        return np.zeros(primal.shape, jax.dtypes.float0)
    return jnp.zeros_like(primal)


def _give(t, tangent, written):
    """Make `tangent` the tangent of a result; a write goes into the tangent that is there, which views share."""
    seen = tangent_of(t) if written else None
    if written and seen is None and t._base is not None and t._base.is_contiguous():
        if tangent_of(t._base) is None:
            set_tangent(t._base, zeros_like(t._base, requires_grad=False))
        seen = tangent_of(t)
    if seen is None:
        set_tangent(t, tangent)
        return
    seen.copy_(tangent)
    set_tangent(t, seen)


# --- backward while a level is there -----------------------------------------------------------------------------------

_SAVED = "tangents of forward mode"  # where a node keeps (level, tangents of the operands, tangents of the results)


class _DualRun(Run):
    """A backward pass inside a dual level: gradients have tangents, and travel as (value, edge, tangent)."""

    __slots__ = ()

    def __init__(self, create_graph, keep, accumulate):
        super().__init__(create_graph, keep, accumulate)
        self.pairs = True

    def tensor(self, value, spec):
        t = super().tensor(value, spec)
        if t is not None and value[2] is not None:
            set_tangent(t, value[2])
        return t

    def untensor(self, tensor):
        return None if tensor is None else (*super().untensor(tensor), tangent_of(tensor))

    def add(self, a, b, spec):
        both = a[2] is not None and b[2] is not None
        return (*super().add(a, b, spec), a[2] + b[2] if both else b[2] if a[2] is None else a[2])

    def accumulate_in(self, leaf, value):
        before = leaf._grad
        super().accumulate_in(leaf, value[:2] if self.create_graph else value[0])
        after = leaf._grad
        if value[2] is not None and after is not None and (before is not None or self.create_graph):
            old = None if before is None else tangent_of(before)
            set_tangent(after, value[2] if old is None else old + value[2])

    def step_on_tape(self, node, bwd, plan, saved, there):
        if plan is None:
            return ()
        values = [*saved, *(g[0] for g in there)]
        edges = self.step_edges(node, bwd, plan, there) if self.create_graph else [None] * len(values)
        level, operands, results = (node.extra or {}).get(_SAVED, (None, None, None))
        if level is not tls.me.extra.get("dual"):
            operands, results = [None] * len(node.edges), [None] * bwd.n_out
        given = [operands[i] for i in bwd.save_in] + [results[k] for k in bwd.save_out] + [g[2] for g in there]
        outs, out_edges = apply_plan(plan, values, edges, node.numbers)
        moved = _tangents(plan, values, edges, node.numbers, given)
        made = next((e[0] for e in out_edges if e is not None), None)
        if made is not None:
            made.metadata[_SAVED] = (tls.me.extra["dual"], given, moved)
        return list(zip(outs, out_edges, moved))


def _dense(spec):
    return type(spec).dense(tuple(spec.shape), spec.dtype, spec.device)


def enter_dual_level(of_func=False) -> int:
    """Start a dual level; there can be one at a time."""
    me = tls.me
    if me.extra.get("dual") is not None or any(x.kind == "jvp" for x in levels()):
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = _Level(me.special, of_func)
    me.extra["dual"] = level
    me.extra.setdefault("run_class", _DualRun)
    if _is_fwd_grad_enabled():
        level.install(me)
    return 0


def exit_dual_level(*, level=None) -> None:
    """End the dual level: its tangents are forgotten."""
    me = tls.me
    found = me.extra.pop("dual", None)
    if found is None:
        raise RuntimeError("Dual level must be a positive number.")
    found.remove(me)
    if me.extra.get("run_class") is _DualRun:
        del me.extra["run_class"]


def __getattr__(name):
    if name == "_current_level":
        return -1 if tls.me.extra.get("dual") is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_fwd_grad_enabled() -> bool:
    return not tls.me.extra.get("no_tangents", False)


class _set_fwd_grad_enabled(contextlib.ContextDecorator):
    """Whether ops compute tangents, from the call on and as a context."""

    def __init__(self, mode: bool):
        self.prev, self.mode = _is_fwd_grad_enabled(), mode
        _enable(mode)

    def __enter__(self):
        _enable(self.mode)

    def __exit__(self, *exc):
        _enable(self.prev)


def _enable(mode):
    me = tls.me
    me.put("no_tangents", not mode)
    level = me.extra.get("dual")
    if level is not None and mode and me.special is level.before:
        level.install(me)
    elif level is not None and not mode:
        level.remove(me)


class dual_level:
    """A dual level as a context."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """A view of `tensor` that carries `tangent`."""
    if level:
        raise RuntimeError("Invalid level given to _make_dual")
    if tls.me.extra.get("dual") is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not differentiable(tensor._spec):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not differentiable(tangent._spec):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise tangent_size(tensor.shape, tangent.shape)
    if tangent_of(tangent) is not None:
        raise dual_tangent()
    if tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    dual = call_view(registry.VIEWS["alias"], tensor, ())
    set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one that is not dual."""
    if level:
        raise RuntimeError("Invalid level given to _fw_primal")
    if tls.me.extra.get("dual") is None:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    me = tls.me
    special, me.special = me.special, None  # the primal is a view without the tangent
    try:
        primal = call_view(registry.VIEWS["alias"], tensor, ())
        set_tangent(primal, None)
        return UnpackedDualTensor(primal, tangent)
    finally:
        me.special = special


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
