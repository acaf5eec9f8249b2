"""Values that are not arrays of a device yet: what has been recorded, and little numpy arrays."""

import jax
import numpy as np

from . import device as devices

LITTLE = 2048  # bytes that stay numpy's
TAKEN = 4  # programs that take them so; one that takes more time comes more often


class Pending:
    """A result that has been recorded and not computed yet; `value` is the array once it has been."""

    __slots__ = ("graph", "index", "value")

    def __init__(self, graph, index):
        self.graph = graph
        self.index = index
        self.value = None

    def get(self):
        """The array; runs the graph if it must."""
        while self.value is None:  # numpy may have made it, and then it is put on the device
            self.graph.compute(self)
        return self.value


def concrete(make, *args):
    """What make(*args) gives, which outlives a function that jax traces now, and so must be none of its tracers."""
    value = make(*args)
    if isinstance(value, jax.core.Tracer):
        with jax.ensure_compile_time_eval():
            value = make(*args)
    return value


class Small:
    """Stands in a Pending for the graph that made it: a small numpy array, which nobody writes to, not on the device yet.

    The first programs that take it get it as it is, which costs a small one 2 us; putting it on the device takes 30.
    """

    __slots__ = ("array", "taken")
    done = True
    waits = gathers = False
    to_device = None  # puts an array there (`storage.py`)

    def __init__(self, array):
        self.array = array
        self.taken = 0  # times, by programs

    def compute(self, pending):
        pending.value = concrete(self.to_device, self.array)
        pending.graph = None

    def input(self, graph):
        """Its id in a graph; None where the array cannot be an input as it is."""
        i = graph.index_of.get(id(self.array))
        if i is not None:
            return i
        if self.taken == TAKEN or graph.owner.scope is not None or graph.device is not devices.cpu:
            return None
        self.taken += 1
        i = graph.index_of[id(self.array)] = ~len(graph.inputs)
        graph.inputs.append(self.array)
        return i


def own(value):
    """What numpy has made in memory of its own, which nobody writes to."""
    if type(value) is not np.ndarray or value.base is not None or not value.flags.c_contiguous:
        value = np.array(value, order="C")
    value.flags.writeable = False
    return value


def array_of(pending):
    """What graphs that did not record a result know it by; None if they cannot know it yet."""
    if pending.value is None and type(pending.graph) is Small:
        return pending.graph.array
    return pending.value


class _NoData:
    """The value of every tensor on the meta device."""

    def __repr__(self):
        return "no data"


NO_DATA = _NoData()
