"""A graph that ends as a known one does: what comes before runs first, then the program of the known one.

What a loop records between `optimizer.step()` and its next step, a sum of losses or an average of the parameters, is part of the next
step's graph, and no part of the first one's. Both would be compiled before the second step is done, and the convolutions of a GPU's program
are tried out for half a minute. So the program of the first step runs the others too, until they have come often and their own is compiled
beside the loop.
"""

from collections import deque

from . import crowd
from .packing import RUNTIME, plain
from .pending import Pending

LENGTH = 48  # nodes from which a graph takes long to compile
KNOWN = 4  # compiled graphs of a device among which it is looked for


class Cut:
    """Where a path goes on as another one, `state`, does: there behind operations without inputs, which have `idle` results.

    before: the state of the path up to there. results, inputs, skipped: how many of its results, inputs and runtime numbers are of what
    comes before. wanted: those results that the rest takes. sources: of each input of the other path the input of this one (~k), or the
    result. numbers: of each runtime number of the other path None, or what it is in this one. held: the idle results that its program has.
    """

    __slots__ = ("state", "before", "results", "inputs", "skipped", "wanted", "sources", "numbers", "idle", "held")


class Part:
    """The operations before the known graph, as a graph to be run."""

    __slots__ = ("state", "device", "pendings", "inputs", "numbers", "unresolved")

    def __init__(self, cut, graph):
        self.state = cut.before
        self.device = graph.device
        self.pendings = graph.pendings[: cut.results]
        self.inputs = graph.inputs[: cut.inputs]
        self.numbers = graph.numbers[: cut.skipped]
        self.unresolved = None


_compiled: dict = {}
crowd.forgetters.append(_compiled.clear)


def note(state, device):
    """A graph has been compiled."""
    if state.length >= LENGTH:
        known = _compiled.setdefault(device, deque(maxlen=KNOWN))
        if state not in known:
            known.append(state)


def cut_of(state, device):
    """The cut of a path, looked for once; False where it is no known graph with a prologue."""
    if state.cut is None:
        state.cut = state.length >= LENGTH and next(filter(None, _cuts(state, _compiled.get(device, ()))), False)
    return state.cut


def _cuts(state, known):
    path = None
    for other in reversed(known):
        if other is not state and other.programs:
            path = path or state.nodes()
            yield _cut(path, other)


def _cut(path, other):
    """The cut of a path that ends as another one, or None."""
    nodes = other.nodes()
    same = 0
    for ours, theirs in zip(reversed(path), reversed(nodes)):
        if ours.plan is not theirs.plan:
            break
        same += 1
    n, idle = len(path) - same, nodes[: len(nodes) - same]
    if same < max(LENGTH, n, len(idle)) or any(
        node.numbers is RUNTIME or min(node.ids, default=0) < 0 for node in idle
    ):
        return None
    results, shift = path[n].first, nodes[len(idle)].first
    sources, numbers = {}, []
    for ours, theirs in zip(path[n:], nodes[len(idle) :]):
        for a, b in zip(ours.ids, theirs.ids):
            if b < 0:
                if a >= results or sources.setdefault(~b, a) != a:
                    return None
            elif b < shift or a - results != b - shift:
                return None
        if theirs.numbers is RUNTIME:
            numbers.append(None if ours.numbers is RUNTIME else tuple(map(plain, ours.numbers)))
        elif ours.numbers != theirs.numbers:
            return None
    if len(set(sources.values())) < len(sources):
        return None  # one array for two inputs
    program = next((p for p in other.programs.values() if p.call is not None), None)
    if program is None:
        return None
    cut = Cut()
    cut.state, cut.before, cut.results, cut.numbers = other, path[n - 1] if n else None, results, numbers
    cut.inputs = 1 + max((~i for node in path[:n] for i in node.ids if i < 0), default=-1)
    cut.skipped = sum(node.numbers is RUNTIME for node in path[:n])
    cut.wanted = sorted(i for i in sources.values() if i >= 0)
    cut.sources = [sources[k] for k in range(len(sources))]
    cut.idle, cut.held = shift, [i for i in program.out if i < shift]
    return cut


def run_before(cut, graph, run):
    """Run what comes before the known graph (by `run`), and make the graph what is left, whose inputs are real. Returns what is to be held
    until that has run."""
    rest, made = graph.pendings[cut.results :], {}
    if cut.before is not None:
        part = Part(cut, graph)
        held = [part.pendings[i] for i in cut.wanted]  # the rest needs them, whoever else does
        graph.pendings = ()
        try:
            run(part)
        except BaseException:
            graph.pendings = part.pendings + rest
            raise
        made = {i: pending.get() for i, pending in zip(cut.wanted, held)}  # small ones may be numpy's still
    left, inputs = iter(graph.numbers[cut.skipped :]), graph.inputs
    graph.numbers = [next(left) if own is None else own for own in cut.numbers]
    graph.inputs = [inputs[~i] if i < 0 else made[i] for i in cut.sources]
    graph.state = cut.state
    for pending in rest:
        pending.index += cut.idle - cut.results
    idle = [Pending(graph, i) for i in range(cut.idle)]
    graph.pendings = idle + rest
    return [idle[i] for i in cut.held]
