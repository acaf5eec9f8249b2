"""The end of the interpreter: XLA's CPU client must have nothing to do then.

A loop that has not looked at its last results leaves while a program runs. What the process does after its last Python code frees what
XLA's threads still use: one run in three of a short training loop that ended so died of a segmentation fault. Nothing public says whether
a program runs whose results are gone, so the kernel is asked whether any of the process's threads that are not Python's is at work.

Nor must a daemon thread be in jax then: the interpreter ends it where it next asks for the lock, and what is unwound is jax's C++, which
aborts the process. So daemon threads that have computed with jtorch are told to exit, which they do between two calls.
"""

import ctypes
import os
import pathlib
import sys
import threading
import time
import weakref

import jax

LONGEST = 60.0  # seconds: a thread of some other library may never rest
DAEMONS = 5.0  # seconds: how long a daemon thread may take to come out of its call
_ROOT = os.path.join(pathlib.Path(__file__).resolve().parents[1], "")
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


_known = weakref.WeakSet()  # the threads that have used jtorch


def note_thread():
    """The present thread uses jtorch."""
    _known.add(threading.current_thread())


def _inside(thread) -> bool:
    """Whether a thread is in one of jtorch's functions now."""
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_ROOT):
            return True
        frame = frame.f_back
    return False


def end_daemons():
    """Have daemon threads exit, and wait until none is in a call of jtorch's. One that waits for something else stays as it is."""
    here = threading.current_thread()
    daemons = [t for t in list(_known) if t.daemon and t is not here and t.is_alive()]
    for thread in daemons:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    limit = time.monotonic() + DAEMONS
    while any(t.is_alive() and _inside(t) for t in daemons) and time.monotonic() < limit:
        time.sleep(PAUSE)


def wait():
    """Return once no daemon thread computes and those threads rest, seen twice in a row: one hands its work to another.

    An accelerator's client has threads of its own, which perhaps never do.
    """
    end_daemons()
    if not busy() or jax.default_backend() != "cpu":
        return
    limit = time.monotonic() + LONGEST
    rests = 0
    while rests < 2 and time.monotonic() < limit:
        rests = 0 if busy() else rests + 1
        time.sleep(PAUSE)
