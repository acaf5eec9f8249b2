"""The op table. As `torch.ops` it also holds the namespace `aten`."""

import importlib


def __getattr__(name):
    if name == "aten":
        return importlib.import_module("jtorch.aten")
    raise AttributeError(f"module 'jtorch.ops' has no attribute {name!r}")
