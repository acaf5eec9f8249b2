"""The trie of recorded paths: a state is what has been recorded so far, `next` maps (plan, operand ids, numbers) to the state
after one more node."""

from .. import config
from . import crowd, ledger, sight, stretch
from .keys import number_key
from .packing import RUNTIME

_VARIES = 3  # times that a plan has come with other numbers


class State:
    """A recorded path: the node that led here, and what may follow."""

    # length: how many operations led here. grads: which results are gradients that an optimizer has just used; None where no step has ended here.
    # passes: the backward passes that have started here; None before the first. asides: how results are computed by themselves.
    __slots__ = (
        "parent", "plan", "ids", "numbers", "first", "count", "length", "nbytes", "full", "next", "programs", "grads", "passes", "asides",
        "cut",  # where it goes on as a compiled graph does (`prologue.py`): not looked for (None), nowhere (False)
        "twin",  # where a recording that had other numbers was that had gone this way so far; None where there is none
    )  # fmt: skip

    def __init__(self, parent, plan, ids, numbers):
        self.parent = parent
        self.plan = plan
        self.ids = ids
        self.numbers = numbers  # a tuple, or RUNTIME
        self.next = {}
        self.programs = self.grads = self.passes = self.asides = self.twin = self.cut = None
        if parent is None:
            self.first = self.count = self.length = self.nbytes = 0
            self.full = False
        else:
            self.first = parent.count
            self.count = parent.count + plan.n_out
            self.length = parent.length + plan.n_out + plan.more
            self.nbytes = parent.nbytes + plan.nbytes
            self.full = stretch.is_full(parent, self.length, self.nbytes)

    def nodes(self):
        """The path from the first node to this one."""
        path = []
        state = self
        while state.plan is not None:
            path.append(state)
            state = state.parent
        path.reverse()
        return path


class _Roots:
    """The tries, one for each device, and how many states they hold."""

    __slots__ = ("by_device", "states")

    def __init__(self):
        self.by_device = {}
        self.states = 0

    def get(self, device) -> State:
        root = self.by_device.get(device)
        if root is None:
            root = self.by_device[device] = State(None, None, (), ())
        return root


roots = _Roots()


def grow(state, key, plan, ids, numbers):
    """The state after one more node, made for the first time."""
    if roots.states > config.max_states:
        forget()
    roots.states += 1
    after = state.next[key] = State(state, plan, ids, numbers)
    if state.twin is not None:
        after.twin = state.twin.next.get(key)
    return after


def grow_number(state, key, plan, ids, numbers):
    """As `grow`; where the same node came with other numbers before, numbers become inputs of the program.

    From there on the path is a new one, where no node has come before: its twin, the path as it was with the other numbers, says
    which of those further on differ too. So a learning rate that all of a hundred parameters are updated with costs one program more.

    After some times those of a plan are inputs wherever it is new: what varies in one sentence varies in the next, longer one.
    """
    wild = (plan, ids, RUNTIME)
    after = state.next.get(wild)
    if after is not None:
        return after
    numbers = tuple(map(number_key, numbers))
    key = (plan, ids, numbers)
    after = state.next.get(key)
    if after is not None:
        return after
    same, twin = _others(state, plan, ids), state.twin
    if same:
        twin = state.next[same[0]]
    elif twin is not None and key not in twin.next:
        twin = next(map(twin.next.get, _others(twin, plan, ids)), None)
    else:
        twin = None
    if twin is not None or plan.varied >= _VARIES:
        # A path of its own for the first number of each of many such nodes would make as many programs as there are subsets of them.
        for other in same if plan.varied >= _VARIES else ():
            del state.next[other]
        plan.varied += bool(same)
        ledger.promoted(plan)
        after = grow(state, wild, plan, ids, RUNTIME)
        after.twin = twin or after.twin
        return after
    return grow(state, key, plan, ids, numbers)


def _others(state, plan, ids):
    return [key for key in state.next if key[0] is plan and key[1] == ids]


def forget():
    """Drop every recorded path and program; graphs being recorded keep theirs until their flush."""
    roots.by_device = {}
    roots.states = 0
    sight.seen.forget()


crowd.forgetters.append(forget)
