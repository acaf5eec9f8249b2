"""Samples that are recorded in another way each time are made on the host.

A dataset that writes a word's letters, or pads, by slices as long as the word leaves other operations for each batch. Recorded together with
the training step they would make each step a program of its own, which is compiled or run op by op. In host memory slices, writes and stacks
are numpy's work, and the step gets a batch that is there.
"""

import weakref

from ..core.record import Graph, tls
from ..core.storage import on_host
from .dataset import Subset

__all__ = ["Varying", "varying_of"]


class Varying:
    """Fetches batches, and notices whether those of a size are made by the same operations on the same shapes."""

    __slots__ = ("on_host", "_seen", "_looks")

    def __init__(self):
        self.on_host = False
        self._seen = {}  # number of samples -> (where its recording ended, the plans that it was made by)
        self._looks = _LOOKS

    def __reduce__(self):
        return Varying, ()

    def fetch(self, fetch, index):
        """What `fetch` makes of an item of the sampler."""
        if self.on_host:
            on_host.always = True
            try:
                return fetch(index)
            finally:
                on_host.always = on_host.at_home
        graph = tls.me.graph
        if not self._looks or type(graph) is not Graph:  # in eager mode nothing is recorded
            return fetch(index)
        start = graph.state
        batch = fetch(index)
        if graph is tls.me.graph and not graph.done:
            self._compare(len(index) if isinstance(index, list) else 1, start, graph.state)
        return batch

    def _compare(self, samples, start, end):
        if end.count - start.count < 2 * samples:
            return  # views and a stack: as many nodes whatever is in them
        last, plans = self._seen.get(samples, (None, None))
        if last is end:
            return
        self._looks -= 1
        made_by = [node.plan for node in end.nodes()[len(start.nodes()) :]]
        if plans is not None and made_by != plans:
            self.on_host = True
        self._seen[samples] = end, made_by
        if self.on_host or not self._looks:
            self._seen.clear()


_LOOKS = 16  # at recordings that are not the last one again
_of_class: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def varying_of(dataset) -> Varying:
    """What all loaders of a class of datasets share, if a program has defined it; else a new one."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    kind = type(dataset)
    if kind.__module__.partition(".")[0] in ("jtorch", "builtins"):
        return Varying()
    return _of_class.setdefault(kind, Varying())
