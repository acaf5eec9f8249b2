"""Writing to tensors as a whole: copy_, fill_, set_, resize_."""

import copy

import numpy as np

from . import creation, errors, errors_storage
from .autograd import node as tape
from .convert import suggested_format, to_device
from .core import dtype as dtypes
from .core import shapes
from .core import storage as storages
from .core.layout import Layout
from .core.record import tls
from .core.spec import Spec
from .core.storage import Storage
from .creation import (
    full_of,
    preserve_format,
    size_of,
    strides_for,
)  # fmt: skip
from .dispatch import (
    check_inplace,
    inplace,
    write_on_tape,
    zeros_value,
)  # fmt: skip
from .dispatch.generate import build_view
from .dispatch.statics import numpy_number
from .dispatch.write import began_at, half_overlap
from .handles import changed
from .ops import registry
from .reshaping import op_named, view_named
from .tensor import Apart, Tensor, edge_of, retains_at, seen_now, value_of
from .tracebacks import shorten


def _dual(t) -> bool:
    """Whether a write concerns forward mode: the tensor carries a tangent."""
    return tls.me.special is not None and "_tangent" in t.__dict__


def copy_(self, other, non_blocking=False) -> Tensor:
    """Write the elements of `other`, broadcast and converted."""
    try:
        src = other
        if not isinstance(src, Tensor):
            if not isinstance(src, (int, float, complex, np.generic)):
                raise errors.argument("copy_", "other", "Tensor", src, 1)
            src = creation.tensor(numpy_number(src) if isinstance(src, np.generic) else src)
        if tls.me.grad:
            check_inplace(self, (src,))
        a, b = self._spec, src._spec
        shifted = src._storage is self._storage and src is not self and half_overlap(self, src)
        if tuple(a.shape) != tuple(b.shape):
            try:
                wanted = shapes.broadcast(tuple(a.shape), tuple(b.shape))
            except RuntimeError:
                wanted = None
            if wanted != tuple(a.shape):
                if wanted is None:
                    shapes.broadcast(tuple(a.shape), tuple(b.shape))
                raise RuntimeError(
                    f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(wanted)}"
                )
            src = view_named("expand", src, tuple(a.shape))
        if b.device is not a.device:
            src = to_device(src, a.device)
        if b.dtype is not a.dtype and not (tls.me.grad and edge_of(self) is not None):
            src = op_named("_to_copy")(src, dtype=a.dtype)
        taped = tls.me.grad and (edge_of(src) is not None or edge_of(self) is not None) or _dual(src) or _dual(self)
        if not taped and src._storage is self._storage and src._spec is a and src._offset == self._offset:
            storages.write(self._storage, a, self._offset, value_of(self))
            return self
        if a.numel > 1 and any(s == 0 and n > 1 for n, s in zip(a.shape, a.strides)):
            raise errors.overlap()
        if shifted:
            raise errors.input_overlap()
        if taped:
            return inplace(registry.OPS["_copied"], (self, src))
        write_on_tape(self, value_of(src), None)
        return self
    except Exception as error:
        shorten(error)
        raise


def fill_(self, value) -> Tensor:
    """Write one value everywhere."""
    return _filled(self, value, True)


def _filled(self, value, varies):
    """As `fill_`. varies: as `full_of` takes it."""
    try:
        if isinstance(value, Tensor):
            if value._spec.ndim:
                raise RuntimeError(
                    f"fill_ only supports 0-dimension value tensor but got tensor with {value._spec.ndim} dimensions."
                )
            if tls.me.grad:
                check_inplace(self, (value,))
            if tls.me.grad and (edge_of(value) is not None or edge_of(self) is not None) or _dual(value) or _dual(self):
                return inplace(registry.OPS["assigned"], (self, value))
            return copy_(self, op_named("clone")(value) if value._storage is self._storage else value)
        if tls.me.grad:
            check_inplace(self)
        if 0 in self._spec.strides:
            # Elements that share memory are written once.
            once = self
            for d, (n, s) in enumerate(zip(self._spec.shape, self._spec.strides)):
                if s == 0 and n > 1:
                    once = view_named("_narrow", once, d, 0, 1)
            if once is not self:
                _filled(once, value, varies)
                return self
        if tls.me.grad and edge_of(self) is not None or _dual(self):
            return inplace(registry.OPS["filled"], (self, value))  # what is written does not depend on what was there
        spec = self._spec
        value = numpy_number(value) if isinstance(value, np.generic) else value
        if not isinstance(value, (int, float, complex)):
            raise errors.combination("fill_", [value], "(value: Tensor or number)")
        dtypes.check_number(value, spec.dtype)
        filled = full_of(Spec.dense(tuple(spec.shape), spec.dtype, spec.device), value, varies)
        write_on_tape(self, storages.read(filled._storage, filled._spec, 0), None, name="fill_.Scalar")
        return self
    except Exception as error:
        shorten(error)
        raise


def zero_(self) -> Tensor:
    """Write zeros."""
    if tls.me.grad:
        check_inplace(self)
    if (tls.me.grad and edge_of(self) is not None or _dual(self)) and 0 not in self._spec.strides:
        return inplace(registry.OPS["zeroed"], (self,))
    return _filled(self, 0, False)


