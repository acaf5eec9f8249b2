"""The import hook: a finder that answers `import torch.x.y` with the module of jtorch that has those names."""

import importlib
import importlib.metadata
import importlib.util
import sys
import types
from importlib.machinery import ModuleSpec

from .. import version
from ..namespaces import Package
from . import errors, table
from .facade import Torch, Union

_METADATA = f"""\
Metadata-Version: 2.1
Name: torch
Version: {version.torch}
Summary: PyTorch's Python API, answered by jtorch
"""


class Distribution(importlib.metadata.Distribution):
    """What importlib.metadata finds under the name torch."""

    _FILES = {"METADATA": _METADATA, "PKG-INFO": _METADATA, "top_level.txt": "torch\n", "INSTALLER": "jtorch\n"}

    def read_text(self, filename):
        """The text of a metadata file, or None."""
        return self._FILES.get(filename)

    def locate_file(self, path):
        """Nothing is installed under this name: a path where nothing is."""
        return importlib.util.find_spec("jtorch").submodule_search_locations[0] + f"/{path}"


class Loader:
    """Puts the module of jtorch itself under PyTorch's name: classes, isinstance and written attributes are the same."""

    def create_module(self, spec):
        """A plain module, which is thrown away."""
        return None

    def exec_module(self, module):
        """Replace the module that was made by the one of jtorch."""
        name = module.__name__
        keep_function(name)
        if name in table.FUNCTORCH:
            found = importlib.import_module(f"jtorch.swap.internal.{table.FUNCTORCH[name]}")
        else:
            found = facade() if name == "torch" else find_module(name.removeprefix("torch."))
        if not hasattr(found, "__path__"):
            found.__path__ = []  # `import torch.backends.cudnn` asks it of torch.backends
        if getattr(found, "__spec__", None) is None:
            found.__spec__ = module.__spec__
        sys.modules[name] = found


def keep_function(name: str) -> None:
    """Have a package keep its function of the name of a submodule that is imported: torch.nn.utils.weight_norm."""
    package, _, child = name.rpartition(".")
    holder = sys.modules.get(package)
    if type(holder) is types.ModuleType and child in getattr(holder, "__all__", ()):
        if not isinstance(getattr(holder, child, None), types.ModuleType):
            holder.__class__ = Package


_LOADER = Loader()


class Finder:
    """The entry of sys.meta_path."""

    def find_spec(self, fullname, path=None, target=None):
        """The spec of torch or of one of its modules that jtorch has; None for everything else."""
        top = fullname == "torch" or fullname in table.FUNCTORCH
        if not top and not fullname.startswith("torch."):
            return None
        if not top and not exists(fullname.removeprefix("torch.")):
            return None
        return ModuleSpec(fullname, _LOADER, origin="jtorch", is_package=True)

    def find_distributions(self, context=None):
        """torch's metadata, for importlib.metadata."""
        if getattr(context, "name", None) in (None, "torch"):
            yield Distribution()

    def invalidate_caches(self):
        """Nothing is cached."""


FINDER = Finder()


def exists(name: str) -> bool:
    """Whether jtorch has PyTorch's module `name` (written without "torch.")."""
    return any(_exists(source) for source in table.sources(name) or ())


def _exists(source):
    if f"jtorch.{source}" in sys.modules:
        return True
    try:
        if importlib.util.find_spec(f"jtorch.{source}") is not None:
            return True
    except ModuleNotFoundError:
        pass
    return isinstance(_attribute(source), types.ModuleType)


def _attribute(source):
    """A namespace that is an attribute and no file: torch.special, torch.signal.windows."""
    found = sys.modules["jtorch"]
    for part in source.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return None
    return found


def find_module(name: str):
    """The module that is PyTorch's `name` (written without "torch."): one of jtorch's, or several as one."""
    found = [_load(source) for source in table.sources(name) if _exists(source)]
    same = table.sources(name)[0] == name and _exists(name)
    made = found[0] if same or len(found) == 1 else Union(f"torch.{name}", found)
    if _renaming[0]:
        rename(made)
        if same:
            made.__name__ = f"torch.{name}"  # tools choose by it: `backend == torch.jit.__name__`
    children = table.children(name)
    more = found[1:] if same else []
    if children or more:
        homes = {child: f"{name}.{child}" for child in children}
        known = made.__dict__.get("__getattr__")
        if isinstance(known, _More):  # one module of jtorch may be several of PyTorch's
            known.children = homes | known.children
            return made
        made.__getattr__ = _More(made, homes, more, known)
        for full in homes.values():
            if table.sources(full)[0] == full and exists(full):
                find_module(full)  # there already, under its own name, without what is added here
    return made


