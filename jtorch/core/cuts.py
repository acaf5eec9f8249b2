"""Where a program's chains of elementwise work are cut, so that XLA does not compute them anew for each that reads them.

XLA's CPU compiler fuses what is cheap into each of its readers. The gradient of a transformer's layers is a sum to which each layer adds:
every weight's gradient read all the summands before it anew, 84 arrays in the sixth layer (with each product by itself, a step of 103 ms,
now 45). A loop written out (a cellular automaton, an integrator, a sampler) grows by the square of its rounds so: 18 rounds of an
automaton with its gradient took 47 s to compile (11 s now). A value with so much before it is made in memory instead. XLA of jaxlib
0.10 drops optimization barriers before it fuses, so they do not help.
"""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
from jax import lax

from .channel_order import first, last
from .dtype import INT

FEW = 32  # nodes that a program may have without its chains being looked at
MOST = 192  # operations that may be computed anew for a value
LOADS = 4  # times its own size that may be read anew for a value which several loops read
SMALL = 1 << 14  # bytes of a value that is read anew in no time
# Primitives whose results are made in memory anyhow.
MADE = frozenset(
    ("dot_general", "conv_general_dilated", "reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin", "reduce_and",
     "reduce_or", "sort", "scan", "while", "cond", "cumsum", "cumprod", "cummax", "cummin", "reduce_window", "reduce_window_sum",
     "reduce_window_max", "select_and_scatter_add", "scatter", "scatter-add", "scatter_add", "fft", "pure_callback", "top_k")
)  # fmt: skip
# Those that XLA takes for too dear to be computed for each reader.
_DEAR = frozenset(
    ("atan2", "cbrt", "cos", "div", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "lgamma", "log", "log1p", "logistic", "pow", "rem",
     "rsqrt", "sin", "sqrt", "tan", "tanh")
)  # fmt: skip


def wanted(prog) -> bool:
    """Whether a program can have a chain that is to be cut."""
    return prog.n_nodes > FEW and prog.device.type == "cpu"


class Cuts:
    """What the values of a program that is being traced are computed from, up to what is made in memory."""

    __slots__ = ("before", "loads", "readers", "maps")

    def __init__(self, nodes, maps=()):
        self.before = {}  # of a value, by its index: {node: its operations}
        self.loads = {}  # of a value, by its index: {what is in memory: its bytes}
        self.readers = {}  # of a value, by its index: how many loops read it
        self.maps = maps  # values that lie between convolutions (`maps.py`)
        for node in nodes:
            for i, uses in zip(node.ids, look_at(node.plan).uses):
                self.readers[i] = self.readers.get(i, 0) + uses

    def made(self, node, args, results):
        """The results of a node that was traced with these arguments, stored where they are read and too much comes before."""
        plan = node.plan
        look = plan.look
        before = {}
        if look.weight:
            for i in node.ids:
                before.update(self.before.get(i, ()))
            before[node.first] = look.weight
        is_long = sum(before.values()) > MOST
        kept = []
        for at, (out, r) in enumerate(zip(look.outs, [results] if plan.n_out == 1 else results), node.first):
            loads = None if out is None else self._loads(node, out, args)
            if at in self.readers and (is_long or loads is not None and self._is_dear(at, r, loads)):
                r = first(stored(last(r))) if at in self.maps else stored(r)
            else:
                self.before[at] = before
                if loads is not None:
                    self.loads[at] = loads
            kept.append(r)
        return kept[0] if plan.n_out == 1 else tuple(kept)

    def _loads(self, node, out, args):
        """What is read from memory for a result."""
        operands, own = out
        loads = {(node.first, k): size for k, size in enumerate(own)}
        for k in operands:
            if k < len(node.ids):  # the others are numbers
                i = node.ids[k]
                loads.update(self.loads[i] if i in self.loads else {i: _nbytes(args[k])})
        return loads

    def _is_dear(self, at, value, loads) -> bool:
        """Whether several loops read a value, and would read much from memory for it."""
        size = _nbytes(value)
        if size < SMALL or sum(loads.values()) < LOADS * size:
            return False
        return self.readers[at] > 1


# Operations between a number and the whole number that it is cut to.
_ROUNDINGS = frozenset(("floor", "ceil", "trunc", "round", "clamp", "clamp_min", "clamp_max"))


