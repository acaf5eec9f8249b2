"""Views of tensors whose class has a `__torch_dispatch__`: a write to one gives the tensor that it is a view of a new history.

Nobody but the class knows what memory such tensors share, so a view remembers the call that made it.
"""

from ..autograd.node import PythonNode, class_of
from ..tensor import edge_of
from . import dispatched

OPERATED: list = [None, None]  # `operated` and `op` of `outer.py`, set there


class View:
    """The call that made a view, `func(base, *rest, **kwargs)` (its result number `k`, or None), and how often `base` was written to then."""

    __slots__ = ("base", "func", "rest", "kwargs", "k", "writes")

    def __init__(self, base, func, rest, kwargs, k):
        self.base, self.func, self.rest, self.kwargs, self.k = base, func, rest, kwargs, k
        self.writes = writes_of(base)

    def of(self, t):
        """The same view of another tensor."""
        found = OPERATED[0](self.func, (t, *self.rest), self.kwargs)
        return found if self.k is None else found[self.k]


class CopySlices(PythonNode):
    """The history of a tensor after a write to a view of it: edges to what it was, and to what was written."""

    def apply(self, g):
        if g is None:
            return (None, None)
        before, _ = self.edges
        rest = None
        if before is not None:
            rest = OPERATED[1]("clone", g)
            OPERATED[1]("zero_", self.view.of(rest))
        return rest, self.view.of(g)


def writes_of(t) -> int:
    return t.__dict__.get("_outer_writes", 0)


def mark(found, func, args, kwargs):
    """Remember of which tensor these are views."""
    several = isinstance(found, (tuple, list))
    for k, o in enumerate(found if several else (found,)):
        if dispatched.dispatches(o) and o is not args[0]:
            o.__dict__["_outer_view"] = View(args[0], func, args[1:], kwargs, k if several else None)


def root_of(t):
    """The tensor that a view is one of, in the end."""
    seen = t.__dict__.get("_outer_view")
    while seen is not None:
        t = seen.base
        seen = t.__dict__.get("_outer_view")
    return t


def refresh(t):
    """Give a view the history that it has since its base was written to."""
    seen = t.__dict__["_outer_view"]
    base = seen.base
    if "_outer_view" in base.__dict__:
        refresh(base)
    if seen.writes != writes_of(base):
        again = seen.of(base)
        t._edge, t._rg = again._edge, again._rg
        _note(t)
        seen.writes = writes_of(base)


def _note(t):
    t.__dict__["_outer_writes"] = writes_of(t) + 1


def touched(t):
    """There was a write to `t`: saved before, neither it nor what it is a view of can be read by a derivative any more."""
    t._storage.version += 1
    seen = t.__dict__.get("_outer_view")
    while seen is not None:
        seen.base._storage.version += 1
        seen = seen.base.__dict__.get("_outer_view")


def written(t):
    """`t` has a new history: so have those that it is a view of."""
    _note(t)
    seen = t.__dict__.get("_outer_view")
    while seen is not None:
        base = seen.base
        node = class_of("CopySlices", CopySlices)(
            "torch::autograd::CopySlices", (edge_of(base), edge_of(t)), (base._spec,)
        )
        node.view = seen
        base._edge, base._rg = (node, 0), False
        _note(base)
        seen.writes = writes_of(base)
        t, seen = base, base.__dict__.get("_outer_view")


__all__ = ["OPERATED", "mark", "refresh", "root_of", "touched", "written"]
