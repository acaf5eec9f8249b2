"""The module objects that stand under PyTorch's names where jtorch's own cannot: `torch` itself, and modules of several files."""

import importlib
import types

from .. import version
from ..core import dtype as dtypes
from ..namespaces import Namespace
from ..torch_version import TorchVersion


class Torch(Namespace):
    """`torch`: jtorch's names, PyTorch's version, and PyTorch's submodules without having imported them."""

    def __init__(self, package, exists, shown):
        super().__init__("torch", package.__doc__)
        self.__dict__.update(
            __version__=TorchVersion(version.torch),
            __file__=package.__file__,
            __path__=[],
            _jtorch=package,
            torch=self,  # annotations say torch.torch.Tensor
            _exists=exists,
            _shown=shown,
        )
        # programs look dtypes up by name in vars(torch), and list them so
        self.__dict__.update({n: getattr(package, n) for n in (*dtypes.ALL, *dtypes.ALIASES)})

    def __getattr__(self, name):
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_") and hasattr(self, n)]
        if name.startswith("__") and name != "__config__" and name != "__future__":
            raise AttributeError(f"module 'torch' has no attribute {name!r}")
        value = getattr(self._jtorch, name, _MISSING)
        ours = (
            isinstance(value, types.ModuleType)
            and value.__name__.startswith(("jtorch.", "torch."))
            and not callable(value)
        )
        if value is _MISSING and name.startswith("_"):
            value = getattr(importlib.import_module("jtorch.swap.internal.top"), name, _MISSING)
        if value is _MISSING or ours:  # a module of jtorch that PyTorch has not (torch.core) is not there
            if not self._exists(name):
                raise AttributeError(f"module 'torch' has no attribute {name!r}")
            value = importlib.import_module(f"torch.{name}")
        elif isinstance(value, type):
            self._shown(value)
        self.__dict__[name] = value
        return value

    def __dir__(self):
        return sorted({*self.__dict__, *dir(self._jtorch)})


_MISSING = object()


def _public(module):
    """What a star import takes from a module."""
    return getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]


class Union(Namespace):
    """A module of PyTorch whose names are in several modules of jtorch."""

    def __init__(self, name, sources):
        super().__init__(name, f"{name}: its names, from where jtorch has them.")
        self.__dict__["_sources"] = sources

    def __getattr__(self, name):
        if name == "__all__":
            return list(dict.fromkeys(n for source in self._sources for n in _public(source)))
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        for source in self._sources:
            try:
                value = getattr(source, name)
            except AttributeError:
                continue
            self.__dict__[name] = value
            return value
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name, value):
        own = name.startswith("__") or isinstance(value, types.ModuleType)  # an empty __path__ would end a package
        for source in () if own else self._sources:  # where it is read
            if name in vars(source):
                setattr(source, name, value)
                break
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted({*self.__dict__, *(name for source in self._sources for name in dir(source))})