def set_(self, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
    """Make this tensor a view of another storage."""
    if tls.me.grad:
        check_inplace(self)
    if source is None:
        spec = Spec.dense((0,), self._spec.dtype, self._spec.device)
        version = self._version + 1
        self._storage, self._spec, self._offset = Storage(zeros_value(spec), spec), spec, 0
        self._storage.version = version
        _cut(self)
        return self
    storage, spec = getattr(source, "_storage", None), self._spec
    if not isinstance(storage, Storage) or (size is None and storage_offset):
        raise errors.combination("set_", [source], "(Storage or Tensor source, int storage_offset, tuple of ints size)")
    kind = getattr(source, "dtype", spec.dtype)  # bytes have none
    if kind is not spec.dtype:
        raise errors_storage.another_dtype(isinstance(source, Tensor), kind, spec.dtype)
    if storage.base.device is not spec.device:
        raise errors_storage.another_device(spec.device, storage.base.device)
    if size is None:
        if isinstance(source, Tensor):
            self._storage, self._spec, self._offset = storage, source._spec, source._offset
            changed(self)
            _cut(self, source)
            return self
        size = (storage.base.nbytes // spec.dtype.itemsize,)
    size = tuple(size)
    stride = shapes.contiguous_strides(size) if stride is None else tuple(stride)
    _bounded(size, stride, storage_offset)
    storages.grow(storage, Layout(size, stride, storage_offset).storage_size(), spec.dtype)
    self._storage, self._offset = storage, storage_offset
    self._spec = Spec.of(size, stride, spec.dtype, spec.device)
    changed(self)
    _cut(self, *([source] if isinstance(source, Tensor) else []))
    return self


def _cut(t, *others):
    """End the history of a tensor that stands for other memory now, and is no view of its base any more."""
    taped = [e for x in (t, *others) if tls.me.grad and (e := edge_of(x)) is not None]
    if t._base is not None:
        t._base = t._seen = t._edge = None
        t.__dict__.pop("_made", None)
    if taped:
        name = "torch::autograd::NotImplemented"
        t._edge = (tape.class_of(name, _Cut)(name, tuple(taped), (t._spec,)), 0)


class _Cut(tape.PythonNode):
    """set_, which has no derivative."""

    __slots__ = ()

    def apply(self, grad):
        raise RuntimeError("derivative for set_ is not implemented")


def _bounded(size, stride, offset):
    """Raise for what is the layout of no memory."""
    if any(n < 0 for n in size):
        raise errors_storage.numel_overflow()
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if any(s < 0 for s in stride):
        raise errors_storage.storage_overflow(size, stride)
    if offset < 0:
        raise errors_storage.storage_offset(offset)


def resize_(self, *sizes, size=None, memory_format=None) -> Tensor:
    """Change the shape in place; the storage grows when it must, new elements are zeros."""
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    size = size_of(sizes if size is None else (size,), "resize_")
    spec = self._spec
    if memory_format is None and size == tuple(spec.shape):
        return self
    _bounded(size, size, self._offset)
    changes = size != tuple(spec.shape)
    new = Spec.of(size, tuple(strides_for(size, memory_format)), spec.dtype, spec.device)
    storages.grow(self._storage, self._offset + new.numel, spec.dtype)
    self._storage.version += changes
    self._spec = new
    changed(self)
    return self


def resize_as_(self, the_template, *, memory_format=None) -> Tensor:
    """`resize_` to the shape of another tensor; with preserve_format to its memory format too."""
    if not isinstance(the_template, Tensor):
        raise errors.argument("resize_as_", "the_template", "Tensor", the_template, 1)
    if memory_format is preserve_format:
        memory_format = suggested_format(the_template)
    return resize_(self, tuple(the_template._spec.shape), memory_format=memory_format)


def _swap_meta(self, made):
    """Let a tensor take the layout of a view of itself (transpose_, squeeze_...)."""
    if self._base is None:
        storage = self._storage
        storage.turned = dict.fromkeys((*getattr(storage, "turned", ()), self._spec), made._spec)
        if made._edge is not None:
            storage.written = (made._edge[0].name(), made._edge[1], began_at(storage))
    self._spec = made._spec
    self._offset = made._offset
    changed(self)
    if made._edge is not None:
        if self._edge is not None and retains_at(self, self._edge):
            self.__dict__["_retains"] = True  # PyTorch leaves it where the tensor was, in the shape that it had
        self._edge = made._edge
        if self._base is not None:
            self._seen = seen_now(self._base)
    return self


def _written_name(view):
    """The node of a view op that changes its operand has the number after those of the plain forms."""
    if isinstance(view.grad_name, str):
        return view.grad_name.removesuffix("0") + "1"
    plain = view.grad_name

    def name(*args):
        got = plain(*args)
        return got[:-1] + str(int(got[-1]) + 3)

    return name


def layout_inplace(name):
    def change(self, *args, **kwargs):
        me = tls.me
        recording = me.grad
        if recording:
            check_inplace(self)
        me.grad = recording or self._edge is not None  # its history is that of the shape it had
        try:
            made = written(self, *args, **kwargs)
        except RuntimeError as error:
            if str(error).startswith(f"{name}()"):  # the form that changes its operand says so
                raise RuntimeError(str(error).replace(name, f"{name}_", 1)) from None
            raise
        finally:
            me.grad = recording
        apart = (self if self._base is None else self._base)._seen
        if type(apart) is Apart:
            apart.version += 1
        else:
            self._storage.version += 1
        if me.special is not None and "_tangent" in made.__dict__:  # of forward mode: it is turned too
            self.__dict__["_tangent"] = made.__dict__["_tangent"]
        return _swap_meta(self, made)

    view = copy.copy(registry.VIEWS[registry.ALIASES.get(name, name)])
    view.plans = {}
    view.grad_name = _written_name(view)
    written = build_view(view, alone=None)
    change.__name__ = change.__qualname__ = name + "_"
    change.__doc__ = f"`{name}`, in place."
    return change
