"""Replays: a region's program with the places its inputs come from and its results go to, and the guards that allow it."""

import gc
from sys import getrefcount

from ..core import rng
from ..core.program import ALONE, Program
from ..core.record import Pending
from ..core.storage import Storage
from ..nn.modules.hooks import mutations
from ..tensor import Tensor, make

_SIMPLE = (int, float, bool, str, bytes, type(None), complex)


def flatten(args, kwargs):
    """(leaves, tree): the arguments as a flat list and their nesting, comparable."""
    leaves = []
    tree = [_flat(a, leaves) for a in args]
    if kwargs:
        tree.append(tuple((k, _flat(v, leaves)) for k, v in kwargs.items()))
    return leaves, tuple(tree)


def _flat(x, leaves):
    kind = type(x)
    if kind is list or kind is tuple:
        return (kind, *[_flat(v, leaves) for v in x])
    if kind is dict:
        return (kind, *[(k, _flat(v, leaves)) for k, v in x.items()])
    leaves.append(x)
    return None


def rebuild_arguments(tree, leaves, n):
    """(args, kwargs) from what `flatten` made of them; `n` positional arguments."""
    given = iter(leaves)
    args = [_restore(t, given) for t in tree[:n]]
    kwargs = {k: _restore(t, given) for k, t in tree[n]} if len(tree) > n else {}
    return args, kwargs


def _restore(tree, leaves):
    if tree is None:
        return next(leaves)
    kind = tree[0]
    if kind is dict:
        return {k: _restore(v, leaves) for k, v in tree[1:]}
    return kind(_restore(v, leaves) for v in tree[1:])


class Snapshot:
    """All storages and tensors alive before a region runs, and what they held."""

    def __init__(self, me, leaves):
        gc.collect(0)
        self.storages = {}
        self.by_array = {}
        self.twice = set()
        self.tensors = {}
        self.mutations = mutations[0]
        self.grad = me.grad
        self.inference = me.inference
        for o in gc.get_objects():
            kind = type(o)
            if kind is Storage:
                value = o.value
                if type(value) is Pending:
                    value = value.value if value.value is not None else value
                self.storages[id(o)] = (o, o.spec, o.version)
                if id(value) in self.by_array and self.by_array[id(value)] is not o:
                    self.twice.add(id(value))
                self.by_array[id(value)] = o
            elif issubclass(kind, Tensor):
                try:
                    self.tensors[id(o)] = (o, o._storage, o._spec, o._offset, o._grad, o._edge, o._rg)
                except AttributeError:
                    continue


