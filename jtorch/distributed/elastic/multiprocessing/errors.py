"""How a process that a launcher started reports the exception that ended it: a JSON file, whose path TORCHELASTIC_ERROR_FILE gives.

Source: https://docs.pytorch.org/docs/stable/elastic/errors.html
"""

import faulthandler
import functools
import json
import os
import time
import traceback
from dataclasses import dataclass

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]


class ErrorHandler:
    """Writes exceptions to the error file, if there is one."""

    def initialize(self) -> None:
        """Have a fatal signal print the stack."""
        try:
            faulthandler.enable(all_threads=True)
        except (OSError, ValueError, AttributeError):
            pass  # a standard error without a file, as in a notebook

    def record_exception(self, e: BaseException) -> None:
        """Write the exception, its stack and the time."""
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if path:
            more = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            part = f"{path}.{os.getpid()}"
            with open(part, "w") as f:
                json.dump({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": more}}, f)
            os.replace(part, path)


def get_error_handler() -> ErrorHandler:
    """A new handler."""
    return ErrorHandler()


@dataclass
class ProcessFailure:
    """How a process ended. `message` is what its error file says, if there is one."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str

    def __post_init__(self):
        self.error_file_data, self.timestamp = {}, int(time.time())
        self.message = f"Signal {-self.exitcode} received by PID {self.pid}" if self.exitcode < 0 else ""
        if os.path.isfile(self.error_file):
            with open(self.error_file) as f:
                self.error_file_data = json.load(f)
            self.message = self.error_file_data["message"]
            if isinstance(self.message, dict):
                self.timestamp = int(self.message["extraInfo"]["timestamp"])


class ChildFailedError(Exception):
    """Several processes' failures: {rank: ProcessFailure}. The launcher raises what torch.multiprocessing does instead."""

    def __init__(self, name, failures):
        self.name, self.failures = name, failures
        super().__init__(f"{name} FAILED: {failures}")

    def get_first_failure(self):
        """(rank, failure) of the earliest."""
        return min(self.failures.items(), key=lambda found: found[1].timestamp)


def record(fn, error_handler=None):
    """A decorator of a program's main function: what it raises is written to the error file, and raised on."""
    error_handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def recorded(*args, **kwargs):
        error_handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise  # a return code is no error
        except Exception as e:
            error_handler.record_exception(e)
            raise

    return recorded
