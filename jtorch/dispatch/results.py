"""Finishing a call: read the operands, record the node, wrap its results, put it on the tape. The hottest code there is."""

import functools

from ..autograd import node as tape
from ..core import storage as storages
from ..core.storage import Storage
from ..tensor import Tensor, edge_of

_new = object.__new__
_read = storages.read


_FINISH = """
def finish{n}(plan, me, {names}):
{read}
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
    out = graph.rec{n}(plan, {values})
    spec = plan.specs[0]
    storage = new(Storage)
    storage.value = out
    storage.spec = spec
    storage.version = me.born
    t = new(Tensor)
    t._storage = storage
    t._spec = spec
    t._offset = 0
    t._edge = t._grad = t._base = t._seen = t._hooks = None
    t._rg = False
    if me.grad and plan.diff:
        needs = 0
{edges}
        if needs:
            bwd = plan.bwd.get(needs) or backward(plan, needs)
            saved, guards = bwd.keep({names}, {values}, storage, out)
            node = bwd.node(bwd, ({edge_names},), saved, (), guards)
            if me.extra:
                special(node, me.extra, ({names},))
            t._edge = (node, 0)
    return t
"""

_READ = """
    s{x} = {x}._storage
    sp = {x}._spec
    v{x} = s{x}.value if s{x}.spec is sp else read(s{x}, sp, {x}._offset)
"""

_EDGE = """
        if {x}._rg:
            e{x} = ({x}, 0)
            needs |= {bit}
        else:
            e{x} = {x}._edge
            if {x}._base is not None and (e{x} is None or s{x}.version != {x}._seen):
                e{x} = edge_of({x})
            if e{x} is not None:
                needs |= {bit}
"""

_KEEP = """
def keep({names}, {values}, storage, out):
{versions}
    return ({saved}), [{guards}]
"""


def _generate(n):
    """finish for n operands and one result: loops unrolled, calls taken in."""
    names = "abc"[:n]
    source = _FINISH.format(
        n=n,
        names=", ".join(names),
        values=", ".join("v" + x for x in names),
        edge_names=", ".join("e" + x for x in names),
        read="".join(_READ.format(x=x).strip("\n") + "\n" for x in names),
        edges="".join(_EDGE.format(x=x, bit=1 << k).strip("\n") + "\n" for k, x in enumerate(names)),
    )
    scope = {
        "new": object.__new__, "Storage": Storage, "Tensor": Tensor, "read": storages.read, "edge_of": edge_of,
        "backward": tape.backward_plan, "special": tape.record_specially,
    }  # fmt: skip
    exec(compile(source, f"<jtorch finish{n}>", "exec"), scope)
    return scope[f"finish{n}"]


def _keeper(n, save_in, save_out, guard_in, guard_out):
    """(operand tensors, their values, the result's storage, the result) -> what the tape saves, and the versions that it
    guards."""
    names = "abc"[:n]
    saved = [names[i] for i in save_in]
    held = [names[i] for i in guard_in]
    versions = ""
    for x in held:
        versions += f"    s{x} = {x}._storage\n    n{x} = s{x}.version\n    if n{x} < 0:\n        raise refused()\n"
    source = _KEEP.format(
        names=", ".join(names),
        values=", ".join("v" + x for x in names),
        versions=versions.rstrip("\n"),
        saved="".join(f"v{x}, " for x in saved) + "out, " * len(save_out),
        guards="".join(f"(s{x}, n{x}), " for x in held) + "(storage, storage.version), " * len(guard_out),
    )
    scope = {"refused": tape.inference_saved}
    exec(compile(source, "<jtorch keep>", "exec"), scope)
    return scope["keep"]


finish1, finish2, finish3 = map(_generate, (1, 2, 3))
tape.keeper = functools.cache(_keeper)


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
    for k in node.bwd.guard_out:
        if k < plan.public:  # nobody can write to the others
            storage = results[k]._storage
            node.guards.append((storage, storage.version))
    for t, k in zip(results, plan.out_edges):
        if k is not None:
            t._edge = (node, k)
