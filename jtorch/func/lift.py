"""Between tensors and JAX's transformations: a function of tensors seen as one of arrays, and the reverse.

Inside a transformation tensors hold tracers, ops run on them directly, and JAX differentiates. Around the outermost one
the tape must go on: what a transformed function gives depends on the tensors that it got and on those that it merely
used (the parameters of a module, say). `lift` runs it once, notes which of them need a gradient, and where there are any
makes the whole call one step of the tape.
"""

import contextlib

import jax
import jax.numpy as jnp

from .. import errors
from ..autograd.custom import set_tangent, tangent_of
from ..autograd.derive import differentiable
from ..autograd.levels import array_of, level, levels
from ..autograd.mode import set_grad_enabled
from ..autograd.node import Node
from ..autograd.node import _sequence as sequence
from ..autograd.transformed import inside, leaf, note_edges, taped, with_captured, zero_tangent
from ..autograd.whole import Undo, watch
from ..core.dtype import complex32
from ..core.record import tls
from ..creation import from_jax
from ..dispatch.dispatched import dispatches
from ..tensor import CONSTANTS, Tensor, edge_of
from ..tracebacks import without_note
from .trees import flatten, unflatten


def is_tensor(x) -> bool:
    return isinstance(x, Tensor)


class Results:
    """The structure of what a function returned; its tensors travel as arrays."""

    __slots__ = ("tree", "rest")

    def take(self, out):
        """The arrays of a result; remembers the rest of it."""
        leaves, self.tree = flatten(out)
        note_edges(x for x in leaves if is_tensor(x))
        self.rest = [None if is_tensor(x) else (x,) for x in leaves]
        return tuple(array_of(x) for x in leaves if is_tensor(x))

    def give(self, arrays, wrap=from_jax):
        """The result rebuilt around other arrays (or tensors, or trees of them)."""
        given = iter(arrays)
        return unflatten(self.tree, [wrap(next(given)) if r is None else r[0] for r in self.rest])


class Arguments:
    """A call's arguments with the tensors taken out.

    written: (position among the tensors, times, whether on the tape) of those that the function wrote to when last called.
    leaves: the tensors that it was differentiated by then.
    """

    __slots__ = ("tree", "rest", "tensors", "slots", "written", "leaves")

    def __init__(self, args, kwargs):
        self.written = ()
        leaves, self.tree = flatten((args, kwargs))
        self.slots = [k for k, x in enumerate(leaves) if is_tensor(x)]
        self.tensors = [leaves[k] for k in self.slots]
        if any(t._spec.dtype is complex32 for t in self.tensors):
            raise errors.unsupported("torch.complex32 where JAX transforms a function", "complex64")
        self.rest = [None if is_tensor(x) else x for x in leaves]

    def call(self, function, arrays, wanted=()):
        """(what the function gives with arrays in the place of the tensors, the arrays of those that it wrote to).

        wanted: positions of tensors that need a gradient inside, as those have that `func.grad` differentiates by.
        """
        tensors = [from_jax(a) for a in arrays]
        for a in arrays:
            watch(a)
        self.leaves = [tensors[k] for k in wanted]
        before = [(t, t._storage, t._storage.version) for t in tensors]
        for k in wanted:
            if differentiable(tensors[k]._spec):
                leaf(tensors[k])
        out = self.run(function, tensors)
        times = [s.version - v if t._storage is s else 0 for t, s, v in before]
        self.written = [(k, n, hasattr(tensors[k]._storage, "written")) for k, n in enumerate(times) if n]
        return out, tuple(array_of(tensors[k]) for k, _, _ in self.written)

    def run(self, function, tensors):
        """What the function gives with other tensors in the place of these."""
        leaves = list(self.rest)
        for k, t in zip(self.slots, tensors):
            leaves[k] = t
        args, kwargs = unflatten(self.tree, leaves)
        return function(*args, **kwargs)

    def write_back(self, results):
        """Give the caller's tensors what the function has written to those that stood for them: the last of `results`."""
        for (k, n, on_tape), r in zip(self.written, results[len(results) - len(self.written) :]):
            with set_grad_enabled(on_tape and tls.me.grad):
                self.tensors[k].copy_(r)
            self.tensors[k]._storage.version += n - 1


# --- the tape around the outermost transformation -----------------------------------------------------------------------


