"""torch.autograd.forward_ad: dual tensors. Inside a dual level every op on a dual tensor also computes its tangent."""

from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core.program import Plan
from ..core.record import tls
from ..creation import zeros_like
from ..dispatch import call_view, inplace
from ..dispatch.call import Call, _draw_keys, _plan_of
from ..dispatch.results import finish
from ..ops import registry
from ..tensor import Tensor, edge_of, value_of, wrap
from .custom import set_tangent, tangent_of
from .derive import differentiable
from .engine import apply_plan
from .levels import levels

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ("primal", "tangent"))


class _Level:
    """One dual level: tangents belong to it and mean nothing after its end."""

    def __init__(self, outer):
        self.outer = outer

    def handle(self, op, args, out=None, inplace_call=False):
        tensors = list(_tensors(args))
        if not any(tangent_of(t) is not None for t in tensors) or op.dynamic:
            return self.outer(op, args, out, inplace_call) if self.outer is not None else (False, None)
        me = tls.me
        here, me.special = me.special, self.outer
        try:
            return True, _dual_call(op, args, out, inplace_call)
        finally:
            me.special = here


def _tensors(args):
    for a in args:
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from _tensors(a)


def _dual_call(op, args, out, inplace_call):
    call = Call(op, args)
    _draw_keys(call)
    plan = _plan_of(op, call)
    moved = iter(_tangents(plan, call) if plan.diff else ())
    if inplace_call:
        result = inplace(op, args)
        outs = [result]
    else:
        result = finish(plan, tls.me, call.tensors, call.numbers)
        outs = result if isinstance(result, tuple) else (result,)
    for t, spec in zip(outs, plan.specs):
        if differentiable(spec):
            made = next(moved, None)
            if made is not None:
                _give(t, made, inplace_call)
    if out is not None:
        for o, r in zip((out,) if isinstance(out, Tensor) else out, outs):
            o.copy_(r)
            set_tangent(o, tangent_of(r))
        return out
    return result


def _tangents(plan, call):
    """The tangents of a call's differentiable results: one more op over operands and tangents, recorded and put on the tape."""
    given = [tangent_of(t) if isinstance(t, Tensor) else None for t in call.tensors]
    moving = tuple(k for k, t in enumerate(given) if t is not None and differentiable(plan.operands[k]))
    derived = _plans.get((plan, moving))
    if derived is None:
        derived = _plans[plan, moving] = _tangent_plan(plan, moving)
    tensors = [*call.tensors, *[given[k] for k in moving]]
    edges = [edge_of(t) if tls.me.grad and isinstance(t, Tensor) else None for t in tensors]
    values, edges = apply_plan(derived, [value_of(t) for t in tensors], edges, call.numbers)
    return [wrap(v, s, e) for v, s, e in zip(values, derived.specs, edges)]


_plans: dict = {}


def _tangent_plan(plan, moving):
    n, m = len(plan.operands), len(moving)
    smooth = [k for k, s in enumerate(plan.specs) if differentiable(s)]
    specs = tuple(_dense(plan.specs[k]) for k in smooth)

    def kernel(*args):
        primals, numbers = args[:n], args[n + m :]
        tangents = dict(zip(moving, args[n : n + m]))
        full = [tangents[k].astype(p.dtype) if k in tangents else _zero(p) for k, p in enumerate(primals)]
        got = jax.jvp(lambda *a: plan.fn(*a, *numbers), primals, tuple(full))[1]
        got = (got,) if plan.n_out == 1 else got
        got = [got[k].astype(s.dtype.np) for k, s in zip(smooth, specs)]
        return got[0] if len(got) == 1 else tuple(got)

    operands = (*plan.operands, *[_dense(plan.operands[k]) for k in moving])
    derived = Plan(None, f"{plan.name}_jvp", kernel, operands, plan.kinds, plan.runtime, specs)
    derived.grad_name = f"{plan.name.capitalize()}JvpBackward0"
    return derived


def _zero(primal):
    if not jnp.issubdtype(primal.dtype, jnp.inexact):
        return np.zeros(primal.shape, jax.dtypes.float0)
    return jnp.zeros_like(primal)


def _give(t, tangent, written):
    """Make `tangent` the tangent of a result; what is written in place to a view is written to its base's tangent too."""
    if not written or t._base is None:
        set_tangent(t, tangent)
        return
    seen = tangent_of(t)
    if seen is None and t._base.is_contiguous():
        base = tangent_of(t._base)
        if base is None:
            base = zeros_like(t._base, requires_grad=False)
            set_tangent(t._base, base)
        seen = base.as_strided(
            t.shape, t.stride(), t.storage_offset() - t._base.storage_offset() + base.storage_offset()
        )
    if seen is None:
        set_tangent(t, tangent)
        return
    seen.copy_(tangent)
    set_tangent(t, seen)


def _dense(spec):
    return type(spec).dense(tuple(spec.shape), spec.dtype, spec.device)


def enter_dual_level() -> int:
    """Start a dual level; there can be one at a time."""
    me = tls.me
    if me.extra.get("dual") is not None or any(x.kind == "jvp" for x in levels()):
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = _Level(me.special)
    me.extra["dual"] = level
    me.special = level.handle
    return 0


def exit_dual_level(*, level=None) -> None:
    """End the dual level: its tangents are forgotten."""
    me = tls.me
    found = me.extra.pop("dual", None)
    if found is None:
        raise RuntimeError("Dual level must be a positive number.")
    me.special = found.outer


class dual_level:
    """A dual level as a context."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()


def make_dual(tensor, tangent, *, level=None):
    """A view of `tensor` that carries `tangent`."""
    if tls.me.extra.get("dual") is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not differentiable(tensor._spec):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not differentiable(tangent._spec):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
            f"Tensor is of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    dual = call_view(registry.VIEWS["alias"], tensor, ())
    set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one that is not dual."""
    if tls.me.extra.get("dual") is None:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    me = tls.me
    special, me.special = me.special, None  # the primal is a view without the tangent
    try:
        return UnpackedDualTensor(call_view(registry.VIEWS["alias"], tensor, ()), tangent)
    finally:
        me.special = special


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
