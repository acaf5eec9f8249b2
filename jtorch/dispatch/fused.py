"""Multi-tensor updates: one node for a whole group of parameters."""

from operator import attrgetter

from ..autograd.derive import fit
from ..core import storage as storages
from ..core.program import Plan
from ..core.record import tls
from ..core.spec import Spec
from .write import write

_spec = attrgetter("_spec")
_storage = attrgetter("_storage")
_whole = attrgetter("spec")
_value = attrgetter("value")


class Update:
    """One multi-tensor update, its plan kept from step to step: fn(arrays, numbers) -> arrays.

    Numbers are run-time inputs always: another learning rate never compiles anything. A step costs about a tenth of a
    microsecond a tensor, so nothing here is done tensor by tensor in Python that can be done by a C loop.
    """

    __slots__ = ("fn", "static", "split", "plan", "specs", "kinds", "outputs")

    def __init__(self, fn, static, split=None):
        """split: how it is cut into updates of some of the parameters, if it can be: `parameters()` gives their places among the inputs,
        `cut(lo, hi)` the function and the static value for some of them, and the places of its inputs and outputs."""
        self.fn = fn
        self.static = static
        self.split = split
        self.plan = self.specs = self.kinds = self.outputs = None

    def record(self, inputs, numbers, outputs, source=None):
        """Record one node on `inputs`, its results swapped into the storages of `outputs`. No gradient is recorded.

        source: (optimizer, group, flags), where the numbers come from: a compiled region asks for them again.
        """
        specs = list(map(_spec, inputs))
        kinds = list(map(type, numbers))
        targets = list(map(_spec, outputs))
        if specs != self.specs or kinds != self.kinds or targets != self.outputs:
            self.plan = _plan(self.fn, self.static, specs, kinds, targets, self.split)
            self.specs, self.kinds, self.outputs = specs, kinds, targets
        plan = self.plan
        me = tls.me
        numbers = tuple(numbers)
        if me.scope is not None and source is not None:
            me.scope.updates.append((*source, numbers))
        held = list(map(_storage, inputs))
        if list(map(_whole, held)) == specs:
            values = list(map(_value, held))
        else:
            values = [
                s.value if s.spec is t._spec else storages.read(s, t._spec, t._offset) for s, t in zip(held, inputs)
            ]
        graph = me.graph if me.graph.device is plan.device else me.graph_on(plan.device)
        outs = graph.recn(plan, values, numbers)
        del values
        held = list(map(_storage, outputs))
        if list(map(_whole, held)) == targets:
            for s, v in zip(held, outs):
                s.value = v
                s.version += 1
        else:
            for t, v in zip(outputs, outs):
                write(t, v)


def _plan(fn, static, specs, kinds, targets, split=None):
    key = (static, tuple(specs), tuple(targets), tuple(kinds))
    plan = _updates.get(key)
    if plan is None:
        n = len(specs)

        def update(*values):
            got = fn(list(values[:n]), values[n:])
            got = [fit(g, o) for g, o in zip(got, out_specs)]
            return got[0] if len(got) == 1 else tuple(got)

        out_specs = [Spec.dense(tuple(s.shape), s.dtype, s.device) for s in targets]
        update.__name__ = str(static[0] if isinstance(static, tuple) else static)
        plan = Plan(None, update.__name__, update, tuple(specs), tuple(kinds), True, specs=tuple(out_specs))
        if split is not None:
            plan.split = Split(split, plan, targets)
        _updates[key] = plan
    return plan


class Split:
    """How the plan of an update is cut: `cut(lo, hi)` gives the plan for some of the parameters, and the places of its operands and results
    among those of the whole.

    specs: those of the parameters.
    """

    __slots__ = ("specs", "_of", "_plan", "_targets")

    def __init__(self, of, plan, targets):
        self._of, self._plan, self._targets = of, plan, targets
        self.specs = [plan.operands[i] for i in of.parameters()]

    def cut(self, lo, hi):
        plan = self._plan
        fn, static, operands, results = self._of.cut(lo, hi)
        specs, targets = [plan.operands[i] for i in operands], [self._targets[i] for i in results]
        return _plan(fn, static, specs, plan.kinds, targets), operands, results


_updates: dict = {}
