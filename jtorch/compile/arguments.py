"""The arguments of a region's call: as a flat list, and what a replay asks of each and of all together."""

import weakref
from itertools import repeat

import jax

from ..core.record import Pending
from ..tensor import Tensor
from .guards import FIXED, attributes_of, same

OFTEN = 8  # calls with other arrays, after which nobody looks whether the same come again


class _Key:
    """A key of a dict that is no string, compared by what it is or, of numbers, by type and value."""

    __slots__ = ("key",)

    def __init__(self, key):
        self.key = key

    def __eq__(self, other):
        return type(other) is _Key and same(other.key, self.key)

    __hash__ = None


def flatten(args, kwargs):
    """(leaves, tree): the arguments as a flat list and their nesting, comparable."""
    leaves = []
    tree = [flat(a, leaves) for a in args]
    if kwargs:
        tree.append(tuple((k, flat(v, leaves)) for k, v in kwargs.items()))
    return leaves, tuple(tree)


def flat(x, leaves):
    """The nesting of one value; what is in it is added to `leaves`."""
    kind = type(x)
    if kind is list or kind is tuple:
        return (kind, *[flat(v, leaves) for v in x])
    if kind is dict:
        return (kind, *[(k if type(k) is str else _Key(k), flat(v, leaves)) for k, v in x.items()])
    leaves.append(x)
    return None


def has_containers(tree) -> bool:
    """Whether a list, tuple or dict is among the arguments with this nesting."""
    return any(
        type(node) is tuple and node and (type(node[0]) is type or has_containers(v for _, v in node)) for node in tree
    )


class Arguments:
    """What a replay asks of the arguments: each as it was or of its kind, and no more memory shared than there was."""

    __slots__ = ("guards", "places", "sharing", "apart", "outer", "pinned", "asked", "graded", "bare", "named", "tensors", "inferred")  # fmt: skip

    def __init__(self, leaves):
        self.guards = [_guard(leaf) for leaf in leaves]
        self.places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        storages = [leaves[k]._storage for k in self.places]
        self.sharing = _firsts(storages), _firsts([leaves[k] for k in self.places])
        self.apart = len(set(self.sharing[0])) == len(storages)
        self.outer = frozenset()
        self.pinned = {}
        self.asked = False

    def part_from(self, leaves, outer, read):
        """`outer`: ids of storages that no argument may have, since what is read from or written to one of them would show in the
        other. `read`: of tensors that the code can read by another way: an argument that has one of them must always have it.
        """
        self.outer = frozenset(outer)
        self.pinned = {k: leaves[k]._storage for k in self.places if id(leaves[k]._storage) in read}
        self.outer -= set(map(id, self.pinned.values()))

    def ask(self, leaves, read):
        """Note what else the code may ask of a tensor: its gradient's kind, attributes of its own, inference, and which one it is.

        read: the Reader of what the code reads.
        """
        tensors = [leaves[k] for k in self.places]
        self.graded = list(map(gradient_of, tensors)) if read.accumulates or read.wanted("grad") else None
        self.inferred = list(map(Tensor.is_inference, tensors)) if read.wanted("is_inference") else None
        self.bare = read.names is None
        self.tensors = read.tensors | read.of_modules
        self.named = self.names_of(tensors) if read.identity else None
        self.asked = self.bare or any(each is not None for each in (self.graded, self.inferred, self.named))

    def names_of(self, tensors):
        """Which of the arguments are one tensor, and which are tensors that the code reads otherwise."""
        ids = list(map(id, tensors))
        return [(ids.index(i), i if i in self.tensors else None) for i in ids]

    def answer(self, given) -> bool:
        """Whether the tensors among the arguments are as they were in what else the code may ask of them."""
        tensors = [given[k] for k in self.places]
        if self.graded is not None and list(map(gradient_of, tensors)) != self.graded:
            return False
        if self.inferred is not None and list(map(Tensor.is_inference, tensors)) != self.inferred:
            return False
        if self.bare and any(map(attributes_of, tensors)):
            return False
        return self.named is None or self.names_of(tensors) == self.named

    def known(self) -> bool:
        """Whether every argument can be followed or compared."""
        return None not in self.guards

    def hold(self, leaves) -> bool:
        """Whether these may stand for those that the region was recorded with."""
        for leaf, guard in zip(leaves, self.guards):
            if not _holds(leaf, guard):
                return False
        places = self.places
        if not places:
            return True
        if len(places) == 1 and not self.outer and not self.pinned:
            return True
        storages = [leaves[k]._storage for k in places]
        if self.apart:
            if len(set(map(id, storages))) != len(places):
                return False
        elif (_firsts(storages), _firsts([leaves[k] for k in places])) != self.sharing:
            return False
        if self.outer and not self.outer.isdisjoint(map(id, storages)):
            return False
        return not self.pinned or all(leaves[k]._storage is s for k, s in self.pinned.items())


