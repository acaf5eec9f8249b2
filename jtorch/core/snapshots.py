"""Copies of memory that is shared with numpy, used again as long as the memory is equal to them.

numpy may write to it at any moment and nobody hears of it, so each use of a tensor there takes a copy. A training step on the same tensor
as the last (a whole data set, batches that are kept) would copy it each time, and put the copy on the device: 58 us for 200 KB, where
comparing takes 8.
"""

import numpy as np

from .lanes import is_traced

MOST = 1 << 28  # bytes of a copy that is kept
PAGE = 512  # words compared first: other numbers mostly differ there
TRIES = 4  # times in a row that memory has changed: then it changes always


class Snapshot:
    """The last copy that was taken of a buffer: of which tensor, and how often in a row another one had to be taken."""

    __slots__ = ("spec", "offset", "array", "changed")

    def __init__(self, spec, offset):
        self.spec = spec
        self.offset = offset
        self.array = None  # nothing is kept before the same tensor is read again
        self.changed = 0


def copied(host, spec, offset, memory, make):
    """The value of a tensor on a shared buffer whose bytes are `memory`: the last copy, or what `make` makes."""
    last = host.snapshot
    if last is None or last.spec is not spec or last.offset != offset:
        host.snapshot = Snapshot(spec, offset)
        return make()
    if last.array is not None:
        if _equal(memory, np.asarray(last.array).reshape(-1).view(np.uint8)):
            last.changed = 0
            return last.array
        last.array = None
        last.changed += 1
    made = make()
    if last.changed < TRIES and spec.nbytes <= MOST and not is_traced(made):
        last.array = made
    return made


def _equal(a, b) -> bool:
    whole = a.size & ~7
    words, others = a[:whole].view(np.int64), b[:whole].view(np.int64)
    if (words[:PAGE] != others[:PAGE]).any() or a[whole:].tobytes() != b[whole:].tobytes():
        return False
    return not (words[PAGE:] != others[PAGE:]).any()
