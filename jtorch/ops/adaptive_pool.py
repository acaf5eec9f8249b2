"""Pooling to a size that is given: by windows that cover all evenly (adaptive), or lie at random (fractional)."""

import builtins
import math

import jax.numpy as jnp
import numpy as np

from jtorch import errors_nn as errors
from jtorch.core.channel_order import FOLLOWS
from jtorch.core.dtype import INT

from . import formats
from .backend import accumulator, need_floats
from .conv_shapes import tuple_of
from .pool import FEW_TAPS, avg_pool, first_of, lowest, max_pool, max_pool_grad, scattered
from .pool_shapes import adaptive_size, check_adaptive, check_fractional, check_fractional_samples
from .registry import Array, composite, op


def _adaptive_windows(size: int, out: int):
    """Start and stop of each of `out` windows that cover `size` positions."""
    i = np.arange(out)
    return i * size // builtins.max(out, 1), -((-(i + 1) * size) // builtins.max(out, 1))


def adaptive_avg_pool(n, input, output_size):
    """The mean of each of `output_size` windows that cover the last `n` dimensions evenly."""
    spatial = input.shape[-n:]
    target = adaptive_size(output_size, spatial)
    if 0 in target:
        return jnp.zeros((*input.shape[:-n], *target), input.dtype)
    if all(s % o == 0 for s, o in zip(spatial, target)):
        kernel = tuple(s // o for s, o in zip(spatial, target))
        if all(o == 1 for o in target):
            wide = input.astype(accumulator(input.dtype))
            axes = tuple(range(input.ndim - n, input.ndim))
            return jnp.mean(wide, axes, keepdims=True).astype(input.dtype)
        return avg_pool(n, input, kernel, kernel, 0, False, True, None)
    out = input.astype(accumulator(input.dtype))
    for i, (size, count) in enumerate(zip(spatial, target), input.ndim - n):
        start, stop = _adaptive_windows(size, count)
        position = np.arange(size)
        share = (position >= start[:, None]) & (position < stop[:, None])
        weight = jnp.asarray(share / share.sum(1, keepdims=True), out.dtype)
        out = jnp.moveaxis(jnp.tensordot(out, weight, ((i,), (1,))), -1, i)
    return out.astype(input.dtype)


def _adaptive_name(n):
    def name(args):
        target = args["output_size"]
        one = target == 1 or (not isinstance(target, int) and target is not None and set(target) == {1})
        if n == 1:
            return "SqueezeBackward1"
        return "MeanBackward1" if one else f"AdaptiveAvgPool{n}DBackward0"

    return name


def _unless_mean(call):
    """Whether an adaptive average is more than one mean of everything, which keeps nothing."""
    target = call["output_size"]
    return None if target == 1 or isinstance(target, tuple) and set(target) == {1} else True


@op(where="torch nn.functional", grad_name=_adaptive_name(1), out=False, strides=formats.follow_line)
def adaptive_avg_pool1d(input: Array, output_size: int | tuple) -> Array:
    """The mean of each of `output_size` windows that cover the last dimension evenly."""
    return adaptive_avg_pool(1, input, output_size)


adaptive_avg_pool1d.guards(input=_unless_mean)


def _adaptive_strides(outs, input, output_size):
    # one mean over everything has no order to keep
    return [None] if all(n == 1 for n in outs[0].shape[-2:]) else formats.follow(outs, input)


@op(where="nn.functional _C._nn", grad_name=_adaptive_name(2), strides=_adaptive_strides)
def adaptive_avg_pool2d(input: Array, output_size) -> Array:
    """The mean of each of `output_size` windows that cover the last two dimensions; None keeps a size."""
    return adaptive_avg_pool(2, input, output_size)


adaptive_avg_pool2d.asked = "size"


adaptive_avg_pool2d.guards(input=_unless_mean)


@op(where="nn.functional _C._nn", grad_name=_adaptive_name(3))
def adaptive_avg_pool3d(input: Array, output_size) -> Array:
    """The mean of each of `output_size` windows that cover the last three dimensions; None keeps a size."""
    return adaptive_avg_pool(3, input, output_size)


adaptive_avg_pool3d.asked = "size"


adaptive_avg_pool3d.guards(input=_unless_mean)


adaptive_avg_pool1d.check(lambda input, output_size: check_adaptive("avg", 1, input, output_size))
adaptive_avg_pool2d.check(lambda input, output_size: check_adaptive("avg", 2, input, output_size))
adaptive_avg_pool3d.check(lambda input, output_size: check_adaptive("avg", 3, input, output_size))


def _largest_at(x, starts, sizes, n):
    """(the largest, its flat position) of windows given by their starts and stops in each dimension.

    starts, sizes: for each dimension an array (out) or (*leading dimensions, out).
    """
    spatial = x.shape[-n:]
    lead = x.shape[:-n]
    outs = [s.shape[-1] for s in starts]
    tall = [int(np.max(np.asarray(k))) for k in sizes]
    index, inside = 0, True
    for i in range(n):
        step = jnp.arange(tall[i])
        position = jnp.asarray(starts[i])[..., :, None] + step  # (..., out, tall)
        valid = step < jnp.asarray(sizes[i])[..., :, None]
        position = jnp.minimum(position, spatial[i] - 1)
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = outs[i], tall[i]
        position = position.reshape(*position.shape[:-2], *shape)
        valid = valid.reshape(*valid.shape[:-2], *shape)
        index = index + position * math.prod(spatial[i + 1 :])
        inside = inside & valid
    taps = math.prod(tall)
    index = jnp.broadcast_to(index, (*lead, *outs, *tall)).reshape(*lead, *outs, taps)
    flat = x.reshape(*lead, math.prod(spatial))
    values = jnp.take_along_axis(flat, index.reshape(*lead, math.prod(outs) * taps), -1).reshape(index.shape)
    inside = jnp.broadcast_to(inside, (*lead, *outs, *tall)).reshape(index.shape)
    values = jnp.where(inside, values, jnp.asarray(lowest(x.dtype), x.dtype))
    choice = jnp.argmax(values, -1, keepdims=True)
    if jnp.issubdtype(values.dtype, jnp.floating):  # of nans PyTorch takes the last
        found = jnp.isnan(values)
        last = taps - 1 - jnp.argmax(found[..., ::-1], -1, keepdims=True)
        choice = jnp.where(found.any(-1, keepdims=True), last, choice)
    pick = lambda a: jnp.take_along_axis(a, choice, -1)[..., 0]
    return pick(values), pick(index).astype(jnp.int64)


def _largest_evenly(n, x, target):
    """(the largest, its flat position) of windows that cover the last `n` dimensions: dimension after dimension, a place of all windows at a
    time, elementwise. The windows' elements gathered first take twice as long, ten times without the positions."""
    spatial = x.shape[-n:]
    flat = jnp.int64(0)
    for k in reversed(range(n)):
        axis = x.ndim - n + k
        x, place = _largest_along(x, axis, *_adaptive_windows(spatial[k], target[k]))
        before = flat if flat.ndim == 0 else jnp.take_along_axis(flat, place, axis)
        flat = place.astype(jnp.int64) * math.prod(spatial[k + 1 :]) + before
    return x, flat


def _largest_along(x, axis, start, stop):
    """(the largest, its position) of windows along an axis: the first one, of nans the last."""
    along = [-1 if d == axis else 1 for d in range(x.ndim)]
    best = jnp.take(x, start, axis)
    where = jnp.broadcast_to(jnp.asarray(start, jnp.int32).reshape(along), best.shape)
    for tap in range(1, int(np.max(stop - start))):
        place = np.minimum(start + tap, stop - 1)  # the last one again changes nothing
        value = jnp.take(x, place, axis)
        better = value > best
        if jnp.issubdtype(x.dtype, jnp.floating):
            better |= jnp.isnan(value)
        best = jnp.where(better, value, best)
        where = jnp.where(better, jnp.asarray(place, jnp.int32).reshape(along), where)
    return best, where


def _even_windows(spatial, target):
    """The size of the windows where all are alike and lie side by side, else None."""
    alike = all(s % o == 0 for s, o in zip(spatial, target))
    return tuple(s // o for s, o in zip(spatial, target)) if alike else None


@op(where="")
def adaptive_max_pool_grad(grad: Array, input: Array, n: int, output_size) -> Array:
    """The gradient of adaptive max pooling."""
    target = adaptive_size(output_size, input.shape[-n:])
    kernel = None if 0 in target else _even_windows(input.shape[-n:], target)
    if kernel:
        return max_pool_grad.fn(grad, input, n, kernel, kernel)
    if 0 in target:
        return jnp.zeros_like(input)
    return scattered(grad, _adaptive_max_pool(n, input, output_size, True)[1], input.shape, n)


def _adaptive_max_pool(n, input, output_size, return_indices):
    spatial = input.shape[-n:]
    target = adaptive_size(output_size, spatial)
    if 0 in target or not input.size:
        empty = jnp.zeros((*input.shape[:-n], *target), input.dtype)
        return (empty, empty.astype(jnp.int64)) if return_indices else empty
    kernel = _even_windows(spatial, target)
    if kernel and (math.prod(kernel) <= FEW_TAPS or set(target) == {1}):
        return max_pool(n, input, kernel, kernel, 0, 1, False, return_indices)
    got = _largest_evenly(n, input, target)
    return got if return_indices else got[0]


@op(where="nn.functional", grad_name="SqueezeBackward1", out=False, strides=formats.follow_line)
def adaptive_max_pool1d(input: Array, output_size, return_indices: bool = False) -> Array:
    """The largest of each of `output_size` windows that cover the last dimension evenly."""
    return _adaptive_max_pool(1, input, output_size, return_indices)


adaptive_max_pool1d.guards(out1=True)


@op(where="nn.functional", grad_name="AdaptiveMaxPool2DBackward0", out=False, strides=formats.follow)
def adaptive_max_pool2d(input: Array, output_size, return_indices: bool = False) -> Array:
    """The largest of each of `output_size` windows that cover the last two dimensions."""
    return _adaptive_max_pool(2, input, output_size, return_indices)


adaptive_max_pool2d.guards(out1=True)


@op(where="nn.functional", grad_name="AdaptiveMaxPool3DBackward0", out=False)
def adaptive_max_pool3d(input: Array, output_size, return_indices: bool = False) -> Array:
    """The largest of each of `output_size` windows that cover the last three dimensions."""
    return _adaptive_max_pool(3, input, output_size, return_indices)


adaptive_max_pool3d.guards(input=True, out1=True)


def _adaptive_rule(n: int):
    return lambda g, input, output_size: adaptive_max_pool_grad(first_of(g), input, n, output_size)


for _n, _record in enumerate((adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d), 1):
    _record.check(lambda input, output_size, return_indices=False, n=_n: check_adaptive("max", n, input, output_size))
    _record.vjp(input=_adaptive_rule(_n))


def _adaptive_with_indices(n: int, fn, spaces: str):
    def adaptive_max_pool_with_indices(input: Array, output_size):
        """The largest of each of `output_size` windows, and its flat position."""
        return fn(input, output_size, True)

    record = composite(where=spaces, name=f"adaptive_max_pool{n}d_with_indices")(adaptive_max_pool_with_indices)
    record.shown = f"adaptive_max_pool{n}d"


_space = "nn.functional.adaptive_max_pool{}d_with_indices"
_adaptive_with_indices(1, adaptive_max_pool1d, "torch.adaptive_max_pool1d " + _space.format(1))
_adaptive_with_indices(2, adaptive_max_pool2d, _space.format(2))
_adaptive_with_indices(3, adaptive_max_pool3d, _space.format(3))


def _fractional(n, input, samples, kernel_size, output_size, return_indices):
    """Windows that start at pseudo-random positions: `samples` (N, C, n) in [0, 1) says where."""
    kernel, target = tuple_of(kernel_size, n), tuple_of(output_size, n)
    x = input if input.ndim == n + 2 else input[None]
    if not x.size or 0 in target:
        shape = (*input.shape[:-n], *target)
        got = jnp.zeros(shape, x.dtype), jnp.zeros(shape, jnp.int64)
        return got if return_indices else got[0]
    starts, sizes = [], []
    for i in range(n):
        # torch draws the samples of the last dimension first
        sample = samples[..., n - 1 - i] if n == 2 else samples[..., i]
        sample = sample.astype(accumulator(x.dtype))
        size, k, o = x.shape[2 + i], kernel[i], target[i]
        alpha = (size - k) / (o - 1) if o > 1 else 0.0
        at = jnp.trunc((jnp.arange(o) + sample[..., None]) * alpha) - jnp.trunc(sample * alpha)[..., None]
        at = jnp.where(jnp.arange(o) == o - 1, size - k, at.astype(jnp.int64))
        starts.append(at[: x.shape[0]])
        sizes.append(np.full((o,), k))
    got = _largest_at(x, starts, sizes, n)
    got = got if input.ndim == n + 2 else tuple(a[0] for a in got)
    return got if return_indices else got[0]


@op(where="", grad_name="FractionalMaxPool2DBackward0")
def fractional_max_pool2d_at(
    input: Array, samples: Array, kernel_size, output_size, return_indices: bool = False
) -> Array:
    """Fractional max pooling with its random samples given."""
    return _fractional(2, input, samples, kernel_size, output_size, return_indices)


@op(where="", grad_name="FractionalMaxPool3DBackward0")
def fractional_max_pool3d_at(
    input: Array, samples: Array, kernel_size, output_size, return_indices: bool = False
) -> Array:
    """Fractional max pooling in three dimensions with its random samples given."""
    return _fractional(3, input, samples, kernel_size, output_size, return_indices)


for _n, _record in enumerate((fractional_max_pool2d_at, fractional_max_pool3d_at), 2):

    @_record.check
    def _(input, samples, kernel_size, output_size, return_indices=False, n=_n):
        check_fractional_samples(n, input, samples)
        check_fractional(n, input, kernel_size, output_size)
        need_floats(input, f"fractional_max_pool{n}d_out_frame")


def _fractional_composite(n: int, at):
    name = f"fractional_max_pool{n}d"

    def fractional_max_pool(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        """The largest of each of `output_size` windows whose places are drawn at random for each channel."""
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
            if len(ratio) != n:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = tuple(int(s * r) for s, r in zip(input.shape[-n:], ratio))
        if _random_samples is None:
            batch = 1 if input.ndim == n + 1 else input.shape[0]
            if input.dtype.category <= INT:
                raise errors.not_implemented("check_uniform_bounds", input.dtype)
            _random_samples = input.new_empty((batch, input.shape[-n - 1], n)).uniform_()
        return at(input, _random_samples, kernel_size, output_size, return_indices)

    def with_indices(input, kernel_size, output_size=None, output_ratio=None, _random_samples=None):
        """Fractional max pooling, and the flat position of each result."""
        return fractional_max_pool(input, kernel_size, output_size, output_ratio, True, _random_samples)

    composite(where=f"nn.functional.{name}", name=name)(fractional_max_pool)
    composite(where=f"nn.functional.{name}_with_indices", name=f"{name}_with_indices")(with_indices)


_fractional_composite(2, fractional_max_pool2d_at)
_fractional_composite(3, fractional_max_pool3d_at)


for _record in (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d,
    adaptive_max_pool_grad,
):  # fmt: skip
    _record.channels = FOLLOWS
