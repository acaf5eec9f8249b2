"""The end of the interpreter: XLA's CPU client must have nothing to do then.

A loop that has not looked at its last results leaves while a program runs. What the process does after its last Python code frees what
XLA's threads still use: one run in three of a short training loop that ended so died of a segmentation fault. Nothing public says whether
a program runs whose results are gone, so the kernel is asked whether any of the process's threads that are not Python's is at work.
"""

import os
import threading
import time

import jax

LONGEST = 60.0  # seconds: a thread of some other library may never rest
PAUSE = 5e-4
_TASKS = "/proc/self/task"


def busy() -> bool:
    """Whether a thread that Python did not start runs, or would if there were a core for it. False where there is no /proc."""
    ours = {str(thread.native_id) for thread in threading.enumerate()}
    try:
        return any(_works(task) for task in os.listdir(_TASKS) if task not in ours)
    except FileNotFoundError:
        return False


def _works(task) -> bool:
    try:
        with open(f"{_TASKS}/{task}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] != b"S"
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return False


def wait():
    """Return once those threads rest, seen twice in a row: one hands its work to another.

    An accelerator's client has threads of its own, which perhaps never do.
    """
    if not busy() or jax.default_backend() != "cpu":
        return
    limit = time.monotonic() + LONGEST
    rests = 0
    while rests < 2 and time.monotonic() < limit:
        rests = 0 if busy() else rests + 1
        time.sleep(PAUSE)
