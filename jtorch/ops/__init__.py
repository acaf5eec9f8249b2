"""The op table. As `torch.ops` it also holds `aten` and the namespaces made by torch.library."""

import importlib
import importlib.util
import pathlib


def __getattr__(name):
    if name == "aten":
        return importlib.import_module("jtorch.aten")
    if name in ("c10d", "c10d_functional", "_c10d_functional"):
        return getattr(importlib.import_module("jtorch.distributed._functional_collectives"), name)
    if name.startswith("__") or importlib.util.find_spec(f"jtorch.ops.{name}") is not None:
        raise AttributeError(f"module 'jtorch.ops' has no attribute {name!r}")
    return importlib.import_module("jtorch.aten").namespace(name)


def load_library(path) -> None:
    """Defines the operators of a library that jtorch has written itself. OSError: any other compiled library, which calls PyTorch's C++
    code, and that is not in this process."""
    path = pathlib.Path(str(path))
    own = next((module for pattern, module in _WRITTEN.items() if path.match(pattern)), None)
    if own is None:
        refused.add(str(path))
        raise OSError(f"could not load {path}: operators compiled for PyTorch cannot run on jtorch")
    importlib.import_module(own)
    loaded_libraries.add(str(path))


_WRITTEN = {  # the end of a library's path -> the module that defines its operators
    "torchvision/_C*": "jtorch.vision",
    "torchaudio/lib/_torchaudio.*": "jtorch.audio",
    "torchaudio/lib/libtorchaudio.*": "jtorch.audio",
}
loaded_libraries: set = set()
refused: set[str] = set()  # libraries whose operators do not exist here, whatever is registered for them
