"""Replays: a region's program with the places its inputs come from and its results go to, and the guards that allow it."""

import gc
from itertools import repeat
from operator import attrgetter, is_
from sys import getrefcount

from .. import config
from ..autograd.node import Node
from ..core import rng
from ..core.chain import LITTLE, Gathering, Links, taker
from ..core.interrupts import uninterrupted
from ..core.parcel import Packer, Parcel
from ..core.program import Program, covering
from ..core.record import Pending
from ..core.storage import Storage
from ..handles import mutations, watch
from ..tensor import Tensor, make
from .arguments import Arguments, checks_of_arguments, flat, in_range, restore
from .reads import SIMPLE
from .sources import NOTHING, GradientOf, is_whole
from .waiting import Waiting, only_ours

_value = attrgetter("value")
_spec = attrgetter("spec")
_layout = attrgetter("_spec")
_storage = attrgetter("_storage")
_grad = attrgetter("_grad")
_edge = attrgetter("_edge")


class Replay:
    """One program of a region, ready to be run without the region's Python."""

    __slots__ = (
        "guards", "given", "tree", "storages", "arguments", "keys", "targets", "written", "take_written",
        "params", "grad_specs", "take_grads", "grads_made", "next", "cleared", "result", "result_tree", "updates", "pack",
        "donated", "mutations", "grad", "inference", "specs", "program", "bare", "take_bare", "fed", "take_fed", "sources", "constants",
        "take_full", "penalty", "rest", "fresh", "owners", "owned", "states", "state_dicts", "state_names",
        "gathering", "optimizers", "plain", "edges", "checks", "memory", "grads_apart", "take_slots",
    )  # fmt: skip

    @classmethod
    def make(cls, me, before, scope, guards, leaves, tree, out, read):
        """(replay, None), or (None, why not). The thread's graph holds what the region recorded and is flushed here.

        read: ids of the tensors that the region's code could read without being given them.
        """
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
        self.given = Arguments(leaves)
        if not self.given.known():
            return None, "an argument that can neither be compared nor followed"
        argument_of = {id(leaf._storage): k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        argument_at = {id(leaf): k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        self.checks = checks_of_arguments(scope.checks, argument_of, before)
        scope.checks.clear()
        sources = []
        gradient_of = {id(t[4]._storage): GradientOf(t[0]) for t in before.tensors.values() if is_whole(t[4])}
        for value in graph.inputs:
            storage = before.storage_of(value)
            if storage is not None:
                sources.append(argument_of.get(id(storage), gradient_of.get(id(storage), storage)))
            elif id(value) in scope.keys:
                sources.append(None)
            else:
                return None, "an input that was made inside the region"
        # -- where the results go
        pendings = graph.pendings
        index = {id(p): i for i, p in enumerate(pendings)}
        targets = []
        held = {
            id(o) for o in gc.get_objects() if type(o) is Storage and type(o.value) is Pending and id(o.value) in index
        }
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
        for storage, spec, version in before.storages.values():
            value = storage.value
            if type(value) is not Pending or id(value) not in index:
                if storage.version != version:
                    return None, "a tensor from outside was given a value from outside"
            else:
                if storage.spec is not spec:
                    return None, "a storage changed its layout in the region"
                targets.append((argument_of.get(id(storage), gradient_of.get(id(storage), storage)), index[id(value)]))
                held.discard(id(storage))
        position = {id(t._grad): k for k, t in enumerate(t for t, i, _ in grads if i is not None)}
        result_leaves = []
        self.result_tree = flat(out, result_leaves)
        for leaf in result_leaves:
            if not isinstance(leaf, Tensor):
                if not isinstance(leaf, SIMPLE):
                    return None, "a result that is neither tensor nor number"
                results.append((None, leaf, None, None, None, None))
                continue
            value = leaf._storage.value
            if id(leaf) in position:
                results.append((None, None, None, None, None, ~position[id(leaf)]))
                continue
            if id(leaf) in before.tensors:
                results.append((None, leaf, None, None, None, argument_at.get(id(leaf))))
                continue
            if leaf._edge is not None and not _released(leaf._edge):
                return None, "a result that still needs its backward"
            if id(leaf._storage) in before.storages or type(leaf) is not Tensor:
                return None, "a result that shares the memory of a tensor from outside, or is of a class of its own"
            if type(value) is not Pending or id(value) not in index or leaf._base is not None:
                return None, "a result from outside the region, or a view"
            first = next((k for k, other in enumerate(result_leaves[: len(results)]) if _shared(other, leaf)), None)
            results.append((index[id(value)], first, leaf._spec, leaf._edge, leaf._rg, None))
            held.discard(id(leaf._storage))
        if held:
            return None, "a result that is kept in a new place (state made at the first step?)"
        # -- the program: its results are exactly the ones with a known place
        wanted = sorted(
            {i for _, i in targets}
            | {i for _, i, _ in grads if i is not None}
            | {r[0] for r in results if r[0] is not None}
        )
        live = [False] * len(pendings)
        for i in wanted:
            live[i] = True
        written = {id(s) for s, _ in targets if type(s) is not int}
        n_inputs = len(graph.inputs)
        donate = [id(s) in written for s in sources]
        inputs, numbers, state = graph.inputs, list(graph.numbers), graph.state
        arrays = list(inputs)
        program = Program(state, live, donate, graph.device)
        n_recorded = sum(len(t) for t in numbers)
        n_updates = sum(len(values) for _, _, _, values in scope.updates)
        if n_recorded != n_updates:
            return None, "numbers that vary from call to call and do not come from an optimizer"
        del arrays, inputs
        me.flush("compiled region")
        program = _compiled(state, program) or program
        if program.call is None:
            program.compile()
        self.program = program
        self.pack = program.pack if program.pack.kept else None
        sources = [sources[i] for i in program.used]
        self.storages = [NOTHING if s is None or type(s) is int else s for s in sources]
        self.fresh = [t for t, i, _ in grads if i is not None and before.tensors[id(t)][4] is None]
        held = {id(s) for s in self.storages}
        known, of_modules = read
        self.owners = [
            t[0] for t in before.tensors.values()
            if id(t[1]) in held and t[0]._base is None or id(t[0]) in known and id(t[0]) not in argument_at
        ]  # fmt: skip
        self.owned = list(map(_storage, self.owners))
        stored = {id(s) for s, _ in targets if type(s) is not int}
        also = {id(t[1]) for key, t in before.tensors.items() if key in known or key in of_modules}
        self.given.part_from(
            leaves, {id(s) for s in self.storages} | stored if len(stored) < len(targets) else stored, also
        )
        found = [
            (state, name, value)
            for optimizer, group, _, _ in scope.updates
            for state in (optimizer.state[p] for p in group["params"] if p in optimizer.state)
            for name, value in state.items()
            if isinstance(value, Tensor)
        ]
        self.state_dicts, self.state_names, self.states = map(list, zip(*found)) if found else ([], [], [])
        self.optimizers = _optimizers(scope.updates)
        states = set(map(id, self.states))
        self.plain = [t for t in self.owners if not t._rg and id(t) not in states]
        self.edges = list(map(_edge, self.plain))
        for t in before.tensors.values():
            if id(t[1]) in held:
                watch(t[0])
        self.arguments = [(k, s) for k, s in enumerate(sources) if type(s) is int]
        self.keys = [k for k, s in enumerate(sources) if s is None]
        self.specs = [s.spec for s in self.storages]
        self.donated = program.donate
        place = {i: k for k, i in enumerate(program.out)}
        stored = [(s, place[i]) for s, i in targets if type(s) is not int]
        self.written = [s for s, _ in stored]
        self.memory = frozenset(map(id, (*self.storages, *self.written)))
        self.take_written = taker([k for _, k in stored])
        self.targets = [(s, place[i]) for s, i in targets if type(s) is int]
        self.cleared = [t for t, i, _ in grads if i is None]
        self.params = [t for t, i, _ in grads if i is not None]
        self.grad_specs = [spec for _, i, spec in grads if i is not None]
        self.take_grads = taker([place[i] for _, i, _ in grads if i is not None])
        self.grads_made = self.next = None
        self.bare = None
        self.rest = 0
        self.penalty = 0
        bare_place = dict.fromkeys(place)
        if self.written and not self.targets:
            bare_place = self.without_gradients(state, live, donate, graph.device, {i for _, i, _ in grads}, stored)
        self.result = [
            (None if i is None else (place[i], bare_place[i]), leaf, spec, edge, rg, arg)
            for i, leaf, spec, edge, rg, arg in results
        ]
        # Whether each gradient is a result of its own, and nothing else.
        outs = [place[i] for _, i, _ in grads if i is not None]
        other = {k for _, k in stored} | {r[0][0] for r in self.result if r[0] is not None}
        self.grads_apart = len(set(outs)) == len(outs) and other.isdisjoint(outs)
        self.gathering = Gathering()
        return (self, None) if n_inputs else (None, "a region without inputs")

    def without_gradients(self, state, live, donate, device, grads, stored):
        """The same program without gradients among its results, and how one call's results are the next one's arguments."""
        full = self.program
        keep = {full.out[k] for _, k in stored}  # a result that is a gradient and something else stays
        bare = full
        if self.params:
            live = [alive and (i in keep or i not in grads) for i, alive in enumerate(live)]
            bare = Program(state, live, donate, device)
            if bare.used != full.used or bare.pack.kept != full.pack.kept:
                return dict.fromkeys(full.out)
            bare.pack = full.pack
            bare.ahead = full
        place = {i: k for k, i in enumerate(bare.out)}
        self.bare = bare
        self.take_bare = taker([place[full.out[k]] for _, k in stored])
        place_of = {id(s): place[full.out[k]] for s, k in stored}
        self.fed = [k for k, s in enumerate(self.storages) if id(s) in place_of]
        self.sources = [place_of[id(self.storages[k])] for k in self.fed]
        self.take_fed = taker(self.sources)
        slot_of = {id(s): k for k, (s, _) in enumerate(stored)}
        self.take_slots = taker([slot_of[id(self.storages[k])] for k in self.fed])
        full_place_of = {id(s): k for s, k in stored}
        self.take_full = taker([full_place_of[id(self.storages[k])] for k in self.fed])
        self.constants = [(k, s) for k, s in enumerate(self.storages) if s is not NOTHING and id(s) not in place_of]
        return dict.fromkeys(full.out) | place

    def matches(self, me, leaves, tree, given):
        """Whether the region's Python would do here what it did when it was recorded. given: the arguments; leaves: the same, or for
        views what has their elements."""
        if tree != self.tree or me.grad is not self.grad or me.inference is not self.inference:
            return False
        if mutations[0] != self.mutations or me.special is not None or me.function_modes:
            return False
        if not self.given.hold(leaves):
            return False
        if list(map(_spec, self.storages)) != self.specs:
            return False
        if list(map(_storage, self.owners)) != self.owned:
            return False  # a tensor has been given other data
        if not all(map(is_, map(_edge, self.plain), self.edges)):
            return False  # a history
        if not all(map(is_, map(_grad, self.fresh), repeat(None))):
            return False  # this time gradients would be added to those
        if not all(map(is_, map(dict.get, self.state_dicts, self.state_names), self.states)):
            return False
        for optimizer, group, flags, _ in self.updates:
            if optimizer.flags(group) != flags:
                return False
        for optimizer, own, state, dicts, group, maximize, step, method, groups, params in self.optimizers:
            if optimizer.state is not state or len(state) != len(dicts) or not all(map(is_, state.values(), dicts)):
                return False
            if (
                group.get("maximize") is not maximize
                or own.get("step") is not step
                or type(optimizer).step is not method
            ):
                return False
            found, updated = optimizer.param_groups, group["params"]
            if len(found) != len(groups) or len(updated) != len(params):
                return False
            if not all(map(is_, found, groups)) or not all(map(is_, updated, params)):
                return False
        return self.guards.hold() and (not self.checks or in_range(self.checks, given))

    def carries(self, grads) -> bool:
        """Whether a call's gradients can be the next one's: they lie as it makes them, and nobody but the parameters knows them."""
        return list(map(_layout, grads)) == self.grad_specs and only_ours(self.params, grads)

    def set_grads(self, values):
        """Give the parameters gradients with these values; they are returned."""
        made = self.grads_made
        if made and self.carries(made):
            for tensor, grad, value in zip(self.params, made, values):
                tensor._grad = grad
                grad._storage.value = value
            return made
        self.grads_made = made = []
        for tensor, spec, value in zip(self.params, self.grad_specs, values):
            tensor._grad = grad = make(Storage(value, spec), spec)
            made.append(grad)
        return made

    def arguments_after(self, leaves):
        """The arguments of a call but for what is the result of the one before: constants, leaves, random keys, numbers."""
        args = [None] * len(self.storages)
        for k, storage in self.constants:
            value = storage.value
            args[k] = value.get() if type(value) is Pending else value
        self.fill_given(args, leaves)
        return args

    def links(self):
        """How calls follow each other in one program; None if not all that one writes is read by the next."""
        if len(self.fed) != len(self.written):
            return None
        fresh = [k for k, _ in self.arguments] + self.keys
        places = {r[0][1] for r in self.result if r[0] is not None}
        return Links(self.bare, self.fed, self.sources, [k for k, _ in self.constants], fresh, places)

    def closing(self):
        """The same, where the last call's gradients are results."""
        full, own = self.program, self.links()
        places = {r[0][0] for r in self.result if r[0] is not None}
        sources = self.take_full(range(len(full.out)))
        return Links(full, own.fed, sources, own.kept, own.fresh, places, self.take_grads(range(len(full.out))))

    def fill_given(self, args, leaves):
        for k, leaf in self.arguments:
            value = leaves[leaf]._storage.value
            args[k] = value.get() if type(value) is Pending else value
        for k in self.keys:
            args[k] = rng.next_key()
        if self.pack is not None:
            numbers = [tuple(map(float, optimizer.numbers(group).values())) for optimizer, group, _, _ in self.updates]
            args[len(self.storages) :] = self.pack.pack(numbers)

    @uninterrupted
    def run(self, me, leaves, given):
        """(True, result), or (False, None) when something else still refers to memory that the program would take."""
        if me.graph.pendings:
            me.flush_recorded("before a compiled region")
        waiting = me.deferred
        if waiting is not None:
            if waiting.replay is self and waiting.follow(leaves):
                for storage in self.written:
                    storage.version += 1
                for tensor in self.cleared:
                    tensor._grad = None
                return True, self.results(given, None, waiting) if self.result else None
            waiting.settle()
        args = list(map(_value, self.storages))
        parcel = None
        if Pending in map(type, args):
            parcel = self.parcel_in(args)
            if parcel is None:
                for k, value in enumerate(args):
                    if type(value) is Pending:
                        args[k] = self.storages[k].value = value.get()
                value = None
        # Each is held by its storage and by the list of arguments, and by nobody who might look at it again.
        if self.donated and max(map(getrefcount, map(args.__getitem__, self.donated))) > TWICE:
            return False, None
        if parcel is not None:
            for k in parcel.packer.together:
                args[self.fed[k]] = None
        self.fill_given(args, leaves)
        outs = waiting = None
        if self.bare is not None and self.rest <= 0 and not config.deterministic:
            waiting, self.next = self.next, None
            if waiting is None or waiting.owner is not me:
                waiting = Waiting(self, me)
            waiting.start(args, parcel)
            me.deferred = waiting
            for storage in self.written:
                storage.version += 1
        else:
            self.rest -= 1
            outs = self.program.call(*args)
            del args
            for storage, value in zip(self.written, self.take_written(outs)):
                storage.value = value
                storage.version += 1
            for leaf, k in self.targets:
                storage = leaves[leaf]._storage
                storage.value = outs[k]
                storage.version += 1
            if self.params:
                self.set_grads(self.take_grads(outs))
        for tensor in self.cleared:
            tensor._grad = None
        return True, self.results(given, outs, waiting) if self.result else None

    def parcel_in(self, args):
        """The parcel with what the last chain has handed on, where nobody has opened it and nothing else is pending; or None."""
        packer = self.gathering.packer
        if type(packer) is not Packer or self.rest > 0 or config.deterministic:
            return None
        given = list(map(args.__getitem__, self.fed))
        pendings = list(map(given.__getitem__, packer.together))
        if list(map(type, args)).count(Pending) > len(pendings) or set(map(type, pendings)) != {Pending}:
            return None
        parcel = pendings[0].graph
        return parcel if type(parcel) is Parcel and parcel.packer is packer and parcel.holds(given) else None

    def results(self, given, outs, waiting):
        """What the region returns, from the results of its program or as results of a call that waits."""
        made = []
        for place, leaf, spec, edge, rg, argument in self.result:
            if place is None:
                made.append(
                    leaf if argument is None else given[argument] if argument >= 0 else self.params[~argument]._grad
                )
            else:
                value = outs[place[0]] if waiting is None else waiting.result(*place)
                if leaf is not None and made[leaf]._edge is edge:
                    made.append(made[leaf])
                    continue
                t = make(Storage(value, spec) if leaf is None else made[leaf]._storage, spec)
                t._edge = edge
                t._rg = rg
                made.append(t)
        return restore(self.result_tree, iter(made))


def _optimizers(updates):
    """What else of the optimizers a replay depends on: whose states were updated, in which direction, of which parameters, by which function."""
    found = []
    for asked, group, *_ in updates:
        optimizer = getattr(asked, "whole", asked)
        own, state, step = optimizer.__dict__, optimizer.state, type(optimizer).step
        found.append((
            optimizer, own, state, list(state.values()), group, group.get("maximize"), own.get("step"), step,
            list(optimizer.param_groups), list(group["params"]),
        ))  # fmt: skip
    return found


def _compiled(state, program):
    """The program that the recorded call has run, if it has just these results and takes nearly all memory that this one takes."""
    for other in covering(state, program):
        if other.settled and len(other.out) == len(program.out):
            if program.nbytes_of(program.taken() - other.taken()) <= LITTLE:
                return other
    return None


def _shared(other, leaf) -> bool:
    return isinstance(other, Tensor) and other._storage is leaf._storage


def _twice() -> int:
    """What getrefcount says, asked as `run` does, of an array held by its storage and the arguments."""
    holder = Storage(object(), None)
    args = list(map(_value, [holder]))
    return max(map(getrefcount, map(args.__getitem__, (0,))))


TWICE = _twice()


def _released(edge):
    """Whether a backward from here would find a node whose saved values are gone, on every way to a leaf."""
    stack = [edge[0]]
    while stack:
        node = stack.pop()
        if not isinstance(node, Node) or node.bwd is None or node.saved:
            return False
        if node.saved is not None:
            stack += [e[0] for e in node.edges if e is not None]
    return True


__all__ = ["Replay"]
