"""Where kernels that go along with convolutions have the channels: a program without any has them where they lie in memory.

XLA's convolutions want the channels last on the CPU, and between them norms and pooling have them there too. By themselves these would only
transpose what they read and write, which takes 3 to 20 times as long as their arithmetic.
"""

import functools
import threading

import jax.numpy as jnp

__all__ = ["CONVOLVES", "FOLLOWS", "IMAGES", "as_stored", "first", "last", "lies_first", "stored_order"]

CONVOLVES, FOLLOWS = "convolves", "follows"  # what an op says of itself
IMAGES = (4, 5)  # dimensions of what convolutions hand on and hardly anything else has


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
