"""Calls of view ops: a new tensor on the same storage, and its place on the tape."""

import sys
from itertools import repeat

from .. import errors
from ..autograd import node as tape
from ..autograd.derive import differentiable
from ..autograd.derive_views import ViewMap, memory_plan, view_plan, views_plan
from ..core import shapes
from ..core.layout import Layout
from ..core.record import tls
from ..core.spec import Spec
from ..tensor import Apart, Tensor, edge_of, make, seen_now
from .plans import MISSING
from .statics import check_statics, is_method, static, unhashable

_new = object.__new__
# How a view was made off the tape, whatever its base was made by.
_IN_NO_GRAD, _IN_INFERENCE = ("no_grad", 0), ("inference", 0)


class ViewPlan:
    """A view op on one spec: the specs and offsets of its results, and the canonical layouts for their derivative."""

    __slots__ = ("outs", "many", "name", "absolute", "fresh", "taped")

    def __init__(self, view, spec, statics):
        for check in view.checks:
            check(spec, *statics)
        layout = Layout(tuple(spec.shape), spec.strides, 0)
        got = view.fn(layout, *statics)
        self.many = isinstance(got, (tuple, list))
        flat = Layout(tuple(spec.shape), shapes.contiguous_strides(tuple(spec.shape)), 0)
        self.name = view.grad_name if isinstance(view.grad_name, str) else view.grad_name(spec, *statics)
        # The plan of the tape, of one result that is not absolute with the numbers it takes; made when first asked for.
        self.taped = None
        self.absolute = view.name == "as_strided"
        self.fresh = view.name.startswith(("unsafe_", "_unsafe_"))  # torch does not call its results views
        plain = got if self.absolute else view.fn(flat, *statics)
        pairs = zip(got, plain) if self.many else ((got, plain),)
        self.outs = [
            (Spec.of(tuple(o.shape), tuple(o.strides), spec.dtype, spec.device), o.offset, tuple(p.strides), p.offset)
            for o, p in pairs
        ]


def call_view(view, t, statics):
    """Apply a view op to a tensor."""
    me = tls.me
    if me.special is not None:
        if "_tangent" in t.__dict__:
            return _dual_view(me, view, t, statics)
        if getattr(me.special, "sees_views", False):
            return me.special(view, (t, *statics))[1]
    spec = t._spec
    try:
        plan = view.plans.get((spec, statics))
    except TypeError:
        statics = static(statics)
        try:
            plan = view.plans.get((spec, statics))
        except TypeError:
            raise unhashable(view, enumerate(statics, 1), t, method=is_method(sys._getframe(1))) from None
    if plan is None:
        if me.grad:
            edge_of(t)  # a view that must not be used any more is refused before its arguments are
        if MISSING in statics:
            raise errors.missing_argument(view.name, view.params[1 + statics.index(MISSING)].name)
        given, statics = (t, *statics), static(statics)
        check_statics(view, enumerate(statics, 1), method=is_method(sys._getframe(1)), given=given)
        plan = view.plans[spec, statics] = ViewPlan(view, spec, statics)
    edge = edge_of(t) if me.grad else None
    base = t if t._base is None else t._base
    if not plan.many:
        out, offset, strides, start = plan.outs[0]
        if plan.absolute:
            offset = _absolute(t, statics, out, offset)
        v = _new(Tensor)
        v._storage = t._storage
        v._spec = out
        v._offset = t._offset + offset
        v._grad = v._hooks = None
        v._rg = False
        v._base = base
        v._seen = t._storage.version if base._seen is None else seen_now(base)
        if not me.grad:
            v.__dict__["_made"] = _IN_INFERENCE if me.inference else _IN_NO_GRAD
        elif t._base is not None and "_made" in t.__dict__:
            v.__dict__["_made"] = (t.__dict__["_made"][0], 0)
        if edge is None or not differentiable(out):
            v._edge = None
        else:
            if plan.absolute:
                taped, starts = memory_plan(spec, out, offset, plan.name)
            elif plan.taped is None:
                taped, starts = plan.taped = view_plan(
                    spec, _contiguous(spec), tuple(out.shape), strides, start, plan.name
                )
                if not starts and type(taped.extra) is ViewMap and taped.extra.call is None:
                    taped.extra.call = view, statics
            else:
                taped, starts = plan.taped
            v._edge = (tape.record(taped, (), (edge,), starts, ()), 0)
        if plan.fresh:
            v._base, v._seen = None, Apart()
        return v
    return _many_views(plan, t, spec, edge, base, None if me.grad else _IN_INFERENCE if me.inference else _IN_NO_GRAD)


def _dual_view(me, view, t, statics):
    """A view of a tensor of forward mode: the same view of its tangent goes along."""
    level, tangent = entry = t.__dict__.pop("_tangent")
    try:
        out = call_view(view, t, statics)
        if level is me.extra.get("dual"):
            tangent, seen = seen_through(tangent, t._spec, lambda it: call_view(view, it, statics))
            entry = level, tangent
            pairs = [(out, seen)] if isinstance(out, Tensor) else zip(out, seen or repeat(None))
            for v, tv in pairs:
                v.__dict__["_tangent"] = (level, tv)
    finally:
        t.__dict__["_tangent"] = entry
    return out


def seen_through(tangent, spec, view):
    """The tangent of a tensor with this spec as it lies from now on, and what a view shows of it; None for both where there is none."""
    if tangent is None:
        return None, None
    if tangent._spec.strides != spec.strides:
        tangent = _laid_out(tangent, spec)
    return tangent, view(tangent)


def _laid_out(tangent, spec):
    """A tangent in the memory order of its dense tensor, as PyTorch keeps them: a view of the one is a view of the other then."""
    order = sorted(range(spec.ndim), key=lambda d: (-spec.strides[d], d))
    back = sorted(range(spec.ndim), key=order.__getitem__)
    made = tangent.permute(order).contiguous().permute(back)
    return made if made._spec.strides == spec.strides else tangent


def _absolute(t, statics, out, offset):
    """as_strided counts from the start of the storage: its offset as seen from `t`, checked against the storage's end."""
    start = t._offset if len(statics) < 3 or statics[2] is None else offset
    base = t._storage.base
    need = 1 + sum((n - 1) * s for n, s in zip(out.shape, out.strides)) if out.numel else 0
    have = base.nbytes // out.dtype.itemsize
    if start + need > have and out.numel:
        raise errors.storage_bounds(tuple(out.shape), out.strides, start, out.dtype.itemsize, start + need, have)
    return start - t._offset


def _contiguous(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device).strides


def _many_views(plan, t, spec, edge, base, off_tape):
    views = []
    node = None
    if edge is not None and plan.outs and differentiable(spec):
        if plan.taped is None:
            plan.taped = views_plan(spec, _contiguous(spec), plan.outs, plan.name)
        node = tape.record(plan.taped, (), (edge,), (), ())
    for out, offset, _, _ in plan.outs:
        v = make(t._storage, out, t._offset + offset)
        if plan.fresh:
            v._seen = Apart()
        else:
            v._base = base
            v._seen = seen_now(base)
            v.__dict__["_made"] = off_tape or ("multi", len(views))
        if node is not None:
            v._edge = (node, len(views))
        views.append(v)
    return tuple(views)
