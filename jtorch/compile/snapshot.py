"""What was alive before a region ran."""

import gc
import weakref

import jax

from ..core.lanes import is_traced
from ..core.parcel import Parcel
from ..core.pending import Small
from ..core.record import Pending
from ..core.storage import Storage
from ..handles import RemovableHandle, mutations
from ..tensor import Tensor


def _kinds(kind):
    """A class and all that derive from it."""
    yield kind
    for derived in type.__subclasses__(kind):
        yield from _kinds(derived)


def instances(kinds):
    """All objects of these classes: they refer to them.

    A list of all objects would also hold a tuple that another thread is making, which that thread could then not make longer
    (SystemError), and takes half as long again.
    """
    return [o for o in gc.get_referrers(*kinds) if type(o) in kinds]


class Snapshot:
    """All storages and tensors alive before a region runs, and what they held.

    by_array: id of a value -> (its storage, a weak reference to the value: an id is used again once its object has died).
    untaken: those with a value that no program had taken, or that lay in a parcel, and the value.
    """

    def __init__(self, me, leaves):
        gc.collect(0)
        self.storages = {}
        self.by_array = {}
        self.untaken = []
        self.twice = set()
        self.tensors = {}
        self.mutations = tuple(mutations)
        self.grad = me.grad
        self.inference = me.inference
        self.special = me.special
        self.function_modes = me.function_modes
        self.extra = dict(me.extra)
        self.handles = RemovableHandle.next_id
        ours = instances({Storage, *_kinds(Tensor)})
        for o in ours:
            if type(o) is Storage:
                value = o.value
                if type(value) is Pending:
                    value = value.value if value.value is not None else value
                self.storages[id(o)] = (o, o.spec, o.version)
                if type(value) is Pending and type(value.graph) in (Small, Parcel):
                    self.untaken.append((o, value))
                if id(value) in self.by_array and self.by_array[id(value)][0] is not o:
                    self.twice.add(id(value))
                if value is not None and type(value) is not Pending and not is_traced(value):  # of a vmap that is over
                    self.by_array[id(value)] = o, weakref.ref(value)
            else:
                try:
                    self.tensors[id(o)] = (o, o._storage, o._spec, o._offset, o._grad, o._edge, o._rg)
                except AttributeError:
                    continue

    def unmoved(self, me) -> bool:
        """Whether what makes a thread's calls unusual is what it was."""
        return (
            me.grad is self.grad
            and me.inference is self.inference
            and me.special is self.special
            and me.function_modes == self.function_modes
            and me.extra.keys() == self.extra.keys()
            and all(me.extra[name] is value for name, value in self.extra.items())
        )

    def part(self, value) -> bool:
        """Give each of several storages that share a value one of its own, so that another run can tell them apart. False: none does."""
        if id(value) not in self.twice:
            return False
        for storage, _, _ in self.storages.values():
            held = storage.value.value if type(storage.value) is Pending else storage.value
            if held is value and storage is not self.by_array[id(value)][0]:
                storage.value = jax.numpy.array(value, copy=True)
        return True

    def storage_of(self, value):
        """The one storage that held a value, or None."""
        if id(value) not in self.by_array:
            found = [storage for storage, pending in self.untaken if pending.value is value]
            return found[0] if len(found) == 1 else None
        storage, known = self.by_array.get(id(value), (None, None))
        return storage if storage is not None and known() is value and id(value) not in self.twice else None
