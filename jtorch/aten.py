"""torch.ops.aten: operators by their internal names, each with its overloads."""

from .dispatch import function_of
from .functions import lookup
from .ops import registry


class Operator:
    """An operator; its overloads (`.default`, `.Tensor`) are all the same function here."""

    def __init__(self, name, fn):
        self._name = name
        self._fn = fn
        self.__doc__ = fn.__doc__

    def __call__(self, *args, **kwargs):
        return self._fn(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        return self._fn

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


_SPACES = ("torch", "Tensor", "nn.functional", "_C._nn", "linalg", "fft", "special")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    fn = next((found for space in _SPACES if (found := lookup(space, name)) is not None), None)
    if fn is None:
        record = next((t[name] for t in (registry.OPS, registry.VIEWS, registry.COMPOSITES) if name in t), None)
        if record is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        fn = function_of(record)
    made = globals()[name] = Operator(name, fn)
    return made
