"""`x[...]` and `x[...] = v`: basic indexing is views, tensors and sequences of numbers go to the index ops."""

from collections.abc import Sequence

import numpy as np

from . import deprecations, errors, errors_arguments
from .core import device as devices
from .core import dtype as dtypes
from .core import storage as storages
from .core.lanes import is_traced
from .core.record import tls
from .core.wide import is_wide
from .creation import from_array, tensor
from .dispatch import (
    call_view,
    cast_value,
    check_inplace,
    function_of,
    inplace,
    overlaps,
    write,
    write_on_tape,
)
from .dispatch.select import picked, row, unknown
from .dispatch.write import overlap
from .operators import asked_of_items
from .ops import registry
from .tensor import Tensor, edge_of, value_of
from .tracebacks import shorten


def _view(name, t, *statics):
    return call_view(registry.VIEWS[name], t, statics)


def getitem(self, index):
    """`self[index]`."""
    try:
        kind = type(index)
        if kind is int:
            return _view("select", self, 0, _checked(self, index))
        if kind is slice:
            return _slice(self, 0, index)
        if kind is Tensor and index._spec.dtype is dtypes.bool_:
            found = _picked_on_host(self, index)
            if found is not None:
                return found
        view, advanced = _basic(self, index)
        if advanced is None:
            return view if view is not self else _view("alias", self)
        return _take(view, advanced)
    except Exception as error:
        found = asked_of_items(Tensor.__getitem__, self, index)
        if found is NotImplemented:
            shorten(error)
            raise
        return found


_ALL = slice(None)


def setitem(self, index, value):
    """`self[index] = value`."""
    try:
        if not isinstance(value, (Tensor, int, float, complex)):
            if isinstance(value, np.integer):  # of numpy's numbers PyTorch takes these, and those that are Python's too
                return setitem(self, index, int(value))
            raise TypeError(f"can't assign a {_type_name(value)} to a {self.type()}")
        if type(value) is int and is_wide(value):
            raise errors_arguments.overflow()
        if index is False:
            if not isinstance(value, Tensor):
                dtypes.element(value, self._spec.dtype)
            return
        if index is Ellipsis or type(index) is slice and index == _ALL and self._spec.ndim:
            _copy(self, value)  # no view is made, so that none is refused
            return
        if type(index) is not int and not isinstance(index, slice):
            mask = _single_mask(self, index)
            if mask is not None and not (isinstance(value, Tensor) and value._spec.numel != 1):
                # No shape depends on the mask here: no need to know it.
                if tls.me.grad:
                    check_inplace(self, (value,))
                while mask.ndim < self.ndim:
                    mask = _view("unsqueeze", mask, -1)
                given = isinstance(value, Tensor)
                value = _filling(_without_ones(value, 0), self._spec.dtype) if given else _as_value(self, value)
                _assign(self, function_of(registry.OPS["where"])(mask, value, self))
                return
        view, advanced = _basic(self, index, writes=True)
        if advanced is None:
            whole = view._spec is self._spec and view._offset == self._offset
            _copy(self if whole else view, value)
            return
        if tls.me.grad:
            check_inplace(view, (value,))
        fills = None  # the kind of mask under which one value is written
        if isinstance(value, Tensor) and value._spec.numel == 1:
            fills = _only_mask_kind(index)
            if fills is dtypes.uint8:
                raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
        # a row, which may come from another one
        one = index is True or all(x is None or x._spec.ndim == 0 for x in advanced)
        for x in () if index is True else advanced if fills or one else (value, *advanced):
            if isinstance(x, Tensor) and x._storage is view._storage and overlap(view, x):
                raise errors.input_overlap()
        if isinstance(value, Tensor):
            value = _without_ones(value, -1)
            # torch fills under a mask, and selects and copies at a 0-d index: both convert
            if fills or one:
                value = (_filling if fills else _cast)(value, view._spec.dtype)
        value = _as_value(view, value)
        result = function_of(registry.OPS["index_put"])(view, advanced, value, False)
        _assign(view, result)
    except Exception as error:
        if asked_of_items(Tensor.__setitem__, self, index, value) is NotImplemented:
            shorten(error)
            raise


def delitem(self, index):
    raise TypeError("Tensor does not support deleting items")


def _type_name(value):
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _without_ones(value, ndim):
    """A value without its leading dimensions of length 1, as torch assigns it; down to `ndim` dimensions (-1: all)."""
    while value._spec.ndim > max(ndim, 0) and value._spec.shape[0] == 1:
        value = _view("select", value, 0, 0)
    return value


