"""When a test process holds too many compiled programs, and how it lets go of them."""

import ctypes
import functools
import gc
import os

LEAST = 3 << 30  # bytes a test process may hold on to: two of them share a small machine
SHARE = 5  # or this part of what the machine has: letting go takes seconds, and what is needed again is compiled again
MAPS = 45_000  # memory maps, of which each program takes some; Linux gives a process 65 530
ROOM = 1 << 30, 10_000  # bytes and maps that may be added to what cannot be let go of: each time costs seconds

_kept = 0, 0  # bytes and maps after programs were forgotten


def crowded() -> bool:
    """Whether programs fill the process; never where the system does not tell."""
    held, most = _held(), (max(LEAST, _memory() // SHARE), MAPS)
    return any(now > max(many, kept + room) for now, many, kept, room in zip(held, most, _kept, ROOM))


def forget_programs():
    """Everything compiled is dropped; on disk it is still there if it is needed again."""
    from jtorch.core import crowd  # noqa: PLC0415  the conftest sets the environment before anything imports it

    global _kept
    gc.unfreeze()  # see the conftest
    crowd.forget_programs()
    gc.freeze()
    _trim()
    _kept = _held()


def start_anew():
    """No program made before is found again, as `forget_programs`; its memory stays, since looking for it takes up to 1.5 s."""
    from jtorch.core import crowd  # noqa: PLC0415  as above

    crowd.forget()


@functools.cache
def _memory():
    """Bytes of the machine; none where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _held():
    """Bytes and memory maps of this process; none where the system does not tell."""
    from jtorch.core import crowd  # noqa: PLC0415  as above

    try:
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0, 0
    return resident, crowd.maps()


def _trim():
    """What glibc keeps of freed memory goes back to the system: without that a process that was full once stays full."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
