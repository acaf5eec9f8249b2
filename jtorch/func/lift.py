"""Between tensors and JAX's transformations: a function of tensors seen as one of arrays, and the reverse.

Inside a transformation tensors hold tracers, ops run on them directly, and JAX differentiates. Around the outermost one
the tape must go on: what a transformed function gives depends on the tensors that it got and on those that it merely
used (the parameters of a module, say). `lift` runs it once, notes which of them need a gradient, and where there are any
makes the whole call one step of the tape.
"""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np

from ..autograd.custom import set_tangent, tangent_of
from ..autograd.derive import differentiable
from ..autograd.levels import array_of, constant, level, levels
from ..autograd.node import Node, PythonNode
from ..autograd.node import _sequence as sequence
from ..core.record import tls
from ..creation import from_jax
from ..tensor import Tensor, edge_of
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
    """A call's arguments with the tensors taken out."""

    __slots__ = ("tree", "rest", "tensors", "slots")

    def __init__(self, args, kwargs):
        leaves, self.tree = flatten((args, kwargs))
        self.slots = [k for k, x in enumerate(leaves) if is_tensor(x)]
        self.tensors = [leaves[k] for k in self.slots]
        self.rest = [None if is_tensor(x) else x for x in leaves]

    def call(self, function, arrays):
        """The function on these arguments with arrays in the place of the tensors."""
        leaves = list(self.rest)
        for k, a in zip(self.slots, arrays):
            leaves[k] = from_jax(a)
        args, kwargs = unflatten(self.tree, leaves)
        return function(*args, **kwargs)


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
        if edge is not None and isinstance(edge[0], Node) and edge[0].sequence > self.start:
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


def note_edges(tensors):
    """Tell the collector, if there is one, of the history of results about to lose it."""
    used = tls.me.extra.get("used")
    if used is not None:
        for t in tensors:
            edge = edge_of(t)
            if edge is not None:
                used.walk(edge)


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


def lift(fn, tensors):
    """The results of fn(*arrays) as tensors, with history back to `tensors` and to what fn uses besides."""
    me = tls.me
    around = levels()
    dual = me.extra.get("dual")
    if around or not me.grad and dual is None:
        note_edges(tensors)
        outs = fn(*[array_of(t) for t in tensors])
        if not me.grad and any(x.kind == "vjp" for x in around):
            outs = [constant(v) for v in outs]
        return [from_jax(v) for v in outs]
    moving = [None if dual is None else tangent_of(t) for t in tensors]
    with _no_duals(dual):
        with _collecting() as used:
            used.dual = dual
            results = taped(fn, tensors)
    given = {id(t) for t in tensors}
    captured = [t for t in used.tensors.values() if id(t) not in given]
    fn = _with_captured(fn, len(tensors), captured)
    tensors = [*tensors, *captured]
    moving += [None if dual is None else tangent_of(t) for t in captured]
    with _no_duals(dual):
        if me.grad and any(edge_of(t) is not None for t in captured):
            results = taped(fn, tensors)
        moved = _tangents(fn, tensors, moving) if any(t is not None for t in moving) else ()
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


def _tangents(fn, tensors, moving):
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

    return taped(push, [*tensors, *(moving[k] for k in there)])


def _with_captured(fn, n, captured):
    if not captured:
        return fn

    def run(*arrays):
        held = [(t._storage, t._spec, t._offset, t._storage.value) for t in captured]
        for t, a in zip(captured, arrays[n:]):
            if t._storage.spec is t._spec:
                t._storage.value = a
            else:  # a view: the tensor alone gets the value, not all that share its memory
                made = from_jax(a)
                t._storage, t._spec, t._offset = made._storage, made._spec, 0
        try:
            return fn(*arrays[:n])
        finally:
            for t, (storage, spec, offset, value) in zip(captured, held):
                t._storage, t._spec, t._offset = storage, spec, offset
                storage.value = value

    return run


def taped(fn, tensors):
    """The results of fn(*arrays), which uses nothing else, as one step of the tape."""
    values = [array_of(t) for t in tensors]
    edges = tuple(edge_of(t) if jnp.issubdtype(v.dtype, jnp.inexact) else None for t, v in zip(tensors, values))
    if not tls.me.grad or not any(e is not None for e in edges):
        return [from_jax(v) for v in fn(*values)]
    wanted = [k for k, e in enumerate(edges) if e is not None]

    def of_wanted(*some):
        full = list(values)
        for k, v in zip(wanted, some):
            full[k] = v
        return tuple(fn(*full))

    with level("vjp"):
        outs, pull = jax.vjp(of_wanted, *[values[k] for k in wanted])
    results = [from_jax(v) for v in outs]
    node = _Transformed("TransformBackward", edges, tuple(r._spec for r in results))
    node.fn, node.tensors, node.pull, node.wanted = fn, tensors, pull, wanted
    for k, r in enumerate(results):
        if jnp.issubdtype(outs[k].dtype, jnp.inexact):
            r._edge = (node, k)
    return results


def conjugate(x):
    """PyTorch's gradient of a complex value is the conjugate of JAX's."""
    return jnp.conj(x) if jnp.iscomplexobj(x) else x


def cotangent(g, spec):
    """A gradient as jax.vjp's pullback wants it."""
    if not spec.dtype.is_floating_point and not spec.dtype.is_complex:
        return _float0(tuple(spec.shape))
    return jnp.zeros(tuple(spec.shape), spec.dtype.np) if g is None else conjugate(g)


def _float0(shape):
    return np.zeros(shape, jax.dtypes.float0)


def zero_tangent(primal):
    """The tangent of an array that does not move."""
    return jnp.zeros_like(primal) if jnp.issubdtype(primal.dtype, jnp.inexact) else _float0(primal.shape)


class _Transformed(PythonNode):
    """A transformed function as one step of the tape."""

    __slots__ = ("fn", "tensors", "pull", "wanted")

    def release(self):
        self.pull = self.tensors = None

    def apply(self, *grads):
        result = [None] * len(self.edges)
        specs = self.specs
        if tls.me.grad:
            there = [k for k, g in enumerate(grads) if g is not None]
            n, fn, wanted = len(self.tensors), self.fn, self.wanted

            def backward(*arrays):
                full = list(arrays[:n])

                def of_wanted(*some):
                    for k, v in zip(wanted, some):
                        full[k] = v
                    return tuple(fn(*full))

                given = dict(zip(there, arrays[n:]))
                with level("vjp"):
                    pull = jax.vjp(of_wanted, *[arrays[k] for k in wanted])[1]
                return [conjugate(g) for g in pull(tuple(cotangent(given.get(k), s) for k, s in enumerate(specs)))]

            got = taped(backward, [*self.tensors, *(grads[k] for k in there)])
        else:
            arrays = tuple(cotangent(None if g is None else array_of(g), s) for g, s in zip(grads, specs))
            got = [from_jax(conjugate(g)) for g in self.pull(arrays)]
        for k, g in zip(self.wanted, got):
            result[k] = g
        return result
