"""Where an error or a call comes from, and what is shown of that: a program's lines, not jtorch's way below them."""

import dis
import os
import sys
import traceback

from . import config
from .errors import is_ours

_RAISE = dis.opmap["RAISE_VARARGS"]
_OF_JAX = "JAX_TRACEBACK_FILTERING"  # in what jax adds to an error about the frames that it hides
_HERE = os.path.dirname(__file__)
_MACHINERY = ("<jtorch ", *(os.path.join(_HERE, name, "") for name in ("autograd", "core", "dispatch")))
_BELOW = (*_MACHINERY, os.path.join(_HERE, "ops", ""))


def innermost(entry):
    """The last entry of a traceback."""
    while entry.tb_next is not None:
        entry = entry.tb_next
    return entry


def by_raise(entry) -> bool:
    """Whether the error of a traceback's last entry is raised there by a `raise`, not by what Python does for the line."""
    return entry.tb_frame.f_code.co_code[entry.tb_lasti] == _RAISE


def stack_of_call() -> list[str]:
    """Where a public function is being called, as lines for a message: the last is a program's, or a layer's."""
    stack = traceback.extract_stack(sys._getframe(1))
    while stack[-1].filename.startswith(_MACHINERY):
        stack.pop()
    return stack.format()


def shorten(error) -> None:
    """Take jtorch's frames below the caller's from an error that a check of ours raises.

    Errors of Python, of jax and of functions of the user's keep all of them. So do ours with JTORCH_FULL_TRACEBACKS=1.
    """
    below = error.__traceback__
    if below is None or config.full_tracebacks:
        return
    while below is not None:
        file = below.tb_frame.f_code.co_filename
        if not (file.startswith("<jtorch ") or is_ours(file) or _of_jax(file)):
            return
        last, below = below, below.tb_next
    if hasattr(error, "_shortened") or by_raise(last) and not _of_jax(file):
        error.__traceback__ = None
        error._shortened = True  # by a function that another one has called


def end_at_program(error) -> None:
    """Let the traceback of an error that ends a program end at the program's, or a layer's, last line, whatever ours have called below.

    What they call is not asked to shorten its own for that: an error is cut once, when it is shown.
    """
    seen = set()
    while error is not None and error not in seen and not config.full_tracebacks:
        seen.add(error)
        last = entry = error.__traceback__
        while entry is not None:
            if not _is_below(entry):
                last = entry
            entry = entry.tb_next
        if (
            last is not None
            and last.tb_next is not None
            and (hasattr(error, "_shortened") or by_raise(innermost(last)))
        ):
            last.tb_next = None
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _is_below(entry) -> bool:
    """Whether an entry is of what PyTorch has in C++."""
    file = entry.tb_frame.f_code.co_filename
    return file.startswith(_BELOW) or os.path.dirname(file) == _HERE


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
