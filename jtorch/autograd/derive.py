"""Derivatives: from a plan (an op on given specs) to the plan of its backward."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from .. import errors_autograd
from ..core import families, halves
from ..core.dtype import COMPLEX, FLOAT, complex32
from ..core.program import Plan
from ..core.spec import Spec
from ..ops.backend import sum_over
from ..ops.registry import UNKNOWN, ZERO, Part, Unwritten
from .forms import saves_number
from .liveness import used_inputs


class Binding:
    """How the arguments of a kernel are rebuilt from a plan's operands, numbers and static values.

    slots: one entry a parameter: ("o", operand, dtype or None), ("n", number, dtype or None), ("l", entries), ("s", value).
    """

    __slots__ = ("op", "slots", "n_operands", "refused", "by_result")

    def __init__(self, op, slots, n_operands):
        self.op = op
        self.slots = slots
        self.n_operands = n_operands
        self.refused = None  # makes the error with which the derivative of this call ends
        # whether PyTorch's derivative of this call is of the result, so that it must not be written to
        self.by_result = False

    def arguments(self, operands, numbers):
        return [_argument(slot, operands, numbers) for slot in self.slots]

    def kernel(self, *values):
        n, op = self.n_operands, self.op
        with op.tracing():
            return op.invoke(op.fn, self.arguments(values[:n], values[n:]))


def _argument(slot, operands, numbers):
    """What a slot of a Binding stands for, given the operands and numbers of the call."""
    kind, what, *rest = slot
    if kind == "s":
        return what
    if kind == "o":
        value = operands[what]
        if rest[0] is not None and value is not None and value.dtype != rest[0]:
            value = _cast(value, rest[0])
        return value
    if kind == "n":
        value = numbers[what]
        if rest[0] is not None:
            # A constant stays a numpy scalar under a trace, so that kernels can see it (x**2 is x*x).
            value = value.astype(rest[0]) if isinstance(value, jax.Array) else np.asarray(value).astype(rest[0])
        return value
    return [_argument(entry, operands, numbers) for entry in what]


def _cast(value, dtype):
    if np.issubdtype(value.dtype, np.complexfloating) and not np.issubdtype(dtype, np.complexfloating):
        value = value.real
    return value.astype(dtype)


class HalfBinding(Binding):
    """A kernel whose complex results are rounded to complex32; `real`: its float32 results to float16."""

    __slots__ = ("real",)

    def kernel(self, *values):
        return jax.tree.map(self._rounded, super().kernel(*values))

    def _rounded(self, x):
        if x.dtype == np.complex64:
            return halves.rounded(x)
        return x.astype(np.float16) if self.real and x.dtype == np.float32 else x


class Backward:
    """The derivative of a plan by some of its operands: what the tape keeps, and the plan that computes it.

    save_in, save_out: positions of operands and results that it needs; positions: operands that get a gradient. guard_in,
    guard_out: those that must not be written to until it has run. build: which cotangents there are (a bool for each result) -> the
    kernel, which takes what was saved, those cotangents, and the numbers. once: even where nothing is saved there is no second pass.
    """

    __slots__ = (
        "forward", "name", "positions", "save_in", "save_out", "guard_in", "guard_out", "uses_numbers", "once", "plans", "build",
        "specs", "n_out", "whole", "whole_plan", "node", "keep", "traced",
    )  # fmt: skip

    def __init__(self, forward, positions, save_in, save_out, uses_numbers, build):
        self.forward = forward
        self.name = forward.grad_name or f"{forward.name}Backward0"
        self.positions = positions
        self.save_in = self.guard_in = save_in
        self.save_out = self.guard_out = save_out
        self.uses_numbers = uses_numbers
        self.once = uses_numbers and saves_number(forward.extra, positions) or forward.name == "CopySlices"
        self.plans = {}
        self.build = build
        self.specs = forward.specs
        self.n_out = forward.n_out
        self.whole = (True,) * self.n_out
        self.whole_plan = None  # what `plan` says where every result has a gradient, once it has been asked
        self.node = None  # the class of its nodes, set by the tape
        self.keep = (
            None  # what saves its operands and results, set by the tape where calls of `forward` have unrolled code
        )
        # where every result has a cotangent and it has been traced already: what `trace` gives, and which of the jaxpr's operands it takes
        self.traced = None

    def guard(self, which, owners):
        """Guard what the op says, {name: whether}; owners: operand position -> name."""
        forward = self.forward
        if any(map(callable, which.values())):
            said = {name: w(_call(self, owners)) if callable(w) else w for name, w in which.items()}
            which = {name: w for name, w in said.items() if w is not None}
        names = [owners.get(i) for i in range(len(forward.operands))]
        self.guard_in = tuple(i for i, n in enumerate(names) if which.get(n, i in self.save_in))
        outs = [which.get(f"out{k}", which.get("out", k in self.save_out)) for k in range(self.n_out)]
        self.guard_out = tuple(k for k, there in enumerate(outs) if there)

    def plan(self, present):
        """(plan, passed): the plan for these cotangents (a bool for each result) and, for each gradient, the position
        among the plan's results or ~k when it simply is cotangent k."""
        found = self.plans.get(present)
        if found is None:
            found = self.plans[present] = self.make(present)
        return found

    def takes(self, present):
        """Specs of what its kernel takes for these cotangents, and the types of the numbers."""
        forward = self.forward
        operands = [forward.operands[i] for i in self.save_in]
        operands += [forward.specs[i] for i in self.save_out]
        operands += [_grad_spec(forward.specs[k]) for k, there in enumerate(present) if there]
        return operands, forward.kinds if self.uses_numbers else ()

    def trace(self, present):
        """(jaxpr of the derivative for these cotangents, for each gradient which cotangent it simply is, or -1, positions of its operands)."""
        operands, kinds = self.takes(present)
        family, sizes = self._family(present)
        found = None if family is None else family.written(sizes)
        if found is None:
            kernel = self.build(present)
            samples = [s.aval for s in operands] + [kind(1) for kind in kinds]
            closed = jax.make_jaxpr(lambda *v: tuple(kernel(*v)))(*samples)
            sources = self._sources(closed.jaxpr, present)
            if family is not None and family.wants():
                family.learn(sizes, closed, sources)
        else:
            closed, sources = found
        return closed, sources, range(len(operands) + len(kinds))

    def _sources(self, jaxpr, present):
        first = len(self.save_in) + len(self.save_out)
        cotangents = {id(v): k for k, v in enumerate(jaxpr.invars[first : first + sum(present)])}
        return [cotangents.get(id(v), -1) for v in jaxpr.outvars]

    def _family(self, present):
        """The family of this derivative, where its forward operation has one, and the sizes of all that it is of."""
        forward = self.forward
        if forward.kin is None:
            return None, ()
        key, sizes = forward.kin
        sizes += families.sizes_of(forward.specs)
        return families.family(
            (key, self.positions, self.save_in, self.save_out, self.uses_numbers, present), sizes
        ), sizes

    def make(self, present):
        """See `plan`; traces the derivative where that has not been done."""
        forward = self.forward
        traced = self.traced
        if traced is None or present != self.whole:
            traced = self.trace(present)
        closed, sources, takes = traced
        passed, kept = [], []
        for k, source in enumerate(sources):
            if source >= 0:
                passed.append(~source)
            else:
                passed.append(len(kept))
                kept.append(k)
        if not kept:
            return None, tuple(passed)
        kernel = self.build(present)
        operands, kinds = self.takes(present)
        specs = tuple(_grad_spec(forward.operands[self.positions[k]]) for k in kept)

        def fn(*values):
            got = kernel(*values)
            got = [got[k] for k in kept]
            return got[0] if len(got) == 1 else tuple(got)

        fn.__name__ = self.name
        plan = Plan(None, self.name, fn, tuple(operands), kinds, forward.runtime, specs=specs)
        plan.known = closed, takes, kept
        plan.channels = forward.channels
        plan.grad_name = self.name.removesuffix("0") + "Backward0"
        return plan, tuple(passed)


