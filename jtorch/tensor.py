"""class Tensor: its fields, its autograd state and what can be said without running an op. Methods come from the op table."""

import weakref
from collections import OrderedDict

import numpy as np

from . import deprecations, errors, errors_func
from .autograd import engine
from .autograd import node as tape
from .autograd.derive import differentiable
from .autograd.derive_views import read_plan
from .autograd.node import AccumulateGrad, Node, Nowhere, PythonNode, next_edges
from .core import storage as storages
from .core.record import tls
from .core.spec import Size, Spec
from .core.storage import Storage
from .handles import RemovableHandle, changed
from .tracebacks import shorten


class TensorMeta(type):
    """Lets `isinstance(x, Parameter)` be decided by a flag where a subclass wants that.

    A subclass with a `__torch_function__` or `__torch_dispatch__` gets `Overridable` before Tensor in its order of resolution, whose attributes
    ask it; Tensor's own never do.
    """

    def mro(cls):
        order = type.mro(cls)
        overridable = HOOKS["overridable"]
        if overridable is not None and overridable not in order and Tensor in order and unusual(order):
            order.insert(order.index(Tensor), overridable)
        return order

    def __init__(cls, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if HOOKS["defined"] is not None:
            HOOKS["defined"](cls)

    def __setattr__(cls, name, value):
        type.__setattr__(cls, name, value)
        if cls is Tensor and HOOKS["attribute"] is not None:
            HOOKS["attribute"](name, value)


# Set by dispatch: the class of asking attributes, what to do with a new subclass and with a new attribute of Tensor.
HOOKS: dict = {"overridable": None, "defined": None, "attribute": None}


def disabled_torch_function(func, types, args=(), kwargs=None):
    """As the `__torch_function__` of a subclass: its tensors are like plain ones to every function."""
    before, tls.me.overriding = tls.me.overriding, min(tls.me.overriding, 1)
    try:
        return func(*args, **(kwargs or {}))
    finally:
        tls.me.overriding = before


def asks(order) -> bool:
    """Whether a class with this order of resolution has a `__torch_function__` to be asked."""
    for cls in order:
        found = cls.__dict__.get("__torch_function__")
        if found is not None:
            return (found.__func__ if isinstance(found, staticmethod) else found) is not disabled_torch_function
    return False


def unusual(order) -> bool:
    """Whether a class with this order of resolution has something to say about calls with its instances."""
    return asks(order) or any("__torch_dispatch__" in cls.__dict__ for cls in order)


def _never(self) -> bool:
    return False


class Tensor(metaclass=TensorMeta):
    """A view of a Storage (spec and offset), and its place on the tape.

    _edge: where its gradient goes, (node, result number), or None; _rg: a leaf that requires grad.
    _base: the tensor that this one is a view of; _seen: the storage's version when _edge was made, since writing
    in place to the base (or to another view of it) gives the base, and so this view, a new history.
    """

    __slots__ = (
        "_storage", "_spec", "_offset", "_edge", "_rg", "_grad", "_base", "_seen", "_hooks", "__dict__", "__weakref__",
    )  # fmt: skip

    def __new__(cls, *args, **kwargs):
        return _legacy_new(cls, *args, **kwargs)

    # -- metadata -------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return self._spec.shape

    def size(self, dim=None):
        """The shape, or the length of one dimension."""
        if dim is None:
            return self._spec.shape
        try:
            return self._spec.shape[_wrap(dim, self._spec.ndim)]
        except TypeError:
            raise errors.argument("size", "dim", "int", dim, 1) from None

    def stride(self, dim=None):
        """The strides in elements, or that of one dimension."""
        if dim is None:
            return self._spec.strides
        return self._spec.strides[_wrap(dim, self._spec.ndim)]

    def storage_offset(self) -> int:
        """Where in its storage the first element lies, in elements."""
        return int(self._offset)

    @property
    def dtype(self):
        return self._spec.dtype

    @property
    def device(self):
        return self._spec.device

    @property
    def ndim(self) -> int:
        return self._spec.ndim

    def dim(self) -> int:
        """How many dimensions there are."""
        return self._spec.ndim

    ndimension = dim

    def numel(self) -> int:
        """How many elements there are."""
        return self._spec.numel

    nelement = numel

    def element_size(self) -> int:
        """The bytes of one element."""
        return self._spec.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self._spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._spec.nbytes

    @property
    def layout(self):
        return CONSTANTS["strided"]

    def is_floating_point(self) -> bool:
        """Whether the elements are real floating-point numbers."""
        return self._spec.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self._spec.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return self._spec.dtype.is_signed

    def is_conj(self) -> bool:
        """False: `conj` computes, no tensor is a lazy conjugate."""
        return False

    def is_neg(self) -> bool:
        """False: no tensor is a lazy negation."""
        return False

    def is_inference(self) -> bool:
        """Whether the tensor was made under `inference_mode`, so that the tape never knows it."""
        return self._storage.version < 0

    def is_pinned(self, device=None) -> bool:
        """Whether a DataLoader has started to move it to the accelerator."""
        host = self._storage.host
        return host is not None and host.ahead is not None

    def is_shared(self) -> bool:
        """Whether the memory can be another process's too: after share_memory_(), and on an accelerator."""
        host = self._storage.host
        return self._spec.device.type != "cpu" or host is not None and host.among_processes

    is_sparse = property(_never)
    is_sparse_csr = property(_never)
    is_quantized = property(_never)
    is_mkldnn = property(_never)
    is_nested = property(_never)
    is_mps = property(_never)
    is_mtia = property(_never)
    is_xpu = property(_never)
    is_ipu = property(_never)
    is_xla = property(_never)
    is_maia = property(_never)
    is_vulkan = property(_never)

    @property
    def is_cuda(self) -> bool:
        return self._spec.device.type not in ("cpu", "meta")

    @property
    def is_cpu(self) -> bool:
        return self._spec.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self._spec.device.type == "meta"

    def get_device(self) -> int:
        """The number of the accelerator that the tensor is on; -1 on the CPU and without memory."""
        d = self._spec.device
        return -1 if d.type in ("cpu", "meta") else d.index or 0

    def data_ptr(self) -> int:
        """An address, equal for tensors that start at the same element of the same storage."""
        start = self._storage.data_ptr()
        return start and start + self._offset * self._spec.dtype.itemsize

    @property
    def _cdata(self) -> int:
        """What tells this tensor from others: PyTorch's address of it."""
        return id(self)

    def __len__(self):
        if self._spec.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._spec.shape[0]

    __hash__ = object.__hash__
    _of_leaf = True  # where an edge leads to: a tensor whose edge leads to another one is a leaf to whoever asks

    # -- autograd -------------------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        if self._rg or self._base is None:
            return self._rg or self._edge is not None
        # A view of what needs a gradient says that it does too, even where nothing was recorded.
        return self._edge is not None or self._base.requires_grad and differentiable(self._spec)

    @requires_grad.setter
    def requires_grad(self, value):
        if type(value) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if value and not differentiable(self._spec):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if value and self._edge is not None and not self._rg:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad=True) -> "Tensor":
        """Ask for gradients with respect to this leaf, or no longer."""
        if tls.me.extra:
            CONSTANTS["ask_tracing"]()
        if "transforms" in tls.me.extra:
            raise errors_func.asked_inside("requires_grad_")
        if type(requires_grad) is not bool:
            raise errors.argument("requires_grad_", "requires_grad", "bool", requires_grad, 1)
        if self._edge is not None and not self._rg:
            if not requires_grad:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                    "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return self
        if requires_grad and not differentiable(self._spec):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if requires_grad and self.is_inference() and not tls.me.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        if self._rg is not bool(requires_grad):
            changed(self)
            self._rg = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        edge = self._edge if self._base is None else grad_edge(self)
        return edge is None or edge[0]._of_leaf

    @property
    def grad_fn(self):
        edge = self._edge if self._base is None else grad_edge(self)
        return None if edge is None or edge[0]._of_leaf else edge[0]

    @property
    def output_nr(self) -> int:
        edge = self._edge
        made = self.__dict__.get("_made")
        return made[1] if made is not None and made[0] == "multi" else 0 if edge is None else edge[1]

    @property
    def grad(self):
        if self._grad is None and not self._rg and self._edge is not None and not self.retains_grad:
            errors.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
                "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
                "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
                "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations."
            )
        return self._grad

    @grad.setter
    def grad(self, value):
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._spec.shape != self._spec.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value._spec.shape)}' to a tensor of size "
                    f"'{list(self._spec.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
            if value._spec.dtype is not self._spec.dtype:
                raise errors.grad_dtype(errors.c_type(value.dtype), errors.scalar_name(self.dtype))
            if value._spec.device is not self._spec.device:
                raise RuntimeError("assigned grad has data located on a different device")
        self._grad = value

    @grad.deleter
    def grad(self):
        self._grad = None

    @property
    def _version(self) -> int:
        whole = self if self._base is None else self._base
        if type(whole._seen) is Apart:
            return whole._seen.version
        if self._storage.version < 0:
            raise RuntimeError("Inference tensors do not track version counter.")
        return (self._storage.version & VERSION) + whole.__dict__.get("_counted", 0)

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def retains_grad(self) -> bool:
        edge = self._edge
        return edge is not None and ("_retains" in self.__dict__ or retains_at(self, edge))

    def retain_grad(self) -> None:
        """Have `.grad` filled for this non-leaf tensor too."""
        edge = grad_edge(self)
        if edge is None:
            if not self.requires_grad:
                raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if tls.me.extra:
            CONSTANTS["ask_tracing"]()
        if "transforms" in tls.me.extra:
            raise errors_func.asked_inside("retain_grad")
        if edge is None or "_retains" in self.__dict__:
            return
        node, k = edge
        if node.retained is None:
            node.retained = {}
        node.retained[k] = weakref.ref(self)

    def detach(self) -> "Tensor":
        """A tensor on the same storage, off the tape."""
        if "transforms" in tls.me.extra:
            return CONSTANTS["stopped"](self)
        if type(self) is not Tensor and _is_wrapper(self):
            return CONSTANTS["asked"]("detach", (self,), {})[1]
        t = make(self._storage, self._spec, self._offset)
        seen = (self if self._base is None else self._base)._seen
        if type(seen) is Apart:
            t._seen = seen
        return t

    def detach_(self) -> "Tensor":
        """Take this tensor off the tape."""
        if self._base is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        self._edge = None
        self._rg = False
        self.__dict__.pop("_tangent", None)
        return self

    @property
    def data(self) -> "Tensor":
        """The same storage, off the tape, with a version counter that autograd does not watch."""
        if "transforms" in tls.me.extra:
            return CONSTANTS["stopped"](self)
        if type(self) is not Tensor and _is_wrapper(self):
            return CONSTANTS["asked"]("detach", (self,), {})[1]
        t = make(self._storage, self._spec, self._offset)
        t._seen = Apart()
        return t

    @data.setter
    def data(self, other):
        if not isinstance(other, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(other).__name__}")
        if self.requires_grad and not differentiable(other._spec):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if type(other._storage) is not Storage and other.layout is not self.layout:  # a sparse one
            raise errors.incompatible_data(other)
        counted = 0 if self.is_inference() or other.is_inference() else self._version
        if self._edge is not None and other._spec.shape != self._spec.shape:
            self._edge = (_Reshaped(self._edge[0].name(), (self._edge,), (other._spec,)), 0)
        if self._spec is not other._spec:
            changed(self)
        self._storage = other._storage
        self._spec = other._spec
        self._offset = other._offset
        if self._base is None and not self.is_inference():  # the count goes on, whatever that of the other's memory is
            self.__dict__.pop("_counted", None)
            counted -= self._version
            if counted:
                self.__dict__["_counted"] = counted

    def register_hook(self, hook):
        """Call hook(grad) when this tensor's gradient has been computed; what it returns replaces the gradient."""
        extra = tls.me.extra
        if extra.get("transforms") and self.requires_grad and storages.is_traced(self._storage.value):
            CONSTANTS["hooked"](self)
        edge = grad_edge(self)
        if extra and self.requires_grad:
            CONSTANTS["note_hook"](edge)
        if edge is None:
            if not self.requires_grad:
                raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
            if self._hooks is None:
                self._hooks = {}
            changed(self)
            return RemovableHandle.into(self._hooks, hook)
        node, k = edge
        if node.pre_hooks is None:
            node.pre_hooks = {}
        return RemovableHandle.into(node.pre_hooks, ("tensor", k, hook))

    @property
    def _backward_hooks(self):
        """The hooks by the ids of their handles, in order; None where there never was one."""
        edge = grad_edge(self)
        if edge is None:
            return None if self._hooks is None else OrderedDict(self._hooks)
        hooks = edge[0].pre_hooks
        if hooks is None:
            return None
        mine = [
            (key, entry[2]) for key, entry in hooks.items() if type(entry) is tuple and entry[:2] == ("tensor", edge[1])
        ]
        return OrderedDict(mine)

    def register_post_accumulate_grad_hook(self, hook):
        """Call hook(tensor) after a gradient has been added to this leaf's `.grad`."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._edge is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        changed(self)
        return RemovableHandle.into(self.__dict__.setdefault("_post_hooks", {}), hook)

    @property
    def _post_accumulate_grad_hooks(self):
        """As `_backward_hooks`, of register_post_accumulate_grad_hook."""
        hooks = self.__dict__.get("_post_hooks")
        return None if hooks is None else OrderedDict(hooks)

    def _accumulator(self) -> AccumulateGrad:
        found = self.__dict__.get("_acc")
        found = found and found()
        if found is None:
            found = AccumulateGrad(self)
            self.__dict__["_acc"] = weakref.ref(found)
        return found

    def _accumulate(self, value, on_tape):
        """Add a gradient value to `.grad` (the engine's last step)."""
        if not self._rg:  # turned off after the forward pass
            return
        old = self._grad
        spec = self._spec
        if old is None and not on_tape:
            kept = _GRAD_SPECS.get(spec)
            if kept is None:
                kept = _GRAD_SPECS[spec] = _grad_spec(spec)
            storage = _new(Storage)
            storage.value = value
            storage.spec = kept
            storage.version = tls.me.born
            self._grad = make(storage, kept)
            return
        if on_tape:
            new = wrap(value[0], Spec.dense(tuple(spec.shape), spec.dtype, spec.device), value[1])
            self._grad = new if old is None else old + new if old.layout is new.layout else new + old
        else:
            s, sp = old._storage, old._spec
            try:
                before = s.value if s.spec is sp else storages.read(s, sp, old._offset)
            except NotImplementedError:  # a gradient of a sparse layout has no value
                self._grad = wrap(value, Spec.dense(tuple(spec.shape), spec.dtype, spec.device), None) + old
                return
            total = engine.graph_of(spec.device).rec2(engine._add_plan(spec), before, value)
            storages.write(s, sp, old._offset, total)

    # -- values ---------------------------------------------------------------------------------------------------------

    def item(self):
        """The value of a tensor with one element, as a Python number."""
        try:
            return self._item()
        except Exception as error:
            shorten(error)
            raise

    def _item(self, control=False):
        spec = self._spec
        if spec.numel != 1:
            raise RuntimeError(f"a Tensor with {spec.numel} elements cannot be converted to Scalar")
        s = self._storage
        if s.spec is spec:
            try:
                return storages.as_numpy(s.value).item()  # an array's own `item` takes twice as long
            except TypeError:  # of a tracer
                raise errors_func.traced_item(tls.me.extra.get("transforms", ()), control) from None
        return storages.numpy_of(s, spec, self._offset).item()

    def tolist(self):
        """The values as nested Python lists."""
        try:
            return _as_lists(storages.numpy_of(self._storage, self._spec, self._offset))
        except Exception as error:
            shorten(error)
            raise

    def __bool__(self):
        try:
            n = self._spec.numel
            if n != 1:
                if n == 0:
                    raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
                raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
            return bool(self._item(control=True))
        except Exception as error:
            shorten(error)
            raise

    def _number(self, c_name=None):
        """The one element, for float() and its like; `c_name`: the type that a complex number does not fit."""
        if self._spec.numel != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        value = self.item()
        if c_name is not None and isinstance(value, complex):
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {c_name} without overflow")
            return value.real
        return value

    def __float__(self):
        try:
            if (self._rg or self._edge is not None) and tls.me.grad:
                deprecations.say("scalar")
            return float(self._number("double"))
        except Exception as error:
            shorten(error)
            raise

    def __int__(self):
        try:
            return int(self._number("int64_t"))
        except Exception as error:
            shorten(error)
            raise

    def __complex__(self):
        if (self._rg or self._edge is not None) and tls.me.grad:
            deprecations.say("scalar")
        return complex(self._number())

    def __index__(self):
        try:
            if self._spec.dtype.category > 1 or self._spec.numel != 1:
                raise TypeError("only integer tensors of a single element can be converted to an index")
            return int(self.item())
        except Exception as error:
            shorten(error)
            raise

    def __format__(self, spec):
        if self._spec.ndim == 0 and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)


