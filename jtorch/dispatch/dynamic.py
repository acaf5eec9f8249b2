"""Plans of operators whose results' shapes depend on values: they have run already, and the tape wants one for all calls that were alike."""

from ..autograd.derive import Binding, differentiable
from ..core import crowd
from ..core import dtype as dtypes
from ..core.program import Plan

MANY = 1024  # plans that are kept: each count of results has one
_plans: dict[tuple, Plan] = {}
crowd.forgetters.append(_plans.clear)


def plan_of(op, slots, specs, kinds, out_specs):
    """The plan of a call with such results. A new one at each call would have its derivative compiled each time."""
    key = (op, tuple((s[0], tuple(s[1])) if s[0] == "l" else s for s in slots), specs, kinds, out_specs)
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MANY:
            _plans.clear()
        binding = Binding(op, slots, len(specs))
        plan = _plans[key] = Plan(op, op.name, binding.kernel, specs, kinds, specs=out_specs)
        plan.extra = binding
        plan.grad_name = op.grad_name if isinstance(op.grad_name, str) else op.grad_name({})
        plan.public = plan.n_out
        plan.out_edges = [k if differentiable(s) else None for k, s in enumerate(out_specs)]
    return plan


def dtype_of(value, specs):
    """The dtype of a result that is picked out of operands: arrays do not tell complex32 from complex64."""
    d = dtypes.of(value.dtype)
    return dtypes.complex32 if d is dtypes.complex64 and any(s.dtype is dtypes.complex32 for s in specs) else d