def _call(bwd, owners):
    """A call as the conditions of `Op.guards` see it: each argument, a Spec where it is a tensor, and `needs`, who gets a gradient."""
    call = _arguments_of(bwd.forward.operands, bwd.forward.extra)
    return {**call, "needs": {owners.get(i) for i in bwd.positions}}


def _arguments_of(operands, binding):
    return {p.name: operands[s[1]] if s[0] == "o" else s[1] for p, s in zip(binding.op.params, binding.slots)}


class Refused(Backward):
    """The derivative of an op for which PyTorch has none: to ask for it is an error."""

    __slots__ = ("rule",)

    def __init__(self, forward, positions, rule):
        super().__init__(forward, positions, (), (), False, None)
        self.rule = rule
        if rule is UNKNOWN:
            self.name = "NotImplemented"

    def make(self, present):
        if callable(self.rule):
            raise self.rule()
        if self.rule is not UNKNOWN:
            raise errors_autograd.unwritten(self.rule.name)
        raise RuntimeError(f"derivative for aten::{self.forward.extra.op.shown} is not implemented")


def _grad_spec(spec):
    return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)


def backward_of(plan, needs) -> Backward:
    """The derivative of `plan` by the operands whose bit is set in `needs`."""
    positions = tuple(i for i in range(len(plan.operands)) if needs >> i & 1)
    binding = plan.extra
    if isinstance(binding, Binding):
        op = binding.op
        if op.keeps_history and not differentiable(plan.specs[0]):
            raise errors_autograd.no_gradient_of(plan.specs[0].dtype)
        owners = _owners(binding)
        if op.order is not None:
            names = op.order(*plan.operands)
            positions = tuple(sorted(positions, key=lambda i: names.index(owners[i])))
        if op.barred:
            _check_barred(plan, binding, [owners[i] for i in positions])
        if binding.refused is not None:
            return Refused(plan, positions, binding.refused)
        for rule in map(op.rules.get, (owners[i] for i in positions)):
            if rule is UNKNOWN or isinstance(rule, Unwritten):
                return Refused(plan, positions, rule)
        ruled = all(owners[i] in op.rules for i in positions)
        made = _by_rules(plan, binding, positions, owners) if ruled else _by_vjp(plan, positions)
        if op.guarded:
            made.guard(op.guarded, owners)
        if binding.by_result:
            made.guard_out = tuple(range(plan.n_out))
        return made
    if binding is not None:
        return Backward(plan, positions, (), (), True, binding.build(positions))
    return _by_vjp(plan, positions)


