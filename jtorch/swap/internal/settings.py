"""Settings of compilers that are not there: kept, and without effect."""

import contextlib
import types

__all__ = ["Settings"]


class Settings(types.ModuleType):
    """A module of settings with these values."""

    def __init__(self, name, **values):
        super().__init__(name, "Settings: kept, and without effect.")
        self.__dict__.update(values)

    @contextlib.contextmanager
    def patch(self, changes=None, **more):
        """Context, or decorator: other settings inside."""
        before = dict(self.__dict__)
        self.__dict__.update(changes or {}, **more)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)