def _firsts(things):
    """Of each thing where it comes first: which of them are one."""
    ids = list(map(id, things))
    return list(map(ids.index, ids))


def gradient_of(tensor):
    """What code may ask of a tensor's gradient besides its values: None where there is none."""
    grad = tensor._grad
    return None if grad is None else (type(grad), grad._spec, grad._rg)


def _guard(leaf):
    if isinstance(leaf, Tensor):
        if leaf._storage.spec is not leaf._spec or leaf._edge is not None or leaf._base is not None or leaf._hooks:
            return None
        return ("tensor", leaf._spec, leaf._rg, type(leaf))
    if type(leaf) in FIXED:
        return ("value", leaf, None, None)
    return ("object", leaf, None, None)


def _holds(leaf, guard):
    kind, what, more, cls = guard
    if kind == "tensor":
        return (
            type(leaf) is cls and leaf._spec is what and leaf._storage.spec is what and leaf._rg is more
            and leaf._edge is None and leaf._base is None and not leaf._hooks
        )  # fmt: skip
    if kind == "value":
        return same(leaf, what)
    return leaf is what


class Outside:
    """A storage from outside the region that it only reads, where a check looks for indices. Seen like a tensor of all of it."""

    __slots__ = ("_storage", "_spec", "_offset")

    def __init__(self, storage):
        self._storage, self._spec, self._offset = storage, storage.spec, 0

    def ready(self):
        """Itself, with its value computed: the replay takes it next."""
        if type(self._storage.value) is Pending:
            self._storage.value.get()
        return self


def _seen_by(argument, given):
    return given[argument] if type(argument) is int else argument.ready()


def checks_of_arguments(checks, argument_of, before):
    """Those checks that look at arguments, or at storages from outside that the region only reads: (op, arguments, holes, last).

    before: the region's Snapshot. holes: where in the arguments and, of a list, where in that, the place, which argument of the region
    (or Outside). last: the arrays that have passed at last, as long as the same ones come again.
    """
    found = []
    for op, args, places in checks:
        for place in places:
            storage, place.storage = place.storage, None
            place.argument = argument_of.get(id(storage))
            _, spec, version = before.storages.get(id(storage), (None, None, None))
            if place.argument is None and storage.spec is spec and storage.version == version:
                place.argument = Outside(storage)
        holes = []
        for k, arg in enumerate(args):
            for at, value in enumerate(arg) if type(arg) is list else ((None, arg),):
                if any(value is place for place in places) and value.argument is not None:
                    holes.append((k, at, value, value.argument))
        # the values of others are not known
        args = [
            [None if v in places else v for v in a] if type(a) is list else None if a in places else a for a in args
        ]
        if holes:
            found.append((op, args, holes, Last()))
    return found


class Last(list):
    """References to arrays. new: how often others have come in their place."""

    __slots__ = ("new",)

    def __init__(self):
        self.new = 0


def in_range(checks, given) -> bool:
    """Whether indices and the like among the arguments pass the checks; if not, the region's Python is to raise the error."""
    for op, args, holes, last in checks:
        if last and all(map(_still, last, holes, repeat(given))):
            continue
        args = args.copy()
        for k, at, place, argument in holes:
            value = place.values(_seen_by(argument, given))
            if at is None:
                args[k] = value
            else:
                args[k] = [*args[k][:at], value, *args[k][at + 1 :]]
        try:
            for check in op.value_checks:
                op.invoke(check, args)
        except (IndexError, RuntimeError, ValueError):
            return False
        last.new += 1
        if last.new < OFTEN:
            last[:] = [_array(_seen_by(argument, given)) for *_, argument in holes]
        else:
            last.clear()  # a loop over data
    return True


def _array(t):
    """A reference to the array that is a tensor's value, if nobody can write to that."""
    value = _value(t._storage)
    return weakref.ref(value) if t._storage.spec is t._spec and isinstance(value, jax.Array) else None


def _value(storage):
    value = storage.value
    return value.value if type(value) is Pending else value


def _still(reference, hole, given) -> bool:
    """Whether an argument has the array that has passed."""
    found = _value(_seen_by(hole[3], given)._storage)
    return found is not None and reference is not None and reference() is found


__all__ = [
    "Arguments",
    "Outside",
    "checks_of_arguments",
    "flat",
    "flatten",
    "gradient_of",
    "has_containers",
    "in_range",
]