def _check_barred(plan, binding, wanted):
    barred = binding.op.barred
    for name in filter(barred.__contains__, wanted):
        function = barred[name]
        if callable(function):
            function = function(_arguments_of(plan.operands, binding))
        if function is not None:
            raise errors_autograd.barred(function, name)


def _owners(binding):
    """operand position -> parameter name."""
    owners = {}
    for param, slot in zip(binding.op.params, binding.slots):
        if slot[0] == "o":
            owners[slot[1]] = param.name
        elif slot[0] == "l":
            for entry in slot[1]:
                if entry[0] == "o":
                    owners[entry[1]] = None  # members of a list: jax.vjp
    return owners


def fit(grad, spec):
    """A gradient summed and cast to the shape and dtype of what it belongs to."""
    shape = tuple(spec.shape)
    if grad.shape != shape:
        extra = grad.ndim - len(shape)
        if extra > 0:
            grad = sum_over(grad, range(extra))
        axes = tuple(i for i, n in enumerate(shape) if n == 1 and grad.shape[i] != 1)
        if axes:
            grad = sum_over(grad, axes, keepdims=True)
        if grad.shape != shape:
            grad = jnp.broadcast_to(grad, shape)
    grad = _cast(grad, spec.dtype.np) if grad.dtype != spec.dtype.np else grad
    return halves.rounded(grad) if spec.dtype is complex32 else grad


