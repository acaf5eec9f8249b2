"""A call of a compiled region that has been made and not run yet, so that gradients nobody looks at are never results."""

import threading
from operator import attrgetter, is_
from sys import getrefcount

from ..core.chain import concretely, run_chained
from ..core.interrupts import uninterrupted
from ..core.parcel import Parcel, hand_over
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

    __slots__ = (
        "replay",
        "owner",
        "calls",
        "slots",
        "grads",
        "grad_slots",
        "results",
        "lock",
        "done",
        "chain",
        "parcel",
    )

    def __init__(self, replay, owner):
        self.replay = replay
        self.owner = owner
        self.calls = []  # their arguments; what comes from the call before is missing in all but the first
        # of each call: (pending, position among the results of the program with gradients, without)
        self.results = [[]]
        self.lock = threading.Lock()
        self.done = False
        self.chain = None  # that of the replay when the second call joined
        self.parcel = None  # what is missing in the first call's arguments
        self.slots = [Pending(self, -1) for _ in replay.written]
        self.grad_slots = [Pending(self, -1) for _ in replay.params]
        self.grads = ()

    def start(self, args, parcel=None):
        """The first call waits, and what it writes is pending."""
        replay = self.replay
        self.parcel = parcel
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
                    gathering.watch(replay.links, lambda: self.whole(args))
            grads = self.grads
            if grads and replay.params[0]._grad is not grads[0]:  # all of them, or none: they have been seen to be ours
                for tensor, grad in zip(replay.params, grads):
                    tensor._grad = grad
            replay.penalty = 0
            return True

    def whole(self, args):
        """The arguments of the first call that waits, with what has come as a parcel."""
        if self.parcel is not None:
            for at, value in zip(self.replay.fed, self.parcel.open()):
                args[at] = args[at] if value is None else value
            self.parcel = None
        return args

    def advance(self, n, args):
        """Run the first `n` calls without their gradients, and put what follows from them into the arguments `args`."""
        replay, calls = self.replay, self.calls
        bare = n > 1 or replay.bare.ready(self.whole(calls[0]))
        calls = calls[:n]
        results = [[(p, without if bare else full) for p, full, without in made] for made in self.results[:n]]
        if n > 1 and self.chain.takes(n):
            values = run_chained(self.chain, replay.gathering, calls, results, self.parcel_for(self.chain))
        else:
            self.whole(calls[0])
            program, take = (replay.bare, replay.take_fed) if bare else (replay.program, replay.take_full)
            values = replay.gathering.singly(program.call, take, replay.fed, calls, results)
        self.parcel = values if type(values) is Parcel else None
        for at, value in zip(replay.fed, values.values if type(values) is Parcel else values):
            args[at] = value

    def parcel_for(self, chain):
        """What has come as a parcel, if it is one of this chain's; otherwise it is opened."""
        if self.parcel is not None and self.parcel.packer is not chain.packer:
            self.whole(self.calls[0])
        return self.parcel

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
            dead = only_ours((), self.grads) and max(map(getrefcount, self.grad_slots), default=0) <= ALONE + 1
            if (len(self.calls) == 1 and self.parcel is None) or not self.close(dead):
                self.end(dead)
            if not dead or not self.grads:
                # Looked at each time, waiting is only a cost: the replay rests longer from look to look.
                replay.rest = replay.penalty
                replay.penalty = min(2 * replay.penalty + 1, _LONGEST_REST)
            # The device is at work: what the next call would do first, while nothing is, is done here.
            for storage, slot in zip(replay.written, self.slots):
                if storage.value is slot and slot.value is not None:
                    storage.value = slot.value
            if replay.next is None:
                replay.next = Waiting(replay, self.owner)
            replay.gathering.looked()
            self.calls = self.slots = self.grads = self.grad_slots = self.results = ()

    def end(self, dead):
        """Run the last call by itself, after those before it."""
        replay, last = self.replay, self.calls[-1]
        if len(self.calls) > 1:
            self.advance(len(self.calls) - 1, last)
        self.whole(last)
        bare = dead and replay.bare.ready(last)
        outs = concretely((replay.bare if bare else replay.program).call, last)
        self.ended()
        if not dead:
            hand_over(replay.take_grads(outs), self.grad_slots)
        hand_over((replay.take_bare if bare else replay.take_written)(outs), self.slots)
        for pending, full, without in self.results[-1]:
            pending.value = outs[without if bare else full]
            pending.graph = None

    def ended(self):
        """All calls have been made."""
        self.done = True
        if self.owner.deferred is self:
            self.owner.deferred = None

    def close(self, dead) -> bool:
        """Run all calls as one program, where there is one; with the gradients of the last unless nobody can see them."""
        replay, calls = self.replay, self.calls
        chain = self.chain or replay.gathering.chain
        if chain is None or chain.whole or not (dead or replay.grads_apart):
            return False
        if not dead:
            chain = replay.gathering.closer(chain, replay.program, replay.closing, lambda: self.whole(calls[0]))
        if chain is None or len(calls) > chain.length:
            return False
        results = [[(p, without if dead else full) for p, full, without in made] for made in self.results]
        values, last, made = chain.close(calls, results, self.parcel_for(chain))
        self.ended()
        hand_over(values, replay.take_slots(self.slots))
        if not dead:
            hand_over(last, self.grad_slots)
        for pending, place in results[-1]:
            pending.value = made[place]
            pending.graph = None
        return True