class Replay:
    """One program of a region, ready to be run without the region's Python."""

    __slots__ = (
        "guards", "leaves", "tree", "call", "sources", "targets", "grads", "result", "result_tree", "updates", "pack",
        "donated", "mutations", "grad", "inference", "storages", "specs", "program", "n_numbers", "keys", "grad_slots",
    )  # fmt: skip

    @classmethod
    def make(cls, me, before, scope, guards, leaves, tree, out):
        """(replay, None), or (None, why not). The thread's graph holds what the region recorded and is flushed here."""
        graph = me.graph
        if len([g for g in me.graphs.values() if g.pendings]) != 1 or not graph.pendings:
            return None, "the region records nothing, or on several devices"
        if mutations[0] != before.mutations:
            return None, "a module was changed in the region"
        self = cls()
        self.guards = guards
        self.tree = tree
        self.mutations = mutations[0]
        self.grad = before.grad
        self.inference = before.inference
        self.updates = scope.updates
        # -- where the inputs come from
        self.leaves = [_leaf_guard(leaf) for leaf in leaves]
        if any(g is None for g in self.leaves):
            return None, "an argument that can neither be compared nor followed"
        argument_of = {id(leaf._storage): k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        argument_at = {id(leaf): k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        sources, self.keys = [], 0
        for value in graph.inputs:
            if id(value) in before.by_array and id(value) not in before.twice:
                storage = before.by_array[id(value)]
                sources.append(argument_of.get(id(storage), storage))
            elif id(value) in scope.keys:
                sources.append(None)
                self.keys += 1
            else:
                return None, "an input that was made inside the region"
        # -- where the results go
        pendings = graph.pendings
        index = {id(p): i for i, p in enumerate(pendings)}
        targets, held = [], set()
        for o in gc.get_objects():
            if type(o) is Storage and type(o.value) is Pending and id(o.value) in index:
                held.add(id(o))
        grads, results = [], []
        for tensor, storage, spec, offset, old_grad, edge, rg in before.tensors.values():
            if (
                tensor._storage is not storage
                or tensor._spec is not spec
                or tensor._offset != offset
                or tensor._rg != rg
            ):
                return None, "a tensor was given another storage in the region"
            if tensor._edge is not edge:
                return None, "the history of a tensor from outside was changed in the region"
            if tensor._grad is not old_grad:
                new = tensor._grad
                if id(tensor) in argument_at:
                    return None, "the gradient of an argument"
                if new is None:
                    grads.append((tensor, None, None))
                    continue
                if new._edge is not None or type(new._storage.value) is not Pending:
                    return None, "a gradient with a history"
                i = index.get(id(new._storage.value))
                if i is None:
                    return None, "a gradient from outside the region"
                grads.append((tensor, i, new._spec))
                held.discard(id(new._storage))
        for storage, spec, _version in before.storages.values():
            value = storage.value
            if type(value) is Pending and id(value) in index:
                if storage.spec is not spec:
                    return None, "a storage changed its layout in the region"
                targets.append((argument_of.get(id(storage), storage), index[id(value)]))
                held.discard(id(storage))
        result_leaves = []
        self.result_tree = _flat(out, result_leaves)
        for leaf in result_leaves:
            if not isinstance(leaf, Tensor):
                if not isinstance(leaf, _SIMPLE):
                    return None, "a result that is neither tensor nor number"
                results.append((None, leaf, None, None, None, None))
                continue
            value = leaf._storage.value
            if id(leaf) in before.tensors:
                results.append((None, leaf, None, None, None, argument_at.get(id(leaf))))
                continue
            if leaf._edge is not None and not _released(leaf._edge):
                return None, "a result that still needs its backward"
            if type(value) is not Pending or id(value) not in index or leaf._base is not None:
                return None, "a result from outside the region, or a view"
            results.append((index[id(value)], None, leaf._spec, leaf._edge, leaf._rg, None))
            held.discard(id(leaf._storage))
        if held:
            return None, "a result that is kept in a new place (state made at the first step?)"
        del o
        # -- the program: its results are exactly the ones with a known place
        wanted = sorted(
            {i for _, i in targets}
            | {i for _, i, _ in grads if i is not None}
            | {r[0] for r in results if r[0] is not None}
        )
        live = [False] * len(pendings)
        for i in wanted:
            live[i] = True
        written = {id(s) for s, _ in targets if isinstance(s, Storage)}
        n_inputs = len(graph.inputs)
        donate = [isinstance(s, Storage) and id(s) in written for s in sources]
        inputs, numbers, state = graph.inputs, list(graph.numbers), graph.state
        arrays = list(inputs)
        program = Program(state, live, donate, graph.device)
        n_recorded = sum(len(t) for t in numbers)
        n_updates = sum(len(values) for _, _, _, values in scope.updates)
        if n_recorded != n_updates:
            return None, "numbers that vary from call to call and do not come from an optimizer"
        del arrays, inputs
        me.flush("compiled region")
        program.compile()
        self.program = program
        self.call = program.call
        self.pack = program.pack if program.pack.kept else None
        self.sources = [sources[i] for i in program.used]
        self.donated = tuple(program.donate)
        place = {i: k for k, i in enumerate(program.out)}
        self.targets = [(s, place[i]) for s, i in targets]
        self.grads = [(t, None if i is None else place[i], spec) for t, i, spec in grads]
        self.result = [
            (None if i is None else place[i], leaf, spec, edge, rg, arg) for i, leaf, spec, edge, rg, arg in results
        ]
        self.specs = [(s, s.spec) for s in self.sources if isinstance(s, Storage)]
        self.n_numbers = n_recorded
        return (self, None) if n_inputs else (None, "a region without inputs")

    def matches(self, me, leaves, tree):
        """Whether the region's Python would do here what it did when it was recorded."""
        if tree != self.tree or me.grad is not self.grad or me.inference is not self.inference:
            return False
        if mutations[0] != self.mutations or me.special is not None or me.function_modes:
            return False
        for leaf, guard in zip(leaves, self.leaves):
            if not _leaf_holds(leaf, guard):
                return False
        for storage, spec in self.specs:
            if storage.spec is not spec:
                return False
        for optimizer, group, flags, _ in self.updates:
            if optimizer.flags(group) != flags:
                return False
        return self.guards.hold()

    def run(self, me, leaves):
        """(True, result), or (False, None) when something else still refers to memory that the program would take."""
        if me.graph.pendings:
            me.flush("before a compiled region")
        args = []
        for source in self.sources:
            if type(source) is int:
                value = leaves[source]._storage.value
            elif source is None:
                value = rng.next_key()
            else:
                value = source.value
                if type(value) is Pending:
                    value = source.value = value.get()
            if type(value) is Pending:
                value = value.get()
            args.append(value)
        value = None
        for k in self.donated:
            # the list of arguments and the storage itself
            if getrefcount(args[k]) > ALONE + 1:
                return False, None
        if self.pack is not None:
            numbers = [tuple(map(float, optimizer.numbers(group).values())) for optimizer, group, _, _ in self.updates]
            outs = self.call(*args, *self.pack.pack(numbers))
        else:
            outs = self.call(*args)
        del args
        for storage, k in self.targets:
            if type(storage) is int:
                storage = leaves[storage]._storage
            storage.value = outs[k]
            storage.version += 1
        for tensor, k, spec in self.grads:
            old = tensor._grad
            if k is None:
                tensor._grad = None
            elif old is not None and old._spec is spec and getrefcount(old) <= ALONE + 1 and old._base is None:
                old._storage.value = outs[k]
            else:
                tensor._grad = make(Storage(outs[k], spec), spec)
        if not self.result:
            return True, None
        made = []
        for k, leaf, spec, edge, rg, argument in self.result:
            if k is None:
                made.append(leaf if argument is None else leaves[argument])
            else:
                t = make(Storage(outs[k], spec), spec)
                t._edge = edge
                t._rg = rg
                made.append(t)
        return True, _restore(self.result_tree, iter(made))


def _released(edge):
    return edge[0].saved is None


def _leaf_guard(leaf):
    if isinstance(leaf, Tensor):
        if leaf._storage.spec is not leaf._spec or leaf._edge is not None or leaf._base is not None:
            return None
        return ("tensor", leaf._spec, leaf._rg)
    if isinstance(leaf, _SIMPLE):
        return ("value", leaf, type(leaf))
    return ("object", leaf, None)


def _leaf_holds(leaf, guard):
    kind, what, more = guard
    if kind == "tensor":
        return (
            isinstance(leaf, Tensor) and leaf._spec is what and leaf._storage.spec is what and leaf._rg is more
            and leaf._edge is None and leaf._base is None
        )  # fmt: skip
    if kind == "value":
        return type(leaf) is more and leaf == what
    return leaf is what


__all__ = ["Replay", "Snapshot", "flatten", "rebuild_arguments"]