def _grad_spec(spec):
    """The layout of a fresh gradient: that of its leaf where the leaf's elements fill their memory, else row-major."""
    if spec.contiguous:
        return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)
    need = 1
    for s, n in sorted((s, n) for s, n in zip(spec.strides, spec.shape) if n != 1):
        if s != need:
            return Spec.dense(tuple(spec.shape), spec.dtype, spec.device)
        need *= n
    return spec


def _as_lists(array):
    if array.dtype.kind == "V" or array.dtype.name.startswith(("bfloat", "float8")):
        array = array.astype(np.float32)
    return array.tolist()


def _is_wrapper(t):
    """Whether a tensor has no numbers, only a class whose `__torch_dispatch__` answers for it."""
    return t._storage.value is None and t._storage.host is None and hasattr(type(t), "__torch_dispatch__")


def _wrap(dim, ndim):
    if not -ndim <= dim < ndim:
        raise errors.no_dimension(dim, ndim)
    return dim + ndim if dim < 0 else dim


# Above these bits a storage's version says in which of func's transformations it was made.
VERSION_BITS = 40
VERSION = (1 << VERSION_BITS) - 1
_new = object.__new__
_GRAD_SPECS: dict = {}  # spec of a leaf -> spec of its gradient
CONSTANTS: dict = {}  # objects defined on higher floors that fields refer to


