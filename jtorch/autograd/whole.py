"""A transformed function as one node of the recorded graph.

Primitive by primitive, JAX would compile and start each of them by itself. Where a function can be traced without the values of
its arguments, what was traced is recorded instead. Where it cannot (it looks at a value), it runs on the arrays.
"""

import functools
import gc
import itertools
from sys import getrefcount

import jax
import numpy as np

from ..core import dtype as dtypes
from ..core import storage as storages
from ..core.jaxprs import Traced
from ..core.lanes import is_traced
from ..core.program import ALONE
from ..core.record import tls
from ..core.rng import default_generator
from ..core.spec import Spec
from ..core.storage import Storage
from ..creation import from_jax
from ..tensor import Tensor, value_of, wrap

MOST = 1024
_VALUES = frozenset(("item", "numpy", "print", "tolist"))  # a function that names one of them is run on values at once


class NeedsValues(Exception):
    """A function does what cannot be done while it is traced."""


def results_of(fn, tensors, user=None):
    """The results of fn(*arrays of tensors), as tensors. user: the program's function behind fn, if there is one."""
    values = [value_of(t) for t in tensors]
    who = None
    if not any(isinstance(v, jax.core.Tracer) for v in values):
        who = identity(user)
        if who not in _looking and _VALUES.isdisjoint(getattr(who, "co_names", ())):
            found = _recorded(fn, tensors, values)
            if found is not None:
                return found
    results = _made(fn, values)
    _looking.add(who)
    return results


class Known:
    """Functions that have turned out to be none for a way of running them, the last ones."""

    __slots__ = ("found",)

    def __init__(self):
        self.found = set()

    def add(self, who):
        if who is not None:
            if len(self.found) >= MOST:
                self.found.clear()
            self.found.add(who)

    def __contains__(self, who):
        return who in self.found


_looking = Known()  # they need values


def identity(user):
    """What tells a program's function from others: its code, or the class of a module."""
    while user is not None:
        if isinstance(user, functools.partial):
            user = user.func
        elif hasattr(user, "__wrapped__"):
            user = user.__wrapped__
        else:
            return getattr(user, "__code__", type(user))
    return None


def _made(fn, values):
    """The results of running fn on values."""
    with _Watch() as watched:
        arrays = list(map(storages.realise, values))
        outs = fn(*arrays)
        for storage, value in watched.escaped(arrays):
            storage.value = value
    return [from_jax(v) for v in outs]


def _recorded(fn, tensors, values):
    """The results as one node; None where fn needs values, and all is as it was before."""
    undo = Undo()
    try:
        with undo, _Watch() as watched:
            closed = jax.make_jaxpr(watched.with_escaped(fn))(*[t._spec.aval for t in tensors])
            device = tensors[0]._spec.device if tensors else tls.me.graph.device
            traced = Traced(closed, device)
    except Exception:  # whatever it is comes again where fn runs on values
        undo.all()
        return None
    graph = tls.me.graph if tls.me.graph.device is device else tls.me.graph_on(device)
    made, plan = (), traced.plan
    if plan is not None:
        operands = [c if k is None else values[k] for k, c in traced.operands]
        made = graph.recn(plan, operands, tuple(traced.numbers))
    results = []
    for kind, what in traced.results:
        if kind == "made":
            results.append(wrap(made[what], plan.specs[what]))
        elif kind == "given":
            spec = tensors[what]._spec
            results.append(wrap(values[what], Spec.dense(tuple(spec.shape), spec.dtype, spec.device)))
        else:
            results.append(_constant(what, device))
    n = len(results) - len(watched.storages)
    for storage, t in zip(watched.storages, results[n:]):
        storage.value = value_of(t)
    return results[:n]


def _constant(array, device):
    """A result that no argument has a part in."""
    if isinstance(array, jax.Array):
        return from_jax(array)
    spec = Spec.dense(array.shape, dtypes.of(array.dtype), device)
    return wrap(storages.to_device(np.asarray(array), device), spec)


# --- what a function leaves outside of itself -----------------------------------------------------------------------------


class Undo:
    """While a function runs, what it changes outside of itself is noted, so that it can run again."""

    __slots__ = ("written", "random", "before")

    def __enter__(self):
        self.before = tls.me.extra.get("undo")
        self.written = []
        self.random = default_generator.mark()
        tls.me.extra["undo"] = self
        return self

    def __exit__(self, *exc):
        tls.me.put("undo", self.before)
        if self.before is not None:
            self.before.written += self.written

    def left(self):
        """What the function has left in the storages that it wrote to, for who runs it once more on values that are its own."""
        return [(s, s.value, s.version) for s in {id(s): s for s, _ in self.written}.values() if s.host is None]

    def all(self):
        for storage, held in reversed(self.written):
            storages.put_back(storage, held)
        default_generator.rewind(self.random)


def writes(storage, value):
    """Called before a value is written to a storage from outside of all transformations. Raises NeedsValues."""
    undo = tls.me.extra.get("undo")
    if undo is not None:
        if is_traced(value):
            raise NeedsValues
        host = storage.host  # as it is: what is taken from numpy's memory while jax traces would be a tracer
        kept = None if host is None else host.buffer.copy()
        undo.written.append((storage, (storage.value, storage.spec, storage.version, host, kept)))


def watch(value):
    """Note a tracer that tensors may hold."""
    traced = tls.me.extra.get("traced")
    if traced is not None:
        traced.append(value)


class _Watch:
    """What tensors of a function held that outlive it, as PyTorch's do. storages: theirs, after `with_escaped`'s function ran."""

    __slots__ = ("traced", "storages")

    def __enter__(self):
        self.storages = ()
        self.traced = tls.me.extra["traced"] = []
        return self

    def __exit__(self, *exc):
        del tls.me.extra["traced"]

    def with_escaped(self, fn):
        """fn, whose results are followed by what escaped from it."""

        def run(*arrays):
            outs = fn(*arrays)
            found = self.escaped(arrays)
            self.storages = [storage for storage, _ in found]
            return (*outs, *[value for _, value in found])

        return run

    def escaped(self, given):
        """(storage, its value outside of the levels) of tensors that are still there. given: what fn's caller holds."""
        given = set(map(id, given))
        traced = [x for x in self.traced if id(x) not in given]
        self.traced.clear()
        held = {}  # by id: the tracer, how often it is in the list
        for x in itertools.compress(traced, map(ALONE.__lt__, map(getrefcount, traced))):
            held[id(x)] = x, held.get(id(x), (x, 0))[1] + 1
        outside = {}
        for x, n in held.values():
            # The list has it n times; this loop and `held` three times more.
            if getrefcount(x) > n + 3:
                value = x
                while hasattr(value, "primal"):
                    value = value.primal
                if not hasattr(value, "batch_dim"):  # what vmap has made slices of has no value outside
                    outside[id(x)] = value
        del held
        if not outside:
            return ()
        found = {}
        for storage in gc.get_referrers(*[x for x in traced if id(x) in outside]):
            if type(storage) is Storage and id(storage.value) in outside:
                found[id(storage)] = storage, outside[id(storage.value)]
        for storage, _ in found.values():
            for t in gc.get_referrers(storage):
                if isinstance(t, Tensor):
                    t._edge, t._rg = None, False
        return list(found.values())
