"""Backward passes that come again: what one records is noted, and later recorded at once.

A training loop records the same graph at each step, and its backward pass adds the same nodes to it. Where a pass starts is a state of
the recorder, which stands for all that has been recorded; what it adds follows from that, the tape, and the leaves' gradients. So it
is enough to see that the tape is as it was, which takes about 0.6 of the time of running it.
"""

from operator import attrgetter, gt

from ..core.pending import array_of
from ..core.record import Graph, Pending
from .node import Node, PythonNode, bridge

MOST = 4  # passes noted for one state
_SEEN = ()  # what a state has after the first pass from it: most graphs that do not come again cost no more than that

_sequence = attrgetter("sequence")
_HOOKS = {"_acc_pre_hooks", "_post_hooks", "_acc_hooks"}


class Pass:
    """What a backward pass has recorded, and what must be as it was for the next to record the same.

    Nodes have places in the order in which they ran, leaves places after them.

    nodes: of each its derivative, (operand, result number, place) of each edge, the ids of what it saved, and its numbers (None: any).
    leaves: the spec of each. seed: the id of the gradient that the pass starts with. state: of the recorder after it. numbered: places of
    the nodes whose numbers are inputs of the program, in order. grads: place, id and spec of each leaf's gradient.
    """

    __slots__ = ("nodes", "leaves", "seed", "state", "numbered", "grads")

    def follows(self, graph, root, seed) -> bool:
        """Record the pass if the tape is as it was; otherwise nothing has changed."""
        n = len(self.nodes)
        places = [None] * (n + len(self.leaves))
        places[0] = root
        get = graph.index_of.get
        try:
            for node, (bwd, edges, ids, numbers) in zip(places, self.nodes):
                saved = node.saved
                if (
                    node.bwd is not bwd or type(saved) is not tuple or node.hooks or node.pre_hooks or node.retained
                    or numbers is not None and node.numbers != numbers
                ):  # fmt: skip
                    return False
                for v, i in zip(saved, ids):
                    if (v.index if type(v) is Pending and v.graph is graph else get(id(v))) != i and _id(graph, v) != i:
                        return False
                for storage, version in node.guards:
                    if storage.version != version:
                        return False
                given = node.edges
                for k, number, place in edges:
                    target, at = given[k]
                    if places[place] is None:
                        places[place] = target
                    elif places[place] is not target:
                        return False
                    if at != number:
                        return False
            nodes, leaves = places[:n], places[n:]
            for leaf, spec in zip(leaves, self.leaves):
                if not (leaf._spec is spec and leaf._rg and leaf._grad is None and leaf._hooks is None):
                    return False
                if leaf.__dict__ and not _HOOKS.isdisjoint(leaf.__dict__):
                    return False
        except AttributeError:  # there is a leaf where a node was, or the reverse
            return False
        sequences = list(map(_sequence, nodes))
        if len(set(map(id, places))) != len(places) or not all(map(gt, sequences, sequences[1:])):
            return False
        if _id(graph, seed) is None:
            graph.input(seed)
        if _id(graph, seed) != self.seed:
            return False
        self.record(graph, nodes, leaves)
        return True

    def record(self, graph, nodes, leaves):
        first, state = graph.state.count, self.state
        made = [Pending(graph, i) for i in range(first, state.count)]
        graph.pendings += made
        graph.numbers += [nodes[place].numbers for place in self.numbered]
        graph.state = state
        n = len(nodes)
        bridge.first_gradients([(leaves[place - n], made[i - first], spec) for place, i, spec in self.grads])
        for node in nodes:
            node.release()


NEVER = Pass()  # stands for one that could not be noted: after MOST of them no more is tried
NEVER.nodes = [(None,)]


def graph_at(me, roots, keep, create_graph, inputs):
    """The graph on which a pass may have been noted, or be; None for an unusual one."""
    if keep or create_graph or inputs is not None or me.extra or len(roots) != 1:
        return None
    root = roots[0][0]
    if not isinstance(root, Node) or root.bwd is None or root.bwd.n_out != 1:
        return None
    graph = me.graph
    device = root.bwd.specs[0].device
    if graph.device is not device:
        graph = me.graph_on(device)
    return graph if type(graph) is Graph else None


