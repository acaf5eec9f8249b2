"""How many threads numpy's matrix products take.

OpenBLAS lets its threads wait for each other by turning in a loop. Where something else wants one of the cores, be it a program that XLA
compiles beside the loop, a small product takes milliseconds instead of microseconds (64x128 by 128x128: 16 and 0.026).
"""

import ctypes
import functools
import os
from pathlib import Path

import numpy as np

_FOLDERS = ("numpy.libs", "numpy/.dylibs")  # where numpy's wheels have it, on Linux and on macOS
_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads",
)


class one_thread:
    """Within it, numpy's products take one thread, if its library is OpenBLAS. The number is the process's, as ever; 1 µs."""

    __slots__ = ("before",)

    def __enter__(self):
        self.before = before = _functions()[0]()
        if before > 1:
            _functions()[1](1)

    def __exit__(self, *_):
        if self.before > 1:  # two threads within it at once: neither leaves the other's 1 behind
            _functions()[1](self.before)


@functools.cache
def _functions() -> tuple:
    """OpenBLAS's functions that tell and set the number of its threads; stand-ins without it."""
    root = Path(np.__file__).parents[1]
    loaded = getattr(os, "RTLD_NOLOAD", 0) | getattr(os, "RTLD_LAZY", ctypes.DEFAULT_MODE)  # never a second copy
    for file in (file for folder in _FOLDERS for file in root.joinpath(folder).glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(file), mode=loaded)
        except OSError:
            continue
        for name in _NAMES:
            if hasattr(library, name.format("get")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return lambda: 1, lambda n: None
