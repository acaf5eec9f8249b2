"""Replays: a region's program with the places its inputs come from and its results go to, and the guards that allow it."""

from itertools import repeat, starmap
from operator import attrgetter, is_
from sys import getrefcount

from .. import config
from ..autograd.mode import BORN
from ..core import rng
from ..core.chain import LITTLE, Gathering, Links, taker
from ..core.interrupts import uninterrupted
from ..core.parcel import Packer, Parcel
from ..core.program import Program, covering
from ..core.record import Pending
from ..core.storage import Storage
from ..handles import mutations, watch
from ..tensor import Tensor, make
from .arguments import Arguments, checks_of_arguments, gradient_of, has_containers, in_range
from .effects import Keeping
from .findings import Findings, Unproven
from .guards import attributes_of, is_set_as
from .outcome import restore
from .sources import NOTHING, GradientOf, KeptIn
from .waiting import Waiting, only_ours

_value = attrgetter("value")
_spec = attrgetter("spec")
_layout = attrgetter("_spec")
_storage = attrgetter("_storage")
_grad = attrgetter("_grad")
_edge = attrgetter("_edge")


class Replay:
    """One program of a region, ready to be run without the region's Python.

    What must be as it was (`matches`): guards, checks, mutations (or `sets` and `modules`), grad, inference; of the arguments `tree` and `given`; of storages that
    are inputs `specs`; of tensors on them, and others that are read, their storage (`owners`, `owned`), of the others their layout (`seen`), their history where they have no gradient (`plain`,
    `edges`), and that they have no gradient yet (`fresh`), or have one (`graded`); of optimizers `updates`, `optimizers`, `states` and where those are.

    Arguments of the program, in order: `storages` (NOTHING where `arguments` or `keys` say what it is), then the numbers (`pack`).
    Its results go to `written` (storages), `targets` (arguments), the gradients of `params`, and `result`, as `Findings.results` with
    two places: among those of `program`, and of `bare`, which is the program without gradients and runs where nobody looks at them.
    `fed`: positions of the arguments that are results of the call before; `take_...`: functions that pick some of the results.
    """

    __slots__ = (
        "guards", "given", "tree", "storages", "arguments", "keys", "targets", "written", "take_written",
        "params", "grad_specs", "take_grads", "grads_made", "next", "cleared", "result", "result_tree", "updates", "pack",
        "donated", "mutations", "grad", "inference", "specs", "program", "bare", "take_bare", "fed", "take_fed", "sources", "constants",
        "take_full", "penalty", "rest", "fresh", "owners", "owned", "states", "state_dicts", "state_names",
        "gathering", "optimizers", "plain", "edges", "checks", "memory", "grads_apart", "take_slots", "graded",
        "seen", "seen_as", "bare_ones", "inferred", "graded_as", "sets", "modules", "bare_as", "keeping", "ends", "used", "numbers",
    )  # fmt: skip

    @classmethod
    def make(cls, me, before, scope, guards, leaves, tree, outcome, read):
        """The replay of a call that was recorded. The thread's graph holds what it recorded, and is flushed here.

        outcome: what it returned. read: the Reader of what the region's code could read without being given it. Unproven: why there is no replay.
        """
        graph = me.graph
        if len([g for g in me.graphs.values() if g.pendings]) != 1 or not graph.pendings:
            raise Unproven("the region records nothing, or on several devices")
        counted = read.effects.counts
        if (mutations[0] - counted[0], mutations[1] - counted[1]) != before.mutations:
            raise Unproven("a module was changed in the region")
        if not before.unmoved(me):
            raise Unproven("a mode (of gradients, autocast, functions) is another one after the region")
        self = cls()
        self.guards = guards
        self.tree = tree
        self.mutations, self.sets = before.mutations if read.effects.guarded else mutations
        self.modules = read.modules
        self.grad = before.grad
        self.inference = before.inference
        self.updates = scope.updates
        self.given = Arguments(leaves)
        self.given.ask(leaves, read)
        if not self.given.known():
            raise Unproven("an argument that can neither be compared nor followed")
        if read.compares and has_containers(tree):
            raise Unproven("compares by `is` what may be a list or dict that it is given")
        self.keeping = Keeping(read.effects) if read.effects else None
        found = Findings(before, leaves, self.keeping, read.tensors | read.of_modules)
        self.checks = checks_of_arguments(scope.checks, found.argument_of, before)
        scope.checks.clear()
        found.look(graph, scope.keys, scope.literals, outcome, read.effects.values)
        read.effects = None
        # The program: its results are exactly the ones with a known place.
        wanted = set(found.wanted())
        live = [i in wanted for i in range(len(graph.pendings))]
        written = {id(s) for s, _ in found.targets if type(s) is not int}
        donate = [id(s) in written for s in found.sources]
        state, n_inputs = graph.state, len(graph.inputs)
        asked = {id(values) for _, _, _, values in scope.updates}
        self.numbers = [None if id(values) in asked else values for values in graph.numbers]
        if self.numbers.count(None) != len(scope.updates):
            raise Unproven("numbers of an optimizer that went another way")
        if len(self.numbers) == len(scope.updates):
            self.numbers = None
        program = Program(state.nodes(), live, donate, graph.device)
        me.flush("compiled region")
        program = _compiled(state, program) or program
        if program.call is None:
            program.compile()
        self.program = program
        self.pack = program.pack if program.pack.kept else None
        self._follow_inputs(found, read.tensors, read.of_modules)
        self._follow_optimizers()
        self._follow_results(found, state, live, donate)
        self._follow_gradients(found, read)
        if not n_inputs:
            raise Unproven("a region without inputs")
        return self

    def _follow_inputs(self, found, known, of_modules):
        """Where a later call finds the arguments of the program, and what must be as it was for that.

        known, of_modules: ids of the tensors that the region's code could read by itself, and through its modules.
        """
        tensors = found.before.tensors
        sources = [found.sources[i] for i in self.program.used]
        self.storages = [NOTHING if s is None or type(s) is int else s for s in sources]
        self.arguments = [(k, s) for k, s in enumerate(sources) if type(s) is int]
        self.keys = [k for k, s in enumerate(sources) if s is None]
        self.specs = [s.first if type(s) is KeptIn else s.spec for s in self.storages]
        self.donated = self.program.donate
        held = {id(s) for s in self.storages}
        self.owners = [
            t[0] for t in tensors.values()
            if id(t[1]) in held and t[0]._base is None or id(t[0]) in known and id(t[0]) not in found.argument_at
        ]  # fmt: skip
        self.owned = list(map(_storage, self.owners))
        self.seen = [t for t in self.owners if id(t._storage) not in held]
        self.seen_as = list(map(_layout, self.seen))
        for t in tensors.values():
            if id(t[1]) in held or id(t[0]) in of_modules:
                watch(t[0])
        for t in self.seen:
            watch(t)
        stored = {id(s) for s, _ in found.targets if type(s) is not int}
        also = {id(t[1]) for key, t in tensors.items() if key in known or key in of_modules}
        if self.keeping is not None:
            self.keeping.outer = frozenset(held | stored | also).union(map(id, self.owned))
        self.given.part_from(found.leaves, held | stored if len(stored) < len(found.targets) else stored, also)

    def _follow_optimizers(self):
        """The optimizers' states, which must be the same tensors, and the tensors that are neither those nor have gradients."""
        states = [
            (state, name, value)
            for optimizer, group, _, _ in self.updates
            for state in (optimizer.state[p] for p in group["params"] if p in optimizer.state)
            for name, value in state.items()
            if isinstance(value, Tensor)
        ]
        self.state_dicts, self.state_names, self.states = map(list, zip(*states)) if states else ([], [], [])
        self.optimizers = _optimizers(self.updates)
        of_optimizers = set(map(id, self.states))
        self.plain = [t for t in self.owners if not t._rg and id(t) not in of_optimizers]
        self.edges = list(map(_edge, self.plain))

    def _follow_results(self, found, state, live, donate):
        """Where the results of the program go."""
        place = {i: k for k, i in enumerate(self.program.out)}
        stored = [(s, place[i]) for s, i in found.targets if type(s) is not int]
        self.written = [s for s, _ in stored]
        self.memory = frozenset(map(id, (*self.storages, *self.written)))
        self.take_written = taker([k for _, k in stored])
        self.targets = [(s, place[i]) for s, i in found.targets if type(s) is int]
        self.cleared = [t for t, i, _ in found.grads if i is None]
        grads = [(t, i, spec) for t, i, spec in found.grads if i is not None]
        self.params = [t for t, _, _ in grads]
        self.grad_specs = [spec for _, _, spec in grads]
        self.fresh = [t for t in self.params if found.before.tensors[id(t)][4] is None]
        outs = [place[i] for _, i, _ in grads]
        self.take_grads = taker(outs)
        self.grads_made = self.next = self.bare = None
        self.rest = self.penalty = 0
        bare_place = dict.fromkeys(place)
        kept = any(type(s) is KeptIn for s in self.storages)  # which wait for the call before
        if self.written and not self.targets and not kept:
            bare_place = self.without_gradients(
                state, live, donate, self.program.device, {i for _, i, _ in grads}, stored
            )
        self.result_tree = found.result_tree
        self.ends = bool(found.results) or self.result_tree is not None
        self.inferred = found.inferred
        self.result = [
            (None if i is None else (place[i], bare_place[i]), leaf, spec, edge, rg, argument)
            for i, leaf, spec, edge, rg, argument in found.results
        ]
        # Whether each gradient is a result of its own, and nothing else.
        other = {k for _, k in stored} | {r[0][0] for r in self.result if r[0] is not None}
        self.grads_apart = len(set(outs)) == len(outs) and other.isdisjoint(outs)
        self.gathering = Gathering()
        self.used = False

    def _follow_gradients(self, found, read):
        """The tensors whose gradients the region's Python may ask for: those must be there, or not, as they were; and those which it
        may ask for attributes that they do not have. Where it adds to gradients, those that it clears again had none to add to."""
        if read.accumulates:
            held = {id(s) for s in self.storages}
            self.fresh += [
                t[0] for key, t in found.before.tensors.items()
                if t[6] and t[4] is None and (id(t[1]) in held or key in read.tensors or key in read.of_modules)
            ]  # fmt: skip
        elsewhere = [s for s in self.written if type(s) is GradientOf and s not in self.storages]
        outer = [
            t for key, t in found.before.tensors.items() if key in read.tensors or key in read.of_modules
        ] if read.wanted("grad") else ()  # fmt: skip
        self.fresh += [t[0] for t in outer if t[4] is None]
        self.graded = [t[0] for t in outer if t[4] is not None] + [s.tensor for s in elsewhere]
        self.graded_as = list(map(gradient_of, self.graded))
        self.bare_ones = [
            t[0] for key, t in found.before.tensors.items()
            if key in read.tensors and key not in found.argument_at or read.asks and key in read.of_modules
        ] if read.names is None else []  # fmt: skip
        self.bare_as = list(map(attributes_of, self.bare_ones))

    def without_gradients(self, state, live, donate, device, grads, stored):
        """The same program without gradients among its results, and how one call's results are the next one's arguments."""
        full = self.program
        keep = {full.out[k] for _, k in stored}  # a result that is a gradient and something else stays
        bare = full
        if self.params:
            live = [alive and (i in keep or i not in grads) for i, alive in enumerate(live)]
            bare = Program(state.nodes(), live, donate, device)
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

    def varies(self) -> bool:
        """Whether the next call may well be another one: it goes by numbers that others would be in, or by what it changes itself."""
        return self.keeping is not None and self.keeping.moving or self.numbers is not None

    def matches(self, me, leaves, tree, given):
        """Whether the region's Python would do here what it did when it was recorded. given: the arguments; leaves: the same, or for
        views what has their elements."""
        if tree != self.tree or me.grad is not self.grad or me.inference is not self.inference:
            return False
        if mutations[0] != self.mutations and not self.set_back() or me.special is not None or me.function_modes:
            return False
        if not self.given.hold(leaves) or self.given.asked and not self.given.answer(given):
            return False
        if list(map(_spec, self.storages)) != self.specs:
            return False
        if list(map(_storage, self.owners)) != self.owned:
            return False  # a tensor has been given other data
        if self.seen and list(map(_layout, self.seen)) != self.seen_as:
            return False  # another shape
        if not all(map(is_, map(_edge, self.plain), self.edges)):
            return False  # a history
        if not all(map(is_, map(_grad, self.fresh), repeat(None))):
            return False  # this time gradients would be added to those
        if self.bare_ones and list(map(attributes_of, self.bare_ones)) != self.bare_as:
            return False
        if self.graded and list(map(gradient_of, self.graded)) != self.graded_as:
            return False
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
        if self.keeping is not None and not self.keeping.holds(leaves):
            return False
        return self.guards.hold() and (not self.checks or in_range(self.checks, given))

    def set_back(self) -> bool:
        """Whether all that has happened to modules is that plain attributes were set, and those that were read are as they were."""
        if self.modules is None or mutations[0] - self.mutations != mutations[1] - self.sets:
            return False
        if not all(starmap(is_set_as, self.modules)):
            return False
        self.mutations, self.sets = mutations
        return True

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
            if self.numbers is None:
                numbers = [
                    tuple(map(float, optimizer.numbers(group).values())) for optimizer, group, _, _ in self.updates
                ]
            else:
                updates = iter(self.updates)
                numbers = [_asked(*next(updates)) if values is None else values for values in self.numbers]
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
                return True, self.results(given, None, waiting) if self.ends else None
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
        return True, self.results(given, outs, waiting) if self.ends else None

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
                if rg is None:
                    made.append(made[leaf])
                    continue
                t = make(Storage(value, spec) if leaf is None else made[leaf]._storage, spec)
                t._edge = edge
                t._rg = rg
                made.append(t)
        for k in self.inferred:
            made[k]._storage.version = BORN
        found = iter(made)
        result = restore(self.result_tree, found)
        if self.keeping is not None:
            self.keeping.set(found)
            known, now = mutations[0] == self.mutations, self.keeping.count()
            if known and not self.keeping.guarded:
                self.mutations, self.sets = now
        return result


def _asked(optimizer, group, *_):
    """The numbers of an update, at the moment."""
    return tuple(map(float, optimizer.numbers(group).values()))


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


def _twice() -> int:
    """What getrefcount says, asked as `run` does, of an array held by its storage and the arguments."""
    holder = Storage(object(), None)
    args = list(map(_value, [holder]))
    return max(map(getrefcount, map(args.__getitem__, (0,))))


TWICE = _twice()


__all__ = ["Replay"]
