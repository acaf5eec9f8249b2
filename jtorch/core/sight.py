"""Whether a program is compiled at first sight, left to numpy at first, or run op by op until it comes back."""

from itertools import repeat

from .. import config
from . import by_numpy


def is_numpys(prog) -> bool:
    """Whether numpy runs a program at first: where compiling it is likely in vain.

    A loop whose graph is another one at each pass (by an episode's length, a sentence's, a slice's) would compile for ever: what is
    a program that was compiled at sight with other shapes, or is made of what two of them were made of, waits until it comes back.
    """
    if config.deterministic or len(_cold(prog)) <= config.cold_ops:
        return False
    names = _names(prog)
    varied = names in seen.kinds or _mostly(map(seen.names.get, names, repeat(0))) >= _VARIED
    return varied and by_numpy.wanted(prog)


def at_sight(prog, inputs):
    """Whether to compile a program before it has come back: where it has many ops of which none has an executable yet.

    Where numpy does not run it, and most nodes are of ops that several programs compiled so have had, each op gets its executable instead.
    """
    if config.deterministic:
        return True
    if prog.by_numpy and not by_numpy.spread(inputs):
        prog.patience = by_numpy.ENOUGH
        return False
    prog.by_numpy = False
    cold = _cold(prog)
    if len(cold) <= config.cold_ops:
        return False
    tries = _mostly(node.plan.tries if not node.plan.warm else _OFTEN for node in prog.nodes)
    if tries >= _TRIES and len(cold) <= max(_FEW, _FRESH * prog.n_nodes * tries / _TRIES):
        prog.patience = _PATIENCE
        return False
    for plan in cold:
        plan.tries += 1
    seen.add(_names(prog))
    return True


def _cold(prog):
    return {node.plan for node in prog.nodes if not node.plan.warm}


def _names(prog):
    return tuple([node.plan.name for node in prog.nodes])


def _mostly(counts) -> int:
    """What most of them are, at least."""
    counts = sorted(counts, reverse=True)
    return counts[int(_MOSTLY * len(counts))]


class Seen:
    """What programs compiled at sight were made of, whatever the shapes: the names of their ops in order, and how often each was there."""

    __slots__ = ("kinds", "names")

    def __init__(self):
        self.forget()

    def forget(self):
        self.kinds = set()
        self.names = {}

    def add(self, names):
        if len(self.kinds) > _MANY_KINDS:
            self.forget()
        self.kinds.add(names)
        for name in set(names):
            self.names[name] = self.names.get(name, 0) + 1


_TRIES, _OFTEN = 3, 1 << 20
_VARIED = 2
_MOSTLY = 0.7
_MANY_KINDS = 1 << 12
seen = Seen()
# So many ops, or this part of the nodes, may need executables of their own: one takes as long as eight nodes of a program. More when
# more programs than the first few have been compiled in vain.
_FEW, _FRESH = 16, 0.125
_PATIENCE = 4  # programs that differ so seldom come back, and take seconds to compile
