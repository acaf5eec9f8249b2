"""When a process holds so many compiled programs that the system soon gives it no more memory maps, of which each takes some.

XLA's compiler ends the process then. Programs of shapes that never come back are what fills it: all are dropped, and those that are
needed again come from the disk.
"""

import gc

import jax

EACH = 512  # programs made between two looks
SHARE = 0.7  # of the maps that a process may have
ROOM = 8000  # maps that may be added to those that could not be let go of
USUAL = 65530  # maps that Linux gives a process

forgetters = []  # functions that drop what refers to programs


class _Crowd:
    __slots__ = ("made", "kept")

    def __init__(self):
        self.made = self.kept = 0


crowd = _Crowd()


def made():
    """A program, or an operation's executable, is about to be made: where there are too many, all others are dropped."""
    crowd.made += 1
    if crowd.made % EACH == 0 and maps() > max(SHARE * most(), crowd.kept + ROOM):
        forget_programs()
        crowd.kept = maps()


def forget_programs():
    """Drop everything compiled; on disk it is still there if it is needed again."""
    forget()
    gc.collect()


def forget():
    """Let nothing compiled be found again."""
    for each in forgetters:
        each()
    jax.clear_caches()


def maps() -> int:
    """Memory maps of this process; 0 where the system does not tell."""
    try:
        with open("/proc/self/maps", "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0


def most() -> int:
    """As many as it may have."""
    try:
        with open("/proc/sys/vm/max_map_count") as file:
            return int(file.read())
    except (OSError, ValueError):
        return USUAL
