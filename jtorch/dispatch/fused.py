"""Multi-tensor updates: one node for a whole group of parameters."""

from ..core import storage as storages
from ..core.program import Plan
from ..core.record import tls
from ..core.spec import Spec
from .write import write


def fused_update(fn, static_key, inputs, numbers, outputs, source=None):
    """Record one node: fn(arrays, numbers) -> arrays, swapped into the storages of `outputs`. No gradient is recorded.

    Numbers are run-time inputs always: another learning rate never compiles anything. `source`, (optimizer, group, flags), says where they come from, so that a
    compiled region can ask for them again.
    """
    specs = tuple(t._spec for t in inputs)
    kinds = tuple(map(type, numbers))
    key = (static_key, specs, tuple(t._spec for t in outputs), kinds)
    plan = _updates.get(key)
    if plan is None:
        n = len(inputs)

        def update(*values):
            got = fn(list(values[:n]), values[n:])
            got = [g.astype(o.dtype.np) if g.dtype != o.dtype.np else g for g, o in zip(got, out_specs)]
            return got[0] if len(got) == 1 else tuple(got)

        out_specs = [Spec.dense(tuple(t._spec.shape), t._spec.dtype, t._spec.device) for t in outputs]
        update.__name__ = str(static_key[0] if isinstance(static_key, tuple) else static_key)
        plan = _updates[key] = Plan(None, update.__name__, update, specs, kinds, True, specs=tuple(out_specs))
    me = tls.me
    if me.scope is not None and source is not None:
        me.scope.updates.append((*source, tuple(numbers)))
    graph = me.graph if me.graph.device is plan.device else me.graph_on(plan.device)
    values = []
    for t in inputs:
        s = t._storage
        values.append(s.value if s.spec is t._spec else storages.read(s, t._spec, t._offset))
    outs = graph.recn(plan, values, tuple(numbers))
    del values
    for t, v in zip(outputs, outs):
        s = t._storage
        if s.spec is t._spec:
            s.value = v
            s.version += 1
        else:
            write(t, v)


_updates: dict = {}
