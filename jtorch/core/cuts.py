"""Where a program's long chains of elementwise work are cut, so that XLA does not compute them anew for each that reads them.

XLA's CPU compiler fuses what is cheap into each of its readers. A loop written out (a cellular automaton, an integrator, a sampler) whose
state is read in several places by the next round grows by the square of its rounds so: 18 rounds of an automaton with its gradient took
it 47 s, and the loops that it made began at the first round each (11 s now). A value with so much before it is made in memory instead.
XLA drops optimization barriers before it fuses, so they do not help.
"""

import jax.numpy as jnp

FEW = 32  # nodes that a program may have without its chains being looked at
MOST = 192  # operations that may be computed anew for a value
# Primitives whose results are made in memory anyhow.
_MADE = frozenset(
    ("dot_general", "conv_general_dilated", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin", "reduce_and",
     "reduce_or", "sort", "scan", "while", "cond", "cumsum", "cumprod", "cummax", "cummin", "reduce_window", "reduce_window_sum",
     "reduce_window_max", "select_and_scatter_add", "scatter", "scatter-add", "scatter_add", "fft", "pure_callback", "top_k")
)  # fmt: skip


def wanted(prog) -> bool:
    """Whether a program can have a chain that is to be cut."""
    return prog.n_nodes > FEW and prog.device.type == "cpu"


class Cuts:
    """What the values of a program that is being traced are computed from, up to what is made in memory."""

    __slots__ = ("before", "read")

    def __init__(self, nodes):
        self.before = {}  # of a value, by its index: {node: its operations}
        self.read = {i for node in nodes for i in node.ids}

    def made(self, node, run, args, results):
        """The results of a node that `run` was traced for with these arguments, stored where they are read and too much comes before."""
        plan = node.plan
        weight = plan.weight
        if weight is None:
            weight = plan.weight = _weight(run, args)
        before = {}
        if weight:
            for i in node.ids:
                if i in self.before:
                    before.update(self.before[i])
            before[node.first] = weight
            read = [node.first + k in self.read for k in range(plan.n_out)]
            if any(read) and sum(before.values()) > MOST:
                if plan.n_out == 1:
                    return _stored(results)
                return tuple(_stored(r) if is_read else r for r, is_read in zip(results, read))
            self.before.update(dict.fromkeys(range(node.first, node.count), before))
        return results


def _stored(x):
    """A value that XLA does not compute more than once: a quotient is too dear for that. This one is by 1, which the code generator sees."""
    if x.dtype == bool:
        return _stored(x.astype(jnp.float32)) != 0
    if not jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize == 1:  # not all floats of a byte have a 1 and a 0
        return x
    return x / (1 + (x > jnp.inf).astype(x.dtype))


def _weight(run, args) -> int:
    """How many operations a plan is made of; 0 where its results are made in memory anyhow."""
    return _count(run.trace(*args).jaxpr.jaxpr)


def _count(jaxpr) -> int:
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _MADE:
            return 0
        within = inner(eqn)
        if within is None:
            total += 1
        else:
            own = _count(within)
            if not own:
                return 0
            total += own
    return total or 1


def inner(eqn):
    """The jaxpr of the function that an equation calls, or of a loop's round; None where there is none."""
    found = next((p for p in eqn.params.values() if hasattr(p, "jaxpr") or hasattr(p, "eqns")), None)
    return getattr(found, "jaxpr", found)
