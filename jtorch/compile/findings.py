"""What one call of a region did, seen from outside: where its program's inputs came from, and where its results went.

All is read from the tensors and storages that were there before the call (`snapshot.py`) and from the graph that it recorded. What a
replay could not do again is `Unproven`, with the reason.
"""

import gc
import types
from sys import getrefcount

from ..autograd.node import Node
from ..core.program import ALONE
from ..core.record import Pending
from ..core.storage import Storage
from ..handles import RemovableHandle
from ..tensor import Tensor
from .guards import attributes_of
from .snapshot import instances
from .sources import GradientOf, KeptIn, is_whole


class Unproven(Exception):
    """Why a call cannot be replayed."""


class Findings:
    """The inputs and results of a recorded call. Places are indices among the graph's results.

    sources: of each input a storage, the number of an argument, `GradientOf` a tensor, or None for a random key.
    grads: (tensor, place of its new gradient, that gradient's spec); no place where the gradient was dropped.
    targets: (what is written: as in `sources`, place).
    results: of each leaf of what the call returned (place, leaf, spec, edge, requires_grad, argument). Without a place it is `leaf`, or
    argument number `argument`, or the gradient number `~argument` of those in `grads` that have a place. With one, `leaf` is the number
    of an earlier result on the same storage, or None; where requires_grad is None, that is the very same tensor.
    inferred: the numbers of those that were made under an inference mode of the region's own.
    """

    __slots__ = (
        "before", "leaves", "argument_of", "argument_at", "gradient_of", "place_of", "elsewhere",
        "sources", "grads", "targets", "results", "result_tree", "inferred", "keeping", "moved", "literals",
    )  # fmt: skip

    def __init__(self, before, leaves, keeping=None, known=frozenset()):
        """keeping: the places that tensors are put into. known: ids of the tensors that the code can read otherwise."""
        self.before = before
        self.leaves = leaves
        self.keeping = keeping.sources if keeping is not None else {}
        self.moved = frozenset(map(id, keeping.released())) if keeping is not None else frozenset()
        tensors = [(k, leaf) for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.argument_of = {id(leaf._storage): k for k, leaf in tensors}
        self.argument_at = {id(leaf): k for k, leaf in tensors}
        if (
            keeping is not None
            and len(self.keeping) < len(keeping.holders)
            or not self.moved.isdisjoint((*known, *self.argument_at))
            or not self.argument_of.keys().isdisjoint(self.keeping)
        ):
            raise Unproven("a tensor that is kept in a place is in another place too")
        self.gradient_of = {id(t[4]._storage): GradientOf(t[0]) for t in before.tensors.values() if is_whole(t[4])}

    def look(self, graph, keys, literals, outcome, put=()):
        """Find everything.

        keys: ids of the random keys that the call drew; literals: the constants that it has made; outcome: what it returned; put: what
        it put into places, which are results too.
        """
        self.literals = literals
        self.sources = [self._source(value, keys) for value in graph.inputs]
        self.place_of = {id(p): i for i, p in enumerate(graph.pendings)}
        # Storages whose values are results: where one is in none of the places below, somebody keeps it elsewhere.
        self.elsewhere = {id(o) for o in instances({Storage}) if self._place(o) is not None}
        self._look_at_tensors()
        self._look_at_storages()
        self._look_at_result(outcome, put)
        if self.elsewhere:
            raise Unproven("a result that is kept in a new place (state made at the first step?)")
        wanted = set(self.wanted())
        if any(n > ALONE and k not in wanted for k, n in enumerate(map(getrefcount, graph.pendings))):
            raise Unproven("a result that is kept where the collector does not look (gc.freeze)")

    def wanted(self):
        """The places of all results that somebody can see, in order."""
        places = {i for _, i in self.targets} | {i for _, i, _ in self.grads} | {r[0] for r in self.results}
        return sorted(places - {None})

    def _named(self, storage):
        """A storage by what a later call finds it through."""
        known = self.argument_of.get(id(storage))
        if known is not None:
            return known
        found = self.keeping.get(id(storage)) or self.gradient_of.get(id(storage), storage)
        if type(found) is KeptIn:
            if found.first is not storage.spec:
                raise Unproven("a view that is kept in a place")
            return found
        if found is not storage and id(found.tensor) in self.argument_at:
            raise Unproven("the gradient of an argument")
        return found

    def _place(self, storage):
        """The place of a storage's value, or None where that is no result."""
        return self.place_of.get(id(storage.value)) if type(storage.value) is Pending else None

    def _source(self, value, keys):
        storage = self.before.storage_of(value)
        if storage is not None:
            return self._named(storage)
        if id(value) in keys:
            return None
        for made, spec in self.literals:
            if (made.value if type(made) is Pending else made) is value:
                return Storage(value, spec)
        if self.before.part(value):
            raise Unproven("a value that two tensors share")
        raise Unproven("an input that was made inside the region")

    def _look_at_tensors(self):
        """The tensors from outside are as they were, but for their gradients."""
        self.grads = []
        hooked = RemovableHandle.next_id != self.before.handles
        for tensor, storage, spec, offset, old_grad, edge, rg in self.before.tensors.values():
            if (
                tensor._storage is not storage
                or tensor._spec is not spec
                or tensor._offset != offset
                or tensor._rg != rg
            ):
                raise Unproven("a tensor was given another storage in the region")
            if hooked and _has_new_hook(tensor, self.before.handles):
                raise Unproven("a tensor from outside was given a hook in the region")
            if tensor._edge is not edge:
                raise Unproven("the history of a tensor from outside was changed in the region")
            if tensor._grad is not old_grad:
                self.grads.append((tensor, *self._gradient(tensor)))

    def _gradient(self, tensor):
        """(place, spec) of the gradient that a tensor has been given; (None, None) where it has none any more."""
        new = tensor._grad
        if id(tensor) in self.argument_at:
            raise Unproven("the gradient of an argument")
        if new is None:
            return None, None
        if new._edge is not None or type(new._storage.value) is not Pending:
            raise Unproven("a gradient with a history")
        place = self._place(new._storage)
        if place is None:
            raise Unproven("a gradient from outside the region")
        self.elsewhere.discard(id(new._storage))
        return place, new._spec

    def _look_at_storages(self):
        """The storages from outside have their values, or results."""
        self.targets = []
        for storage, spec, version in self.before.storages.values():
            place = self._place(storage)
            if place is None:
                if storage.version != version:
                    raise Unproven("a tensor from outside was given a value from outside")
            else:
                if storage.spec is not spec:
                    raise Unproven("a storage changed its layout in the region")
                named = self._named(storage)
                if type(named) is KeptIn:
                    raise Unproven("a tensor that is written to is replaced in its place")
                self.targets.append((named, place))
                self.elsewhere.discard(id(storage))

    def _look_at_result(self, outcome, put):
        if outcome.why is not None:
            raise Unproven(outcome.why)
        leaves = [*outcome.leaves, *put]
        self.result_tree = outcome.tree
        if _held_elsewhere(outcome.made):
            raise Unproven("a list or dict among the results that is there twice, or was not made for them alone")
        self.results = []
        self.inferred = []
        made = [tensor._grad for tensor, place, _ in self.grads if place is not None]
        gradient_at = {id(grad): k for k, grad in enumerate(made)}
        for leaf in leaves:
            self.results.append(self._result(leaf, leaves[: len(self.results)], gradient_at))

    def _result(self, leaf, earlier, gradient_at):
        if not isinstance(leaf, Tensor):
            return None, leaf, None, None, None, None
        if id(leaf) in gradient_at:
            return None, None, None, None, None, ~gradient_at[id(leaf)]
        if id(leaf) in self.moved:
            raise Unproven("a result that was kept in a place")
        if id(leaf) in self.before.tensors:
            return None, leaf, None, None, None, self.argument_at.get(id(leaf))
        if leaf._edge is not None and not _released(leaf._edge):
            raise Unproven("a result that still needs its backward")
        if id(leaf._storage) in self.before.storages or type(leaf) is not Tensor:
            raise Unproven("a result that shares the memory of a tensor from outside, or is of a class of its own")
        place = self._place(leaf._storage)
        if place is None or leaf._base is not None:
            raise Unproven("a result from outside the region, or a view")
        if leaf.is_inference() and not self.before.inference:
            self.inferred.append(len(earlier))
        if attributes_of(leaf):
            raise Unproven("a result with attributes of its own")
        self.elsewhere.discard(id(leaf._storage))
        same = next((k for k, other in enumerate(earlier) if other is leaf), None)
        if same is not None:
            return place, same, leaf._spec, leaf._edge, None, None
        first = next((k for k, other in enumerate(earlier) if _shared(other, leaf)), None)
        return place, first, leaf._spec, leaf._edge, leaf._rg, None


def containers(value, found):
    """Collects the lists, tuples and dicts that a value consists of."""
    if type(value) in (list, tuple, dict):
        found.append(value)
        for part in value.values() if type(value) is dict else value:
            containers(part, found)


def _held_elsewhere(found) -> bool:
    """Whether something besides the result itself has one of its containers or objects: a call that is replayed makes new ones."""
    changing = tuple(value for value in found if type(value) is not tuple)
    if len(set(map(id, changing))) < len(changing):
        return True
    # Since Python 3.13 the arguments of the next call are holders too.
    parts = {*map(id, found), id(found), id(changing)}
    holders = gc.get_referrers(*changing) if changing else ()
    return any(id(holder) not in parts and type(holder) is not types.FrameType for holder in holders)


def _has_new_hook(tensor, since) -> bool:
    """Whether a tensor, or the node that made it, has a hook whose handle is newer than this number."""
    node = tensor._edge[0] if tensor._edge is not None else None
    registries = [
        tensor._hooks,
        getattr(node, "pre_hooks", None),
        getattr(node, "hooks", None),
        *tensor.__dict__.values(),
    ]
    return any(type(key) is int and key >= since for hooks in registries if isinstance(hooks, dict) for key in hooks)


def _shared(other, leaf) -> bool:
    return isinstance(other, Tensor) and other._storage is leaf._storage


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


__all__ = ["Findings", "Unproven", "containers"]
