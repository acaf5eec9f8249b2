"""Rows: what an index of 0 dimensions picks, a number or a tensor whose value may not be known yet."""

from ..autograd import node as tape
from ..autograd.derive_views import row_plan
from ..core import dtype as dtypes
from ..core import storage as storages
from ..core.lanes import is_traced
from ..core.record import tls
from ..core.somewhere import Index, Somewhere, beyond
from ..core.spec import Spec
from ..ops import registry
from ..tensor import edge_of, value_of
from .view import call_view


def row(t, dim, i, place):
    """The row of a number. place: what errors call the dimension."""
    n = t._spec.shape[dim] if dim < t._spec.ndim else 0
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension {place} with size {n}")
    return call_view(registry.VIEWS["select"], t, (dim, i + n if i < 0 else i))


def picked(t, dim, x, place, gathers, writes):
    """The row of a 0-d tensor; None where it is left to a gather or scatter, which has to have no other place for its dimension
    (gathers): bytes, values inside a traced function, and writes to what is indexed.

    A value that is not known is waited for only where somebody sees the call: the row lies somewhere.
    """
    spec, device = x._spec, t._spec.device
    if spec.dtype is dtypes.uint8:
        return None
    if unknown(x):
        if not (writes or is_traced(x._storage.value) or spec.device is not device or device.type == "meta"):
            me = tls.me
            if me.special is None and not (me.grad and "saved_hooks" in me.extra):
                return _somewhere(t, dim, x, place)
        elif gathers and not (writes and 0 in t._spec.strides):  # a scatter writes apart what is one in memory
            return None
    return row(t, dim, int(x.item()), place)


def _somewhere(t, dim, x, place):
    """The row of an index that is not known yet."""
    known = storages.known_of(x._storage, x._spec, x._offset) if type(x._offset) is int else None
    if known is not None:
        row(t, dim, int(known), place)  # raises where there is none
    found = row(t, dim, 0, place)
    spec = Spec.dense((), x._spec.dtype, x._spec.device)
    index = value_of(x)
    found._offset = beyond(found._offset, Index(index, spec, t._spec.shape[dim], t._spec.strides[dim], place))
    if found._edge is not None:
        plan = row_plan(t._spec, dim, spec)
        if not plan.bwd:
            tape.backward_plan(plan, 1).node = tape.class_of("SelectBackward0", _Row)
        found._edge = (tape.record(plan, (None, index), (edge_of(t), None), (), ()), 0)
    return found


class _Row(tape.Node):
    """The node of a row that lies somewhere. As PyTorch's, which holds a number, it is not freed by a backward pass."""

    __slots__ = ()

    def release(self):
        self.guards = ()


def unknown(x):
    """Whether the value of an index tensor is not known yet."""
    value = x._storage.value
    return not storages.at_hand(value) or is_traced(value) or type(x._offset) is Somewhere and x._offset.sum is None
