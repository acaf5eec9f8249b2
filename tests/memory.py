"""When a test process holds too many compiled programs, and how it lets go of them."""

import gc

LEAST = 3 << 30  # bytes a test process may hold on to: two of them share a small machine
SHARE = 5  # or this part of what the machine has: letting go takes seconds, and what is needed again is compiled again
MAPS = 45_000  # memory maps, of which each program takes some; Linux gives a process 65 530
ROOM = 1 << 30, 10_000  # bytes and maps that may be added to what cannot be let go of: each time costs seconds

_kept = 0, 0  # bytes and maps after programs were forgotten


def _crowd():
    from jtorch.core import crowd  # noqa: PLC0415  the conftest sets the environment before anything imports it

    return crowd


def crowded() -> bool:
    """Whether programs fill the process; never where the system does not tell."""
    held, most = _held(), (max(LEAST, _crowd().memory() // SHARE), MAPS)
    return any(now > max(many, kept + room) for now, many, kept, room in zip(held, most, _kept, ROOM))


def forget_programs():
    """Everything compiled is dropped; on disk it is still there if it is needed again."""
    global _kept
    gc.unfreeze()  # see the conftest
    _crowd().forget_programs()
    gc.freeze()
    _crowd().trim()
    _kept = _held()


def start_anew():
    """No program made before is found again, as `forget_programs`; its memory stays, since looking for it takes up to 1.5 s."""
    _crowd().forget()


def _held():
    """Bytes and memory maps of this process; none where the system does not tell."""
    return _crowd().resident(), _crowd().maps()
