"""Sparse tensors on the tape: their nodes, their values as dense tensors, and gradients of sparse layouts in the engine."""

import functools

import jax
import numpy as np

from .. import errors_sparse
from .. import functions as F
from ..autograd import engine, entry
from ..autograd.derive import differentiable
from ..autograd.mode import no_grad
from ..autograd.node import Node, PythonNode, class_of
from ..core.lanes import ByTracing, is_traced
from ..core.record import tls
from ..dispatch.twins import twin
from ..errors_autograd import freed
from ..tensor import Tensor, edge_of
from .base import SparseTensor, coo, dense, handles, host, is_sparse, like, linear, sparse_shape, unravel

handles("grad")(twin(entry.grad))  # gradients have any layout


class SparseNode(PythonNode):
    """A step with a sparse tensor at one end. `fn`: gradient of the result -> gradients of the inputs, with differentiable functions."""

    __slots__ = ("fn", "saves")

    def apply(self, *grads):
        if self.fn is None:
            raise freed()
        if grads[0] is None:
            return (None,) * len(self.edges)
        got = self.fn(grads[0])
        got = got if isinstance(got, tuple) else (got,)
        # Only leaves and steps in Python take a sparse gradient.
        plain = [e is not None and isinstance(e[0], Node) and not isinstance(e[0], PythonNode) for e in self.edges]
        return tuple(g.to_dense() if p and is_sparse(g) else g for g, p in zip(got, plain))

    def release(self):
        if self.saves:
            self.fn = None


def record(result, label, inputs, backward, saves=True):
    """Put a result, computed off the tape, on it. `backward` must not refer to the result itself."""
    me = tls.me
    if me.extra:
        _refuse_transformed(me.extra, inputs)
    if not me.grad or not differentiable(result._spec):
        return result
    edges = [edge_of(t) if isinstance(t, Tensor) and differentiable(t._spec) else None for t in inputs]
    if all(e is None for e in edges):
        return result
    node = class_of(label, SparseNode)(label, edges, (result._spec,))
    node.fn, node.saves = backward, saves
    result._edge = (node, 0)
    return result


def _refuse_transformed(extra, inputs):
    """Derivatives of jax's and forward mode do not know of sparse steps: where one would be wrong it is refused."""
    parts = [t._of if is_sparse(t) else t for t in inputs if isinstance(t, Tensor)]
    if "lanes" in extra and any(is_traced(t._storage.value) for t in parts):
        raise ByTracing
    if any(level.kind != "vmap" for level in extra.get("transforms", ())):
        if any(isinstance(t._storage.value, jax.core.Tracer) for t in parts):
            raise errors_sparse.transformed()
    if extra.get("dual") is not None and any("_tangent" in t.__dict__ for t in inputs if isinstance(t, Tensor)):
        raise errors_sparse.transformed()


def step(label, inputs, forward, backward, saves=True):
    """Run `forward()` off the tape and record it."""
    with no_grad():
        result = forward()
    if result._base is not None or any(result is t for t in inputs):
        result = result.detach()
    return record(result, label, inputs, backward, saves)


@handles("values")
def values_of(x) -> Tensor:
    """The values as a dense tensor with a history: its gradient is a sparse one of `x`."""
    kept = x.detach()
    return record(x._of.detach(), "ValuesBackward0", (x,), lambda g: from_values(kept, g), False)


def from_values(pattern, g):
    """The gradient of a sparse tensor from that of its values. Those of one place have the same one: it is taken once."""
    if pattern._kind == "coo" and not pattern._whole:
        pattern, at = distinct(pattern)
        g = F.index_select(g, 0, at)
    return with_values(pattern, g, "ValuesBackwardBackward0")


def distinct(pattern):
    """(a coalesced tensor with the places of this one and no values to speak of, at which of them each place comes first)."""
    shape, device = sparse_shape(pattern), pattern._spec.device
    unique, first = np.unique(linear(host(pattern._at[0]), shape), return_index=True)
    indices = dense(np.ascontiguousarray(unravel(unique, shape)), device)
    at = dense(first.astype(np.int64), device)
    with no_grad():
        return coo(pattern._spec.shape, indices, F.index_select(pattern._of, 0, at), True), at


def with_values(pattern, values, label) -> SparseTensor:
    """The pattern with other values, through which gradients flow."""
    made = like(pattern, pattern._at, values.detach(), pattern._whole)
    kept = made.detach()
    return record(made, label, (values,), lambda g: masked(g, kept), False)


def positions(t) -> Tensor:
    """Where each value stands among the indexed elements, counted in row-major order; of the shape of the values but for dense dimensions."""
    found = t.__dict__.get("_positions")
    if found is None or found[0] is not t._at:
        found = t.__dict__["_positions"] = (t._at, _positions(t))
    return found[1]


def _positions(t):
    if t._kind == "coo":
        flat = None
        with no_grad():
            for d, n in enumerate(sparse_shape(t)):
                row = t._at[0].select(0, d)
                flat = row if flat is None else flat * n + row
            return dense(np.zeros(t._nnz(), np.int64), t._spec.device) if flat is None else flat
    batch, rows, columns = coordinates(t)
    height, width = block_of(t)
    n, m = t._spec.shape[t._batch], t._spec.shape[t._batch + 1]
    flat = (batch * n + rows * height) * m + columns * width
    if t._blocked:
        flat = flat[..., None, None] + np.arange(height)[:, None] * m + np.arange(width)
    return dense(flat, t._spec.device)


def block_of(t):
    """The size of a block; (1, 1) where there are none."""
    return tuple(t._of._spec.shape[t._batch + 1 : t._batch + 3]) if t._blocked else (1, 1)


