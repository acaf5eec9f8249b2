"""torch.special: the functions of the op table."""

from . import functions

__all__ = sorted(functions.names("special"))


def __getattr__(name):
    found = functions.lookup("special", name)
    if found is None:
        raise AttributeError(f"module 'jtorch.special' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__():
    return sorted({*__all__, *globals()})
