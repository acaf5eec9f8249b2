"""The pickler of torch.save: it writes PyTorch's names for our classes, and storages by key."""

import importlib
import pickle
import types
from collections import OrderedDict

from .. import storage_api
from ..copying import answered_by, by_itself, own_state, warn_if_has_hooks
from ..core import device as devices
from ..core import dtype as dtypes
from ..core.spec import Size
from ..creation import Layout_, MemoryFormat, strided
from ..dispatch.dispatched import has_dispatch
from ..dispatch.override import LAYOUTS, Overridable
from ..nn.parameter import Parameter, UninitializedTensorMixin
from ..storage_api import TypedStorage, UntypedStorage
from ..tensor import Tensor, edge_of, make
from . import errors, names, rebuild


class Storages:
    """The storages that a file needs, numbered in the order in which the pickle meets them."""

    def __init__(self, location_tag):
        self._tag = location_tag
        self._dtypes = {}
        self.keys = {}  # core storage -> key
        self.dtypes = {}  # key -> the dtype under which it was met

    def identify(self, x):
        """(class, key, location, number of elements) of a storage object."""
        typed = isinstance(x, TypedStorage)
        core = x._storage
        dtype = x.dtype if typed else dtypes.uint8
        name = storage_api.NAMES.get(dtype.name) if typed else None
        kind, count = (UntypedStorage, x.nbytes()) if name is None else (storage_api.CLASSES[name], x.size())
        if (
            core.base.device.type != "meta"
            and core.base.nbytes
            and self._dtypes.setdefault(core, (dtype, x))[0] is not dtype
        ):
            raise errors.two_dtypes()
        if core not in self.keys:
            self.keys[core] = str(len(self.keys))
            self.dtypes[self.keys[core]] = dtype if name else dtypes.uint8
        untyped = x.untyped()
        return kind, self.keys[core], self._tag(untyped), count


def _stock():
    """The types that pickle itself knows how to save: dill puts its own into the table of pickle._Pickler when imported."""
    known = {type(None): "none", int: "long", types.FunctionType: "global", pickle.PickleBuffer: "picklebuffer"}
    plain = (bool, float, bytes, bytearray, str, tuple, list, dict, set, frozenset, type)
    known |= {cls: cls.__name__ for cls in plain}
    return {cls: getattr(pickle._Pickler, f"save_{name}") for cls, name in known.items()}


def make_pickler(module, file, protocol, persistent_id):
    """A pickler on a file that writes PyTorch's names. `module`: pickle, or one whose Pickler is written in Python."""
    base = getattr(module, "Pickler", None)
    if module is pickle or base is pickle.Pickler:
        base = pickle._Pickler
    if not (isinstance(base, type) and issubclass(base, pickle._Pickler)):
        raise TypeError(
            f"torch.save cannot use {getattr(module, '__name__', module)}: its Pickler is not a subclass of Python's own "
            "(pickle._Pickler), so it cannot write PyTorch's names\n  use pickle or dill instead"
        )

    class TorchPickler(base):
        dispatch = _stock() if base is pickle._Pickler else base.dispatch.copy()

        def save_global(self, obj, name=None):
            path = names.torch_path(obj, name)
            if path is None:
                return super().save_global(obj, name)
            if self.proto >= 4:
                self.save(path[0])
                self.save(path[1])
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(pickle.GLOBAL + f"{path[0]}\n{path[1]}\n".encode())
            self.memoize(obj)

        dispatch[type(make_pickler)] = save_global

        def reducer_override(self, obj):
            return reduce(obj, self.proto)

    pickler = TorchPickler(file, protocol=protocol)
    pickler.persistent_id = persistent_id
    return pickler


def reduce(x, protocol):
    """How a file makes this object, in PyTorch's terms; NotImplemented for what is not a matter of PyTorch."""
    if type(x) in LAYOUTS:  # as PyTorch, without requires_grad
        *record, state = importlib.import_module("jtorch.sparse.saving").record_of(x)
        if not state:
            return rebuild._rebuild_sparse_tensor, tuple(record)
        return rebuild._rebuild_from_type_v2, (rebuild._rebuild_sparse_tensor, Tensor, tuple(record), state)
    if isinstance(x, Tensor):
        # Where the class says how to pickle itself, that is how.
        if next(c for c in type(x).__mro__ if "__reduce_ex__" in c.__dict__) not in (Tensor, Parameter, Overridable):
            with answered_by(_reduce_tensor):  # what it may ask of the classes above
                return x.__reduce_ex__(protocol)
        return _reduce_tensor(x)
    found = _OTHERS.get(type(x))
    return NotImplemented if found is None else found(x)


def _reduce_tensor(x):
    x = by_itself(x)
    if isinstance(x, UninitializedTensorMixin):
        return type(x), (x.requires_grad,)
    getstate = type(x).__getstate__
    state = own_state(x) if getstate is object.__getstate__ else x.__getstate__()
    if issubclass(type(x), Parameter):  # as PyTorch, which does not note the class of a subclass
        data = make(x._storage, x._spec, x._offset)
        if state:
            return rebuild._rebuild_parameter_with_state, (data, x.requires_grad, OrderedDict(), state)
        return rebuild._rebuild_parameter, (data, x.requires_grad, OrderedDict())
    warn_if_has_hooks(x)
    made = _reduce_plain(x)
    if type(x) is Tensor and not state:
        return made
    return rebuild._rebuild_from_type_v2, (made[0], type(x), made[1], state)


def _reduce_plain(x):
    spec = x._spec
    needs_grad = bool(x._rg or edge_of(x) is not None)
    size, offset = tuple(spec.shape), int(x._offset)  # a file has the number of a row that lies somewhere
    if spec.device is devices.meta:
        return rebuild._rebuild_meta_tensor_no_storage, (spec.dtype, size, spec.strides, needs_grad)
    if x._storage.value is None and x._storage.host is None and has_dispatch(type(x)):
        place = type(x), spec.dtype, size, spec.strides, offset, strided, spec.device, needs_grad
        return rebuild._rebuild_wrapper_subclass, place
    storage = storage_api.typed(x)
    if spec.dtype.name in storage_api.NAMES:
        return rebuild._rebuild_tensor_v2, (storage, offset, size, spec.strides, needs_grad, OrderedDict())
    return rebuild._rebuild_tensor_v3, (storage, offset, size, spec.strides, needs_grad, OrderedDict(), spec.dtype)


def _refuse(kind):
    def refuse(x):
        raise TypeError(f"cannot pickle '{kind}' object")

    return refuse


_OTHERS = {
    dtypes.dtype: lambda d: d.name,
    devices.Device: lambda d: (devices.Device, (d.type,) if d.index is None else (d.type, d.index)),
    Size: lambda s: (Size, (tuple(s),)),
    Layout_: lambda layout: (rebuild._get_layout, (repr(layout),)),
    MemoryFormat: _refuse("torch.memory_format"),
}
