"""What is shown of an error: the line that called an operator and the words, not jtorch's way to them."""

import dis
import sys

from . import config
from .errors import is_ours

_RAISE = dis.opmap["RAISE_VARARGS"]
_OF_JAX = "JAX_TRACEBACK_FILTERING"  # in what jax adds to an error about the frames that it hides


def shorten(error) -> None:
    """Take jtorch's frames below the caller's from an error that a check of ours raises.

    Errors of Python, of jax and of functions of the user's keep all of them. So do ours with JTORCH_FULL_TRACEBACKS=1.
    """
    below, last = error.__traceback__, None
    while below is not None:
        file = below.tb_frame.f_code.co_filename
        if not (file.startswith("<jtorch ") or is_ours(file) or _of_jax(file)):
            return
        last, below = below, below.tb_next
    if last is None or config.full_tracebacks:
        return
    code = last.tb_frame.f_code
    if hasattr(error, "_shortened") or code.co_code[last.tb_lasti] == _RAISE and not _of_jax(code.co_filename):
        error.__traceback__ = None
        error._shortened = True  # by a function that another one has called


def shortening(lines) -> list:
    """The lines of a generated function, as those of one whose errors `shorten` sees."""
    return ["try:", *["    " + line for line in lines], "except Exception as error:", "    shorten(error)", "    raise"]


def _of_jax(file: str) -> bool:
    jax = sys.modules["jax"].__file__
    return jax is not None and file.startswith(jax.removesuffix("__init__.py"))


def without_note(error) -> None:
    """Take jax's words about its frames from an error of ours."""
    notes = getattr(error, "__notes__", None)
    if notes:
        error.__notes__ = [note for note in notes if _OF_JAX not in note]
