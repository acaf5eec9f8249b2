"""torch.ops: operators by their internal names, each with its overloads; `aten` is the op table, other namespaces are made by
torch.library."""

from . import creation, functions, methods, random_tensors
from .aten_backward import BACKWARD
from .aten_losses import LOSSES
from .aten_orders import METHODS, ORDERS, late
from .core.record import tls
from .dispatch import build_inplace, dispatched, function_of, override, spread
from .dispatch.dispatched import OpOverload as OpOverload
from .dispatch.dispatched import OpOverloadPacket
from .functions import lookup, operator
from .ops import registry
from .tensor import Tensor

_SPACES = ("torch", "Tensor", "nn.functional", "_C._nn", "linalg", "fft", "special")
_HAND_WRITTEN = {
    "detach",
    "clone",
    "fill_",
    "zero_",
    "copy_",
    "view",
    "reshape",
    "contiguous",
    "new_zeros",
    "new_empty",
    "new_full",
    "new_ones",
    "detach_",
    "to",
    "item",
}
_HAND_WRITTEN |= {  # what a tensor says of itself
    "ccol_indices", "coalesce", "col_indices", "crow_indices", "dim", "flatten", "indices", "is_coalesced", "is_contiguous", "is_pinned",
    "is_same_size", "numel", "row_indices", "size", "storage_offset", "stride", "values",
}  # fmt: skip
_FACTORIES = {
    f"{name}{like}" for name in ("empty", "full", "ones", "rand", "randint", "randn", "zeros") for like in ("", "_like")
} | {"arange", "empty_strided", "eye", "linspace", "logspace", "randperm", "scalar_tensor"}


def _copied(self, *, dtype=None, device=None, **kwargs):
    """A copy in another dtype or on another device."""
    made = self.to(dtype=dtype, device=device)
    return made.clone() if made is self else made


def _convolved(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, benchmark=False, deterministic=False,
    cudnn_enabled=True, allow_tf32=True,
):  # fmt: skip
    """torch.convolution; flags that choose a kernel are taken and unused."""
    call = lookup("torch", "convolution")
    return call(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


_MADE_HERE = {
    **BACKWARD,
    **LOSSES,
    **ORDERS,
    "equal": methods.equal,
    "lift_fresh": lambda self: self,
    "lift_fresh_copy": lambda self: self.clone(),
    "sym_size": lambda self, dim=None: self.shape if dim is None else self.shape[dim],
    "sym_stride": lambda self, dim=None: self.stride() if dim is None else self.stride(dim),
    "sym_numel": lambda self: self.numel(),
    "bernoulli": random_tensors.bernoulli,
    **{f"_adaptive_avg_pool{n}d": lookup("nn.functional", f"adaptive_avg_pool{n}d") for n in (2, 3)},
    **{n: methods.of_sparse(n) for n in ("_sparse_addmm", "_sparse_mm_reduce_impl")},
    "_to_copy": _copied,
    "_local_scalar_dense": lambda self: self.item(),
    "_nnz": lambda self: self._nnz(),
    "_indices": lambda self: self._indices(),
    "_values": lambda self: self._values(),
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "_convolution": _convolved,
    "view_as_complex": functions.view_as_complex,
    "view_as_real": functions.view_as_real,
}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _MADE_HERE:
        fn = _MADE_HERE[name]
    elif name in _HAND_WRITTEN:
        fn = getattr(Tensor, name)
    elif name in _FACTORIES:
        fn = getattr(creation, name, None) or getattr(random_tensors, name)
    elif name in METHODS:
        fn = getattr(Tensor, name)
    elif (fn := late(name)) is None:
        fn = next((found for space in _SPACES if (found := operator(space, name)) is not None), None)
    if fn is None and name.endswith("_"):
        fn = getattr(Tensor, name, None)
    if fn is None:
        space, _, rest = name.partition("_")
        fn = lookup(space, rest) if space in ("linalg", "fft", "special") else None
    if fn is None:
        record = next((t[name] for t in (registry.OPS, registry.VIEWS, registry.COMPOSITES) if name in t), None)
        if record is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        fn = function_of(record)
    made = globals()[name] = OpOverloadPacket("aten", name, fn)
    return made


def _packet(name, record):
    """The operator of a record; for a name without one, a function of the public API."""
    found = globals().get(name)
    if found is None:
        try:
            found = __getattr__(name)
        except AttributeError:
            written = name.endswith("_") and not record.name.endswith("_")
            fn = spread(record, build_inplace(record, name)) if written else function_of(record)
            found = globals()[name] = OpOverloadPacket("aten", name, fn)
    return found


def _called(operator, args, kwargs):
    """The result of an operator of torch.ops: who is asked for it, by `__torch_function__`, gets the operator itself."""
    me = tls.me
    if me.overriding and (override.STATE.armed or me.function_modes):
        relevant = override.overloaded(args, kwargs) if me.overriding == 2 else ()
        relevant = [x for x in relevant if type(x) not in override.LAYOUTS]
        if relevant or me.function_modes:
            return override.override(operator, relevant, args, kwargs)
    return operator._fn(*args, **kwargs)


dispatched.packet_of = _packet
dispatched.called = _called


class OpNamespace:
    """A namespace of operators made by torch.library: `torch.ops.mine.op`."""

    def __init__(self, name):
        self.name = name
        self.__name__ = name

    def __getattr__(self, op):
        if op.startswith("__"):
            raise AttributeError(op)
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op}'")

    def __dir__(self):
        return sorted(n for n, v in vars(self).items() if isinstance(v, OpOverloadPacket))

    def __iter__(self):
        return iter(dir(self))

    def __repr__(self):
        return f"<torch.ops.{self.name}>"


_OpNamespace = OpNamespace  # PyTorch's name of it
_namespaces: dict[str, OpNamespace] = {}


def namespace(name: str) -> OpNamespace:
    """torch.ops.<name>, made at its first mention."""
    found = _namespaces.get(name)
    if found is None:
        found = _namespaces[name] = OpNamespace(name)
    return found
