"""torch.linalg: the functions of the op table, and the error of a matrix that cannot be factored."""

from . import functions
from .errors import LinAlgError

__all__ = sorted({"LinAlgError", *functions.names("linalg")})


# Notes that PyTorch's documentation of these functions shares.
common_notes = {
    "experimental_warning": "This function is experimental.",
    "sync_note": "On an accelerator this function waits for the device.",
    "sync_note_ex": "On an accelerator this function waits for the device when check_errors is True.",
    "sync_note_has_ex": "The function of this name with _ex waits for the device only when asked to.",
}


__getattr__, __dir__ = functions.module_attributes("linalg", globals())


_ = LinAlgError
