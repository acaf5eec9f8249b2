"""Rows: what an index of 0 dimensions picks, a number or a tensor whose value may not be known yet."""

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
    (gathers): bytes, values inside a traced function, writes to what is indexed, and rows with a gradient, which are copies.

    A value that is not known is not waited for: the row lies somewhere. It is where a tangent has to be looked up there too.
    """
    spec, device = x._spec, t._spec.device
    if spec.dtype is dtypes.uint8:
        return None
    if unknown(x) and ("_tangent" not in t.__dict__ or is_traced(x._storage.value)):
        if not (writes or is_traced(x._storage.value) or spec.device is not device or device.type == "meta"):
            if not (tls.me.grad and edge_of(t) is not None):
                known = storages.known_of(x._storage, spec, x._offset) if type(x._offset) is int else None
                if known is not None:
                    row(t, dim, int(known), place)  # raises where there is none
                found = row(t, dim, 0, place)
                index = Index(
                    value_of(x), Spec.dense((), spec.dtype, device), t._spec.shape[dim], t._spec.strides[dim], place
                )
                found._offset = beyond(found._offset, index)
                return found
        if gathers and not (writes and 0 in t._spec.strides):  # a scatter writes apart what is one in memory
            return None
    return row(t, dim, int(x.item()), place)


def unknown(x):
    """Whether the value of an index tensor is not known yet."""
    value = x._storage.value
    return not storages.at_hand(value) or is_traced(value) or type(x._offset) is Somewhere and x._offset.sum is None