def torn(nodes) -> set:
    """Values that are cut to whole numbers and read besides, as where something lies between two pixels is.

    Computed anew for each reader, a value may be rounded another way in each (where a multiplication and an addition are one step, or
    two): 4 for its pixel, and 3.9999998 for how far it is from that.
    """
    conversions = [
        node for node in nodes
        if node.plan.name == "_to_copy" and node.plan.operands[0].dtype.is_floating_point and node.plan.specs[0].dtype.category == INT
    ]  # fmt: skip
    if not conversions:
        return set()
    found, makers, readers = set(), {}, {}
    for node in nodes:
        makers[node.first] = node
        for i in node.ids:
            readers[i] = readers.get(i, 0) + 1
    for node in conversions:
        i = node.ids[0]
        while i in makers and readers[i] == 1 and makers[i].plan.name in _ROUNDINGS:
            i = makers[i].ids[0]
        if i in makers and readers[i] > 1 and makers[i].plan.n_out == 1:
            found.add(i)
    return found


def traced(plan):
    """The jaxpr of a plan, for operands and numbers like its own."""
    operands = [jax.ShapeDtypeStruct(tuple(spec.shape), spec.dtype.np) for spec in plan.operands]
    return plan.jit.trace(*operands, *[kind(1) for kind in plan.kinds]).jaxpr.jaxpr


def primitives_of(plan):
    """A jaxpr that has the primitives of a plan."""
    return plan.known[0].jaxpr if plan.known else traced(plan)


def look_at(plan):
    """What a plan is made of, asked of jax once."""
    if plan.look is None:
        try:
            plan.look = Look(traced(plan))
        except Exception:  # it takes other things than arrays like these: results in memory, operands read once
            plan.look = SimpleNamespace(weight=0, outs=[None] * plan.n_out, uses=[1] * len(plan.operands))
    return plan.look


class Look:
    """What an operation is made of.

    weight: its primitives; 0 where it makes results in memory anyhow. outs: of each result the operands that are read for it, and the
    bytes of each value that the operation makes in memory for it; None if the result is such a value itself. uses: of each operand the
    loops that read it.
    """

    __slots__ = ("weight", "outs", "uses")

    def __init__(self, jaxpr):
        self.weight = _count(jaxpr)
        self.uses = [0] * len(jaxpr.invars)
        known = {v: (frozenset((k,)), frozenset()) for k, v in enumerate(jaxpr.invars)}
        self._walk(jaxpr, known)
        self.outs = [self._out(*_of(known, v)) for v in jaxpr.outvars]

    def _out(self, operands, own):
        self._use(operands)
        return None if not operands and len(own) == 1 else (operands, [_nbytes(v.aval) for v in own])

    def _use(self, operands):
        for k in operands:
            self.uses[k] += 1

    def _walk(self, jaxpr, known):
        """Note for each variable the operands and the values in memory that are read for it."""
        for eqn in jaxpr.eqns:
            name = eqn.primitive.name
            reads = [_of(known, v) for v in eqn.invars]
            within = None if name in MADE else inner(eqn)
            if within is not None and len(within.invars) == len(reads):
                inside = dict(zip(within.invars, reads))
                self._walk(within, inside)
                known.update((v, _of(inside, w)) for v, w in zip(eqn.outvars, within.outvars))
                continue
            operands, own = (frozenset().union(*sets) for sets in zip(*reads)) if reads else _NOTHING
            if name in MADE or name in _DEAR or within is not None:
                self._use(operands)
                known.update((v, (frozenset(), frozenset((v,)))) for v in eqn.outvars)
            else:
                known.update((v, (operands, own)) for v in eqn.outvars)


_NOTHING = (frozenset(), frozenset())


def _of(known, v):
    return _NOTHING if hasattr(v, "val") else known.get(v, _NOTHING)  # literals have a value


def _nbytes(x) -> int:
    return x.size * x.dtype.itemsize


def stored(x):
    """A value that XLA does not compute more than once: a quotient is too dear for that. This one is by 1, which the code generator sees."""
    if x.dtype == bool:
        return stored(x.astype(jnp.uint8)) != 0
    if jnp.issubdtype(x.dtype, jnp.integer) and x.dtype.itemsize * 8 == jnp.iinfo(x.dtype).bits:
        return lax.div(x, (x & ~x) + jnp.ones((), x.dtype))
    if not jnp.issubdtype(x.dtype, jnp.floating) or x.dtype.itemsize == 1:  # not all floats of a byte have a 1 and a 0
        return x
    return x / (1 + (x > jnp.inf).astype(x.dtype))


def _count(jaxpr) -> int:
    total = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in MADE:
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
