"""Convolutions whose kernel covers a whole dimension, seen as convolutions with more channels. Knows arrays, never Tensor.

There is one position along such a dimension, and each of its elements meets one tap: it is a part of the channels. Of the form with many
taps, the gradient in the input is a full correlation over a map of size 1, for which XLA's CPU runtime takes 40 to 600 times as long.
The gradient in the weight gains nothing by it.
"""

import math

import jax.numpy as jnp

__all__ = ["covered", "fold_input", "fold_size", "fold_weight", "folded", "unfold_input"]


def covered(spatial, kernel, out, geo) -> tuple[int, ...]:
    """The spatial dimensions that the kernel covers, without padding before."""
    if geo.groups != 1:
        return ()
    rows = enumerate(zip(spatial, kernel, out, geo.lo, geo.dilation))
    return tuple(i for i, (s, k, o, lo, d) in rows if s == k > 1 and o == 1 and lo == 0 and d == 1)


def folded(geo, dims):
    """The geometry of what is left: one tap at one position in these dimensions."""
    put = lambda values, new: tuple(new if i in dims else v for i, v in enumerate(values))
    return geo._replace(stride=put(geo.stride, 1), lo=put(geo.lo, 0), hi=put(geo.hi, 0))


def fold_size(size, dims):
    """The full size (N or O, C, *space) with these dimensions among the channels."""
    taps = math.prod(size[2 + i] for i in dims)
    return (size[0], taps * size[1], *(1 if i in dims else s for i, s in enumerate(size[2:])))


def fold_input(x, dims):
    """(N, *space, C) to (N, *space with 1, taps * C)."""
    size = fold_size((x.shape[0], x.shape[-1], *x.shape[1:-1]), dims)
    n = len(dims)
    return jnp.moveaxis(x, [1 + i for i in dims], range(-1 - n, -1)).reshape(size[0], *size[2:], size[1])


def unfold_input(x, size, dims):
    """The transpose of `fold_input`, to channels last of the full size (N, C, *space)."""
    n = len(dims)
    left = [s for i, s in enumerate(size[2:]) if i not in dims]
    x = x.reshape(size[0], *left, *(size[2 + i] for i in dims), size[1])
    return jnp.moveaxis(x, range(-1 - n, -1), [1 + i for i in dims])


def fold_weight(w, dims):
    """(O, C, *kernel) to (O, taps * C, *kernel with 1)."""
    return jnp.moveaxis(w, [2 + i for i in dims], range(1, 1 + len(dims))).reshape(fold_size(w.shape, dims))