def _legacy_new(cls, *args, **kwargs):
    raise NotImplementedError  # replaced by creation.py


def make(storage, spec, offset=0, cls=Tensor) -> Tensor:
    """A tensor off the tape on a storage that exists."""
    t = _new(cls)
    t._storage = storage
    t._spec = spec
    t._offset = offset
    t._edge = t._grad = t._base = t._seen = t._hooks = None
    t._rg = False
    return t


def wrap(value, spec, edge=None) -> Tensor:
    """A tensor with a storage of its own for a value (array or Pending) with this spec."""
    t = _new(Tensor)
    t._storage = Storage(value, spec)
    t._spec = spec
    t._offset = 0
    t._edge = edge
    t._grad = t._base = t._seen = t._hooks = None
    t._rg = False
    return t


def _first_gradients(given):
    """`_accumulate` for many leaves that have no gradient: (leaf, value, spec of the gradient) of each."""
    born = tls.me.born
    for leaf, value, spec in given:
        storage = _new(Storage)
        storage.value = value
        storage.spec = spec
        storage.version = born
        leaf._grad = make(storage, spec)


def value_of(t):
    """The array or Pending with a tensor's elements, in its logical shape."""
    s, spec = t._storage, t._spec
    return s.value if s.spec is spec else storages.read(s, spec, t._offset)