class _More:
    """The `__getattr__` of a module of jtorch that PyTorch has more in: names from other modules, and submodules that are
    elsewhere in jtorch (PyTorch has imported most of its own)."""

    def __init__(self, module, children, others, before):
        self.module, self.others, self.before = module, others, before
        self.children = children  # to full names
        self.asked = set()  # looking for a module asks for attributes again

    def __call__(self, attribute):
        if attribute in self.asked:
            raise AttributeError(f"module {self.module.__name__!r} has no attribute {attribute!r}")
        self.asked.add(attribute)
        try:
            return self.find(attribute)
        finally:
            self.asked.discard(attribute)

    def find(self, attribute):
        """The value of an attribute that the module itself has not."""
        full = self.children.get(attribute)
        if full is not None and exists(full):  # first: what the module itself finds has no children of its own yet
            found = find_module(full)
            setattr(self.module, attribute, found)
            return found
        if self.before is not None:
            try:
                return self.before(attribute)
            except AttributeError:
                pass
        for other in self.others:
            if not attribute.startswith("__") and hasattr(other, attribute):
                return getattr(other, attribute)
        raise AttributeError(f"module {self.module.__name__!r} has no attribute {attribute!r}")


def _load(source):
    try:
        return importlib.import_module(f"jtorch.{source}")
    except ModuleNotFoundError as error:
        if error.name != f"jtorch.{source}" and not f"jtorch.{source}".startswith(f"{error.name}."):
            raise
        return _attribute(source)


# --- the names that classes say they are from ----------------------------------------------------------------------

_renaming = [False]


def rename(module) -> None:
    """Have the classes that a module shows say the module that PyTorch has them in: programs read `type(x).__module__`."""
    for value in list(vars(module).values()):
        if isinstance(value, type):
            _rename_class(value)


def _rename_class(cls):
    at = getattr(cls, "__module__", None)
    if _renaming[0] and isinstance(at, str) and at.startswith("jtorch."):
        home = table.home(at.removeprefix("jtorch."), cls.__name__)
        if home is not None:
            line = vars(cls).get("__firstlineno__")
            cls.__module__ = f"torch.{home}" if home else "torch"
            if line is not None:  # Python 3.13 forgets it then, and `inspect.getsource` needs it
                cls.__firstlineno__ = line
            if at == f"jtorch.{home}":
                _found_by_name(home)


def _found_by_name(name):
    """Put a module where `sys.modules[cls.__module__]` finds it, as `inspect.getsource` of its classes does."""
    full = f"torch.{name}"
    if full not in sys.modules and (table.sources(name) or ("",))[0] == name:
        sys.modules[full] = sys.modules[f"jtorch.{name}"]  # renaming what it holds comes here again
        sys.modules[full] = find_module(name)


# --- on and off ----------------------------------------------------------------------------------------------------

_facade: list[Torch] = []


def facade() -> Torch:
    """The module that is `torch`: one for the life of the process."""
    if not _facade:
        _facade.append(Torch(sys.modules["jtorch"], exists, _rename_class))
    return _facade[0]


def used() -> bool:
    """Whether modules of this process may have been imported with jtorch as their torch."""
    return bool(_facade) and isinstance(sys.modules.get("torch", _facade[0]), Torch)


def refuse_real_torch() -> None:
    """Raise where another torch than ours is loaded."""
    there = sys.modules.get("torch")
    if there is not None and not isinstance(there, Torch):
        raise errors.already_imported(getattr(there, "__file__", None) or "an unknown place")


def install_as_torch() -> None:
    """Make `torch` and every `torch.x.y` resolve to jtorch for the rest of this process.

    `torch.__version__` and `importlib.metadata.version("torch")` answer the release that jtorch follows. Calling it again
    changes nothing. Raises RuntimeError when the real torch has been imported already.
    """
    refuse_real_torch()
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
    _renaming[0] = True
    for name in ("Tensor", "Size", "device", "dtype", "Generator"):
        rename(types.SimpleNamespace(**{name: getattr(facade(), name)}))
    importlib.import_module("torch")
