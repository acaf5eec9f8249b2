"""Operations run by numpy for their first times: those that give the same numbers there, so that compiling them can wait.

What moves elements (slices, joins, writes through views, and the derivatives of all these) comes in as many shapes as a program's data
has, and arithmetic that rounds once is the same everywhere. A plan made of nothing else, and of sums (added up in another order, as
every compiler does), is walked through, primitive by primitive.
"""

import jax
import numpy as np
from jax.extend.core import Literal

ENOUGH = 512  # runs of an operation by itself: one by numpy takes up to 0.1 ms more than one that is compiled
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}  # and where their function is
_DTYPES = {np.dtype(t) for t in "?bBhHiIqQfd"}


class NotHere(Exception):
    """Something that numpy does not do, or not with the same numbers."""


class Hosted:
    """Runs a plan by numpy, if it can be; if not, and while jax traces, `otherwise` does."""

    __slots__ = ("plan", "otherwise", "dtypes", "steps", "results", "place")

    def __init__(self, plan, otherwise):
        self.plan = plan
        self.otherwise = otherwise
        self.steps = None

    def __call__(self, *args):
        if any(isinstance(a, jax.core.Tracer) for a in args):
            return self.otherwise(*args)
        if self.steps is None:
            try:
                self.look(args)
            except NotHere:
                self.plan.first = self.otherwise
                return self.otherwise(*args)
        values = list(map(np.asarray, args, self.dtypes))
        with np.errstate(all="ignore"):
            for run, places in self.steps:
                values.append(run(*[values[k] for k in places]))
        # Copies: a result must not share memory with an operand, which may be donated later. Not committed to the device where that
        # goes without saying, as the results of programs are not: for others programs would be compiled once more.
        made = jax.device_put([np.array(values[k], order="C") for k in self.results], self.place)
        return made if self.plan.n_out > 1 else made[0]

    def look(self, args):
        """Find the steps. Raises NotHere if one is among them for which numpy is no match."""
        closed = jax.make_jaxpr(self.plan.fn)(*args)
        walk = _Walk(len(args))
        self.results = walk.through(closed, range(len(args)))
        self.dtypes = list(map(_dtype, closed.jaxpr.invars))
        place = self.plan.device.jax
        self.place = None if place is jax.devices()[0] else place
        self.steps = walk.steps
        self.plan.enough = ENOUGH


class _Walk:
    """The steps (function, places of its operands) of a jaxpr and the functions that it calls, each of which makes the next value."""

    def __init__(self, n_operands):
        self.n_operands = n_operands
        self.steps = []

    def step(self, run, places=()) -> int:
        self.steps.append((run, places))
        return self.n_operands + len(self.steps) - 1

    def constant(self, value, dtype) -> int:
        value = np.asarray(value, dtype)
        return self.step(lambda: value)

    def through(self, closed, operands) -> list[int]:
        """The places of the results of a closed jaxpr, given those of its operands."""
        jaxpr = closed.jaxpr
        place = dict(zip(jaxpr.invars, operands))
        place.update((v, self.constant(c, _dtype(v))) for v, c in zip(jaxpr.constvars, closed.consts))

        def of(v):
            return self.constant(v.val, _dtype(v)) if isinstance(v, Literal) else place[v]

        for eqn in jaxpr.eqns:
            places = list(map(of, eqn.invars))
            for v in eqn.outvars:
                _dtype(v)
            name = eqn.primitive.name
            if name in _CALLS:
                made = self.through(eqn.params[_CALLS[name]], places)
            elif name == "split":
                made = [self.step(cut, places) for cut in _cuts(**eqn.params)]
            else:
                rule = _RULES.get(name)
                if rule is None or eqn.effects:
                    raise NotHere
                made = [self.step(rule(eqn), places)]
            place.update(zip(eqn.outvars, made))
        return list(map(of, jaxpr.outvars))


def _dtype(v):
    """The dtype of a variable. numpy's arrays have 64 dimensions at most."""
    dtype = v.aval.dtype
    if dtype not in _DTYPES or v.aval.ndim > 64:
        raise NotHere
    return dtype


# One rule a primitive: equation -> function of arrays.


def _slice(eqn):
    p = eqn.params
    where = tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or [1] * len(p["start_indices"])))
    return lambda x: x[where]