def _cast(value, dtype):
    return value if value._spec.dtype is dtype else value.to(dtype)


def _filling(value, dtype):
    """The value of one element that is written under a mask; torch takes it as a number, which must have no imaginary part."""
    if value._spec.dtype.category == dtypes.COMPLEX != dtype.category and value.item().imag:
        dtypes.element(1j, dtype)
    return _cast(value, dtype)


def _as_value(t, value):
    if isinstance(value, Tensor):
        if value._spec.dtype is not t._spec.dtype:
            raise errors_arguments.put_dtypes(*map(dtypes.scalar_name, (t._spec.dtype, value._spec.dtype)))
        return value
    return tensor(dtypes.element(value, t._spec.dtype), dtype=t._spec.dtype, device=t._spec.device)


def _assign(t, result):
    """Give `t` the value and history of `result`, which has its shape; in forward mode its tangent too."""
    if tls.me.special is not None and any("_tangent" in x.__dict__ for x in (t, result)):
        inplace(registry.OPS["_copied"], (t, result))
        return
    edge = edge_of(result) if tls.me.grad else None
    value = value_of(result) if result._spec.dtype is t._spec.dtype else cast_value(result, t._spec.dtype)
    if edge is None:
        write_on_tape(t, value, None)
    else:
        write_on_tape(t, value, edge[0], edge[1])


def _copy(view, value):
    if not isinstance(value, Tensor):
        value = dtypes.element(value, view._spec.dtype)
        if 0 in view._spec.strides and overlaps(view._spec):
            raise errors.overlap()
        if tls.me.grad:
            # before its edge is asked for, which renews that of a view that must not be used any more
            check_inplace(view)
        if tls.me.grad and edge_of(view) is not None:
            inplace(registry.OPS["assigned"], (view, value))
        else:
            view.fill_(value)
        return
    if not value._spec.ndim:
        view.fill_(value)
        return
    if value._spec.shape != view._spec.shape:
        value = _view("expand", _without_ones(value, view._spec.ndim), tuple(view._spec.shape))
    view.copy_(value)


def _single_mask(self, index):
    if isinstance(index, Tensor) and index._spec.dtype is dtypes.bool_ and index._spec.ndim and not tls.me.special:
        n = index._spec.ndim
        if tuple(index._spec.shape) == tuple(self._spec.shape[:n]):
            return _beside(self, index)
    return None


def _beside(t, index):
    """An index on the device of the tensor, which takes those of the CPU too."""
    place = t._spec.device
    if index._spec.device is place:
        return index
    if index._spec.device is not devices.cpu:
        raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({place})")
    return index.to(place)


def _checked(t, i):
    """An int index of the first dimension, range checked with torch's words."""
    spec = t._spec
    if spec.ndim == 0:
        raise errors_arguments.index_of_a_number()
    n = spec.shape[0]
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension 0 with size {n}")
    return i + n if i < 0 else i


