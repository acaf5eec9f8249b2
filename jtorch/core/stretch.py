"""Where a long recording is cut that nobody ends: a loop that looks at none of its values.

If it differentiates nothing, each cut is at the place of the program where the one before was, so that what lies between two of them is
the same program every time. If it does (and has no optimizer, whose steps end recordings), each is after a backward pass.
"""

import itertools

from .. import config
from . import ledger

LONG = 512  # nodes; twice as many at most
REPEATS = 128  # times that one place may read a size that stays, before the backward pass (`aside.py`)


class Tape:
    """`now` gives something that is another when the tape has had more nodes; autograd sets it."""

    __slots__ = ("now",)

    def __init__(self):
        # What autograd's says before its first node: the first recording of a process is begun before that is set.
        self.now = itertools.count().__repr__


tape = Tape()


def is_full(parent, length, nbytes) -> bool:
    """Whether `ends` is to be asked when a path has come to so many nodes."""
    return parent.full or parent.length < LONG <= length or length >= config.max_nodes or nbytes >= config.max_bytes


def ends(me, graph) -> bool:
    """Whether a thread's recording, which is long, is to be run now."""
    state = graph.state
    if state.length >= config.max_nodes or state.nbytes >= config.max_bytes:
        return True
    if me.scope is not None:
        return False
    if tape.now() != graph.born:
        state.full = False  # a training step is whole, however long
        return False
    here = ledger.way()
    if here == me.cut:
        return True
    if me.cut is None or state.length >= 2 * LONG:
        me.cut = here
        return state.length >= 2 * LONG
    return False


def passed(me):
    """Called after a backward pass that ends the tape behind it: the second in a recording that is long ends that."""
    graph = me.graph
    if graph.done:
        return
    if graph.asides:
        graph.asides = dict.fromkeys(graph.asides, REPEATS)
    if graph.state.length < LONG or me.scope is not None:
        return
    if graph.passes:
        me.flush("backward passes")
    else:
        graph.passes = True
