"""What must be set before jax starts: 64-bit types, glibc's allocator, Python's collector, the compilation cache on disk."""

import ctypes
import gc
import os
import pathlib
import sys

import jax

from . import config

MALLOC = {"state": "off"}  # what was done to glibc, for `python -m jtorch doctor`

# glibc's mallopt parameters. XLA's CPU client allocates and frees its temporary buffers at every call; by default glibc
# returns them to the kernel each time and every step faults its pages in again.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8


def _tune_malloc():
    if not config.use_malloc or not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        set_option = libc.mallopt
    except (OSError, AttributeError):
        MALLOC["state"] = "no glibc"
        return
    large = 2**31 - 1
    done = [
        set_option(_MMAP_THRESHOLD, large),
        set_option(_TRIM_THRESHOLD, large),
        set_option(_TOP_PAD, 64 << 20),
        set_option(_ARENA_MAX, 1),
    ]
    MALLOC["state"] = "tuned" if all(done) else "refused"


# Collections of the middle generation from one full collection to the next. Tracing makes hundreds of thousands of objects that stay;
# while their number grows, each full collection goes through all of them and finds nothing (a tenth of a short program's CPU time).
_SELDOM = 30


def _tune_collector():
    *others, full = gc.get_threshold()
    if full == 10:  # Python's own choice, not the program's, and of a Python that asks for it
        gc.set_threshold(*others, _SELDOM)


def cache_folder() -> str:
    """The folder of compiled programs."""
    if config.cache_dir:
        return config.cache_dir
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "jtorch", "programs")


def _use_cache():
    if not config.use_cache or os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        return
    folder = cache_folder()
    try:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


_tune_malloc()
_tune_collector()
jax.config.update("jax_enable_x64", True)
_use_cache()
