"""Printing, copying and pickling tensors, and making subclasses of them."""

import contextlib
import copy
import copyreg
import numbers
import threading
import warnings

import numpy as np

from . import errors_extend, printing
from .convert import as_numpy
from .core import device as devices
from .core import dtype as dtypes
from .core import storage as storages
from .core.lanes import is_traced
from .core.pending import NO_DATA
from .core.record import tls
from .core.spec import Spec
from .core.storage import Storage
from .dispatch import FAST, outer
from .dispatch.dispatched import has_dispatch
from .reshaping import op_named, view_named
from .tensor import Tensor, grad_edge, make


def represent(self, *, tensor_contents=None):
    spec = self._spec
    value = self._storage.value
    if is_traced(value):
        return f"tensor(<traced {spec.dtype.name}{list(spec.shape)}>)"
    level, tangent = self.__dict__.get("_tangent", (None, None))
    if level is not tls.me.extra.get("dual"):
        tangent = None
    plain = type(self) is Tensor or type(self) is parameter_class()
    text = printing.format_tensor(
        None if spec.device.type == "meta" else as_numpy(self), dtype=spec.dtype, shape=tuple(spec.shape), requires_grad=self.requires_grad,
        grad_fn_name=node_name(self), device=None if spec.device is devices.cpu else str(spec.device),
        class_name="tensor" if plain else type(self).__name__, tangent=None if tangent is None else represent(tangent),
        contents=tensor_contents,
    )  # fmt: skip
    if not plain and isinstance(self, parameter_class()):
        text = f"Parameter({text})"
    return f"Parameter containing:\n{text}" if issubclass(type(self), parameter_class()) else text


def node_name(t):
    """The name of the node that made a tensor, or None."""
    try:
        edge = grad_edge(t)
    except RuntimeError:  # a view that must not be used any more can still be looked at
        return "Invalid"
    if edge is None or edge[0]._of_leaf:
        return None
    label = getattr(edge[0], "label", None)  # of a node whose derivative is a Python function
    return type(edge[0]).__name__ if label is None else label.rpartition(":")[2]


def parameter_class():
    return PARAMETER[0] or ()


PARAMETER: list = [None]  # set by nn.parameter


def deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self._edge is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
            "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    key = ("apart", id(self)) if "_apart" in self.__dict__ else ("storage", id(self._storage))
    new_storage = memo.get(key)
    if new_storage is None:
        base = self._storage.base
        nothing = self._storage.value is None and self._storage.host is None  # of the meta device
        value = None if nothing else storages.read(self._storage, base, 0)
        new_storage = memo[key] = Storage(value, base)
        memo[("keep", id(self._storage))] = self._storage
    made = make(new_storage, self._spec, self._offset, type(self))
    made._rg = self.requires_grad
    memo[id(self)] = made
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    for k, v in self.__dict__.items():
        if k not in INTERNAL:
            made.__dict__[k] = copy.deepcopy(v, memo)
    return made


def shallow_copy(self):
    made = make(self._storage, self._spec, self._offset, type(self))
    made._rg = self.requires_grad  # a leaf, whatever the history of the original
    made.__dict__.update(own_state(self))
    return made


_asked = threading.local()


@contextlib.contextmanager
def answered_by(how):
    """Let a function say how to pickle a tensor, where a class's `__reduce_ex__` asks the ones above: a file has other terms."""
    before, _asked.how = getattr(_asked, "how", None), how
    try:
        yield
    finally:
        _asked.how = before


def reduce_ex(self, protocol):
    how = getattr(_asked, "how", None)
    if how is not None:
        return how(self)
    if self._storage.value is None and hasattr(type(self), "__torch_dispatch__"):
        spec = self._spec
        return (
            rebuild_wrapper,
            (type(self), tuple(spec.shape), spec.strides, spec.dtype, str(spec.device), self._offset, self.requires_grad, own_state(self)),
        )  # fmt: skip
    self = by_itself(self)
    warn_if_has_hooks(self)
    return (
        rebuild,
        (type(self), self._storage, tuple(self._spec.shape), self._spec.strides, self._spec.dtype, self._offset,
         self.requires_grad, own_state(self)),
    )  # fmt: skip


def warn_if_has_hooks(tensor) -> None:
    """Warn of the backward hooks of a tensor, which saving leaves out."""
    if not tensor._hooks:
        return
    for hook in tensor._hooks.values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


