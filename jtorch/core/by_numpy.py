"""Graphs run by numpy, node by node, without a compiler: those of loops that make another graph at each pass.

A decoder that makes a sentence longer by one word, batches as long as their longest text, networks of another depth each time: what
is compiled for such a graph is seldom used again.
"""

import jax
import numpy as np

from . import costs
from .blas import one_thread
from .device import place_of
from .hosted import put, steps_of
from .numpy_rules import ALIKE, DTYPES, MOST_DIMENSIONS, NotHere
from .pending import LITTLE as SMALL
from .pending import own

LITTLE = 1 << 26  # bytes of all results of all nodes: with more, numpy can take longer than compiling
NEVER = ()  # as the steps of a plan: a program that it is part of is XLA's
FEW = 6  # operations that numpy does not do, each of which has an executable made


class TooMuch(Exception):
    """Too many operations of a program turn out to be none of numpy's."""


def wanted(prog, runs, quickly) -> bool:
    """Whether numpy can run a program so many times in little time, beside what compiling it takes. quickly: it would be made in haste."""
    if prog.device.type != "cpu" and _read(prog) > LITTLE:
        return False
    lacking = {node.plan for node in prog.nodes if not _known(node.plan)}
    if len(lacking) > FEW or any(plan.steps is NEVER for plan in lacking):
        return False
    return costs.nbytes(prog) <= LITTLE or costs.are_numpys(prog, runs, quickly)


def _read(prog) -> int:
    """Bytes that come from an accelerator and go to it; arrays that stay the same, such as weights, come once."""
    read = {i: spec.nbytes for node in prog.nodes for i, spec in zip(node.ids, node.plan.operands) if i < 0}
    return sum(read.values()) + costs.nbytes(prog)


def spread(inputs) -> bool:
    """Whether an input lies on several devices, as its program's results then shall."""
    return jax.local_device_count() > 1 and any(isinstance(x, jax.Array) and len(x.devices()) > 1 for x in inputs)


def _known(plan) -> bool:
    """Whether numpy has its dtypes, and has not been found to lack a rule."""
    if plan.steps is None:
        specs = (*plan.specs, *plan.operands)
        if any(s.ndim > MOST_DIMENSIONS for s in specs):
            plan.steps = NEVER
        elif not DTYPES.issuperset(s.dtype.np for s in specs):
            plan.steps = False
    return plan.steps is None or bool(plan.steps)


def run(walk, device):
    """The results of `walk(call)`, whose `call` runs a node, as arrays on a device; on the CPU small ones as numpy's, which nobody writes to.
    Raises TooMuch before long."""
    with np.errstate(all="ignore"), one_thread():
        values = walk(_Caller())
        small = [device.type == "cpu" and v.nbytes <= SMALL for v in values]
        there = iter(put([v for v, stays in zip(values, small) if not stays], place_of(device)))
        return [own(v) if stays else next(there) for v, stays in zip(values, small)]


class _Caller:
    """Runs nodes of one program."""

    __slots__ = ("lacking",)

    def __init__(self):
        self.lacking = set()

    def __call__(self, plan, args, numbers):
        if plan.steps is None:
            plan.steps = steps_of(plan, (*args, *numbers), ALIKE)
            plan.known = None
        if plan.steps:
            try:
                return plan.steps.run((*args, *numbers))
            except NotHere:  # these values
                return _executed(plan, args, numbers)
        self.lacking.add(plan)
        if len(self.lacking) > FEW:
            raise TooMuch
        return _executed(plan, args, numbers)


def _executed(plan, args, numbers):
    made = plan.jit(*args, *numbers)
    return list(map(np.asarray, made if plan.n_out > 1 else (made,)))