def _by_rules(plan, binding, positions, owners):
    """The derivative by the op's stated rules. The names of their parameters say what of the call they need."""
    op = binding.op
    names = [owners[i] for i in positions]
    slot_of = {param.name: slot for param, slot in zip(op.params, binding.slots)}
    save_in, save_out, uses_numbers = _read_by_rules(plan, slot_of, {a for n in names for a in op.rule_args[n]})

    def build(save_in, save_out, stand_ins, unread, present):
        n_saved = len(save_in) + len(save_out)
        n_values = n_saved + sum(present)

        def kernel(*values):
            with op.tracing():
                return derivatives(values)

        def derivatives(values):
            operands = _filled(plan.operands, save_in, values, stand_ins)
            outs = _filled(plan.specs, save_out, values[len(save_in) : n_saved], unread)
            grads = _cotangents(plan, present, values[n_saved:n_values])
            env = {f"out{k}": v for k, v in enumerate(outs) if v is not None}
            env["out"] = outs[0] if plan.n_out == 1 else [v for v in outs if v is not None]
            env["g"] = grads[0] if plan.n_out - op.hidden == 1 else tuple(grads[: plan.n_out - op.hidden])
            result, together = [], {}
            for i, name in zip(positions, names):
                rule, spec = op.rules[name], plan.operands[i]
                if rule is ZERO:
                    result.append(_zeros(spec))
                    continue
                args = {
                    a: env[a] if a in env else _argument(slot_of[a], operands, values[n_values:])
                    for a in op.rule_args[name]
                }
                if isinstance(rule, Part):
                    if rule.rule not in together:
                        together[rule.rule] = rule.rule(**args)
                    result.append(fit(together[rule.rule][rule.index], spec))
                else:
                    result.append(fit(rule(**args), spec))
            return result

        return kernel

    return _pruned(plan, positions, save_in, save_out, uses_numbers, lambda *kept: functools.partial(build, *kept))


def _read_by_rules(plan, slot_of, wanted):
    """(positions of operands, positions of results, whether numbers) that rules with these parameters are given."""
    slots = [slot for name in wanted if name in slot_of for slot in _flat(slot_of[name])]
    save_in = tuple(sorted({slot[1] for slot in slots if slot[0] == "o"}))
    save_out = tuple(k for k in range(plan.n_out) if "out" in wanted or f"out{k}" in wanted)
    return save_in, save_out, any(slot[0] == "n" for slot in slots)


def _filled(specs, places, values, stand_ins):
    """Arrays for some of the `specs`: the values at `places`, zeros where only a shape is read (`stand_ins`), None elsewhere."""
    made = [None] * len(specs)
    for i in stand_ins:
        made[i] = _zeros(specs[i])
    for i, v in zip(places, values):
        made[i] = v
    return made


def _zeros(spec):
    return jnp.zeros(tuple(spec.shape), spec.dtype.np)


def _pruned(plan, positions, save_in, save_out, uses_numbers, build_for):
    """A Backward that keeps only the operands and results whose values its kernel reads: many rules ask for no more than a
    shape, or for one of several results."""
    whole = Backward(plan, positions, save_in, save_out, uses_numbers, build_for(save_in, save_out, (), ()))
    closed, sources, takes = whole.traced = whole.trace(whole.whole)
    used = used_inputs(closed.jaxpr)
    kept = tuple(i for k, i in enumerate(save_in) if k in used)
    # an only result that the rule names is guarded as PyTorch guards it, read or not
    outs = tuple(i for k, i in enumerate(save_out, len(save_in)) if k in used or plan.n_out == 1)
    if (kept, outs) == (save_in, save_out):
        return whole
    dropped = (tuple(i for i in save_in if i not in kept), tuple(i for i in save_out if i not in outs))
    made = Backward(plan, positions, kept, outs, uses_numbers, build_for(kept, outs, *dropped))
    n_saved = len(save_in) + len(save_out)
    saved = [k for k, i in enumerate(save_in) if i in kept] + [
        k for k, i in enumerate(save_out, len(save_in)) if i in outs
    ]
    made.traced = closed, sources, [*saved, *takes[n_saved:]]
    return made


def _flat(slot):
    return [s for entry in slot[1] for s in _flat(entry)] if slot[0] == "l" else [slot]


def _cotangents(plan, present, grads):
    """All cotangents of a plan's results, zeros where there is none."""
    given = iter(grads)
    return [next(given) if there else _zeros(spec) for there, spec in zip(present, plan.specs)]


