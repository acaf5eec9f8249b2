"""What jax does for each program that no test looks at, left out: of a small program that takes a quarter of the time."""

import itertools
import threading

import jax

PROGRAMS = 100  # of one context: it keeps the constants of all that were made in it


def _contexts(make):
    """What gives a thread the same context of MLIR for many programs: to make one takes as long as to lower a small program."""
    mine = threading.local()

    def get():
        mine.count = getattr(mine, "count", itertools.count())
        if next(mine.count) % PROGRAMS == 0:
            mine.context = make()
        return mine.context

    return get


def lean():
    """The same programs, without what says where in Python each operation came from, and made in contexts that are there."""
    jax.config.update("jax_traceback_in_locations_limit", 0)
    try:
        from jax._src.interpreters import mlir  # noqa: PLC0415  nothing public says it
    except ImportError:  # another version has it elsewhere: tests take longer there
        return
    if hasattr(mlir, "make_ir_context"):
        mlir.make_ir_context = _contexts(mlir.make_ir_context)
