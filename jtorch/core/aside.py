"""Values read in the middle of a recording without ending it: those that need few of its nodes, and none of their rounding.

A mask is compared with another one, the longest of some lengths is asked for, labels are looked over: numpy computes that from what is at
hand, and the step stays one program. Only what has the same bits however it is computed is read so (`EXACT`).
"""

import jax
import numpy as np

from . import ledger, stretch
from .device import place_of
from .hosted import put, steps_of
from .lanes import is_traced
from .numpy_rules import EXACT, NotHere
from .packing import RUNTIME, plain

FEW = 16  # nodes that a value may need
LITTLE = 1 << 22  # bytes of all their operands and results
SMALL = 1 << 14  # the same, of what is looked at in passing
LOOKS = 16  # how often
LONG = 256  # results of a recording beyond which constants end it too: each new one is looked for among them
PLACES = 4096  # of which it is known what they read

_sizes: dict = {}  # a place that reads one whole number made of others: that number, None once it was another
_numbers: dict = {}  # (number, dtype, shape, place): its array, which takes 50 us to make; a loop compares and counts up the same few


class Aside:
    """How one result of a recorded path is computed by itself."""

    __slots__ = ("nodes", "nbytes", "whole", "used", "numbers", "place", "constant", "value", "looks")

    def __init__(self, state, nodes, nbytes, device, whole):
        self.nodes = nodes
        self.nbytes = nbytes  # of all their operands and results
        self.whole = whole  # it is all that has been recorded
        self.used = {~i for node in nodes for i in node.ids if i < 0}
        numbered = any(node.numbers is RUNTIME for node in nodes)
        order = [node for node in state.nodes() if node.numbers is RUNTIME] if numbered else ()
        # of each node: where its numbers stand among those of the recording, or the numbers
        self.numbers = [
            order.index(node) if node.numbers is RUNTIME else tuple(map(plain, node.numbers)) for node in nodes
        ]
        self.place = place_of(device)
        # whether nothing goes in that is not part of the path; its value, once it has been read
        self.constant = not self.used and all(type(own) is tuple for own in self.numbers)
        self.value = None
        self.looks = 0  # in passing

    def run(self, inputs, numbers, index):
        """The result, a numpy array. Raises NotHere for what numpy does otherwise."""
        if self.value is not None:
            return self.value
        made = {}
        with np.errstate(all="ignore"):
            for node, own in zip(self.nodes, self.numbers):
                args = [inputs[~i] if i < 0 else made[i] for i in node.ids]
                args += numbers[own] if type(own) is int else own
                plan = node.plan
                if plan.exact is None:
                    plan.exact = steps_of(plan, args, EXACT)
                if not plan.exact:
                    raise NotHere
                made.update(zip(range(node.first, node.count), plan.exact.run(args)))
        if self.constant:
            self.value = made[index]
        return made[index]


def read(graph, pending) -> bool:
    """Give a result of the graph that its thread is recording its value, if that is done aside."""
    me, device = graph.owner, graph.device
    if me.scope is not None or me.graphs.get(device) is not graph or device.type == "meta":
        return False
    state, index = graph.state, pending.index
    found = _found(state, index, device)
    inputs = graph.inputs
    if not found or found.whole or not all(isinstance(inputs[k], (jax.Array, np.ndarray)) for k in found.used):
        return False
    value = None
    try:
        if not found.constant or state.length > LONG:
            # A loop that looks at its data in each pass shall not record all its passes: where it has been before, a recording ends.
            here = ledger.way()
            times = graph.asides.get(here, 0)
            if _may_stay(here, found, inputs):
                value = found.run(inputs, graph.numbers, index)
            same = value is not None and _stays(here, value)
            if times and not (same and times < stretch.REPEATS and stretch.tape.now() != graph.born):
                me.flush_graph(graph, "value needed")
                me.graphs[device].asides = {here: 1}
                return True
            graph.asides = {**graph.asides, here: times + 1}
        if value is None:
            value = found.run(inputs, graph.numbers, index)
    except NotHere:
        state.asides[index] = False
        return False
    pending.value = _put(value, found.place)
    return True


def known(me, pending):
    """What a result of numbers alone is (`arange`, `full`), or of a few at hand (`labels - 1`), as numpy; None of others.

    Nothing is put anywhere or waited for, and the recording stays as it is. Those at hand are looked at the first few times that a
    recording comes there: numpy takes 10 to 30 us, and a mistake is there from the start.
    """
    graph = pending.graph
    if getattr(graph, "owner", None) is not me or me.scope is not None or me.graphs.get(graph.device) is not graph:
        return None
    state, index = graph.state, pending.index
    found = _found(state, index, graph.device)
    if not found:
        return None
    if not found.constant:
        if found.looks == LOOKS or found.nbytes > SMALL or not all(_is_here(graph.inputs[k]) for k in found.used):
            return None
        found.looks += 1
    try:
        return found.run(graph.inputs, graph.numbers, index)
    except NotHere:
        state.asides[index] = False
        return None


def _is_here(value) -> bool:
    return type(value) is np.ndarray or isinstance(value, jax.Array) and not is_traced(value) and value.is_ready()


def _put(value, place):
    """The jax array of a value that has been read; of a single flag or whole number the one that was made before."""
    if value.size != 1 or value.dtype.kind not in "iub":
        return _put_anew(value, place)
    key = (value.item(), value.dtype, value.shape, place)
    array = _numbers.get(key)
    if array is None:
        if len(_numbers) >= PLACES:
            _numbers.clear()
        array = _numbers[key] = _put_anew(value, place)
    return array


def _put_anew(value, place):
    [array] = put([value], place)
    if isinstance(array, jax.core.Tracer):
        with jax.ensure_compile_time_eval():
            [array] = put([value], place)
    return array


def _may_stay(here, found, inputs) -> bool:
    """Whether what is read is made of single whole numbers, and has never been another one here."""
    return _sizes.get(here, 0) is not None and all(
        inputs[k].size == 1 and inputs[k].dtype.kind in "iub" for k in found.used
    )


def _stays(here, value) -> bool:
    """Whether a value is a number of channels or its like: one whole number that has always been the same here."""
    number = value.item() if value.size == 1 and value.dtype.kind in "iub" else None
    if here not in _sizes:
        if len(_sizes) >= PLACES:
            _sizes.clear()
        _sizes[here] = number
    elif number != _sizes[here]:
        number = _sizes[here] = None
    return number is not None


def _found(state, index, device):
    """An Aside; False where too much is needed for it."""
    if state.asides is None:
        state.asides = {}
    found = state.asides.get(index)
    if found is None:
        found = state.asides[index] = _look_for(state, index, device)
    return found


def _look_for(state, index, device):
    """An Aside for what a recording has found so far, which may be long: each new one is looked through from its end as far as is needed."""
    need, nodes, nbytes, node, whole = {index}, [], 0, state, True
    while need:
        latest = max(need)
        while node.first > latest:
            node, whole = node.parent, False
        plan = node.plan
        nbytes += plan.nbytes + sum(spec.nbytes for spec in plan.operands)
        if len(nodes) == FEW or nbytes > LITTLE or plan.exact is False:
            return False
        if device.type != "cpu" and any(i < 0 for i in node.ids):
            return False  # it would have to come from there
        nodes.append(node)
        need.difference_update(range(node.first, node.count))
        need.update(i for i in node.ids if i >= 0)
        node = node.parent
    return Aside(state, nodes[::-1], nbytes, device, whole and node.plan is None)