def again(graph, root, seed) -> bool:
    """Record a pass that is known; False if it must be run."""
    passes = graph.state.passes
    if passes:
        for known in passes:
            if known.nodes[0][0] is root.bwd and known.follows(graph, root, seed):
                return True
    return False


class Observer:
    """Sees a pass run, to note it."""

    __slots__ = ("me", "graph", "order", "state", "seed", "saved", "numbers", "others")

    def __init__(self, me, graph, order, seed):
        self.me = me
        self.graph = graph
        self.order = order
        self.state = graph.state
        self.seed = seed
        self.saved = [[_id(graph, v) for v in node.saved] for node in order]
        self.numbers = len(graph.numbers)
        self.others = self.recorded_elsewhere()

    def recorded_elsewhere(self):
        return [len(g.pendings) for g in self.me.graphs.values() if g is not self.graph]

    def note(self, counts):
        """After the pass: keep what it was, if another can be told to be the same. counts: its leaves."""
        self.state.passes = [*self.state.passes, self.found(counts) or NEVER]

    def found(self, counts):
        graph, order = self.graph, self.order
        if graph.done or self.me.graphs.get(graph.device) is not graph or self.recorded_elsewhere() != self.others:
            return None
        places = {node: k for k, node in enumerate(order)}
        leaves = list(counts)
        places.update((leaf, len(order) + k) for k, leaf in enumerate(leaves))
        grads = []
        for leaf in leaves:
            grad = leaf._grad
            if grad is None:
                continue
            value = grad._storage.value
            if type(value) is not Pending or value.graph is not graph or grad._spec is not grad._storage.spec:
                return None
            if value.index < self.state.count:  # not one of the pass's own results
                return None
            grads.append((places[leaf], value.index, grad._spec))
        numbered = _numbered(order, graph.numbers[self.numbers :])
        seed = _id(graph, self.seed)
        if numbered is None or seed is None or not all(None not in ids for ids in self.saved):
            return None
        found = Pass()
        found.nodes = [
            (
                node.bwd,
                tuple((k, e[1], places[e[0]]) for k, e in enumerate(node.edges) if e is not None),
                tuple(ids),
                None if k in numbered else node.numbers,
            )
            for k, (node, ids) in enumerate(zip(order, self.saved))
        ]
        found.leaves = [leaf._spec for leaf in leaves]
        found.seed = seed
        found.state = graph.state
        found.numbered = numbered
        found.grads = grads
        return found


def observer(me, graph, order, counts, seed):
    """What will note the pass that is about to run, or None: it is the first from here, or one that cannot be noted."""
    state = graph.state
    if state.passes is None:
        state.passes = _SEEN
        return None
    if len(state.passes) >= MOST:
        return None
    for leaf in counts:
        if leaf._grad is not None or leaf._hooks is not None or not leaf._rg or not _HOOKS.isdisjoint(leaf.__dict__):
            return None
    if any(map(_unusual, order)):
        state.passes = [*state.passes, NEVER]
        return None
    return Observer(me, graph, order, seed)


def _unusual(node) -> bool:
    return (
        isinstance(node, PythonNode)
        or type(node.saved) is not tuple
        or bool(node.hooks or node.pre_hooks or node.retained)
        or any(x != x or type(x) is float and not x for x in node.numbers)  # equal numbers need not be the same
    )


def _id(graph, v):
    """The id of a value in a graph; None if it has none yet."""
    if type(v) is Pending:
        if v.graph is graph:
            return v.index
        i = graph.index_of.get(id(v))
        if i is not None:
            return i
        array = array_of(v)
        return None if array is None else graph.index_of.get(id(array))
    return graph.index_of.get(id(v))


def _numbered(order, recorded):
    """The places of the nodes whose numbers a pass has recorded as inputs; None if that cannot be told."""
    recorded = list(map(id, recorded))
    taken = set(recorded)
    found = [k for k, node in enumerate(order) if id(node.numbers) in taken]
    return tuple(found) if [id(order[k].numbers) for k in found] == recorded else None