def _by_vjp(plan, positions):
    """The derivative of the kernel itself, by jax.vjp."""
    everything = tuple(range(len(plan.operands)))
    single = plan.n_out == 1

    def build_for(save_in, _save_out, stand_ins, _unread):
        return functools.partial(build, save_in, stand_ins)

    def build(save_in, stand_ins, present):
        n = len(save_in)

        def kernel(*values):
            operands = _filled(plan.operands, save_in, values, stand_ins)
            n_grads = sum(present)
            numbers = values[n + n_grads :]
            # Results without a cotangent are left out: zeros for them would be nan where a derivative has no end, as that of
            # eigenvectors has where eigenvalues are equal.
            smooth = [s.dtype.category >= FLOAT for s in plan.specs]
            used = [k for k, there in enumerate(present) if there and smooth[k]]
            grads = [g for g, k in zip(values[n:], (k for k, there in enumerate(present) if there)) if smooth[k]]

            def run(*variables):
                args = list(operands)
                for i, v in zip(positions, variables):
                    args[i] = v
                outs = plan.fn(*args, *numbers)
                outs = (outs,) if single else outs
                return [outs[k] for k in used]

            # PyTorch's gradient of a complex value is the conjugate of jax's.
            grads = [jnp.conj(g) if jnp.iscomplexobj(g) else g for g in grads]
            _, pull = jax.vjp(run, *[operands[i] for i in positions])
            result = pull(grads)
            result = [jnp.conj(r) if jnp.iscomplexobj(r) else r for r in result]
            return [fit(r, plan.operands[i]) for r, i in zip(result, positions)]

        return kernel

    return _pruned(plan, positions, everything, (), True, build_for)


def tangents_by_rules(plan, moving):
    """The tangent of an op's one result that has a derivative by its stated rules, as a function of (primals, tangents of those at
    `moving`, numbers). At each element of an elementwise op a rule is a factor, forward as backward. None where that is not so."""
    binding = plan.extra
    if type(binding) is not Binding or plan.specs[0].dtype.category != FLOAT:
        return None
    op, owners = binding.op, _owners(binding)
    if op.transposed:
        return _transposed(plan, binding, moving, owners)
    if not op.elementwise or plan.n_out > 1 or any(s.ndim > plan.specs[0].ndim for s in plan.operands):  # a loss's mean
        return None
    rules = {i: op.rules.get(owners[i]) for i in moving}
    if any(not callable(r) and r is not ZERO or plan.operands[i].dtype.category != FLOAT for i, r in rules.items()):
        return None
    slot_of = {param.name: slot for param, slot in zip(op.params, binding.slots)}
    result = plan.specs[0]

    def kernel(primals, tangents, numbers):
        with op.tracing():
            return total(primals, tangents, numbers)

    def total(primals, tangents, numbers):
        made = _zeros(result)
        for (i, rule), tangent in zip(rules.items(), tangents):
            if rule is ZERO:
                continue
            args = {}
            for arg in op.rule_args[owners[i]]:
                if arg == "g":
                    args[arg] = jnp.broadcast_to(_cast(tangent, result.dtype.np), tuple(result.shape))
                elif arg in ("out", "out0"):
                    args[arg] = plan.fn(*primals, *numbers)
                else:
                    args[arg] = _argument(slot_of[arg], primals, numbers)
            part = rule(**args)
            assert part.shape == made.shape, op.name
            made = made + part.astype(made.dtype)
        return made

    try:
        jax.eval_shape(
            kernel, [s.aval for s in plan.operands], [plan.operands[i].aval for i in moving], [k(1) for k in plan.kinds]
        )
    except AssertionError:  # a rule that adds up for itself
        return None
    return kernel


def _transposed(plan, binding, moving, owners):
    """The same by turning the rules around: they are linear in the cotangent."""
    if any(plan.operands[i].dtype.category != FLOAT for i in moving) or any(map(differentiable, plan.specs[1:])):
        return None
    bwd = _by_rules(plan, binding, moving, owners)
    there = (True, *(False,) * (plan.n_out - 1))
    pull = bwd.build(there)

    def kernel(primals, tangents, numbers):
        outs = plan.fn(*primals, *numbers)
        outs = (outs,) if plan.n_out == 1 else outs
        saved = [primals[i] for i in bwd.save_in] + [outs[k] for k in bwd.save_out]
        push = jax.linear_transpose(lambda g: tuple(pull(*saved, g, *(numbers if bwd.uses_numbers else ()))), outs[0])
        return push(tuple(_cast(t, plan.operands[i].dtype.np) for i, t in zip(moving, tangents)))[0]

    return kernel


def differentiable(spec) -> bool:
    return spec.dtype.category in (FLOAT, COMPLEX)
