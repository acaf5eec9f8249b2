"""A transformed function of arrays as one step of the tape: around func's transformations, and inside of them."""

import jax
import jax.numpy as jnp
import numpy as np

from .. import errors
from ..core.record import tls
from ..creation import from_jax
from ..errors_autograd import freed
from ..tensor import CONSTANTS, Tensor, edge_of
from . import whole
from .derive import differentiable
from .levels import array_of, constant, level, levels
from .node import Node, PythonNode
from .node import _sequence as sequence


def note_edges(tensors):
    """Tell the collectors, if there are any, of the history of results about to lose it."""
    extra = tls.me.extra
    used, inner = extra.get("used"), extra.get("inner")
    if used is None and inner is None:
        return
    for t in tensors:
        edge = edge_of(t)
        if edge is not None:
            if used is not None:
                used.walk(edge)
            if inner is not None:
                inner.walk(edge)


class _Inner:
    """A transformation inside others: what it uses, besides its arguments, that needs a gradient in those."""

    def __init__(self, outer):
        self.start = next(sequence)
        self.outer = outer
        self.tensors = {}
        self.edges = []

    def older(self, edge):
        target = edge[0]
        if isinstance(target, Node):
            return target.sequence < self.start or isinstance(target, _Refusing)
        return target.__dict__.get("_since", 0) < self.start

    def special(self, op, args, out=None, inplace=False):
        for a in args:
            for t in a if isinstance(a, (list, tuple)) else (a,):
                if isinstance(t, Tensor):
                    edge = edge_of(t)
                    if edge is not None and self.older(edge):
                        self.tensors.setdefault(id(t), t)
        return self.outer(op, args, out, inplace) if self.outer is not None else (False, None)

    def walk(self, edge):
        """Note the edges out of this transformation of a result made inside."""
        stack, seen = [edge], set()
        while stack:
            edge = stack.pop()
            target = edge[0]
            if self.older(edge):
                self.edges.append(edge)
            elif isinstance(target, Node) and target not in seen:
                seen.add(target)
                stack += [e for e in target.edges if e is not None]

    def captured(self, tensors):
        """The tensors used besides `tensors`; None where some of what was used is unknown."""
        for target, _ in self.edges:
            if not isinstance(target, Node):
                self.tensors.setdefault(id(target), target)
        found = list(self.tensors.values())
        known = {(id(e[0]), e[1]) for e in map(edge_of, (*found, *tensors)) if e is not None}
        return found if all((id(e[0]), e[1]) in known and not isinstance(e[0], _Refusing) for e in self.edges) else None


def leaf(t):
    """Make a tensor one that needs a gradient inside a transformation."""
    t._rg = True
    t.__dict__["_since"] = next(sequence)


CONSTANTS["leaf"] = leaf


def inside(fn, tensors, user=None):
    """The results of fn(*arrays) inside other transformations: JAX differentiates, the tape is there for `autograd.grad`."""
    me = tls.me
    if not levels():
        return whole.results_of(fn, tensors, user)
    note_edges(tensors)
    on_tape = me.grad and any(x.kind == "vjp" for x in levels())
    before, special = me.extra.get("inner"), me.special
    inner = me.extra["inner"] = _Inner(special)
    if on_tape:
        me.special = inner.special
    try:
        outs = fn(*[array_of(t) for t in tensors])
    finally:
        me.special = special
        if before is None:
            del me.extra["inner"]
        else:
            me.extra["inner"] = before
    if not me.grad and any(x.kind == "vjp" for x in levels()):
        outs = [constant(v) for v in outs]
    results = [from_jax(v) for v in outs]
    if on_tape:
        captured = inner.captured(tensors)
        if captured is None:
            history(results, None, tensors)
        else:
            history(results, with_captured(fn, len(tensors), captured), [*tensors, *captured])
    return results


def with_captured(fn, n, captured):
    """fn as a function also of the arrays of tensors that it merely uses, which come after its own `n`."""
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


def _of_wanted(fn, wanted, arrays):
    """`fn` as a function of the arrays at these places alone."""
    full = list(arrays)

    def of_wanted(*some):
        for k, v in zip(wanted, some):
            full[k] = v
        return tuple(fn(*full))

    return of_wanted


def taped(fn, tensors, user=None):
    """The results of fn(*arrays), which uses nothing else, as one step of the tape."""
    edges = tuple(edge_of(t) if differentiable(t._spec) else None for t in tensors)
    if not tls.me.grad or not any(e is not None for e in edges):
        return whole.results_of(fn, tensors, user)
    wanted = [k for k, e in enumerate(edges) if e is not None]
    pull = Carried()

    def run(*arrays):
        with level("vjp", of_tape=True):
            outs, pulled = jax.vjp(_of_wanted(fn, wanted, arrays), *[arrays[k] for k in wanted])
        return (*outs, *pull.take(pulled))

    made = whole.results_of(run, tensors, user)
    results = made[: len(made) - pull.size]
    _attach(_Transformed(fn, tensors, edges, results, pull.of(made), user), results)
    return results


