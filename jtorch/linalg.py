"""torch.linalg: the functions of the op table, and the error of a matrix that cannot be factored."""

from . import functions
from .errors import LinAlgError

__all__ = sorted({"LinAlgError", *functions.names("linalg")})


def __getattr__(name):
    found = functions.lookup("linalg", name)
    if found is None:
        raise AttributeError(f"module 'jtorch.linalg' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__():
    return sorted({*__all__, *globals()})


_ = LinAlgError
