"""Functions that users wrote under other ways of differentiating: JAX's transformations and forward mode."""

import jax

from ..core import storage as storages
from ..core.record import tls
from ..core.spec import Spec
from ..creation import from_jax
from ..tensor import Tensor, value_of, wrap


def tangent_of(t):
    """The tangent of a dual tensor at the present level, or None."""
    entry = t.__dict__.get("_tangent")
    return entry[1] if entry is not None and entry[0] is tls.me.extra.get("dual") else None


def set_tangent(t, tangent):
    """Make a tensor dual."""
    t.__dict__["_tangent"] = (tls.me.extra["dual"], tangent)


def array_of(t):
    """The array (or tracer) of a tensor."""
    return storages.realise(value_of(t))


def apply(cls, args, run):
    """One application inside jax.grad or jax.jvp: the user's derivative takes the place of JAX's.

    run: arguments -> (context, output).
    """
    slots = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
    kinds = tls.me.extra["transforms"]
    box = {}

    def forward(*values):
        full = list(args)
        for k, v in zip(slots, values):
            full[k] = from_jax(v)
        ctx, output = run(tuple(full))
        box["ctx"], box["single"] = ctx, not isinstance(output, tuple)
        outs = (output,) if box["single"] else output
        box["plain"] = [None if isinstance(o, Tensor) else o for o in outs]
        return ctx, tuple(array_of(o) for o in outs if isinstance(o, Tensor))

    def plain(*values):
        return forward(*values)[1]

    values = [array_of(args[k]) for k in slots]
    if "vjp" not in kinds and "jvp" not in kinds:
        outs = plain(*values)
    elif "jvp" in kinds[-1:]:
        outs = _with_jvp(cls, plain, forward)(*values)
    else:
        outs = _with_vjp(plain, forward)(*values)
    given = iter(outs)
    results = [from_jax(next(given)) if p is None else p for p in box["plain"]]
    return results[0] if box["single"] else tuple(results)


def _with_vjp(plain, forward):
    box = {}

    def fwd(*values):
        ctx, outs = forward(*values)
        box["ctx"] = ctx
        saved = tuple(None if t is None else array_of(t) for t in ctx.saved_tensors)
        return outs, (saved, values)

    def bwd(kept, grads):
        saved, values = kept
        ctx = box["ctx"]
        ctx.to_save = tuple(None if s is None else from_jax(s) for s in saved)
        given = iter(grads)
        tensors = [from_jax(next(given)) if s is not None else None for s in ctx.specs]
        ctx.edges = (True,) * len(values)
        got = ctx.apply(*tensors)
        zeros = [jax.numpy.zeros_like(v) for v in values]
        return tuple(
            _none(v) if not jax.numpy.issubdtype(v.dtype, jax.numpy.inexact) else z if g is None else array_of(g)
            for g, z, v in zip(got, zeros, values)
        )

    fn = jax.custom_vjp(plain)
    fn.defvjp(fwd, bwd)
    return fn


def _none(v):
    return None


def _with_jvp(cls, plain, forward):
    fn = jax.custom_jvp(plain)

    @fn.defjvp
    def rule(values, tangents):
        ctx, outs = forward(*values)
        ctx.to_save = getattr(ctx, "saved_for_forward", ctx.saved_tensors)
        got = cls.jvp(ctx, *_spread(ctx, [from_jax(t) for t in tangents]))
        got = got if isinstance(got, tuple) else (got,)
        return outs, tuple(array_of(g) for g in got)

    return fn


def _spread(ctx, tangents):
    given = iter(tangents)
    return [None if spec is None else next(given) for spec in ctx.arguments]


def push(cls, ctx, args, output):
    """Forward mode: tangents of the results from those of the arguments."""
    kept = getattr(ctx, "saved_for_forward", None)
    before = ctx.kept
    if kept is not None:
        ctx.to_save = kept
    tangents = [tangent_of(a) if isinstance(a, Tensor) else None for a in args]
    if ctx.materialize_grads:
        tangents = [
            wrap(jax.numpy.zeros(tuple(a.shape), a.dtype.np), Spec.dense(tuple(a.shape), a.dtype, a.device))
            if t is None and isinstance(a, Tensor) and a.dtype.is_floating_point
            else t
            for t, a in zip(tangents, args)
        ]
    got = cls.jvp(ctx, *tangents)
    ctx.to_save, ctx.kept = None, before
    outs = output if isinstance(output, tuple) else (output,)
    for o, t in zip(outs, got if isinstance(got, tuple) else (got,)):
        if isinstance(o, Tensor) and t is not None:
            set_tangent(o, t)
