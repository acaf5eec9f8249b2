"""When a process holds so many compiled programs that the system soon gives it no more memory maps, of which each takes some, or no memory.

XLA's compiler ends the process where there are no maps left. What jax keeps of each operation that was ever recorded (its trace, most of all)
takes a third of a megabyte, also of those that numpy runs and of models that are gone. Programs of shapes that never come back are what
fills either: all are dropped, and those that are needed again come from the disk.
"""

import ctypes
import functools
import gc
import os

import jax

EACH = 512  # programs made between two looks
SHARE = 0.7  # of the maps that a process may have
ROOM = 8000  # maps that may be added to those that could not be let go of
USUAL = 65530  # maps that Linux gives a process
# The same of the machine's memory: what the program itself holds is not let go of, and looked at seldom.
PART, MORE = 0.5, 0.125

forgetters = []  # functions that drop what refers to programs


class _Crowd:
    __slots__ = ("made", "kept", "bytes")

    def __init__(self):
        self.made = self.kept = self.bytes = 0  # bytes and maps: what was there after programs were dropped


crowd = _Crowd()


def made():
    """A program, or an operation's executable, is about to be made: where there are too many, all others are dropped."""
    crowd.made += 1
    if crowd.made % EACH == 0 and (_is_full() or maps() > max(SHARE * most(), crowd.kept + ROOM)):
        forget_programs()
        trim()
        crowd.kept, crowd.bytes = maps(), resident()


def _is_full() -> bool:
    return 0 < max(PART * memory(), crowd.bytes + MORE * memory()) < resident()


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


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


@functools.cache
def memory() -> int:
    """Bytes that the machine has, or what a container is given of them; 0 where the system does not tell."""
    try:
        of_machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return min(of_machine, int(file.read()))
    except (OSError, ValueError):  # there is no limit
        return of_machine


def trim():
    """What glibc keeps of freed memory goes back to the system: without that a process that was full once stays full."""
    free = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if free is not None:
        free(0)
