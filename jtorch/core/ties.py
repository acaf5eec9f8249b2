"""What reads a parameter comes before what takes its memory, so that XLA's CPU compiler need not copy the parameter first.

A step's new weight takes the old one's memory. The gradient of the layer's input reads the old one too, and nothing says that it is computed before
the new one: XLA decides on copies before it decides on an order, so it copies each weight at the start of a step. Here the update is made to depend
on such readers, by bits that are always 0; the code generator sees that and computes nothing for them.
"""

import jax
import jax.numpy as jnp

from . import cuts

LARGE = 1 << 21  # bytes of an input from which a copy takes longer than the order; weights of 512x512 gain nothing
_BITS = {2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}


class Ties:
    """Of a program that is being traced: before which node an operand waits for which values.

    waits: node -> {place among its operands: indices of the values that read the same input}.
    """

    __slots__ = ("waits",)

    def __init__(self, nodes, takers):
        """takers: index of an input -> that of the result which takes its memory."""
        self.waits = {}
        sizes = {}
        for node in nodes:
            sizes.update((i, spec.nbytes) for i, spec in zip(node.ids, node.plan.operands) if i < 0 and ~i in takers)
        large = {i for i, size in sizes.items() if size >= LARGE}
        if large:
            self._look(nodes, {i: takers[~i] for i in large})

    def _look(self, nodes, takers):
        before = {}  # of a value: bits of the values that it is computed from, and its own
        readers = {i: [] for i in takers}
        made_by = {r: i for i, r in takers.items()}
        for node in nodes:
            for out, operands in enumerate(depends(node.plan)):
                at = node.first + out
                bits = 1 << at
                for k in operands:
                    i = node.ids[k]
                    if i >= 0:
                        bits |= before[i]
                    elif i in readers and made_by.get(at) != i:
                        readers[i].append(at)
                before[at] = bits
                i = made_by.get(at)
                if i is not None and i in node.ids:
                    late = [r for r in readers[i] if r < node.first and not bits >> r & 1]
                    if late:
                        self.waits.setdefault(node, {})[node.ids.index(i)] = late

    def tied(self, node, args, values):
        """The operands of a node in `waits`, those that wait bound to what they wait for."""
        for k, late in self.waits[node].items():
            args[k] = _tied(args[k], [values[i] for i in late])
        return args


def depends(plan):
    """Of each result of a plan the places of the operands that it depends on; asked of jax once."""
    if plan.depends is None:
        n = len(plan.operands)
        try:
            jaxpr = cuts.traced(plan)
            known = {v: frozenset((k,)) if k < n else frozenset() for k, v in enumerate(jaxpr.invars)}
            plan.depends = _walk(jaxpr, known)
        except Exception:  # it takes other things than arrays like these
            plan.depends = [frozenset(range(n))] * plan.n_out
    return plan.depends


def _walk(jaxpr, known):
    for eqn in jaxpr.eqns:
        reads = [_of(known, v) for v in eqn.invars]
        within = cuts.inner(eqn)
        if eqn.primitive.name not in cuts.MADE and within is not None and len(within.invars) == len(reads):
            found = _walk(within, dict(zip(within.invars, reads)))
        else:
            found = [frozenset().union(*reads)] * len(eqn.outvars)
        known.update(zip(eqn.outvars, found))
    return [_of(known, v) for v in jaxpr.outvars]


def _of(known, v):
    return frozenset() if hasattr(v, "val") else known.get(v, frozenset())


def _tied(x, values):
    bits = _BITS.get(x.dtype.itemsize)
    if bits is None or not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    zero = bits(0)
    for value in values:
        kind = _BITS.get(value.dtype.itemsize)
        if kind is not None and jnp.issubdtype(value.dtype, jnp.floating) and value.size:
            first = jax.lax.bitcast_convert_type(value[(0,) * value.ndim], kind)
            zero |= (first & ~first).astype(bits)
    return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(x, bits) | zero, x.dtype)
