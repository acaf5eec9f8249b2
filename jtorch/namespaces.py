"""Modules that are more than a module: what pickles them by value must take them by their name."""

import importlib
import types


class Namespace(types.ModuleType):
    """A module of a class of its own; cloudpickle and copy find it again by its name."""

    def __reduce__(self):
        return importlib.import_module, (self.__name__,)


class Package(Namespace):
    """A package with functions that bear the name of a submodule: importing that does not take their place, as in PyTorch."""

    def __setattr__(self, name, value):
        if not (isinstance(value, types.ModuleType) and name in self.__all__):
            super().__setattr__(name, value)
