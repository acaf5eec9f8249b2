"""Whether a program is compiled at first sight, left to numpy at first, or run op by op until it comes back."""

from itertools import repeat

from .. import config
from . import by_numpy, ledger


class Numpys:
    """How long numpy runs a program: `few` runs if it comes often, `most` if it comes seldom; the flushes before it first came."""

    __slots__ = ("few", "most", "before")

    def __init__(self, few, most):
        self.few, self.most = few, most
        self.before = ledger.counters.flushes

    def done(self, runs) -> bool:
        """Whether it has come often enough to be compiled."""
        often = ledger.counters.flushes - self.before <= _OFTEN_ENOUGH * runs
        return runs >= (self.few if often else self.most)


def numpys(prog, cause) -> Numpys | None:
    """Whether numpy runs a program at first, and how often: where compiling it is likely in vain.

    A loop whose graph is another one at each pass (by an episode's length, a sentence's, a slice's) would compile for ever: what is
    a program that was compiled at sight with other shapes, or is made of what two of them were made of, waits until it comes back. So does
    one of very many nodes: many passes of a loop that looks at none of its values.
    """
    plans = {node.plan for node in prog.nodes}
    very_many = prog.n_nodes > _VERY_MANY
    if cause != "optimizer.step":  # a step of a deep network comes again and again
        very_many = very_many or prog.n_nodes > max(_MANY, _ALIKE * len(plans))
    if config.deterministic or not very_many and len(_cold(prog)) <= config.cold_ops:
        return None
    names = _names(prog)
    varied = very_many or names in seen.kinds or _mostly(map(seen.names.get, names, repeat(0))) >= _VARIED
    if not varied or not by_numpy.wanted(prog):
        return None
    few = _ENOUGH_OF_MANY if very_many else _ENOUGH
    return Numpys(few, min(max(_until_it_pays(prog, len(plans)), few), _AT_MOST))


def _until_it_pays(prog, n_plans) -> int:
    """Runs by numpy that take a fourth of the time that compiling takes longer than compiled ones."""
    extra = _NUMPYS_NODE * prog.n_nodes + _NUMPYS_BYTE * sum(node.plan.work for node in prog.nodes)
    return int((_COMPILED_NODE * prog.n_nodes + _COMPILED_PLAN * n_plans) / (4 * extra))


def at_sight(prog, inputs):
    """Whether to compile a program before it has come back: where it has many ops of which none has an executable yet.

    Where numpy does not run it, and most nodes are of ops that several programs compiled so have had, each op gets its executable instead.
    """
    if config.deterministic:
        return True
    if prog.by_numpy is not None:
        if not by_numpy.spread(inputs):
            prog.patience = prog.by_numpy.most
            return prog.by_numpy.done(prog.runs)
        prog.by_numpy = None
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
_VERY_MANY = 1000  # nodes, which take some 10 s to compile
_MANY, _ALIKE = 200, 8  # nodes; so many times the plans that they are made of
_ENOUGH, _ENOUGH_OF_MANY, _AT_MOST = 2, 16, 128  # runs by numpy
_OFTEN_ENOUGH = 4  # of so many flushes, one
# Seconds that a node takes to compile, and one like no other; what a node takes numpy longer than a compiled program, and a byte of a result
_COMPILED_NODE, _COMPILED_PLAN = 3e-3, 15e-3
_NUMPYS_NODE, _NUMPYS_BYTE = 1e-5, 5e-10
_MOSTLY = 0.7
_MANY_KINDS = 1 << 12
seen = Seen()
# So many ops, or this part of the nodes, may need executables of their own: one takes as long as eight nodes of a program. More when
# more programs than the first few have been compiled in vain.
_FEW, _FRESH = 16, 0.125
_PATIENCE = 4  # programs that differ so seldom come back, and take seconds to compile
