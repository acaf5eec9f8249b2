"""Finishing a call: read the operands, record the node, wrap its results, put it on the tape. The hottest code there is."""

from ..autograd import node as tape
from ..core import storage as storages
from ..core.storage import Storage
from ..tensor import Tensor, edge_of

_new = object.__new__
_read = storages.read


def finish1(plan, me, a):
    """Record a plan with one tensor operand and one result."""
    s = a._storage
    sp = a._spec
    va = s.value if s.spec is sp else _read(s, sp, a._offset)
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    out = graph.rec1(plan, va)
    spec = plan.specs[0]
    storage = _new(Storage)
    storage.value = out
    storage.spec = spec
    storage.version = me.born
    t = _new(Tensor)
    t._storage = storage
    t._spec = spec
    t._offset = 0
    t._edge = t._grad = t._base = t._seen = t._hooks = None
    t._rg = False
    if me.grad and plan.diff:
        base = a._base
        if a._rg:
            edge = (a, 0)
        elif base is not None and s.version != a._seen:
            edge = edge_of(a)
        else:
            edge = a._edge
        if edge is not None:
            node = tape.record(plan, (va,), (edge,), (), (out,), (a,))
            if node.bwd.save_out:
                node.guards.append((t._storage, t._storage.version))
            t._edge = (node, 0)
    return t


def finish2(plan, me, a, b):
    """Record a plan with two tensor operands and one result."""
    sa = a._storage
    sp = a._spec
    va = sa.value if sa.spec is sp else _read(sa, sp, a._offset)
    sb = b._storage
    sp = b._spec
    vb = sb.value if sb.spec is sp else _read(sb, sp, b._offset)
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    out = graph.rec2(plan, va, vb)
    spec = plan.specs[0]
    storage = _new(Storage)
    storage.value = out
    storage.spec = spec
    storage.version = me.born
    t = _new(Tensor)
    t._storage = storage
    t._spec = spec
    t._offset = 0
    t._edge = t._grad = t._base = t._seen = t._hooks = None
    t._rg = False
    if me.grad and plan.diff:
        ea = a._edge if a._base is None and not a._rg else edge_of(a)
        eb = b._edge if b._base is None and not b._rg else edge_of(b)
        if ea is not None or eb is not None:
            node = tape.record(plan, (va, vb), (ea, eb), (), (out,), (a, b))
            if node.bwd.save_out:
                node.guards.append((t._storage, t._storage.version))
            t._edge = (node, 0)
    return t


def finish(plan, me, tensors, numbers):
    """Record any plan and return its public results."""
    values = []
    for t in tensors:
        s = t._storage
        sp = t._spec
        values.append(s.value if s.spec is sp else _read(s, sp, t._offset))
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    outs = graph.recn(plan, values, numbers)
    results = []
    for value, spec in zip(outs, plan.specs):
        storage = _new(Storage)
        storage.value = value
        storage.spec = spec
        storage.version = me.born
        t = _new(Tensor)
        t._storage = storage
        t._spec = spec
        t._offset = 0
        t._edge = t._grad = t._base = t._seen = t._hooks = None
        t._rg = False
        results.append(t)
    if me.grad and plan.diff:
        edges = []
        found = False
        for t in tensors:
            if t._rg or t._base is not None:
                e = edge_of(t)
            else:
                e = t._edge
            edges.append(e)
            if e is not None:
                found = True
        if found:
            put_on_tape(plan, tensors, values, edges, numbers, outs, results)
    if not plan.multiple:
        return results[0]
    if plan.public != plan.n_out:
        results = results[: plan.public]
    return tuple(results) if plan.fields is None else plan.fields(results)


def put_on_tape(plan, tensors, values, edges, numbers, outs, results):
    """The node of a recorded plan, and the edges of its results."""
    node = tape.record(plan, values, tuple(edges), numbers, outs, tensors)
    for k in node.bwd.save_out:
        if k < plan.public:  # nobody can write to the others
            storage = results[k]._storage
            node.guards.append((storage, storage.version))
    for t, k in zip(results, plan.out_edges):
        if k is not None:
            t._edge = (node, k)
