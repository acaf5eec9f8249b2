"""Values that lie between convolutions: elementwise operations on them are computed with the channels last, as convolutions are.

XLA's layouts follow convolutions through elementwise work as far as that is computed where it is read. What is made in memory, for it
is dear or much is read for it, lay with the channels first, and was turned on its way in and out.
"""

import jax.numpy as jnp

from . import extend
from .channel_order import IMAGES, first, last
from .cuts import inner, traced

# Elementwise primitives of which layers and their derivatives are made.
_POINTWISE = frozenset(
    ("abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh", "broadcast_in_dim", "cbrt", "ceil", "clamp",
     "convert_element_type", "copy", "copy_p", "cos", "cosh", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor",
     "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "nextafter", "not",
     "optimization_barrier", "or", "pow", "rem", "round", "rsqrt", "select_n", "sign", "sin", "sinh", "sqrt", "square", "stop_gradient",
     "sub", "tan", "tanh", "xor")
)  # fmt: skip


class Maps:
    """Which values of a program that is being traced are such, by their indices."""

    __slots__ = ("known",)

    def __init__(self):
        self.known = set()

    def result(self, node, run, args):
        """The result of a node, whose function is `run`."""
        plan = node.plan
        of_maps = plan.channels is None and not self.known.isdisjoint(node.ids) and pointwise(plan)
        if not of_maps or plan.specs[0].ndim not in IMAGES:
            result = run(*args)
        else:
            n = len(node.ids)
            turned = [last(x) if jnp.ndim(x) else x for x in args[:n]] + list(args[n:])
            if plan.pointwise is not True:
                size = tuple(plan.specs[0].shape)
                [result] = evaluated(plan.pointwise, turned, (size[0], *size[2:], size[1]))
            else:
                result = run(*turned)
            result = first(result)
        if of_maps or plan.channels is not None:
            self.known.update(node.first + k for k, spec in enumerate(plan.specs) if spec.ndim in IMAGES)
        return result


def pointwise(plan):
    """Whether a plan's one result is elementwise of its operands: False; True where its function takes them in any order of dimensions;
    or the jaxpr that says how, where its function does not, as derivatives, which know their shapes. Found out once."""
    if plan.pointwise is None:
        plan.pointwise = _found(plan)
    return plan.pointwise


def _found(plan):
    op = plan.op
    if plan.n_out != 1 or any(spec is None for spec in plan.operands):
        return False
    if op is not None:  # a vector beside a map may mean the channels (`prelu`)
        whole = all(spec.ndim in (0, plan.specs[0].ndim) for spec in plan.operands)
        return bool(op.elementwise and whole)
    try:
        jaxpr = traced(plan)
    except Exception:  # it takes other things than arrays like these
        return False
    return jaxpr if not plan.kinds and _is_pointwise(jaxpr, tuple(plan.specs[0].shape)) else False


def _is_pointwise(jaxpr, shape) -> bool:
    variables = [*jaxpr.invars, *jaxpr.outvars, *(v for eqn in jaxpr.eqns for v in (*eqn.invars, *eqn.outvars))]
    if jaxpr.constvars or any(tuple(v.aval.shape) not in (shape, ()) for v in variables):
        return False
    for eqn in jaxpr.eqns:
        within = inner(eqn)
        if not (_is_pointwise(within, shape) if within is not None else eqn.primitive.name in _POINTWISE):
            return False
    return True


def evaluated(jaxpr, args, shape):
    """The results of an elementwise jaxpr for arguments of another shape, or none, and so of results."""
    known = dict(zip(jaxpr.invars, args))
    value = lambda v: jnp.asarray(v.val, v.aval.dtype) if type(v) is extend.Literal else known[v]
    for eqn in jaxpr.eqns:
        given = [value(v) for v in eqn.invars]
        within = inner(eqn)
        if within is not None:
            made = evaluated(within, given, shape)
        elif eqn.primitive.name == "broadcast_in_dim":
            made = jnp.broadcast_to(given[0], shape if eqn.outvars[0].aval.shape else ())
        else:
            made = eqn.primitive.bind(*given, **eqn.params)
        made = made if eqn.primitive.multiple_results or within is not None else [made]
        known.update(zip(eqn.outvars, made))
    return [value(v) for v in jaxpr.outvars]
