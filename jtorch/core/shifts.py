"""Writes of what has been read elsewhere in the same memory: `x[1:] = x[:-1].clone()`.

XLA's CPU compiler (jaxlib 0.7 to 0.10 at least) makes such a write in place, reading what it has just written, where the whole is a reshape
of something that the program has computed: its check does not see through the reshape. There the whole is made as a quotient by 1, whose
loop has no memory to be written in place.
"""

import jax.numpy as jnp
from jax import lax

from .cuts import stored
from .packing import RUNTIME


def unsafe(nodes) -> dict:
    """The writes whose value may be made from other places of what they write to, if that is made in the program and may be a reshape.

    Each with what is done to its operands."""
    made, found = {}, {}
    for node in nodes:
        recipe = node.plan.recipe
        if recipe is not None and node.plan.name == "write":
            base, value = node.ids[:2]
            if base >= 0 and value >= 0 and (_turns(recipe) or _may_turn(made[base])) and _moved(node, made):
                found[node] = _first_apart
        made.update((node.first + k, node) for k in range(node.plan.n_out))
    return found


def _turns(recipe) -> bool:
    return any(step.onto for step in recipe.steps)


def _may_turn(maker) -> bool:
    """Whether a result may be a reshape: XLA moves reshapes past what is elementwise, but not past a write."""
    return maker.plan.name != "write" or maker.plan.recipe is None or _turns(maker.plan.recipe)


def _moved(write, made) -> bool:
    """Whether the value depends on elements of the whole, other than each on the one that it takes the place of."""
    base, value = write.ids[:2]
    left, seen = [(value, True)], set()  # values, and whether each of their elements is for the same place
    while left:
        i, stays = left.pop()
        if i == base:
            return True
        if i < base or (i, stays) in seen:
            continue  # it was there before the whole
        seen.add((i, stays))
        node = made[i]
        plan = node.plan
        if plan.name == "read" and node.ids[0] == base and stays and _at_same_place(node, write):
            continue
        pointwise = stays and plan.op is not None and plan.op.elementwise
        left += [
            (j, pointwise and spec is not None and spec.shape == plan.specs[0].shape)
            for j, spec in zip(node.ids, plan.operands)
        ]
    return False


def _at_same_place(read, write) -> bool:
    return (
        read.plan.recipe == write.plan.recipe
        and read.numbers is not RUNTIME
        and write.numbers is not RUNTIME
        and read.numbers == write.numbers
    )


def _first_apart(operands):
    return [apart(operands[0]), *operands[1:]]


def apart(x):
    """A value in memory that no write can take."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        return lax.complex(stored(x.real), stored(x.imag))
    if x.dtype.itemsize == 1 and x.dtype != bool:
        return lax.bitcast_convert_type(stored(lax.bitcast_convert_type(x, jnp.uint8)), x.dtype)
    return stored(x)