def coordinates(t):
    """(number of the batch, row, column) of each value or block of a compressed tensor: numpy, shaped like its plain indices."""
    starts, plain = host(t._at[0]).astype(np.int64), host(t._at[1]).astype(np.int64)
    count = plain.shape[-1]
    batches = starts.reshape(-1, starts.shape[-1])
    major = np.stack([np.repeat(np.arange(len(s) - 1), np.diff(s)) for s in batches]) if len(batches) else plain
    major = major.reshape(plain.shape)
    batch = np.broadcast_to(np.arange(len(batches))[:, None], (len(batches), count)).reshape(plain.shape)
    return (batch, major, plain) if t._kind in ("csr", "bsr") else (batch, plain, major)


def indexed_shape(t):
    """(the number of indexed elements, the lengths of dense dimensions)."""
    n = t.sparse_dim() if t._kind == "coo" else t._batch + 2
    count = 1
    for x in t._spec.shape[:n]:
        count *= x
    return count, tuple(t._spec.shape[n:])


def masked(g, pattern) -> Tensor:
    """The values of a gradient, dense or sparse, where the pattern has some: a dense tensor shaped like the pattern's values."""
    shape = tuple(pattern._of._spec.shape)
    if not is_sparse(g):
        count, rest = indexed_shape(pattern)
        if count == 0 or pattern._of._spec.numel == 0:
            return F.zeros(shape, dtype=g._spec.dtype, device=g._spec.device)
        return F.index_select(F.reshape(g, (count, *rest)), 0, positions(pattern).reshape(-1)).reshape(shape)
    if g._at is pattern._at or all(a is b for a, b in zip(g._at, pattern._at)) and g._kind == pattern._kind:
        return values_of(g)
    if g._kind != "coo" or pattern._kind != "coo" or g.dense_dim() != pattern.dense_dim():
        return masked(g.to_dense(), pattern)
    return lookup(g.coalesce(), pattern)


def lookup(g, pattern) -> Tensor:
    """The values of a coalesced tensor of coordinates at the indices of another; zero where there are none."""
    shape = sparse_shape(pattern)
    if g._nnz() == 0 or pattern._nnz() == 0:
        return F.zeros(tuple(pattern._of._spec.shape), dtype=g._spec.dtype, device=g._spec.device)
    mine, theirs = linear(host(g._at[0]), shape), linear(host(pattern._at[0]), shape)
    at = np.minimum(np.searchsorted(mine, theirs), len(mine) - 1)
    there = mine[at] == theirs
    device = g._spec.device
    values = F.index_select(values_of(g), 0, dense(at.astype(np.int64), device))
    if there.all():
        return values
    there = dense(there.reshape(-1, *[1] * (values._spec.ndim - 1)), device)
    return F.where(there, values, F.zeros((), dtype=values._spec.dtype, device=device))


def scattered(values, pattern) -> Tensor:
    """A dense tensor with these values (a dense tensor, on the tape or not) at the pattern's indices; duplicates are added."""
    count, rest = indexed_shape(pattern)
    shape = tuple(pattern._spec.shape)
    zeros = F.zeros((count, *rest), dtype=values._spec.dtype, device=values._spec.device)
    if values._spec.numel == 0:
        return zeros.reshape(shape)
    flat = positions(pattern).reshape(-1)
    return F.index_add(zeros, 0, flat, values.reshape((flat._spec.numel, *rest))).reshape(shape)


def conjugate(x):
    """The conjugate of a number or tensor."""
    return x.conj() if isinstance(x, Tensor) else x.conjugate() if isinstance(x, complex) else x


def sum_to(g, shape):
    """A gradient of a broadcast operand, summed to the operand's shape."""
    if tuple(g._spec.shape) == tuple(shape):
        return g
    return g.to_dense().sum_to_size(tuple(shape)) if is_sparse(g) else g.sum_to_size(tuple(shape))


# --- in the engine ------------------------------------------------------------------------------------------------------


def _wrap(value, spec, edge=None, plain=engine.bridge.wrap):
    if not is_sparse(value):
        return plain(value, spec, edge)
    made = value.detach()
    made._edge = edge
    return made


def _unwrap(t, plain=engine.bridge.unwrap):
    return (t.detach(), edge_of(t)) if is_sparse(t) else plain(t)


@functools.wraps(engine.Run.add)
def _add(self, a, b, spec, plain=engine.Run.add):
    x, y = (a[0], b[0]) if self.pairs else (a, b)
    if type(x) is not SparseTensor and type(y) is not SparseTensor:
        return plain(self, a, b, spec)
    if type(x) is SparseTensor:
        a, b = b, a  # dense + sparse
    return self.untensor(F.add(self.tensor(a, spec), self.tensor(b, spec)))


@functools.wraps(engine.Run.accumulate_in)
def _accumulate_in(self, leaf, value, plain=engine.Run.accumulate_in):
    if type(value[0] if self.create_graph else value) is not SparseTensor:
        plain(self, leaf, value)
        return
    if not leaf._rg:
        return
    new, old = self.tensor(value, leaf._spec), leaf._grad
    if old is None:
        # PyTorch's gradient does not know whether it is coalesced.
        lazy = new._edge is not None or "_padded" in new.__dict__
        leaf._grad = new if lazy else like(new, new._at, new._of)
    elif self.create_graph or old._edge is not None:
        leaf._grad = old + new
    else:
        with no_grad():
            old += new


def install():
    """Teach the engine about gradients of sparse layouts: only where sparse tensors are used."""
    engine.bridge.wrap, engine.bridge.unwrap = _wrap, _unwrap
    engine.Run.add, engine.Run.accumulate_in = _add, _accumulate_in


install()
