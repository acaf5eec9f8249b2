"""Where XLA may not compute with a program's numbers before it runs.

XLA's simplifier takes `(x + 12582912) - 12582912`, which rounds to whole numbers, for x, and `(1 + x) - 1` too; `x * 1e-30 * 1e-30`
for `x * 0`, so that a cube of lengths in metres is nan; `x / y / z` for `x / (y * z)`, which may be infinite; `exp(x).log()`, which
PyTorch has infinite, for x. It looks behind no barrier, and XLA's CPU compiler drops barriers before it fuses, so they cost nothing.
"""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .packing import RUNTIME

_SUMS = frozenset(("add", "sub", "rsub"))
_PRODUCTS = frozenset(("mul", "div", "true_divide", "pow", "MulBackward0", "DivBackward0", "PowBackward0"))
_STAY = frozenset(("pow", "PowBackward0"))  # they ask what their number is
_KINDS = {float: np.float64, int: np.int64}
_SMALL = 16  # exponents of powers of two that are left as they are
# What XLA joins, to another result: the operations that read, and those whose results they read.
_JOINED = {
    "div": frozenset(("div", "true_divide")),
    "true_divide": frozenset(("div", "true_divide")),
    "mul": frozenset(("exp",)),
    "MulBackward0": frozenset(("exp", "ExpBackward0")),
    "LogBackward0": frozenset(("exp",)),
    "ExpBackward0": frozenset(("LogBackward0",)),
    "log": frozenset(("exp", "pow")),
    "sqrt": frozenset(("mul", "pow")),
}


def hidden(nodes) -> set:
    """The nodes whose numbers XLA shall not know: those of sums, or of products, where a program has several of them."""
    found = set()
    for family in (_SUMS, _PRODUCTS):
        several = [node for node in nodes if node.plan.name in family]
        if len(several) < 2:
            several = [node for node in several if node.numbers == (0,)]  # -0.0 + 0 is 0.0
        found.update(filter(_is_hidden, several))
    return found


def _is_hidden(node) -> bool:
    if (
        not node.numbers
        or node.numbers is RUNTIME
        or node.plan.name in _STAY
        or not all(type(x) in _KINDS for x in node.numbers)
    ):
        return False
    return node.plan.name in _SUMS or not all(map(_is_exact, node.numbers))


def _is_exact(x) -> bool:
    """Whether products with a number are the same in any order, as long as they are not huge; division by it is quick too."""
    fraction, exponent = math.frexp(x)
    return abs(fraction) == 0.5 and abs(exponent) <= _SMALL


def unknown(numbers, operands) -> list:
    """Numbers that XLA does not know."""
    made = [lax.optimization_barrier(jnp.asarray(x, _KINDS[type(x)])) for x in numbers]
    beside = operands[0]
    if beside.ndim == 0 and jnp.issubdtype(beside.dtype, jnp.floating):
        # Where the barriers are gone, numbers that are joined with single values are joined with each other once more.
        nothing = beside > jnp.inf
        made = [x - nothing.astype(x.dtype) for x in made]
    return made


def unsafe(nodes) -> dict:
    """The nodes whose operands XLA shall not join with what made them, each with the function that keeps them apart."""
    makers, found = {}, {}
    for node in nodes:
        if not _JOINED.get(node.plan.name, frozenset()).isdisjoint(map(makers.get, node.ids)):
            found[node] = _apart
        if node.plan.n_out == 1:
            makers[node.first] = node.plan.name
    return found


def _apart(operands):
    return list(map(lax.optimization_barrier, operands))
