"""Jaxprs as plans: what jax has traced becomes one node of a graph, known again by its structure.

Numbers in it are operands of the node, as those of any operation are, so that one that varies compiles once more at most.
"""

import weakref

import jax
import numpy as np

from . import dtype as dtypes
from . import extend
from .channel_order import CONVOLVES
from .packing import number
from .program import Plan
from .spec import Spec

MOST = 1024  # plans that are kept
NODE = 3  # equations that count as one node of a graph
# How a function that jax has traced is differentiated: a plan of it never is.
_RULES = frozenset(("jvp_jaxpr_fun", "fwd_jaxpr_thunk", "fwd", "bwd", "out_trees"))
_plans: dict[tuple, Plan] = {}
_keys = weakref.WeakKeyDictionary()  # of the jaxprs inside others, which jax keeps


class NotPlain(Exception):
    """A jaxpr has effects, or is made of what cannot be compared."""


class Traced:
    """A traced function: its plan, and what goes into it and comes out of it.

    operands: (position among the arguments, None) or (None, constant). numbers: those among the plan's. results: for each of the
    function's ("made", k) of the plan's results, ("given", k) of the arguments, or ("constant", array).
    """

    __slots__ = ("plan", "operands", "numbers", "results")

    def __init__(self, closed, device):
        """Raises NotPlain."""
        jaxpr = closed.jaxpr
        if jaxpr.effects:
            raise NotPlain
        eqns = _needed(jaxpr)
        given = {v: k for k, v in enumerate(jaxpr.invars)}
        constant = dict(zip(jaxpr.constvars, closed.consts))
        names = {}  # of variables in the key: in the order in which they are met
        self.operands, self.numbers = [], []
        inputs, key = [], []
        for eqn in eqns:
            read = []
            for v in eqn.invars:
                if type(v) is extend.Literal:
                    read.append(self._literal(v))
                    continue
                name = names.get(v)
                if name is None:
                    name = names[v] = len(names)
                    inputs.append(v)
                    self.operands.append((given[v], None) if v in given else (None, constant[v]))
                    read.append((name, v.aval.shape, v.aval.dtype))
                else:
                    read.append(name)
            key.append((eqn.primitive, tuple(read), _params(eqn)))
            for v in eqn.outvars:
                names[v] = len(names)
        made, outs = {}, []
        self.results = []
        for v in jaxpr.outvars:
            if type(v) is extend.Literal:
                self.results.append(("constant", np.asarray(v.val, v.aval.dtype)))
            elif v in given:
                self.results.append(("given", given[v]))
            elif v in constant:
                self.results.append(("constant", constant[v]))
            else:
                if v not in made:
                    made[v] = len(outs)
                    outs.append(v)
                self.results.append(("made", made[v]))
        self.plan = None
        if outs:
            key = (device, tuple(key), tuple(map(names.__getitem__, outs)))
            plan = _plans.get(key)
            if plan is None:
                if len(_plans) >= MOST:
                    _plans.clear()
                plan = _plans[key] = _plan(jaxpr, eqns, inputs, outs, device)
            self.plan = plan

    def _literal(self, v):
        """What stands for a number in the key."""
        found = _number(v)
        if found is not None:
            self.numbers.append(found)
            return ("number", v.aval.dtype)
        value = np.asarray(v.val)
        return (value.tobytes(), value.dtype, v.aval.dtype)


def _number(v):
    """What an atom gives to the node's numbers; None for no float, and for 0 and 1, which the compiler makes use of."""
    if type(v) is not extend.Literal or not np.issubdtype(v.aval.dtype, np.floating):
        return None
    found = float(np.asarray(v.val))
    return found if found not in (0.0, 1.0) and np.isfinite(found) else None


def _needed(jaxpr):
    """The equations that the results depend on."""
    need = {v for v in jaxpr.outvars if type(v) is not extend.Literal}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        if not need.isdisjoint(eqn.outvars):
            eqns.append(eqn)
            need.update(v for v in eqn.invars if type(v) is not extend.Literal)
    eqns.reverse()
    return eqns


def _params(eqn):
    return tuple((name, _value(v)) for name, v in eqn.params.items() if name not in _RULES)


def _value(v):
    """What a parameter of an equation is known by."""
    kind = type(v)
    if kind is extend.ClosedJaxpr:
        key = _keys.get(v)
        if key is None:
            key = _keys[v] = (_inner(v.jaxpr), tuple(map(_value, v.consts)))
        return key
    if kind is extend.Jaxpr:
        return _inner(v)
    if kind in (tuple, list):
        return tuple(map(_value, v))
    if kind is dict:
        return tuple((name, _value(x)) for name, x in v.items())
    if isinstance(v, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(v)
        return (array.shape, array.dtype, array.tobytes())
    try:
        hash(v)
    except TypeError as error:
        raise NotPlain from error
    if kind is float:
        return (float, repr(v))
    return (bool, v) if kind is bool else v


def _inner(jaxpr):
    """The structure of a jaxpr inside another."""
    names = {v: k for k, v in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    key = [tuple((v.aval.shape, v.aval.dtype) for v in names)]

    def of(v):
        return (np.asarray(v.val).tobytes(), v.aval.dtype) if type(v) is extend.Literal else names[v]

    for eqn in jaxpr.eqns:
        key.append((eqn.primitive, tuple(map(of, eqn.invars)), _params(eqn)))
        for v in eqn.outvars:
            names[v] = len(names)
    key.append(tuple(map(of, jaxpr.outvars)))
    return tuple(key)


def _plan(jaxpr, eqns, inputs, outs, device):
    """The plan of these equations, whose numbers come after its operands."""
    numbers, kept = [], []
    for eqn in eqns:
        read = []
        for v in eqn.invars:
            if _number(v) is not None:
                v = extend.Var(v.aval)
                numbers.append(v)
            read.append(v)
        kept.append(eqn.replace(invars=read))
    body = jaxpr.replace(constvars=[], invars=[*inputs, *numbers], outvars=outs, eqns=kept, effects=frozenset())
    fn = extend.jaxpr_as_fun(extend.ClosedJaxpr(body, ()))
    n, kinds = len(inputs), [v.aval.dtype for v in numbers]

    def traced(*args):
        found = fn(*args[:n], *map(number, args[n:], kinds))
        return found[0] if len(found) == 1 else tuple(found)

    specs = tuple(_spec(v, device) for v in outs)
    made = Plan(
        None, "transformed", traced, tuple(_spec(v, device) for v in inputs), (float,) * len(numbers), specs=specs
    )
    made.more = len(eqns) // NODE
    made.channels = CONVOLVES  # for all that is known
    return made


def _spec(v, device):
    return Spec.dense(tuple(v.aval.shape), dtypes.of(v.aval.dtype), device)


__all__ = ["NotPlain", "Traced"]
