"""The tensor functions that loading needs, each looked up when first used: they stand above this package."""

import importlib

from ..tensor import Tensor as Tensor

_LATE = ("as_tensor", "from_numpy", "stack", "tensor")


def __getattr__(name):
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module("jtorch.functions"), name)
    return value
