"""What it takes to compile a program, and how many of the runs that it makes meanwhile in another way are worth that.

Seconds of one core, as fitted to programs of three to six hundred nodes (recurrent networks, a GPT, a ResNet, cellular automata) with a
factor of two between them. They are counted from what a program is made of and never measured: the clock has no say in which
executable makes a run, so that the same script gives the same bits each time.
"""

from . import ledger
from .cuts import inner, primitives_of

WORTH = 0.5  # what the runs of a program that comes seldom may take longer, of what compiling it takes
WORTH_OFTEN = 0.15  # the same of one that comes often: a short script is done before, and a long one has lost little
OFTEN_ENOUGH = 4  # of so many flushes, one is often
AT_MOST = 1 << 12  # runs
AT_MOST_OFTEN, AT_MOST_OFTEN_DEAR = 64, 256
AT_MOST_IN_PARTS = 128  # runs of one that comes often: the whole takes a core for as long as some hundred steps do
DEAR = 3.0  # seconds of the compiler, for which a program has to prove that it comes often
_USUAL = 8  # primitives of an operation that cannot be counted
# Seconds for a primitive and for an operation like no other, without the compiler's optimisation and with it.
_HASTE, _FULL = (6e-4, 8e-3), (2e-3, 4e-2)
_EXECUTABLE = 3e-2  # of an operation by itself
# What a run takes longer than that of a program made with everything on: a primitive by numpy, a node by itself; a byte of the results,
# and one of convolutions and of what follows them.
_NUMPYS, _BY_OP = (8e-6, 5e-10, 3e-9), (5.5e-5, 8e-10)
_HASTY = (1e-5, 1e-9, 4e-9)
# Each part of a program that is run in parts, and a byte of the results, more of which are made in memory.
_PARTS = 1e-4, 5e-11
# The same of an element that a primitive makes, where that is more: gathers, loops and chains of arithmetic take 0.3 to 2 ns longer.
_HASTY_ELEMENT = 4e-10


class Wait:
    """Runs that a program makes in one way before it is made anew in a better one: `few` if it comes often, `most` if seldom.

    later: gives both anew, once the program has come back.
    """

    __slots__ = ("few", "most", "before", "later")

    def __init__(self, few, most=0, later=None):
        self.few = few
        self.most = max(few, most)
        self.before = ledger.counters.flushes
        self.later = later

    def again(self, runs):
        """From now on only runs behind the first so many count: those were in the place of another program, which has its own now."""
        self.few += runs
        self.most += runs

    def is_often(self, runs) -> bool:
        """Whether a program that has run so many times since comes often."""
        return ledger.counters.flushes - self.before <= OFTEN_ENOUGH * runs

    def done(self, runs) -> bool:
        if self.later is not None and runs:
            self.few, self.most = self.later()
            self.later = None
        return runs >= self.few and (runs >= self.most or self.is_often(runs))


NEVER = Wait(AT_MOST << 32)  # no number of runs is enough


def compiling(prog, quickly) -> float:
    """Seconds that it takes to compile a program, in haste or with everything on."""
    primitive, plan = _HASTE if quickly else _FULL
    return primitive * size(prog) + plan * len({node.plan for node in prog.nodes})


def by_numpy(prog, least, quickly, compiling=compiling) -> Wait:
    """How long numpy runs a program, `least` runs or more. quickly: whether what follows is made in haste if it comes seldom. compiling: what
    that takes, by the program and how it is made; most come once, so nothing is counted before one comes back."""

    def later():
        extra = _numpys(prog)
        return _often(compiling(prog, False), least, extra), _worth(compiling(prog, quickly), extra)

    return Wait(least, later=later)


def are_numpys(prog, runs, quickly) -> bool:
    """Whether so many runs by numpy take little beside compiling a program."""
    return runs * _numpys(prog) <= WORTH * compiling(prog, quickly)


def _numpys(prog) -> float:
    each, *byte = _NUMPYS
    return each * size(prog) + _moved(prog, *byte)


