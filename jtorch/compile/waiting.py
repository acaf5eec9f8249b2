"""A call of a compiled region that has been made and not run yet, so that gradients nobody looks at are never results."""

import threading
from operator import attrgetter, is_
from sys import getrefcount

from ..core.chain import concretely, run_chained
from ..core.interrupts import uninterrupted
from ..core.program import ALONE
from ..core.record import Pending
from ..core.storage import Storage

_value = attrgetter("value")
_storage = attrgetter("_storage")
_grad = attrgetter("_grad")
_LONGEST_REST = 16


def _own() -> int:
    """What getrefcount says, asked as below, of a storage that only its tensor has."""
    return next(map(getrefcount, map(_value, [Storage(object(), None)])))


OWN = _own()


def only_ours(params, grads) -> bool:
    """Whether nobody but these parameters (all of them, or none) and the list knows these gradients, or their storages."""
    holders = 1 if params and all(map(is_, map(_grad, params), grads)) else 0
    known = max(map(getrefcount, grads), default=0)
    return known <= ALONE + holders and max(map(getrefcount, map(_storage, grads)), default=0) <= OWN


class Waiting:
    """The last calls of a replay: their arguments, and the pending values that stand where the results will be.

    The last one runs when a value is needed, and then gradients are results; or when the next call shows that the gradients
    have died unseen: then they are not. The same object and the same pending values serve one call after the other. Short
    calls that nobody looks at gather here, until there are as many as the replay's chain runs at once.
    """

    gathers = waits = False  # what is recorded on its results makes it run

    __slots__ = ("replay", "owner", "calls", "slots", "grads", "grad_slots", "results", "lock", "done", "chain")

    def __init__(self, replay, owner):
        self.replay = replay
        self.owner = owner
        self.calls = []  # their arguments; what comes from the call before is missing in all but the first
        self.results = [
            []
        ]  # of each call: (pending, position among the results of the program with gradients, without)
        self.lock = threading.Lock()
        self.done = False
        self.chain = None  # that of the replay when the second call joined
        self.slots = [Pending(self, -1) for _ in replay.written]
        self.grad_slots = [Pending(self, -1) for _ in replay.params]
        self.grads = ()

    def start(self, args):
        """The first call waits, and what it writes is pending."""
        replay = self.replay
        self.calls.append(args)
        for storage, slot in zip(replay.written, self.slots):
            storage.value = slot
        self.grads = replay.set_grads(self.grad_slots)

    def unseen(self) -> bool:
        """Whether the next call of the same replay may take the results of this one as its arguments and forget the rest."""
        slots, grad_slots = self.slots, self.grad_slots
        return (
            not self.done
            and list(map(_value, self.replay.written)) == slots
            and list(map(_value, map(_storage, self.grads))) == grad_slots
            and max(map(getrefcount, slots), default=0) <= ALONE + 1
            and max(map(getrefcount, grad_slots), default=0) <= ALONE + 1
            and self.replay.carries(self.grads)
        )

    def follow(self, leaves):
        """The next call waits instead of this one, whose gradients are never made; False if somebody has an eye on them."""
        with self.lock:
            if not self.unseen():
                return False
            replay, calls = self.replay, self.calls
            args = replay.arguments_after(leaves)
            gathering = replay.gathering
            gathering.run += 1
            chain = gathering.chain
            at = len(calls)
            if (
                chain is not None and at < chain.length and (at == 1 or chain is self.chain) and chain.fits(calls[0], args)
            ):  # fmt: skip
                self.chain = chain
                calls.append(args)
                self.results.append([])
            else:
                self.advance(len(calls), args)
                self.calls = [args]
                self.results = [[]]
                if chain is None and replay.bare.ahead is None:  # beside a compiler all runs seem long
                    gathering.watch(replay.links, lambda: args)
            grads = self.grads
            if grads and replay.params[0]._grad is not grads[0]:  # all of them, or none: they have been seen to be ours
                for tensor, grad in zip(replay.params, grads):
                    tensor._grad = grad
            replay.penalty = 0
            return True

    def advance(self, n, args):
        """Run the first `n` calls without their gradients, and put what follows from them into the arguments `args`."""
        replay, calls = self.replay, self.calls
        bare = n > 1 or replay.bare.ready(calls[0])
        calls = calls[:n]
        results = [[(p, without if bare else full) for p, full, without in made] for made in self.results[:n]]
        if n > 1 and self.chain.takes(n):
            values = run_chained(self.chain, replay.gathering, calls, results)
        elif bare:
            values = replay.gathering.singly(replay.bare.call, replay.take_fed, replay.fed, calls, results)
        else:
            values = replay.gathering.singly(replay.program.call, replay.take_full, replay.fed, calls, results)
        for at, value in zip(replay.fed, values):
            args[at] = value

    def result(self, full, bare):
        """A pending result of the last call."""
        pending = Pending(self, -1)
        self.results[-1].append((pending, full, bare))
        return pending

    def compute(self, pending):
        """A value is needed."""
        self.settle()

    @uninterrupted
    def settle(self):
        """Run all calls; the gradients of the last are results unless nobody can see them any more."""
        with self.lock:
            if self.done:
                return
            replay = self.replay
            last = self.calls[-1]
            if len(self.calls) > 1:
                self.advance(len(self.calls) - 1, last)
            dead = only_ours((), self.grads) and max(map(getrefcount, self.grad_slots), default=0) <= ALONE + 1
            bare = dead and replay.bare.ready(last)
            outs = concretely((replay.bare if bare else replay.program).call, last)
            self.done = True
            if self.owner.deferred is self:
                self.owner.deferred = None
            if not dead:
                _fill(self.grad_slots, replay.take_grads(outs))
            if not dead or not self.grads:
                # Looked at each time, waiting is only a cost: the replay rests longer from look to look.
                replay.rest = replay.penalty
                replay.penalty = min(2 * replay.penalty + 1, _LONGEST_REST)
            _fill(self.slots, (replay.take_bare if bare else replay.take_written)(outs))
            # The device is at work: what the next call would do first, while nothing is, is done here.
            for storage, slot in zip(replay.written, self.slots):
                if storage.value is slot:
                    storage.value = slot.value
            if replay.next is None:
                replay.next = Waiting(replay, self.owner)
            for pending, full, without in self.results[-1]:
                pending.value = outs[without if bare else full]
                pending.graph = None
            replay.gathering.looked()
            self.calls = self.slots = self.grads = self.grad_slots = self.results = ()


def _fill(slots, values):
    for pending, value in zip(slots, values):
        pending.value = value
        pending.graph = None