def _begin(x, sizes, starts):
    """Slices of these sizes, moved where they would leave the array."""
    begins = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, x.shape, sizes)]
    return tuple(slice(b, b + m) for b, m in zip(begins, sizes))


def _dynamic_slice(eqn):
    sizes = eqn.params["slice_sizes"]
    return lambda x, *starts: x[_begin(x, sizes, starts)]


def _dynamic_update_slice(eqn):
    def run(x, value, *starts):
        x = x.copy()
        x[_begin(x, value.shape, starts)] = value
        return x

    return run


def _pad(eqn):
    shape = eqn.outvars[0].aval.shape
    sides = eqn.params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in sides):
        raise NotHere

    def run(x, value):
        made = np.full(shape, value, x.dtype)
        made[tuple(slice(low, n - high, between + 1) for n, (low, high, between) in zip(shape, sides))] = x
        return made

    return run


def _broadcast_in_dim(eqn):
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]

    def run(x):
        sizes = [1] * len(shape)
        for d, n in zip(dims, x.shape):
            sizes[d] = n
        return np.broadcast_to(x.reshape(sizes), shape)

    return run


def _iota(eqn):
    shape, dim = eqn.params["shape"], eqn.params["dimension"]
    along = [n if d == dim else 1 for d, n in enumerate(shape)]
    made = np.broadcast_to(np.arange(shape[dim], dtype=eqn.params["dtype"]).reshape(along), shape)
    return lambda: made


def _select_n(eqn):
    if len(eqn.invars) != 3 or eqn.invars[0].aval.dtype != bool:
        raise NotHere
    return lambda which, no, yes: np.where(which, yes, no)


def _convert(eqn):
    new, old = np.dtype(eqn.params["new_dtype"]), eqn.invars[0].aval.dtype
    if old.kind == "f" and new.kind != "f":  # of what is too large, each has its own idea
        raise NotHere
    return lambda x: x.astype(new)


def _reduce(function):
    def rule(eqn):
        axes = tuple(eqn.params["axes"])
        if 0 in eqn.invars[0].aval.shape and function.identity is None:
            raise NotHere
        return lambda x: function.reduce(x, axis=axes, dtype=x.dtype)

    return rule


def _squeeze(eqn):
    shape = eqn.outvars[0].aval.shape
    return lambda x: x.reshape(shape)


def _reshape(eqn):
    if eqn.params["dimensions"] is not None:
        raise NotHere
    return _squeeze(eqn)


def _cuts(sizes, axis):
    ends = np.cumsum(sizes)
    for end, n in zip(ends, sizes):
        where = (*[slice(None)] * axis, slice(int(end) - n, int(end)))
        yield lambda x, where=where: x[where]


def _plain(function):
    return lambda eqn: function


def _floats(function):
    """Of integers, a function that has another idea than numpy of what has no answer."""

    def rule(eqn):
        if eqn.invars[0].aval.dtype.kind != "f":
            raise NotHere
        return function

    return rule


_RULES = {
    "transpose": lambda eqn: lambda x, order=eqn.params["permutation"]: x.transpose(order),
    "rev": lambda eqn: lambda x, dims=eqn.params["dimensions"]: np.flip(x, dims),
    "concatenate": lambda eqn: lambda *parts, dim=eqn.params["dimension"]: np.concatenate(parts, dim),
    "reshape": _reshape,
    "squeeze": _squeeze,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "pad": _pad,
    "broadcast_in_dim": _broadcast_in_dim,
    "iota": _iota,
    "select_n": _select_n,
    "convert_element_type": _convert,
    "div": _floats(np.divide),
    "sqrt": _floats(np.sqrt),
    "reduce_sum": _reduce(np.add),
    "reduce_max": _reduce(np.maximum),
    "reduce_min": _reduce(np.minimum),
    "reduce_and": _reduce(np.bitwise_and),
    "reduce_or": _reduce(np.bitwise_or),
    **{name: _plain(getattr(np, numpys)) for name, numpys in {
        "add": "add", "add_any": "add", "sub": "subtract", "mul": "multiply", "neg": "negative", "max": "maximum", "min": "minimum",
        "abs": "abs", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
        "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "invert", "copy": "asarray", "copy_p": "asarray",
        "square": "square",
    }.items()},
}  # fmt: skip
