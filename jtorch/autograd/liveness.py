"""Which arguments of a jaxpr its results depend on, read off the equations: what a derivative must keep of its operands."""

from ..core import extend
from ..core.traces import scan_parts

# Equations that call one function, argument by argument; its jaxpr is the parameter named second. Calls with a derivative of
# their own are not among them: it may read what the function does not.
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "checkpoint": "jaxpr", "remat2": "jaxpr"}


def used_inputs(jaxpr) -> set[int]:
    """Positions of the arguments on which a jaxpr's results depend, through the functions that it calls too."""
    return _used(jaxpr, [True] * len(jaxpr.outvars))


def _used(jaxpr, wanted):
    """Positions of the arguments that the wanted ones (a bool for each) of the results depend on."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    live = {v for v, there in zip(jaxpr.outvars, wanted) if there and not isinstance(v, extend.Literal)}
    for eqn in reversed(jaxpr.eqns):
        outs = [v in live for v in eqn.outvars]
        if any(outs) or eqn.effects:
            reads = _reads(eqn, outs)
            live.update(v for k, v in enumerate(eqn.invars) if k in reads and not isinstance(v, extend.Literal))
    return {k for k, v in enumerate(jaxpr.invars) if v in live}


def _reads(eqn, wanted):
    """Positions of the operands that the wanted results of an equation depend on: all, where it is not known better."""
    name, params = eqn.primitive.name, eqn.params
    if not eqn.effects:
        if name == "scan":
            return _scan(eqn, wanted)
        if name == "cond":
            return {0, *(k + 1 for branch in params["branches"] for k in _used(branch, wanted))}
        body = params.get(_CALLS.get(name))
        if body is not None:
            return _used(body, wanted)
    return range(len(eqn.invars))


def _scan(eqn, wanted):
    """What a loop carries is wanted, too, where a later turn needs it for what is wanted; where it is, its start is read."""
    consts, carried = scan_parts(eqn)
    wanted = list(wanted)
    while True:
        reads = _used(eqn.params["jaxpr"], wanted)
        more = [k for k in range(carried) if k + consts in reads and not wanted[k]]
        if not more:
            return reads | {k + consts for k in range(carried) if wanted[k]}
        for k in more:
            wanted[k] = True