def apart(t):
    """A tensor of the memory of `t`, which copies and files do not share with others."""
    made = make(t._storage, t._spec, t._offset)
    made.__dict__["_apart"] = True
    return made


def by_itself(t):
    """The tensor, or one with the same values in memory of its own where `apart` has made it."""
    if "_apart" not in t.__dict__:
        return t
    return make(Storage(storages.read(t._storage, t._spec, t._offset), t._spec), t._spec, 0)


def own_state(self) -> dict:
    """The attributes that the user has put on a tensor."""
    return {k: v for k, v in self.__dict__.items() if k not in INTERNAL}


INTERNAL = frozenset(
    (
        "_acc",
        "_acc_hooks",
        "_acc_kept",
        "_acc_pre_hooks",
        "_apart",
        "_counted",
        "_made",
        "_nowhere",
        "_post_hooks",
        "_since",
        "_tangent",
    )
)


def rebuild(cls, storage, shape, strides, dtype, offset, requires_grad, state):
    """A tensor out of a pickle."""
    made = make(storage, Spec.of(tuple(shape), tuple(strides), dtype, storage.base.device), offset, cls)
    made._rg = requires_grad
    made.__dict__.update(state)
    return made


def rebuild_wrapper(cls, shape, strides, dtype, device, offset, requires_grad, state):
    """A wrapper out of a pickle: what it wraps is among its attributes."""
    made = make_wrapper_subclass(
        cls, shape, strides=strides, storage_offset=offset, dtype=dtype, device=device, requires_grad=requires_grad
    )
    made.__dict__.update(state)
    return made


def reduce_storage(storage):
    """How pickle keeps a storage: pickled once, however many tensors see it."""
    base = storage.base
    flat = None if base.device.type == "meta" else np.array(storages.memory(storage))
    return restore_storage, (flat, tuple(base.shape), base.strides, base.dtype, str(base.device))


def restore_storage(flat, shape, strides, dtype, device):
    """A storage out of a pickle, on the host when its device is not there."""
    try:
        place = devices.resolve(device)
    except (AssertionError, RuntimeError):
        place = devices.cpu
    spec = Spec.of(tuple(shape), tuple(strides), dtype, place)
    if flat is None:
        return Storage(NO_DATA, spec)
    made = Storage(None, None)
    storages.adopt(made, flat[:], flat, spec)
    return made


copyreg.pickle(Storage, reduce_storage)


def make_subclass(cls, data, require_grad=False):
    """A tensor of class `cls` on the storage of `data`, off the tape."""
    if not issubclass(cls, Tensor):
        raise errors_extend.not_a_subclass()
    made = make(data._storage, data._spec, data._offset, cls)
    outer.STATE["made"] |= has_dispatch(cls)
    if require_grad and data.is_inference() and not tls.me.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    made._rg = bool(require_grad)
    if require_grad and data._spec.dtype.category < dtypes.FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return made


def make_wrapper_subclass(
    cls, size, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=None, device=None, pin_memory=False,
    requires_grad=False, dispatch_sizes_strides_policy=None, dispatch_device=False, dispatch_layout=False, _extra_dispatch_keys=None,
    storage_size=None,
):  # fmt: skip
    """A tensor of class `cls` with a shape, a dtype and a device, and no elements: its `__torch_dispatch__` answers for it."""
    if not issubclass(cls, Tensor):
        raise errors_extend.not_a_subclass()
    if not hasattr(cls, "__torch_dispatch__"):
        raise errors_extend.needs_torch_dispatch(cls)
    dtype = dtypes.default.dtype if dtype is None else dtype
    place = devices.get_default() if device is None else devices.resolve(device)
    shape = tuple(size)
    spec = Spec.dense(shape, dtype, place) if strides is None else Spec.of(shape, tuple(strides), dtype, place)
    made = make(Storage(None, spec), spec, storage_offset or 0, cls)
    outer.STATE["made"] = True
    made._rg = bool(requires_grad)
    return made


def as_subclass(self, cls):
    """A view of this tensor of class `cls`, which results of ops on it have too."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise errors_extend.not_a_subclass()
    made = view_named("alias", self)
    made.__class__ = cls
    return made


def iterate(self):
    if self._spec.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(view_named("unbind", self, 0) if type(self) in FAST else self.unbind(0))


def contains(self, element):
    if isinstance(element, (Tensor, numbers.Number)):
        return bool(op_named("any")(op_named("eq")(self, element)))
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