def edge_of(t):
    """Where a tensor's gradient goes, as an edge, or None. Leaves are edges to themselves."""
    base = t._base
    if base is not None and t._storage.version != t._seen:
        refresh(t)
    edge = t._edge
    if edge is None:
        if t._rg:
            return (t, 0)
        if base is not None and (base._rg or base._edge is not None) and differentiable(t._spec):
            # A view that was made off the tape, or before its base needed a gradient: steps from it are recorded, and lead nowhere.
            node = t.__dict__.get("_nowhere")
            if node is None:
                node = t.__dict__["_nowhere"] = Nowhere("Nowhere", (), (t._spec,))
            return (node, 0)
    return edge


def grad_edge(t):
    """A tensor's own edge to the node that made it; None for leaves."""
    base = t._base
    if base is not None and t._storage.version != t._seen:
        refresh(t)
    return t._edge


class _Reshaped(PythonNode):
    """Between a tensor that `.data` was given another shape and the node that made it, which knows only the first one."""

    __slots__ = ()

    def apply(self, grad):
        target, k = self.edges[0]
        shape, given = tuple(target.out_spec(k).shape), tuple(grad.shape)
        if shape == given[len(given) - len(shape) :]:
            return (grad.sum(tuple(range(len(given) - len(shape)))),)
        users = ((n, next_edges(n)) for n in tls.me.extra["run"].order)
        name, at = next((n.name(), i) for n, es in users for i, e in enumerate(es) if e is not None and e[0] is self)
        raise RuntimeError(
            f"Function {name} returned an invalid gradient at index {at} - got {list(given)} but expected shape compatible with "
            f"{list(shape)}"
        )


