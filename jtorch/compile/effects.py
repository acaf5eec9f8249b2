"""What a replay does besides its program: counters go on, and places outside get the values or tensors that the region has put there.

A place (`places.py`) whose value is another one at each call is followed: what it holds is an input, or is added to, and no guard asks
which one it is.
"""

import threading
from operator import attrgetter

from ..handles import mutations
from ..tensor import Tensor
from .findings import Unproven
from .guards import FIXED, FOLLOWED, MISSING, attributes_of
from .sources import KeptIn

_storage = attrgetter("_storage")


class Effects:
    """What becomes of the places that a run has written to.

    added: (place, number) of counters. followed: places of tensors that are others at each call. put: places, in order, that a replay
    sets to `values`. earlier: id of a dict -> what was in it before the run, FOLLOWED where that does not matter. counts: how much setting
    the attributes of modules adds to `mutations`. guarded: some of those go by what was there before; moving: so
    do other effects.
    """

    def __init__(self, stores, reads):
        """reads: the names that the region's code reads otherwise than to add to them; None: any."""
        self.added, self.followed, self.put = [], [], []
        self.earlier = {}
        self.guarded = self.moving = False
        self.counts = tuple(stores.counted)
        self.reads = reads
        self.library = stores.library
        for place in stores.places.values():
            now = place.holder.get(place.key, MISSING)
            if now is not place.old:
                self.sort(place, now)
        self.values = [place.holder[place.key] for place in self.put]

    def guard(self, guards):
        """Have it asked whether the attributes are set as they were: in the object's own dict, past nothing that its class has."""
        for place in (*self.put, *(place for place, _ in self.added)):
            if place.owner is None:
                continue
            guards.kinds[0].append(place.owner)
            guards.kinds[1].append(type(place.owner))
            guards.owned[0].append(place.owner)
            guards.owned[1].append(vars(place.owner))
            for cls in type(place.owner).__mro__:
                for name in () if self.library(cls) else (place.key, "__setattr__"):
                    guards.look(cls, name, vars(cls).get(name, MISSING))

    def __bool__(self):
        return bool(self.added or self.put)

    def sort(self, place, now):
        """Say what a replay does with a place."""
        old, unread = place.old, self.unread(place)
        before = self.earlier.setdefault(id(place.holder), dict(place.holder))
        if type(now) is Tensor:
            follow = type(old) is Tensor
        elif type(now) in FIXED:
            follow = type(now) is type(old) is int and place.adds and unread
        else:
            raise Unproven(f"keeps a {type(now).__name__} as {place.key}")
        over = place.plain and unread
        if old is MISSING:
            del before[place.key]
        else:
            before[place.key] = FOLLOWED if follow or over else old
        if follow and type(now) is not Tensor:
            if place.step is None and threading.active_count() > 1:
                raise Unproven("counts by what is not known, while other threads may count too")
            self.added.append((place, now - old if place.step is None else place.step))
        else:
            self.put.append(place)
            self.moving |= not follow and not over
            self.guarded |= place.counts != (0, 0) and not follow and not over
            if follow and not over:
                self.followed.append(place)

    def unread(self, place) -> bool:
        """Whether nothing in the region reads what was in a place."""
        if self.reads is None or place.key in self.reads or not place.named:
            return False
        if place.counts == (0, 0):
            return True
        classes = type(place.owner).__mro__  # a library's layer reads its own attributes
        base = next(cls for cls in classes if cls.__name__ == "Module" and self.library(cls))
        return not any(map(self.library, set(classes).difference(base.__mro__)))


class Keeping:
    """The same for a replay, as lists."""

    __slots__ = (
        "holders",
        "keys",
        "old",
        "kinds",
        "sources",
        "outer",
        "counters",
        "names",
        "steps",
        "puts",
        "counts",
        "guarded",
        "moving",
    )

    def __init__(self, effects):
        self.holders = [place.holder for place in effects.followed]
        self.keys = [place.key for place in effects.followed]
        self.old = [place.old for place in effects.followed]
        self.kinds = list(map(_described, self.old))
        self.sources = {id(t._storage): KeptIn(h, k, t._spec) for h, k, t in zip(self.holders, self.keys, self.old)}
        self.counters = [place.holder for place, _ in effects.added]
        self.names = [place.key for place, _ in effects.added]
        self.steps = [step for _, step in effects.added]
        self.puts = [(place.holder, place.key) for place in effects.put]
        self.counts = effects.counts
        self.guarded, self.moving = effects.guarded, effects.moving
        self.outer = frozenset()

    def released(self):
        """The tensors of before are not needed any more. They are returned."""
        old, self.old = self.old, None
        return old

    def holds(self, leaves) -> bool:
        """Whether what is in the places may stand for what was there."""
        if not all(type(holder.get(name)) is int for holder, name in zip(self.counters, self.names)):
            return False
        if not self.holders:
            return True
        found = [holder.get(key) for holder, key in zip(self.holders, self.keys)]
        if not all(type(t) is Tensor for t in found) or list(map(_described, found)) != self.kinds:
            return False
        storages = set(map(id, map(_storage, found)))
        given = [id(leaf._storage) for leaf in leaves if isinstance(leaf, Tensor)]
        return len(storages) == len(found) and storages.isdisjoint(given) and storages.isdisjoint(self.outer)

    def set(self, values):
        """Do what the region does: values: what is put into the places, in order."""
        for holder, name, step in zip(self.counters, self.names, self.steps):
            holder[name] += step
        for (holder, key), value in zip(self.puts, values):
            holder[key] = value

    def count(self):
        """Have the attributes of modules that were set counted; the counts are returned."""
        mutations[0] += self.counts[0]
        mutations[1] += self.counts[1]
        return tuple(mutations)


def _described(tensor):
    """What code may see of a tensor besides its values and which one it is."""
    return (
        tensor._spec, tensor._rg, tensor._storage.spec is tensor._spec, tensor._edge is None, tensor._grad is None,
        tensor.is_inference(), tensor._hooks is None, not attributes_of(tensor),
    )  # fmt: skip


__all__ = ["Effects", "Keeping"]