class _Used:
    """Collects tensors that a function uses though they are not its arguments."""

    def __init__(self, outer):
        self.start = next(sequence)
        self.tensors = {}
        self.outer = outer
        self.dual = None  # the level of forward mode around, if there is one

    def see(self, t):
        edge = edge_of(t)
        if edge is None and not self.moves(t) or isinstance(t._storage.value, jax.core.Tracer):
            return
        if edge is not None:
            since = edge[0].sequence if isinstance(edge[0], Node) else edge[0].__dict__.get("_since", 0)
            if since > self.start:
                if t._base is not None:  # a view made inside, of something older perhaps
                    self.see(t._base)
                return
        self.tensors.setdefault(id(t), t)

    def moves(self, t):
        """Whether a tensor has a tangent."""
        entry = t.__dict__.get("_tangent")
        return entry is not None and entry[0] is self.dual

    def special(self, op, args, out=None, inplace=False):
        for a in args:
            if isinstance(a, Tensor):
                self.see(a)
            elif isinstance(a, (list, tuple)):
                for x in a:
                    if isinstance(x, Tensor):
                        self.see(x)
        return self.outer(op, args, out, inplace) if self.outer is not None else (False, None)

    def walk(self, edge):
        """Leaves that a result made inside depends on."""
        stack, seen = [edge], set()
        while stack:
            target, _ = stack.pop()
            if not isinstance(target, Node):
                self.see(target)
            elif target.sequence > self.start and target not in seen:
                seen.add(target)
                stack += [e for e in target.edges if e is not None]


@contextlib.contextmanager
def _collecting():
    me = tls.me
    used = _Used(me.special)
    before = me.special
    me.special = used.special
    me.extra["used"] = used
    try:
        yield used
    finally:
        me.special = before
        del me.extra["used"]


def lift(fn, tensors, user=None):
    """The results of fn(*arrays) as tensors, with history back to `tensors` and to what fn uses besides.

    user: the program's function behind fn, if there is one.
    """
    try:
        return _lifted(fn, tensors, user)
    except Exception as error:
        without_note(error)
        raise


def refuse_dispatched(tensors, name):
    """Raise for tensors whose class has a `__torch_dispatch__`: no trace shows it the operators."""
    if any(map(dispatches, tensors)):
        raise errors.unsupported(
            f"torch.func.{name} of tensors with a __torch_dispatch__", "torch.func.grad, vjp or jacrev"
        )


def _lifted(fn, tensors, user):
    me = tls.me
    around = levels()
    dual = me.extra.get("dual")
    if around or not me.grad and dual is None:
        return inside(fn, tensors, user)
    moving = [None if dual is None else tangent_of(t) for t in tensors]
    undo = Undo()
    with _no_duals(dual):
        with _collecting() as used, undo:
            used.dual = dual
            results = taped(fn, tensors, user)
    captured = list(used.tensors.values())
    fn = with_captured(fn, len(tensors), captured)
    tensors = [*tensors, *captured]
    moving += [None if dual is None else tangent_of(t) for t in captured]
    with _no_duals(dual):
        if me.grad and any(edge_of(t) is not None for t in captured):
            left = undo.left()
            undo.all()
            with undo:
                results = taped(fn, tensors, user)
            for storage, value, version in left:
                storage.value, storage.version = value, version
        moved = ()
        if any(t is not None for t in moving):
            undo.all()
            moved = _tangents(fn, tensors, moving, user)
    for r, t in zip(results, moved):
        if differentiable(r._spec):
            set_tangent(r, t)
    return results


@contextlib.contextmanager
def _no_duals(dual):
    """Inside, tensors of forward mode are plain ones: their tangents are computed apart."""
    me = tls.me
    if dual is None:
        yield
        return
    special, me.special = me.special, dual.outer
    del me.extra["dual"]
    try:
        yield
    finally:
        me.special, me.extra["dual"] = special, dual


def _tangents(fn, tensors, moving, user):
    """The tangents of the results of fn, as one more step of the tape."""
    there = [k for k, t in enumerate(moving) if t is not None]
    n = len(tensors)

    def push(*arrays):
        primals = arrays[:n]
        tangents = [zero_tangent(p) for p in primals]
        for k, t in zip(there, arrays[n:]):
            tangents[k] = t.astype(primals[k].dtype)
        with level("jvp"):
            outs, moved = jax.jvp(lambda *a: tuple(fn(*a)), primals, tuple(tangents))
        return [jnp.zeros(o.shape, o.dtype) if t.dtype == jax.dtypes.float0 else t for o, t in zip(outs, moved)]

    return taped(push, [*tensors, *(moving[k] for k in there)], user)


CONSTANTS["lift"] = lift
