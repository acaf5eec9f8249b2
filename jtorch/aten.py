"""torch.ops: operators by their internal names, each with its overloads; `aten` is the op table, other namespaces are made by
torch.library."""

from .dispatch import dispatched, function_of
from .dispatch.dispatched import OpOverload as OpOverload
from .dispatch.dispatched import OpOverloadPacket
from .functions import lookup
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
    "item",
}


def _copied(self, *, dtype=None, device=None, **kwargs):
    """A copy in another dtype or on another device."""
    made = self.to(dtype=dtype, device=device)
    return made.clone() if made is self else made


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "_to_copy":
        fn = _copied
    elif name in _HAND_WRITTEN:
        fn = getattr(Tensor, name)
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
