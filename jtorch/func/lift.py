"""Between tensors and JAX's transformations: a function of tensors seen as one of arrays, and the reverse.

Inside a transformation tensors hold tracers, ops run on them directly, and JAX differentiates. Around the outermost one
the tape must go on: what a transformed function gives depends on the tensors that it got and on those that it merely
used (the parameters of a module, say). `lift` runs it once, notes which of them need a gradient, and where there are any
makes the whole call one step of the tape.
"""

import contextlib

import jax
import jax.numpy as jnp

from ..autograd.custom import array_of
from ..autograd.node import Node, PythonNode
from ..autograd.node import _sequence as sequence
from ..core.record import tls
from ..creation import from_jax
from ..dispatch import slow
from ..tensor import CONSTANTS, Tensor, edge_of, make
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


class _Stopping:
    """no_grad inside a differentiated function: what is computed there is a constant."""

    def __init__(self, outer):
        self.outer = outer

    def special(self, op, args, out=None, inplace=False):
        me = tls.me
        if self.outer is not None:
            handled, result = self.outer(op, args, out, inplace)
            if handled:
                return True, result
        if me.grad or inplace or out is not None:
            return False, None
        here, me.special = me.special, None
        try:
            result = slow(op, args)
        finally:
            me.special = here
        return True, jax.tree.map(lambda r: stopped(r) if is_tensor(r) else r, result, is_leaf=is_tensor)


def stopped(t):
    """`detach` where JAX differentiates."""
    array = array_of(t)
    return (
        from_jax(jax.lax.stop_gradient(array))
        if isinstance(array, jax.core.Tracer)
        else make(t._storage, t._spec, t._offset)
    )


CONSTANTS["stopped"] = stopped


@contextlib.contextmanager
def level(kind):
    """One more transformation around the code inside: "vjp", "jvp" or "vmap"."""
    me = tls.me
    extra = me.extra
    before, special, recording = extra.get("transforms", ()), me.special, me.grad
    extra["transforms"] = (*before, kind)
    if kind == "vjp":
        me.special = _Stopping(special).special
        me.grad = True
    try:
        yield
    finally:
        me.special, me.grad = special, recording
        if before:
            extra["transforms"] = before
        else:
            del extra["transforms"]


# --- the tape around the outermost transformation -----------------------------------------------------------------------


class _Used:
    """Collects tensors that a function uses though they are not its arguments."""

    def __init__(self, outer):
        self.start = next(sequence)
        self.tensors = {}
        self.outer = outer

    def see(self, t):
        edge = edge_of(t)
        if edge is None or isinstance(t._storage.value, jax.core.Tracer):
            return
        if isinstance(edge[0], Node) and edge[0].sequence > self.start:
            return
        self.tensors.setdefault(id(t), t)

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
    values = [array_of(t) for t in tensors]
    if me.extra.get("transforms") or not me.grad:
        note_edges(tensors)
        return [from_jax(v) for v in fn(*values)]
    with _collecting() as used:
        outs = fn(*values)
    given = {id(t) for t in tensors}
    captured = [t for t in used.tensors.values() if id(t) not in given and t._storage.spec is t._spec]
    if not captured and not any(t.requires_grad for t in tensors):
        return [from_jax(v) for v in outs]
    return taped(_with_captured(fn, len(tensors), captured), [*tensors, *captured])


def _with_captured(fn, n, captured):
    if not captured:
        return fn

    def run(*arrays):
        held = [t._storage.value for t in captured]
        for t, a in zip(captured, arrays[n:]):
            t._storage.value = a
        try:
            return fn(*arrays[:n])
        finally:
            for t, v in zip(captured, held):
                t._storage.value = v

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
    return jnp.zeros(shape, bool).__array__().astype(jax.dtypes.float0)


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
                pull = jax.vjp(of_wanted, *[arrays[k] for k in wanted])[1]
                return [conjugate(g) for g in pull(tuple(cotangent(given.get(k), s) for k, s in enumerate(specs)))]

            got = taped(backward, [*self.tensors, *(grads[k] for k in there)])
        else:
            arrays = tuple(cotangent(None if g is None else array_of(g), s) for g, s in zip(grads, specs))
            got = [from_jax(conjugate(g)) for g in self.pull(arrays)]
        for k, g in zip(self.wanted, got):
            result[k] = g
        return result
