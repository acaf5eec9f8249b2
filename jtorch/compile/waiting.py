"""A call of a compiled region that has been made and not run yet, so that gradients nobody looks at are never results."""

import threading
from operator import attrgetter, is_
from sys import getrefcount

from ..core.program import ALONE
from ..core.record import Pending
from ..core.storage import Storage
from ..tensor import make

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
    known = max(map(getrefcount, grads))
    return known <= ALONE + holders and max(map(getrefcount, map(_storage, grads))) <= OWN


class Waiting:
    """The last call of a replay: its arguments, and the pending values that stand where its results will be.

    It runs when a value is needed, and then gradients are results; or when the next call shows that the gradients have
    died unseen: then they are not. The same object and the same pending values serve one call after the other.
    """

    __slots__ = ("replay", "owner", "args", "slots", "grads", "grad_slots", "results", "lock", "done")

    def __init__(self, replay, owner, args):
        self.replay = replay
        self.owner = owner
        self.args = args
        self.lock = threading.Lock()
        self.done = False
        self.results = []  # (pending, position among the results of the program with gradients, without them)
        self.slots = [Pending(self, -1) for _ in replay.written]
        for storage, slot in zip(replay.written, self.slots):
            storage.value = slot
        self.grads, self.grad_slots = [], []
        for tensor, spec in zip(replay.params, replay.grad_specs):
            slot = Pending(self, -1)
            tensor._grad = grad = make(Storage(slot, spec), spec)
            self.grads.append(grad)
            self.grad_slots.append(slot)

    def unseen(self) -> bool:
        """Whether the next call of the same replay may take the results of this one as its arguments and forget the rest."""
        slots, grad_slots = self.slots, self.grad_slots
        return (
            not self.done
            and all(map(is_, map(_value, self.replay.written), slots))
            and all(map(is_, map(_value, map(_storage, self.grads)), grad_slots))
            and max(map(getrefcount, slots), default=0) <= ALONE + 1
            and max(map(getrefcount, grad_slots)) <= ALONE + 1
            and only_ours(self.replay.params, self.grads)
        )

    def follow(self, leaves):
        """Run this call without its gradients and become the next one; False if somebody has an eye on them."""
        with self.lock:
            if not self.unseen():
                return False
            replay = self.replay
            args = self.args
            outs = replay.bare.call(*args)
            for pending, _, k in self.results:
                pending.value = outs[k]
                pending.graph = None
            self.results = []
            for k, value in zip(replay.fed, replay.take_fed(outs)):
                args[k] = value
            replay.fill(args, leaves)
            for tensor, grad in zip(replay.params, self.grads):
                tensor._grad = grad
            replay.penalty = 0
            return True

    def result(self, full, bare):
        """A pending result of this call."""
        pending = Pending(self, -1)
        self.results.append((pending, full, bare))
        return pending

    def compute(self, pending):
        """A value is needed."""
        self.settle()

    def settle(self):
        """Run this call; its gradients are results unless nobody can see them any more."""
        with self.lock:
            if self.done:
                return
            replay = self.replay
            dead = only_ours((), self.grads) and max(map(getrefcount, self.grad_slots)) <= ALONE + 1
            outs = (replay.bare if dead else replay.program).call(*self.args)
            self.done = True
            if self.owner.deferred is self:
                self.owner.deferred = None
            if not dead:
                _fill(self.grad_slots, replay.take_grads(outs))
                # Looked at each time, waiting is only a cost: the replay rests longer from look to look.
                replay.rest = replay.penalty
                replay.penalty = min(2 * replay.penalty + 1, _LONGEST_REST)
            _fill(self.slots, (replay.take_bare if dead else replay.take_written)(outs))
            for pending, full, bare in self.results:
                pending.value = outs[bare if dead else full]
                pending.graph = None
            self.args = self.slots = self.grads = self.grad_slots = self.results = ()


def _fill(slots, values):
    for pending, value in zip(slots, values):
        pending.value = value
        pending.graph = None
