"""Operations run by numpy: their jaxprs are walked through, primitive by primitive, so that nothing has to be compiled.

What moves elements (slices, joins, writes through views, and the derivatives of all these) comes in as many shapes as a program's data
has, and arithmetic that rounds once is the same everywhere: an operation by itself that is made of nothing else, and of sums, runs so for
its first times (`Hosted`). Whole graphs that are like no other run so too, whatever they are made of (`by_numpy.py`).
"""

from itertools import islice
from operator import itemgetter

import jax
import numpy as np

from . import extend
from .blas import one_thread
from .device import place_of
from .families import jaxpr_of
from .numpy_kinds import function_of
from .numpy_rules import ALIKE, DTYPES, MANY_RESULTS, MOST_DIMENSIONS, SAME, NotHere, cuts, planes
from .traces import scan_parts

ROUNDS = 2048  # of a loop at most: each takes some µs a primitive
ENOUGH = 512  # runs of an operation by itself: one by numpy takes up to 0.1 ms more than one that is compiled
# Primitives that call a function, and where it is.
_CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
    "checkpoint": "jaxpr", "remat2": "jaxpr",
}  # fmt: skip


class Hosted:
    """Runs a plan by numpy, if it can be; if not, and while jax traces, `otherwise` does.

    enough: how many times where numpy does the same, 0 where it is not to be asked. alike: how many times it may round in its own way.
    """

    __slots__ = ("plan", "otherwise", "enough", "alike", "steps", "place")

    def __init__(self, plan, otherwise, enough=ENOUGH, alike=0):
        self.plan = plan
        self.otherwise = otherwise
        self.enough = enough
        self.alike = alike
        self.steps = None

    def __call__(self, *args):
        made = self.kept(args)
        if made is None:
            return self.otherwise(*args)
        made = put(made, self.place)
        return made if self.plan.n_out > 1 else made[0]

    def kept(self, args, numbers=()):
        """The results as numpy's arrays, which may be views of the arguments; None where `otherwise` is to run."""
        args = (*args, *numbers)
        if any(isinstance(a, jax.core.Tracer) for a in args):
            return None
        if self.steps is None:
            try:
                self.look(args)
            except NotHere:
                self.plan.first = self.otherwise
                return None
        try:
            with np.errstate(all="ignore"), one_thread():
                return self.steps.run(args)
        except NotHere:  # these values
            return None

    def look(self, args):
        """Find the steps. Raises NotHere if one is among them for which numpy is no match."""
        self.steps, self.plan.enough = self._steps(*_traced(self.plan, args))
        self.plan.known = None
        self.place = place_of(self.plan.device)

    def _steps(self, *traced):
        try:
            return Steps(SAME, *traced), self.enough
        except NotHere:
            if not self.alike:
                raise
        return Steps(ALIKE, *traced), self.alike


def put(values, place):
    """jax arrays of what numpy has made: copies, since none may share memory with an operand, which may be donated later."""
    return jax.device_put([np.array(v, order="C") for v in values], place)


def owned(args):
    """Operands of an executable: of numpy's arrays those that own their memory, since jax may keep it for a result that is an operand."""
    return [a.copy() if type(a) is np.ndarray and a.base is not None else a for a in args]


def on_device(values):
    """The results of a walk, of which some are numpy's arrays, as jax arrays on the device where they go without saying."""
    made = [k for k, v in enumerate(values) if isinstance(v, (np.ndarray, np.generic))]
    for k, v in zip(made, put([values[k] for k in made], None) if made else ()):
        values[k] = v
    return values


class Steps:
    """A jaxpr as functions of arrays, each of which makes the next value. Raises NotHere where there is no rule for a primitive.

    takes, gives: the positions of its operands that are passed, the others being of no consequence, and of its results that are wanted.
    """

    __slots__ = ("dtypes", "steps", "results")

    def __init__(self, rules, closed, takes=None, gives=None):
        operands = closed.jaxpr.invars
        taken = range(len(operands)) if takes is None else takes
        self.dtypes = [_dtype(operands[k]) for k in taken]
        walk = _Walk(len(taken), rules)
        place = dict(zip(taken, range(len(taken))))
        made = walk.through(closed, [place[k] if k in place else walk.anything(v) for k, v in enumerate(operands)])
        self.steps, self.results = walk.needed(made if gives is None else [made[k] for k in gives])

    def run(self, args) -> list:
        """The results, which may be views of the arguments. The caller keeps numpy from warning."""
        values = list(map(np.asarray, args, self.dtypes))
        for run, places in self.steps:
            values.append(run(*[values[k] for k in places]))
        return [values[k] for k in self.results]


def steps_of(plan, args, rules):
    """How numpy runs a plan on arrays and numbers like these by such rules; False if it does not."""
    try:
        return Steps(rules, *_traced(plan, args))
    except NotHere:
        return False