def _slice(t, dim, s):
    if t._spec.ndim <= dim:
        if t._spec.ndim == 0:
            edge_of(t)  # what is wrong with the history of a view is said first
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {t._spec.ndim}")
    start, stop, step = s.start, s.stop, s.step
    step = 1 if step is None else _int(step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    start = 0 if start is None else _int(start)
    stop = (1 << 63) - 1 if stop is None else _int(stop)
    return _view("slice", t, dim, start, stop, step)


def _int(x):
    if type(x) is int:
        return x
    try:
        return x.__index__()
    except AttributeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _items(index):
    """The indices of the dimensions: a tuple's, and those of a sequence that holds more than numbers (numpy's old rule)."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, (Tensor, np.ndarray)) or not isinstance(index, Sequence) or len(index) >= 32:
        return (index,)
    if any(x is None or x is Ellipsis or isinstance(x, (Tensor, slice, Sequence, np.ndarray)) for x in index):
        deprecations.say("sequence")
        return tuple(index)
    return (index,)


def _consumed(x):
    """How many dimensions an index stands for."""
    if x is None or x is Ellipsis or isinstance(x, bool):
        return 0
    if isinstance(x, Tensor) and x._spec.dtype in (dtypes.bool_, dtypes.uint8):
        return x._spec.ndim
    if isinstance(x, np.ndarray) and x.dtype in (np.bool_, np.uint8):
        return x.ndim
    return 1


def _is_scalar_tensor(x):
    return isinstance(x, Tensor) and x._spec.ndim == 0 and x._spec.dtype.category == dtypes.INT


def _is_scalar_array(x):
    return isinstance(x, np.ndarray) and not x.ndim and x.dtype.kind in "iu" and x.dtype != np.uint8


def _only_mask_kind(index):
    """The dtype of the one mask of an index whose other items are no tensors; None where there is no such mask."""
    found = [x for x in _items(index) if isinstance(x, (bool, Tensor, Sequence, np.ndarray))]
    found = [
        x for x in found if not (_is_scalar_array(x) or _is_scalar_tensor(x) and x._spec.dtype is not dtypes.uint8)
    ]
    if len(found) != 1 or isinstance(found[0], bool):
        return None
    x = found[0]
    if isinstance(x, Tensor):
        kind = x._spec.dtype if x._spec.ndim else None
    else:
        array = np.asarray(x)
        kind = {"?": dtypes.bool_, "B": dtypes.uint8}.get(array.dtype.char) if array.ndim else None
    return kind if kind in _MASKS else None


def _is_whole(t, dim, s):
    """Whether a slice, one of several indices, changes nothing: torch makes no view of it."""
    if dim >= t._spec.ndim or s.start not in (None, 0) or s.step not in (None, 1):
        return False
    return s.stop is None or type(s.stop) is int and s.stop >= t._spec.shape[dim]


def _basic(self, index, writes=False):
    """Apply the ints, slices, None and ... of an index. Returns (view, advanced indices for its dims or None)."""
    items = _items(index)
    ndim = self._spec.ndim
    consumed = sum(map(_consumed, items))
    if consumed > ndim:
        if type(index) is int:
            _checked(self, index)
        elif type(index) is slice:
            _slice(self, 0, index)
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    others = [x for x in items if not (x is None or x is Ellipsis or isinstance(x, (int, slice)))]
    gathers = len(others) == 1 or all(map(_is_scalar_tensor, others))
    view, dim, taken = self, 0, 0
    advanced = []
    for x in items:
        kind = type(x)
        if kind is int:
            view = row(view, dim, x, dim + taken)
            taken += 1
        elif kind is slice:
            if not isinstance(index, tuple) or not _is_whole(view, dim, x):
                view = _slice(view, dim, x)
            dim += 1
        elif x is None:
            view = _view("unsqueeze", view, dim)
            dim += 1
            taken -= 1
        elif x is Ellipsis:
            dim += ndim - consumed
        elif kind is bool:
            view = _with_flag(view, dim, x, advanced)
            dim += 1
            taken -= 1
        elif _is_scalar_tensor(x) and (found := picked(view, dim, x, dim + taken, gathers, writes)) is not None:
            view = found
            taken += 1
        elif hasattr(x, "__index__") and not isinstance(x, (Tensor, np.ndarray)) or _is_scalar_array(x):
            view = row(view, dim, x.__index__(), dim + taken)
            taken += 1
        else:
            x = _index_tensor(self, x)
            if x._spec.dtype is dtypes.bool_ or x._spec.dtype is dtypes.uint8:
                if x._spec.ndim == 0:
                    view = _with_flag(view, dim, bool(x.item()), advanced)
                    dim += 1
                    taken -= 1
                    continue
                for one in _mask_indices(view, dim, x):
                    _put(advanced, dim, one)
                    dim += 1
            else:
                _put(advanced, dim, x)
                dim += 1
    return view, advanced or None


def _with_flag(view, dim, flag, advanced):
    """A bool among indices: a new dimension of length 1 or 0."""
    _put(advanced, dim, from_array(np.zeros(int(flag), np.int64), view._spec.device))
    return _view("unsqueeze", view, dim)


def _put(advanced, dim, index):
    while len(advanced) < dim:
        advanced.append(None)
    advanced.append(index)


_INDEX_DTYPES = (dtypes.int64, dtypes.int32, dtypes.uint8, dtypes.bool_)


def _index_tensor(self, x):
    if isinstance(x, Tensor):
        if x._spec.dtype not in _INDEX_DTYPES:
            if _is_scalar_tensor(x):
                return _cast(_beside(self, x), dtypes.int64)
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return _beside(self, x)
    if isinstance(x, (Sequence, np.ndarray)):
        if isinstance(x, str):
            raise TypeError("new(): invalid data type 'str'")
        if not isinstance(x, np.ndarray) and len(x) == 0:
            return from_array(np.zeros((0,), np.int64), self._spec.device)
        made = tensor(list(x) if isinstance(x, range) else x, device=self._spec.device)
        return made if made._spec.dtype.category <= dtypes.INT else _cut(x, self._spec.device)
    raise errors_arguments.no_index("numpy." * isinstance(x, np.generic) + type(x).__name__)


def _cut(x, device):
    """The index tensor of numbers that are not whole, which PyTorch cuts."""
    values = np.asarray(x)
    if values.dtype.kind != "f":
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if not (np.abs(values) < 1 << 63).all():
        raise RuntimeError("value cannot be converted to type int64 without overflow")
    return from_array(values.astype(np.int64), device)


def _mask_indices(view, dim, mask):
    """The index tensors that a boolean mask stands for: its shape depends on its values."""
    if mask._spec.dtype is dtypes.uint8:
        errors.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
    for k, n in enumerate(mask._spec.shape):
        size = view._spec.shape[dim + k]
        if n != size:
            raise IndexError(
                f"The shape of the mask {list(mask._spec.shape)} at index {k} does not match the shape of the indexed tensor "
                f"{list(view._spec.shape)} at index {dim + k}"
            )
    array = storages.numpy_of(mask._storage, mask._spec, mask._offset)
    return [from_array(np.ascontiguousarray(i, np.int64), mask._spec.device) for i in np.nonzero(array)]


def selected(input, mask):
    """`masked_select` by positions, of a tensor whose values are not known; None where the mask's are not either."""
    if is_traced(value_of(mask)):
        return None
    whole = np.broadcast_shapes(tuple(input._spec.shape), tuple(mask._spec.shape))
    places = np.flatnonzero(np.broadcast_to(storages.numpy_of(mask._storage, mask._spec, mask._offset), whole))
    return input.expand(whole).reshape(-1)[from_array(places, mask._spec.device)]


def counted_out(input, indices, values, accumulate=False):
    """The arguments of index_put with indices on the tensor's device, and with positions for masks, whose values are taken one after
    the other; None where they are so already."""
    place = input._spec.device
    if any(x is not None and x._spec.device is not place for x in indices):
        indices = [x if x is None else _beside(input, x) for x in indices]
        return counted_out(input, indices, values, accumulate) or (input, indices, values, accumulate)
    masks = {id(x) for x in indices if x is not None and x._spec.dtype in _MASKS and x._spec.ndim}
    if not masks:
        return None
    if (
        len(indices) == 1
        and indices[0]._spec.dtype is dtypes.bool_
        and values._spec.ndim <= input.ndim - indices[0].ndim
    ):
        return None  # no shape depends on the mask there
    found = []
    for x in indices:
        found += _mask_indices(input, len(found), x) if id(x) in masks else [x]
    return input, found, values, accumulate


_MASKS = (dtypes.bool_, dtypes.uint8)


def _take(view, advanced):
    if view._storage.host is not None and view._storage.host.shared() and edge_of(view) is None:
        found = _take_on_host(view, advanced)
        if found is not None:
            return found
    return function_of(registry.OPS["index"])(view, advanced)


def _picked_on_host(self, mask):
    """`self[mask]` by numpy, where the elements are as near as the mask, whose values are needed anyway, and nothing is recorded but a copy:
    positions would be an operator of another shape for each pair of counts. None elsewhere."""
    me, spec, shape = tls.me, self._spec, mask._spec.shape
    plain = (
        type(self) is Tensor
        and me.special is None
        and me.scope is None
        and spec.device is mask._spec.device is devices.cpu
    )
    if (
        not plain
        or not shape
        or shape != spec.shape[: len(shape)]
        or not spec.contiguous
        or spec.dtype is dtypes.complex32
    ):
        return None
    if me.grad and edge_of(self) is not None or is_traced(value_of(self)) or is_traced(value_of(mask)):
        return None
    which = storages.numpy_of(mask._storage, mask._spec, mask._offset)
    if not storages.at_hand(self._storage.value):
        return None
    return from_array(storages.numpy_of(self._storage, spec, self._offset)[which], spec.device)


def _take_on_host(view, advanced):
    """Rows of memory shared with numpy: gathered there, so that only they travel."""
    indices = []
    for x in advanced:
        if x is None:
            return None
        if unknown(x):
            return None
        indices.append(storages.numpy_of(x._storage, x._spec, x._offset))
    host = storages.host_view(view._storage, view._spec, view._offset)
    try:
        return from_array(host[tuple(indices)], view._spec.device)
    except IndexError:
        return None  # the op says it in torch's words


Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem
Tensor.__delitem__ = delitem
for _name in ("__getitem__", "__setitem__", "__delitem__"):  # what a __torch_function__ asks a method's name for
    _method = getattr(Tensor, _name)
    _method.__name__, _method.__qualname__ = _name, f"Tensor.{_name}"
del _name, _method
__all__ = ["getitem", "setitem", "write"]
