"""torch.special: the functions of the op table."""

from . import functions

__all__ = sorted(functions.names("special"))


__getattr__, __dir__ = functions.module_attributes("special", globals())
