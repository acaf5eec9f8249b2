"""Many small tensors whose values are at hand are joined by numpy.

Samples of a replay buffer, of a dataset: which of them are the same tensors changes from step to step, and with it the inputs of the
graph that would join them, so that each step would be another program. One array goes in instead.
"""

from ..core import device as devices
from ..core import storage as storages
from ..core.lanes import is_traced
from ..core.storage import Storage
from ..tensor import edge_of, make

MANY = 8  # tensors, from which on it is done
# Bytes of the result: more go through a program, unless they are parts of larger memory or shared with numpy.
_LITTLE = 1 << 18


def joined(op, plan, me, tensors, dim):
    """The result of a call of `cat` or `stack`; None where a program has to make it."""
    spec = plan.specs[0]
    if spec.device is not devices.cpu or not spec.contiguous or type(dim) is not int:
        return None
    little = spec.nbytes <= _LITTLE
    if me.scope is not None or me.extra.get("transforms"):
        return None
    dtype, ndim, grad = spec.dtype, tensors[0]._spec.ndim, me.grad
    for t in tensors:
        own, value = t._spec, t._storage.value
        if own.dtype is not dtype or own.ndim != ndim or not storages.at_hand(value) or is_traced(value):
            return None
        if not little and t._storage.spec is own:
            return None
        if grad and (t._rg or edge_of(t) is not None):
            return None
    array = op.by_numpy([storages.numpy_of(t._storage, t._spec, t._offset) for t in tensors], dim)
    if little:
        storage = Storage(storages.to_device(array, spec.device), spec)
    else:
        storage = Storage(None, None)
        storages.adopt(storage, array.reshape(-1), array, spec, True)
    storage.version = me.born
    return make(storage, spec)
