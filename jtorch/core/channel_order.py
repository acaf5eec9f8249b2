"""Where kernels that go along with convolutions have the channels: a program without any has them where they lie in memory.

XLA's convolutions want the channels last on the CPU, and between them norms and pooling have them there too. By themselves these would only
transpose what they read and write, which takes 3 to 20 times as long as their arithmetic.
"""

import functools
import math
import threading

import jax.numpy as jnp

__all__ = [
    "CONVOLVES", "FOLLOWS", "IMAGES", "as_stored", "convolves", "first", "is_light", "last", "lies_first", "stays", "stored_order",
]  # fmt: skip

CONVOLVES, FOLLOWS = "convolves", "follows"  # what an op says of itself
IMAGES = (4, 5)  # dimensions of what convolutions hand on and hardly anything else has


MOST_TERMS, MOST_PRODUCTS = 49, 1 << 10  # of a result, and of all features at a position, of `is_light`


def is_light(x, w) -> bool:
    """Whether a convolution of arrays of these shapes multiplies so little for each result that its taps are quicker with the channels first."""
    features, own, channels, terms = w[0], w[1], x[1 - len(w)], math.prod(w[1:])
    return terms <= MOST_TERMS and (
        own == 1 and features == channels > 1 or own == channels and features * terms <= MOST_PRODUCTS
    )


def stays(plan) -> bool:
    """Whether a plan, by itself or among its like, has the channels where they lie in memory."""
    own = plan.channels
    if own is CONVOLVES and plan.op is not None and plan.op.light:
        return is_light(plan.operands[0].shape, plan.operands[1].shape) and lies_first(plan.operands)
    return own is FOLLOWS and lies_first(plan.operands)


def convolves(plans) -> bool:
    """Whether a program of these plans has the channels last."""
    return any(plan.channels is CONVOLVES and not stays(plan) for plan in plans)


class _State(threading.local):
    as_stored = False


_state = _State()


def as_stored() -> bool:
    """Whether the kernel being traced is of a program that convolves nothing."""
    return _state.as_stored


def stored_order(fn):
    """`fn`, traced as a part of a program that convolves nothing."""

    @functools.wraps(fn)
    def traced(*args):
        before, _state.as_stored = _state.as_stored, True
        try:
            return fn(*args)
        finally:
            _state.as_stored = before

    return traced


def last(x):
    """(N, C, ...) with the channels last."""
    return jnp.moveaxis(x, 1, -1)


def first(x):
    """What has the channels last as (N, C, ...)."""
    return jnp.moveaxis(x, -1, 1)


def lies_first(specs) -> bool:
    """Whether none of these has its channels last in memory."""
    return all(len(s.shape) < 3 or s.strides[1] != 1 or s.shape[1] == 1 for s in specs)
