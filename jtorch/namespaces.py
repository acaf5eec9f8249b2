"""Modules that are more than a module: what pickles them by value must take them by their name."""

import importlib
import types


class Namespace(types.ModuleType):
    """A module of a class of its own; cloudpickle and copy find it again by its name."""

    def __reduce__(self):
        return importlib.import_module, (self.__name__,)