class Carried:
    """A function that JAX has made, on its way out of a traced one: its arrays are the last of the results.

    size: how many. tensors: they, once they are there.
    """

    __slots__ = ("tree", "size", "tensors")

    def take(self, function):
        """Its arrays."""
        arrays, self.tree = jax.tree.flatten(function)
        self.size = len(arrays)
        return arrays

    def of(self, results):
        """Itself, with the last of these tensors."""
        self.tensors = results[len(results) - self.size :]
        return self

    def call(self, after, tensors, run=None):
        """Tensors of after(function, *arrays of tensors), made by `run`, which is like `taped`."""
        n, tree = self.size, self.tree
        run = run or whole.results_of
        return run(lambda *a: after(tree.unflatten(a[:n]), *a[n:]), [*self.tensors, *tensors])


def history(results, fn, tensors):
    """Give results, computed as fn(*arrays of tensors) where JAX differentiates, a place on the tape for `autograd.grad` there.

    fn: None where it depends on more than `tensors`; whoever asks for a gradient through it is told so.
    """
    edges = tuple(edge_of(t) if differentiable(t._spec) else None for t in tensors)
    if fn is None:
        _attach(_Refusing("TransformBackward", edges, tuple(r._spec for r in results)), results)
    elif any(e is not None for e in edges):
        _attach(_Transformed(fn, tensors, edges, results, None), results)


def _attach(node, results):
    for k, r in enumerate(results):
        if differentiable(r._spec):
            r._edge = (node, k)


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
    """A transformed function as one step of the tape. pull: its derivative, or None to compute it when it is needed."""

    __slots__ = ("fn", "tensors", "pull", "wanted", "user")

    def __init__(self, fn, tensors, edges, results, pull, user=None):
        super().__init__("TransformBackward", edges, tuple(r._spec for r in results))
        self.fn, self.tensors, self.pull, self.user = fn, tensors, pull, user
        self.wanted = [k for k, e in enumerate(edges) if e is not None]

    def with_more(self, fn, n, more):
        """(fn, tensors) of a function of the arrays of this one's first `n` tensors and of `more`, which uses what this one does."""
        captured = self.tensors[n:]
        return with_captured(fn, n + len(more), captured), [*self.tensors[:n], *more, *captured]

    def release(self):
        self.pull = self.tensors = None

    def apply(self, *grads):
        if self.tensors is None:
            raise freed()
        result = [None] * len(self.edges)
        specs = self.specs
        dual = tls.me.extra.get("dual") is not None
        if tls.me.grad or self.pull is None or dual:
            there = [k for k, g in enumerate(grads) if g is not None]
            n, fn, wanted = len(self.tensors), self.fn, self.wanted

            def backward(*arrays):
                given = dict(zip(there, arrays[n:]))
                with level("vjp"):
                    pull = jax.vjp(_of_wanted(fn, wanted, arrays[:n]), *[arrays[k] for k in wanted])[1]
                return [conjugate(g) for g in pull(tuple(cotangent(given.get(k), s) for k, s in enumerate(specs)))]

            run = inside if levels() else CONSTANTS["lift"] if dual else taped
            got = run(backward, [*self.tensors, *(grads[k] for k in there)], self.user)
        else:
            there = [k for k, g in enumerate(grads) if g is not None]

            def pulled(pull, *arrays):
                given = dict(zip(there, arrays))
                return [conjugate(g) for g in pull(tuple(cotangent(given.get(k), s) for k, s in enumerate(specs)))]

            got = self.pull.call(pulled, [grads[k] for k in there])
        for k, g in zip(self.wanted, got):
            result[k] = g
        return result


class _Refusing(PythonNode):
    """A transformed function that uses more of its surroundings than the tape knows."""

    __slots__ = ()

    def with_more(self, fn, n, more):
        return None, more

    def apply(self, *grads):
        raise errors.unsupported(
            "torch.autograd.grad inside a transformed function, through another transformation whose function uses views of "
            "tensors that are not its arguments",
            "torch.func.grad, or pass those tensors as arguments",
        )


__all__ = [
    "Carried",
    "conjugate",
    "cotangent",
    "history",
    "inside",
    "leaf",
    "note_edges",
    "taped",
    "with_captured",
    "zero_tangent",
]
