"""What one chain hands on to the next, as one array a dtype: a program pays 8 us for each little result that comes back as an argument.

The 164 parameters and momenta of a deep MLP go from chain to chain unseen; whoever looks at one of them opens the parcel.
"""

import threading
from itertools import accumulate, pairwise
from math import prod

import jax
import jax.numpy as jnp
import numpy as np

from .beside import beside

LITTLE = 1 << 15  # bytes of a value that travels with others: it is copied where a chain begins and where it ends
FEW = 8  # values
OFTEN = 4  # parcels of a kind, until a program opens them: the host takes 8 ms for 164 values, it 1, and up to seconds to compile


class Packer:
    """Which of some values travel together, and how.

    shapes: what the values are like. alone: the places of those that travel by themselves. groups: of each dtype the places of the
    others. sent, opened: how many parcels have been made, and opened.
    """

    __slots__ = ("shapes", "alone", "groups", "together", "slices", "split", "sent", "opened")

    def __init__(self, shapes):
        self.shapes = shapes
        self.groups = {}
        for k, shape in enumerate(shapes):
            if isinstance(shape, np.ndarray) or shape.weak_type or shape.sharding is not None:
                continue  # the host's, or of a kind that is not a result's
            if prod(shape.shape) * shape.dtype.itemsize <= LITTLE:
                self.groups.setdefault(shape.dtype, []).append(k)
        self.groups = [group for group in self.groups.values() if len(group) >= FEW]
        self.together = [k for group in self.groups for k in group]
        self.alone = sorted(set(range(len(shapes))).difference(self.together))
        self.slices = [
            list(pairwise(accumulate((prod(shapes[k].shape) for k in group), initial=0))) for group in self.groups
        ]
        self.split = None  # the program that opens parcels, once there is one
        self.sent = self.opened = 0

    def parts(self):
        """What travels is like: the values that do by themselves, then one array of each group."""
        ends = [slices[-1][1] for slices in self.slices]
        flats = [jax.ShapeDtypeStruct((end,), self.shapes[group[0]].dtype) for group, end in zip(self.groups, ends)]
        return [*map(self.shapes.__getitem__, self.alone), *flats]

    def joined(self, values, of=jnp):
        """The arrays of the groups, from all values."""
        return [of.concatenate([values[k].reshape(-1) for k in group]) for group in self.groups]

    def join(self, values):
        """What travels, from all values."""
        return [*map(values.__getitem__, self.alone), *self.joined(values)]

    def values(self, *flats):
        """Those that travel together."""
        return [
            flat[start:end].reshape(self.shapes[k].shape)
            for group, slices, flat in zip(self.groups, self.slices, flats)
            for k, (start, end) in zip(group, slices)
        ]

    def part(self, parts):
        """All values, from what travels."""
        values = dict(zip(self.alone, parts)) | dict(zip(self.together, self.values(*parts[len(self.alone) :])))
        return list(map(values.__getitem__, range(len(self.shapes))))

    def parted(self, flats):
        """The same, of arrays that have been made."""
        self.opened += 1
        if self.split is not None:
            return self.split(*flats)
        if self.opened == OFTEN:
            beside(self.compile, self.parts()[len(self.alone) :])
        jax.block_until_ready(flats)  # raises what went wrong
        return jax.device_put(list(map(np.array, self.values(*map(np.asarray, flats)))))

    def compile(self, flats):
        self.split = jax.jit(self.values).lower(*flats).compile()

    def given(self, values):
        """The arrays of the groups on the host, from values that have been made."""
        return self.joined(dict(zip(self.together, (np.asarray(values[k]) for k in self.together))), np)


def packer_of(shapes, known=None):
    """How values like these travel, as `known` says where it is for such; None if each does by itself."""
    if known is not None and known.shapes == shapes:
        return known
    made = Packer(shapes)
    return made if made.groups else None


class Parcel:
    """Values that have been made: those that travel together as they came, the others at their places in `values`.

    Pending values have it as their graph, and their place as their index, until somebody needs one.
    """

    waits = gathers = False
    done = True

    __slots__ = ("packer", "flats", "values", "lock", "is_open")

    def __init__(self, packer, parts):
        self.packer = packer
        self.lock = threading.Lock()
        self.is_open = False
        self.values = [None] * len(packer.shapes)
        for k, part in zip(packer.alone, parts):
            self.values[k] = part
        self.flats = parts[len(packer.alone) :]

    def open(self):
        """All values; those that a pending value has taken are missing."""
        if not self.is_open:
            with jax.ensure_compile_time_eval():
                values = self.packer.parted(self.flats)
            for k, value in zip(self.packer.together, values):
                self.values[k] = value
            self.is_open = True
        return self.values

    def give(self, pendings):
        """Each value is to be that of one of these."""
        for k in self.packer.alone:
            pendings[k].value = self.values[k]
            pendings[k].graph = None
        self.values = [None] * len(self.values)
        for k in self.packer.together:
            pendings[k].graph = self
            pendings[k].index = k

    def compute(self, pending):
        """A value is needed. It is handed over: whoever else knew the array would keep a program from taking its memory."""
        with self.lock:
            if pending.graph is self:
                pending.value, self.values[pending.index] = self.open()[pending.index], None
                pending.graph = None

    def holds(self, pendings) -> bool:
        """Whether all that travels together is still where it has been given."""
        given = list(map(pendings.__getitem__, self.packer.together))
        return [(p.graph, p.index) for p in given] == [(self, k) for k in self.packer.together]


def hand_over(values, pendings):
    """Values, or a parcel of them, become those of pending values."""
    if type(values) is Parcel:
        values.give(pendings)
        return
    for pending, value in zip(pendings, values):
        pending.value = value
        pending.graph = None
