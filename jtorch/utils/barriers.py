"""Values that XLA takes for other ones, so that what is computed from them is not merged with what was computed before."""

import jax
import jax.numpy as jnp

from ..core.program import Plan
from ..core.record import tls
from ..core.spec import Spec

_barriers: dict = {}


def behind_barrier(values, specs, after, after_specs):
    """The same values, as XLA sees it other ones, not available before those in `after`."""
    n = len(values)
    specs = tuple(Spec.dense(tuple(s.shape), s.dtype, s.device) for s in (*specs, *after_specs))
    plan = _barriers.get((n, specs))
    if plan is None:
        fence = _select if specs[0].device.type == "cpu" else _fence

        def barrier(*arrays):
            got = fence(arrays[:n], arrays[n:])
            return got[0] if n == 1 else tuple(got)

        plan = _barriers[n, specs] = Plan(None, "recompute_from", barrier, specs, specs=specs[:n])
    me = tls.me
    graph = me.graph if me.graph.device is plan.device else me.graph_on(plan.device)
    return graph.recn(plan, (*values, *after))


def _fence(values, after):
    return jax.lax.optimization_barrier((*values, *after))[: len(values)]


def _select(values, after):
    """The same for XLA's CPU compiler, which drops optimization barriers before it merges equal computations.

    Each value is chosen by a condition that never holds, and that the compiler cannot know before the gradient is there. In
    a model of 24 blocks this takes the peak from 10.4 to 1.3 MB; with optimization_barrier (jax.checkpoint too) it stays.
    """
    for x in (*after, *values):
        if x.size and jnp.issubdtype(x.dtype, jnp.inexact):
            first = jnp.real(jax.lax.reshape(jax.lax.slice(x, (0,) * x.ndim, (1,) * x.ndim), ()))
            never = first > jnp.inf
            return [jnp.where(never, jnp.zeros_like(v), v) for v in values]
    return _fence(values, after)
