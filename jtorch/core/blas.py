"""How many threads numpy's matrix products take, and the factorisations that jax has of scipy.

OpenBLAS lets its threads wait for each other by turning in a loop. Where something else wants one of the cores, be it a program that XLA
compiles beside the loop, a small product takes milliseconds instead of microseconds (64x128 by 128x128: 16 and 0.026), and so do
factorisations and triangular systems, which XLA runs by scipy's OpenBLAS (`eigh` of 128x128: 208 and 0.8).
"""

import ctypes
import functools
import os
from pathlib import Path

import numpy as np

ROWS = 512  # of a matrix: up to here a factorisation by two threads saves a few milliseconds on an idle machine
_FOLDERS = ("{}.libs", "{}/.dylibs")  # where a package's wheels have it, on Linux and on macOS
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


class _Lapack:
    """What scipy's OpenBLAS has been told: `before` are the threads that it had until all matrices were small."""

    before = None
    large = False


def lapack_for(rows: int) -> None:
    """One thread for jax's factorisations, until one of a large matrix comes: then as many as there were, for good.

    They run on XLA's threads whenever it comes to them, so the number is set once and not around a call. It is that of the process,
    programs that use scipy themselves included.
    """
    if _Lapack.large or rows <= ROWS and _Lapack.before is not None:
        return
    get, put = _functions("scipy")
    if rows > ROWS:
        _Lapack.large = True
        if _Lapack.before is not None:
            put(_Lapack.before)
    else:
        _Lapack.before = get()
        put(1)


@functools.cache
def _functions(package="numpy") -> tuple:
    """OpenBLAS's functions that tell and set the number of its threads; stand-ins without it."""
    root = Path(np.__file__).parents[1]
    loaded = getattr(os, "RTLD_LAZY", ctypes.DEFAULT_MODE)
    # never a second copy; scipy loads its own, which has this file's name, when jax first needs it
    if package == "numpy":
        loaded |= getattr(os, "RTLD_NOLOAD", 0)
    for file in (file for folder in _FOLDERS for file in root.joinpath(folder.format(package)).glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(file), mode=loaded)
        except OSError:
            continue
        for name in _NAMES:
            if hasattr(library, name.format("get")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return lambda: 1, lambda n: None
