"""Finishing a call: read the operands, record the node, wrap its results, put it on the tape. The hottest code there is."""

import functools

from ..autograd import node as tape
from ..core import storage as storages
from ..core.record import NAMES, recorder
from ..core.storage import Storage
from ..tensor import Tensor, edge_of

_new = object.__new__
_read = storages.read
# Operands and results up to which a call is finished by code of its own, whose loops over them are unrolled.
_MOST = len(NAMES)


_FINISH = """
def finish(plan, me, {names}{numbers}):
{read}
    graph = me.graph
    if graph.device is not plan.device:
        graph = me.graph_on(plan.device)
{record}
{wrap}
    if me.grad and plan.diff:
        needs = 0
{edges}
        if needs:
            bwd = plan.bwd.get(needs) or backward(plan, needs)
            saved, guards = bwd.keep({names}, {values}, {storages}, {outs})
            node = bwd.node(bwd, ({edge_names},), saved, {given}, guards)
            if me.extra:
                special(node, me.extra, ({names},))
{tape}
    return {results}
"""

_READ = """
    s{x} = {x}._storage
    sp = {x}._spec
    v{x} = s{x}.value if s{x}.spec is sp else read(s{x}, sp, {x}._offset)
"""

_WRAP = """
    r{k} = new(Storage)
    r{k}.value = o{k}
    r{k}.spec = sp{k}
    r{k}.version = me.born
    t{k} = new(Tensor)
    t{k}._storage = r{k}
    t{k}._spec = sp{k}
    t{k}._offset = 0
    t{k}._edge = t{k}._grad = t{k}._base = t{k}._seen = t{k}._hooks = None
    t{k}._rg = False
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

_TAPE = """
            if at{k} is not None:
                t{k}._edge = (node, at{k})
"""

_KEEP = """
def keep({names}, {values}, {storages}, {outs}):
{versions}
    return ({saved}), [{guards}]
"""


def _unrolled(template, keys, **more):
    return "".join(template.format(**key, **more).strip("\n") + "\n" for key in keys)


def _listed(letter, n):
    return ", ".join(f"{letter}{k}" for k in range(n))


@functools.cache
def _finisher(n, has_numbers, outs, public):
    """`finish` for n operands, `outs` results of which the first `public` are returned: loops unrolled, calls taken in."""
    names = NAMES[:n]
    values = ", ".join("v" + x for x in names)
    alone = outs == 1
    name = recorder(n, outs, has_numbers)
    record = f"    {_listed('o', outs)} = graph.{name}(plan, {values}{', numbers' * has_numbers})\n"
    record += "    sp0 = plan.specs[0]\n" if alone else f"    {_listed('sp', outs)} = plan.specs\n"
    made = [{"k": k} for k in range(public)]
    if alone:
        edges_out = "            t0._edge = (node, 0)\n"
    else:
        edges_out = f"            {_listed('at', outs)} = plan.out_edges\n" + _unrolled(_TAPE, made)
    source = _FINISH.format(
        names=", ".join(names),
        numbers=", numbers" * has_numbers,
        values=values,
        read=_unrolled(_READ, [{"x": x} for x in names]),
        record=record,
        wrap=_unrolled(_WRAP, made),
        edges=_unrolled(_EDGE, [{"x": x, "bit": 1 << k} for k, x in enumerate(names)]),
        edge_names=", ".join("e" + x for x in names),
        storages=_listed("r", public),
        outs=_listed("o", outs),
        given="numbers if bwd.uses_numbers else ()" if has_numbers else "()",
        tape=edges_out,
        results="t0" if public == 1 else f"({_listed('t', public)})",
    )
    scope = {
        "new": object.__new__, "Storage": Storage, "Tensor": Tensor, "read": storages.read, "edge_of": edge_of,
        "backward": tape.backward_plan, "special": tape.record_specially,
    }  # fmt: skip
    exec(compile(source, f"<jtorch finish {n} {outs}>", "exec"), scope)
    return scope["finish"]


def finisher(plan):
    """What finishes the calls of a plan: called with it, the thread, the operands and, where it takes any, the numbers."""
    n, has_numbers = len(plan.operands), plan.n_num > 0
    one = plan.public == 1 and not plan.multiple
    if unrolled(plan) and (one or plan.public > 1 and plan.fields is None):
        return _finisher(n, has_numbers, plan.n_out, plan.public)
    return _finish_numbers if has_numbers else _finish_tensors


def unrolled(plan) -> bool:
    """Whether calls of a plan may have code of their own."""
    return 0 < len(plan.operands) <= _MOST and 0 < plan.n_out <= _MOST


def _finish_tensors(plan, me, *tensors):
    return finish(plan, me, tensors, ())


def _finish_numbers(plan, me, *given):
    return finish(plan, me, given[:-1], given[-1])


def _keeper(n, outs, public, save_in, save_out, guard_in, guard_out):
    """(operand tensors, their values, storages of the results that are returned, all results) -> what the tape saves, and the
    versions that it guards."""
    names = NAMES[:n]
    held = [names[i] for i in guard_in]
    versions = ""
    for x in held:
        versions += f"    s{x} = {x}._storage\n    n{x} = s{x}.version\n    if n{x} < 0:\n        refuse()\n"
    source = _KEEP.format(
        names=", ".join(names),
        values=", ".join("v" + x for x in names),
        storages=_listed("r", public),
        outs=_listed("o", outs),
        versions=versions.rstrip("\n"),
        saved="".join(f"v{names[i]}, " for i in save_in) + "".join(f"o{k}, " for k in save_out),
        guards="".join(f"(s{x}, n{x}), " for x in held)
        + "".join(f"(r{k}, r{k}.version), " for k in guard_out if k < public),  # nobody can write to the others
    )
    scope = {"refuse": tape.refuse}
    exec(compile(source, "<jtorch keep>", "exec"), scope)
    return scope["keep"]


tape.keeper = functools.cache(_keeper)
tape.unrolled = unrolled


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
