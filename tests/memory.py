"""When a test process holds too many compiled programs, and how it lets go of them."""

import gc
import os

MOST = 3 << 30  # bytes a test process may hold on to: two of them share a small machine
MAPS = 30_000  # memory maps, of which each program takes some; Linux gives a process 65 530


def crowded() -> bool:
    """Whether programs fill the process; never where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        with open("/proc/self/maps", "rb") as file:
            maps = file.read().count(b"\n")
    except OSError:
        return False
    return resident > MOST or maps > MAPS


def forget_programs():
    """Everything compiled is dropped; on disk it is still there if it is needed again."""
    import jax  # noqa: PLC0415  the conftest sets the environment before anything imports them

    from jtorch import dispatch  # noqa: PLC0415
    from jtorch.core import record, storage  # noqa: PLC0415

    dispatch.forget_plans()
    record.forget()
    storage._views.clear()
    storage._recipes.clear()
    jax.clear_caches()
    gc.unfreeze()  # see the conftest
    gc.collect()
