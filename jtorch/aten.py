"""torch.ops: operators by their internal names, each with its overloads; `aten` is the op table, other namespaces are made by
torch.library."""

from . import creation, random_tensors
from .autograd import entry, grad_mode
from .dispatch import dispatched, function_of
from .dispatch.dispatched import OpOverload as OpOverload
from .dispatch.dispatched import OpOverloadPacket
from .functions import lookup
from .methods import of_sparse
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
_FACTORIES = {
    f"{name}{like}" for name in ("empty", "full", "ones", "rand", "randint", "randn", "zeros") for like in ("", "_like")
} | {"arange", "empty_strided", "eye", "linspace", "logspace", "randperm", "scalar_tensor"}


def _copied(self, *, dtype=None, device=None, **kwargs):
    """A copy in another dtype or on another device."""
    made = self.to(dtype=dtype, device=device)
    return made.clone() if made is self else made


def _convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):  # fmt: skip
    """The gradients of a convolution by input, weight and bias; None where `output_mask` has False."""
    given = [input.detach(), weight.detach(), None if bias_sizes is None else weight.new_zeros(bias_sizes)]
    wanted = [t.requires_grad_() for t, there in zip(given, output_mask) if there and t is not None]
    with grad_mode.enable_grad():
        out = lookup("torch", "convolution")(*given, stride, padding, dilation, transposed, output_padding, groups)
    found = iter(entry.grad(out, wanted, grad_output) if wanted else ())
    return tuple(next(found) if there and t is not None else None for t, there in zip(given, output_mask))


def _convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, benchmark=False, deterministic=False,
    cudnn_enabled=True, allow_tf32=True,
):  # fmt: skip
    """torch.convolution; flags that choose a kernel are taken and unused."""
    call = lookup("torch", "convolution")
    return call(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


_MADE_HERE = {
    **{n: of_sparse(n) for n in ("_sparse_addmm", "_sparse_mm_reduce_impl")},
    "_to_copy": _copied,
    "_local_scalar_dense": lambda self: self.item(),
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "_convolution": _convolution,
    "convolution_backward": _convolution_backward,
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
    else:
        fn = next((found for space in _SPACES if (found := lookup(space, name)) is not None), None)
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
            found = globals()[name] = OpOverloadPacket("aten", name, function_of(record))
    return found


dispatched.packet_of = _packet


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


_namespaces: dict[str, OpNamespace] = {}


def namespace(name: str) -> OpNamespace:
    """torch.ops.<name>, made at its first mention."""
    found = _namespaces.get(name)
    if found is None:
        found = _namespaces[name] = OpNamespace(name)
    return found