def by_itself(plan) -> int:
    """How often numpy may run an operation by itself in the place of what compiling it takes."""
    each, *byte = _NUMPYS
    try:
        turns = _primitives(primitives_of(plan), turning=True)
    except Exception:  # as in `_size`
        return 0
    return min(
        int(WORTH * _EXECUTABLE / (each * max(turns, 1) + byte[plan.channels is not None] * plan.work)), AT_MOST_OFTEN
    )


def by_op(prog, few, quickly, compiling=compiling) -> Wait:
    """The same of a program that is run op by op: one more if it is dear."""

    def later():
        takes = compiling(prog, quickly)
        least = few + (takes > DEAR)
        return least, max(least, _worth(takes, _by_op(prog)))

    return Wait(few, later=later)


def in_haste(prog, least) -> Wait:
    """How often a program that is made in haste is run before it is made with everything on, `least` runs or more."""
    each, *byte = _HASTY
    extra = each + max(_moved(prog, *byte), _HASTY_ELEMENT * sum(_elements(node.plan) for node in prog.nodes))
    takes = compiling(prog, False)
    return Wait(_often(takes, least, extra), _worth(takes, extra))


def in_parts(prog, n) -> Wait:
    """How often a program is run as its n parts before it is made as a whole with everything on."""
    part, byte = _PARTS
    takes, extra = compiling(prog, False), part * n + byte * nbytes(prog)
    return Wait(max(1, min(int(WORTH_OFTEN * takes / extra), AT_MOST_IN_PARTS)), _worth(takes, extra))


def by_op_at_once(prog, cold) -> float:
    """Seconds that the first run takes op by op, where some operations have no executable yet."""
    return _EXECUTABLE * len(cold) + _by_op(prog)


def nbytes(prog) -> int:
    """Bytes that all nodes make, those that they make more than once counted so."""
    return sum(node.plan.work for node in prog.nodes)


def _moved(prog, byte, of_convolutions) -> float:
    """Seconds that all bytes of a program's results take."""
    return sum((byte if node.plan.channels is None else of_convolutions) * node.plan.work for node in prog.nodes)


def size(prog) -> int:
    """Primitives that a program is made of."""
    return sum(node.plan.size or _size(node.plan) for node in prog.nodes)


def _by_op(prog) -> float:
    each, byte = _BY_OP
    return each * prog.n_nodes + byte * nbytes(prog)


def _worth(takes, extra) -> int:
    return min(int(WORTH * takes / extra), AT_MOST)


def _often(takes, least, extra) -> int:
    return max(least, min(int(WORTH_OFTEN * takes / extra), AT_MOST_OFTEN if takes <= DEAR else AT_MOST_OFTEN_DEAR))


def _size(plan) -> int:
    """Primitives that a plan is made of, asked of jax once."""
    try:
        plan.size = _primitives(primitives_of(plan)) or 1
    except Exception:  # it takes other things than arrays like these; whatever is wrong is said where it runs
        plan.size = _USUAL
    return plan.size


def _elements(plan) -> int:
    """Elements that the primitives of a plan make, asked of jax once."""
    if plan.elements is None:
        try:
            plan.elements = _made(primitives_of(plan))
        except Exception:  # as in `_size`
            plan.elements = 0
    return plan.elements


def _made(jaxpr) -> int:
    made = 0
    for eqn in jaxpr.eqns:
        within = inner(eqn)
        own = sum(v.aval.size for v in eqn.outvars)
        made += own if within is None else max(own, eqn.params.get("length", 1) * _made(within))
    return made


def _primitives(jaxpr, turning=False) -> int:
    """turning: those of a loop count as often as it turns, if it says so."""
    made = 0
    for eqn in jaxpr.eqns:
        within = inner(eqn)
        turns = eqn.params.get("length", 1) if turning else 1
        made += 1 if within is None else turns * _primitives(within, turning)
    return made
