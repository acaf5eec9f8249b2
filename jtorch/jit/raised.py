"""What a script raises by itself, as torch.jit.Error."""

import dis
import traceback

from .. import errors

__all__ = ["Error", "failed", "run"]

_RAISE = dis.opmap["RAISE_VARARGS"]


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
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    if not isinstance(error, AssertionError) and last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISE:
        return None
    if not isinstance(error, AssertionError) and errors.is_ours(last.tb_frame.f_code.co_filename):
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