def _traced(plan, args) -> tuple:
    """The jaxpr of a plan for such operands and numbers, and which of its operands and results are the plan's."""
    if plan.known:
        return plan.known
    # an operator's kin is asked when its plan is made
    return (plan.jit.trace(*args).jaxpr if plan.kin is None or plan.op is not None else jaxpr_of(plan),)


class _Walk:
    """The steps (function, places of its operands) of a jaxpr and the functions that it calls."""

    def __init__(self, n_operands, rules):
        self.n_operands = n_operands
        self.rules = rules
        self.steps = []

    def step(self, run, places=()) -> int:
        self.steps.append((run, places))
        return self.n_operands + len(self.steps) - 1

    def constant(self, value, dtype) -> int:
        value = np.asarray(value, dtype)
        return self.step(lambda: value)

    def anything(self, v) -> int:
        value = np.broadcast_to(np.zeros((), _dtype(v)), v.aval.shape)
        return self.step(lambda: value)

    def needed(self, results) -> tuple[list, list[int]]:
        """The steps that these results need, in order, and where the results are among them."""
        first, need = self.n_operands, set(results)
        for k in range(len(self.steps) - 1, -1, -1):
            if first + k in need:
                need.update(self.steps[k][1])
        kept = [k for k in range(len(self.steps)) if first + k in need]
        now = [*range(first), *[None] * len(self.steps)]
        for at, k in enumerate(kept):
            now[first + k] = first + at
        steps = [(self.steps[k][0], tuple(now[i] for i in self.steps[k][1])) for k in kept]
        return steps, [now[i] for i in results]

    def through(self, closed, operands) -> list[int]:
        """The places of the results of a jaxpr, given those of its operands."""
        jaxpr, consts = (closed.jaxpr, closed.consts) if hasattr(closed, "consts") else (closed, ())
        place = dict(zip(jaxpr.invars, operands))
        place.update((v, self.constant(c, _dtype(v))) for v, c in zip(jaxpr.constvars, consts))

        def of(v):
            return self.constant(v.val, _dtype(v)) if isinstance(v, extend.Literal) else place[v]

        for eqn in jaxpr.eqns:
            places = list(map(of, eqn.invars))
            for v in eqn.outvars:
                _dtype(v)
            place.update(zip(eqn.outvars, self.made(eqn, places)))
        return list(map(of, jaxpr.outvars))

    def made(self, eqn, places) -> list[int]:
        """The places of the results of an equation."""
        name, rules = eqn.primitive.name, self.rules
        if name in _CALLS:
            return self.through(eqn.params[_CALLS[name]], places)
        if name == "split":
            return [self.step(cut, places) for cut in cuts(**eqn.params)]
        if name == "unstack":
            return [self.step(plane, places) for plane in planes(eqn)]
        if eqn.effects:
            raise NotHere
        if rules is ALIKE and name == "optimization_barrier":
            return places
        if rules is ALIKE and (name in MANY_RESULTS or name in _LOOPS):
            whole = self.step((MANY_RESULTS.get(name) or _LOOPS[name])(eqn), places)
            return [self.step(itemgetter(k), [whole]) for k in range(len(eqn.outvars))]
        return [self.step(function_of(eqn, rules), places)]


def _dtype(v):
    dtype = v.aval.dtype
    if dtype not in DTYPES or v.aval.ndim > MOST_DIMENSIONS:
        raise NotHere
    return dtype


def _scan(eqn):
    p = eqn.params
    steps = Steps(ALIKE, p["jaxpr"])
    (n_consts, n_carry), length = scan_parts(eqn), p["length"]
    if length > ROUNDS:
        raise NotHere
    order = range(length)[::-1] if p["reverse"] else range(length)
    each = [v.aval for v in eqn.outvars[n_carry:]]

    def run(*operands):
        consts, carry = operands[:n_consts], operands[n_consts : n_consts + n_carry]
        xs = operands[n_consts + n_carry :]
        made = [np.empty(a.shape, a.dtype) for a in each]
        for k in order:
            out = iter(steps.run((*consts, *carry, *[x[k] for x in xs])))
            carry = list(islice(out, n_carry))
            for whole, value in zip(made, out):
                whole[k] = value
        return [*carry, *made]

    return run


def _while(eqn):
    p = eqn.params
    goes_on, body = Steps(ALIKE, p["cond_jaxpr"]), Steps(ALIKE, p["body_jaxpr"])
    n_asked, n_done = p["cond_nconsts"], p["body_nconsts"]

    def run(*operands):
        asked, done = operands[:n_asked], operands[n_asked : n_asked + n_done]
        carry = operands[n_asked + n_done :]
        for _ in range(ROUNDS):
            if not goes_on.run((*asked, *carry))[0]:
                return carry
            carry = body.run((*done, *carry))
        raise NotHere

    return run


def _cond(eqn):
    branches = [Steps(ALIKE, b) for b in eqn.params["branches"]]
    return lambda which, *operands: branches[min(max(int(which), 0), len(branches) - 1)].run(operands)


_LOOPS = {"scan": _scan, "while": _while, "cond": _cond}
