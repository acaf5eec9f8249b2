"""torch.autograd.forward_ad: dual tensors. Inside a dual level every op on a dual tensor also computes its tangent."""

from collections import namedtuple

import jax
import jax.numpy as jnp

from ..core import storage as storages
from ..core.record import tls
from ..dispatch import call_view, inplace
from ..dispatch.call import Call, _draw_keys, _plan_of
from ..dispatch.results import finish
from ..ops import registry
from ..tensor import Tensor, value_of, wrap
from .custom import array_of, set_tangent, tangent_of
from .derive import differentiable
from .mode import no_grad

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
    primals = [storages.realise(value_of(t)) for t in call.tensors]
    tangents = [_tangent_array(t, p) for t, p in zip(call.tensors, primals)]
    single = plan.n_out == 1
    moved = jax.jvp(lambda *a: plan.fn(*a, *call.numbers), primals, tangents)[1] if plan.diff else None
    moved = () if moved is None else (moved,) if single else moved
    if inplace_call:
        result = inplace(op, args)
        outs = [result]
    else:
        result = finish(plan, tls.me, call.tensors, call.numbers)
        outs = result if isinstance(result, tuple) else (result,)
    for t, g in zip(outs, moved):
        if differentiable(t._spec):
            made = g.astype(t._spec.dtype.np)
            set_tangent(t, _beside(made, t))
    if out is not None:
        for o, r in zip((out,) if isinstance(out, Tensor) else out, outs):
            o.copy_(r)
            set_tangent(o, tangent_of(r))
        return out
    return result


def _beside(array, like):
    """A tensor of an array that belongs beside another tensor."""
    return wrap(array, _dense(like._spec))


def _dense(spec):
    return type(spec).dense(tuple(spec.shape), spec.dtype, spec.device)


def _tangent_array(t, primal):
    if not jnp.issubdtype(primal.dtype, jnp.inexact):
        return jnp.zeros(primal.shape, bool).__array__().astype(jax.dtypes.float0)
    tangent = tangent_of(t) if isinstance(t, Tensor) else None
    return jnp.zeros_like(primal) if tangent is None else array_of(tangent).astype(primal.dtype)


def enter_dual_level() -> int:
    """Start a dual level; there can be one at a time."""
    me = tls.me
    if me.extra.get("dual") is not None:
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
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
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
    dual = call_view(registry.VIEWS["alias"], tensor, ())
    set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one that is not dual."""
    if tls.me.extra.get("dual") is None:
        return UnpackedDualTensor(tensor, None)
    tangent = tangent_of(tensor)
    with no_grad():
        primal = tensor if tangent is None else tensor.detach()
    return UnpackedDualTensor(primal, tangent)


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