class Apart:
    """What a tensor from `.data` has as `_seen`: its own count of the writes through it and its views."""

    __slots__ = ("version",)

    def __init__(self):
        self.version = 0


def seen_now(base):
    """What a view of `base` made now has as `_seen`: never a storage's version where the base counts for itself."""
    apart = base._seen
    return (apart.version,) if type(apart) is Apart else base._storage.version


def refresh(t):
    """Give a view the history that its base has now."""
    base = t._base
    seen = seen_now(base)
    if t._seen == seen:
        return
    source = edge_of(base)
    if source is None and t._edge is None:
        return
    if "_made" in t.__dict__:
        raise errors.view_made(t.__dict__["_made"], t._edge, indirect=True)
    t._seen = seen
    before = t._edge
    # A base that was detached in the meantime leaves its views with a step that leads nowhere.
    t._edge = view_edge(base, t, source, source is None)
    if before is not None and before[0].retained:
        move_retained(t, before)


def retains_at(t, edge) -> bool:
    """Whether `t` is the tensor whose `.grad` is to be filled at this place in the graph."""
    reference = isinstance(edge[0], Node) and (edge[0].retained or {}).get(edge[1])  # a leaf is its own edge
    return bool(reference) and reference() is t


def move_retained(t, edge):
    """A tensor that retains its gradient does so at its new place in the graph."""
    if retains_at(t, edge):
        del edge[0].retained[edge[1]]
        t.retain_grad()


def view_edge(source, view, source_edge, anyhow=False):
    """The edge of a view of `source` given by their layouts, or None when no gradient goes there, unless `anyhow`."""
    if source_edge is None and not anyhow or not differentiable(view._spec):
        return None
    plan, starts = read_plan(source._spec, source._offset, view._spec, view._offset, "AsStridedBackward0")
    return (tape.record(plan, (), (source_edge,), starts, ()), 0)


engine.bridge.wrap = wrap
engine.bridge.first_gradients = _first_gradients
engine.bridge.unwrap = lambda t: (value_of(t), edge_of(t))
__all__ = ["Node", "Tensor", "make", "wrap"]
