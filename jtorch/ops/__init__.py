"""The op table. As `torch.ops` it also holds `aten` and the namespaces made by torch.library."""

import importlib
import importlib.util


def __getattr__(name):
    if name == "aten":
        return importlib.import_module("jtorch.aten")
    if name.startswith("_") or importlib.util.find_spec(f"jtorch.ops.{name}") is not None:
        raise AttributeError(f"module 'jtorch.ops' has no attribute {name!r}")
    return importlib.import_module("jtorch.aten").namespace(name)
