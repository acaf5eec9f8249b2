"""What a call gives: shape inference, by tracing the kernel, or by what has been traced for other sizes."""

import jax

from .. import errors
from ..core import dtype as dtypes
from ..core import families
from ..tracebacks import innermost, without_note


def infer(op, plan, call, inplace_spec):
    """Shapes and dtypes of the results of a plan that is being made for a call."""
    key = None if op.dynamic else _family_key(op, plan, call, inplace_spec)
    if key is None:
        return _asked(op, plan, call, plan.jit.eval_shape)
    sizes = families.sizes_of(plan.operands)
    family = families.family(key, sizes)
    plan.kin = key, sizes
    found = family.written(sizes)
    if found is not None:
        return _written(plan, *found)
    if not family.wants():
        return _asked(op, plan, call, plan.jit.eval_shape)
    traced = _asked(op, plan, call, plan.jit.trace)
    family.learn(sizes, traced.jaxpr, _form(traced.out_info))
    far = family.beyond(sizes)
    if far is not None:
        _look_ahead(plan, call, family, far)
    return traced.out_info


def _look_ahead(plan, call, family, sizes):
    """Trace a kernel for operands of other sizes than its own."""
    left = iter(sizes)
    operands = [jax.ShapeDtypeStruct(tuple([next(left) for _ in s.shape]), s.dtype.np) for s in plan.operands]
    try:
        traced = plan.jit.trace(*operands, *call.numbers)
    except Exception:  # whatever speaks against these sizes
        return
    family.learn(sizes, traced.jaxpr, _form(traced.out_info))


def _form(out):
    """How the results come: None for an only one."""
    return type(out) if isinstance(out, (tuple, list)) else None


def _written(plan, closed, form):
    plan.known = (closed,)
    out = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.outvars]
    return out[0] if form is None else form(out)


def _family_key(op, plan, call, inplace_spec):
    """What calls have in common that differ in sizes alone; None where that cannot be said."""
    key = (
        op,
        type(plan.extra),
        tuple([_slot(s) for s in call.slots]),
        tuple([(s.dtype, s.ndim, s.device) for s in plan.operands]),
        plan.kinds,
        None if inplace_spec is None else inplace_spec.dtype,
        dtypes.default.dtype,
    )
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _slot(slot):
    kind, what = slot
    if kind == "s":
        return type(what), what
    return (kind, *map(_slot, what)) if kind == "l" else (kind, what)


def _asked(op, plan, call, ask):
    try:
        return ask(*[s.aval for s in plan.operands], *call.numbers)
    except Exception as error:
        without_note(error)
        if isinstance(error, (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError)):
            raise
        if not isinstance(error, (TypeError, ValueError, ZeroDivisionError)):
            raise
        if type(error) is not ZeroDivisionError and _from_kernel(plan, call):
            raise
        raise errors.from_kernel(op.name, error) from error


def _from_kernel(plan, call):
    """Whether the error of shape inference is raised by a kernel of ours, in PyTorch's words, rather than by jax.

    jax hides its frames from tracebacks, so the inference runs once more with all of them.
    """
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        jax.eval_shape(plan.fn, *[s.aval for s in plan.operands], *call.numbers)
    except Exception as error:
        return errors.is_ours(innermost(error.__traceback__).tb_frame.f_code.co_filename)
    finally:
        jax.config.update("jax_traceback_filtering", before)
    return False
