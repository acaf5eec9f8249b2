"""`import jtorch.cuda.amp`: modules of PyTorch that jtorch has under other names are found under PyTorch's too, once the import is swapped."""

import importlib
import sys
import types
from importlib.machinery import ModuleSpec

__all__ = ["Finder"]


class Finder:
    """The last entry of sys.meta_path: asked only for what no file has."""

    def __init__(self):
        self.asked = set()  # looking for a module's sources asks here again

    def find_spec(self, fullname, path=None, target=None):
        """The spec of a module of PyTorch's that is elsewhere in jtorch; None for everything else."""
        if not fullname.startswith("jtorch.") or fullname in self.asked:
            return None
        self.asked.add(fullname)
        try:
            name = fullname.removeprefix("jtorch.")
            hook = importlib.import_module("jtorch.swap.hook")
            if not hook.exists(name):
                return None
            return ModuleSpec(fullname, self, origin="jtorch", is_package=True)
        finally:
            self.asked.discard(fullname)

    def create_module(self, spec):
        """A plain module, which is thrown away."""
        return None

    def exec_module(self, module):
        """Replace the module that was made by the one of jtorch."""
        name = module.__name__
        self.asked.add(name)
        hook = importlib.import_module("jtorch.swap.hook")
        hook.keep_function(name)
        del sys.modules[name]  # a namespace that is an attribute is looked for under this name
        try:
            found = hook.find_module(name.removeprefix("jtorch."))
        finally:
            self.asked.discard(name)
        if isinstance(found, types.ModuleType) and not hasattr(found, "__path__"):
            found.__path__ = []
        sys.modules[name] = found


def install() -> None:
    """Have it asked, once."""
    if not any(isinstance(f, Finder) for f in sys.meta_path):
        sys.meta_path.append(Finder())
