"""What a script raises by itself, as torch.jit.Error."""

import traceback

from .. import errors
from ..tracebacks import by_raise, innermost

__all__ = ["Error", "failed", "run"]


class Error(Exception):
    """What a script's own `assert` and `raise` become; the exception that was raised is its cause."""

    __module__ = "jtorch.jit"


def failed(kind: str, words, places="") -> Error:
    """The error in PyTorch's form. places: the lines of a traceback."""
    return Error(
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call last):\n"
        f"{places}{kind}: {words}\n"
    )


def _raised_by_script(error) -> Exception | None:
    """The Error for an exception that a script raised, by `assert`, `raise` or `torch._assert`; None for one that an operation did."""
    if isinstance(error, Error):
        return None
    last = innermost(error.__traceback__)
    by_script = by_raise(last) and not errors.is_ours(last.tb_frame.f_code.co_filename)
    if not (by_script or isinstance(error, AssertionError)):
        return None
    kind = "RuntimeError: AssertionError" if isinstance(error, AssertionError) else f"builtins.{type(error).__name__}"
    return failed(kind, error, "".join(traceback.format_tb(error.__traceback__.tb_next)))


def run(fn, args, kwargs):
    """Call a scripted function."""
    try:
        return fn(*args, **kwargs)
    except Exception as error:
        made = _raised_by_script(error)
        if made is None:
            raise
        raise made from error
