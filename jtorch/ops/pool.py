"""Pooling by fixed windows: the largest, the mean or the p-norm of each."""

import builtins
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from jtorch import errors_nn as errors
from jtorch.core.channel_order import FOLLOWS, as_stored
from jtorch.core.dtype import BOOL, COMPLEX

from . import formats
from .activation import relu
from .arithmetic import mul
from .backend import accumulator, differentiated_as, extreme_over, need_floats, on_cpu
from .conv import windows
from .conv_shapes import tuple_of
from .pool_shapes import check_avg_pool, check_max_pool, check_max_pool1d, check_max_pool1d_indices, geometry
from .registry import Array, composite, op
from .rounding import abs, sign
from .transcendental import pow

FEW_TAPS = 32  # windows up to this size are unrolled: elementwise code, vectorised along the channels


def _to_nhwc(x, n: int):
    """`x` with the channels where the backend is fastest, and the first spatial dimension there."""
    if on_cpu() and not as_stored() and x.ndim == n + 2:
        return jnp.moveaxis(x, 1, -1), 1
    return x, x.ndim - n


def _from_nhwc(x, at: int):
    return jnp.moveaxis(x, -1, 1) if at == 1 else x


def _channels_first(fn, x, n: int):
    """Apply `fn(x, first spatial dimension)` in the backend's order; unbatched input gets a batch of one."""
    batched = x if x.ndim == n + 2 else x[None]
    y, at = _to_nhwc(batched, n)
    back = lambda r: _from_nhwc(r, at)[0] if x.ndim == n + 1 else _from_nhwc(r, at)
    got = fn(y, at)
    return tuple(map(back, got)) if isinstance(got, tuple) else back(got)


def lowest(dtype):
    """What any other number of `dtype` is larger than."""
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _scan_windows(x, at, kernel, geo, out):
    """(the largest of each window, the tap it is at): the first of equals, NaN above all."""
    best = where = None
    nan = jnp.issubdtype(x.dtype, jnp.floating)
    for tap, part in enumerate(windows(x, kernel, out, geo, at, lowest(x.dtype))):
        if best is None:
            best, where = part, _first_inside(part.shape, at, kernel, geo)
            continue
        better = part > best
        if nan:
            better |= part != part
        best, where = jnp.where(better, part, best), jnp.where(better, jnp.int32(tap), where)
    return best, where


def _first_inside(shape, at, kernel, geo):
    """The first tap of each window that is not in the padding before: what a window with nothing larger than that goes to."""
    first = jnp.zeros(shape, jnp.int32)
    for i, taps in enumerate(np.cumprod((1, *kernel[:0:-1]))[::-1]):
        if geo.lo[i]:
            before = geo.lo[i] - lax.broadcasted_iota(jnp.int32, shape, at + i) * geo.stride[i]
            first = first + jnp.maximum(before + geo.dilation[i] - 1, 0) // geo.dilation[i] * int(taps)
    return first


def _reduce_windows(x, at, kernel, geo, out):
    """The largest of each window, for windows too large to unroll."""
    n = len(kernel)
    spread = lambda values, rest: (rest,) * at + tuple(values) + (rest,) * (x.ndim - n - at)
    need = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, geo.stride, kernel, geo.dilation)]
    hi = [m - lo - size for m, lo, size in zip(need, geo.lo, x.shape[at : at + n])]
    config = spread([(a, b, 0) for a, b in zip(geo.lo, hi)], (0, 0, 0))
    x = lax.pad(x, jnp.asarray(lowest(x.dtype), x.dtype), config)
    return lax.reduce_window(
        x,
        np.asarray(lowest(x.dtype), x.dtype),
        lax.max,
        spread(kernel, 1),
        spread(geo.stride, 1),
        "VALID",
        window_dilation=spread(geo.dilation, 1),
    )


def _flat_index(tap, at, kernel, geo, spatial):
    """The position in the flattened spatial dimensions of the tap chosen in each window."""
    index, rest = 0, tap.astype(jnp.int64)
    for i in reversed(range(len(kernel))):
        position = lax.broadcasted_iota(jnp.int64, tap.shape, at + i) * geo.stride[i] - geo.lo[i]
        position = position + rest % kernel[i] * geo.dilation[i]
        rest = rest // kernel[i]
        index = index + position * math.prod(spatial[i + 1 :])
    return index


def _is_whole(spatial, kernel, geo, out) -> bool:
    """Whether one window covers all of the space, and nothing else."""
    return tuple(spatial) == kernel and set(out) == {1} and not any(geo.lo) and set(geo.dilation) == {1}


def _flat(x, n: int):
    return x.reshape(*x.shape[:-n], math.prod(x.shape[-n:]))


def _marks(flat):
    """(where the largest along the last dimension is: the first of equals, the last of nans; a mask of these places)."""
    at = lax.broadcasted_iota(jnp.int32, flat.shape, flat.ndim - 1)
    largest = extreme_over(flat, -1, True, True)
    place = jnp.min(jnp.where(flat == largest, at, flat.shape[-1]), -1, keepdims=True)
    if jnp.issubdtype(flat.dtype, jnp.floating):
        place = jnp.where(jnp.isnan(largest), jnp.max(jnp.where(jnp.isnan(flat), at, -1), -1, keepdims=True), place)
    return place, at == place


# jax shares the derivative among equals
_largest = differentiated_as(
    lambda x: extreme_over(x, -1, False, True), lambda x: jnp.sum(jnp.where(_marks(x)[1], x, 0), -1)
)


def max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    """The largest of each window of the last `n` dimensions, and where it is if `return_indices`."""
    spatial = input.shape[-n:]
    kernel, geo, out = geometry(n, spatial, kernel_size, stride, padding, dilation, ceil_mode)
    if _is_whole(spatial, kernel, geo, out):
        flat, shape = _flat(input, n), (*input.shape[:-n], *out)
        best = _largest(flat).reshape(shape)
        return (best, _marks(flat)[0].reshape(shape).astype(jnp.int64)) if return_indices else best

    def pool(x, at):
        if not return_indices and math.prod(kernel) > FEW_TAPS:
            return _reduce_windows(x, at, kernel, geo, out)
        best, tap = _scan_windows(x, at, kernel, geo, out)
        return (best, _flat_index(tap, at, kernel, geo, spatial)) if return_indices else best

    return _channels_first(pool, input, n)


def _gather_phases(value, tap, at, kernel, geo, out, spatial):
    """Each window's `value` added at the position of its tap, for all positions of the input.

    The input's positions of equal remainder modulo the stride are computed together and interleaved, so that nothing
    is scattered and nothing is computed at a position that no window reads.
    """
    n = len(kernel)
    zero = jnp.zeros((), value.dtype)
    reach = [o + (k - 1) * d // s for o, k, d, s in zip(out, kernel, geo.dilation, geo.stride)]

    def phase(remainders):
        total = None
        for number, taps in enumerate(np.ndindex(*kernel)):
            offset = [t * d for t, d in zip(taps, geo.dilation)]
            if any(o % s != r for o, s, r in zip(offset, geo.stride, remainders)):
                continue
            part = jnp.where(tap == number, value, zero)
            config = [(0, 0, 0)] * value.ndim
            for i in range(n):
                shift = offset[i] // geo.stride[i]
                config[at + i] = (shift, reach[i] - out[i] - shift, 0)
            part = lax.pad(part, zero, config)
            total = part if total is None else total + part
        if total is None:
            shape = list(value.shape)
            shape[at : at + n] = reach
            total = jnp.zeros(shape, value.dtype)
        return total

    def interleave(i, remainders):
        if i == n:
            return phase(remainders)
        parts = [interleave(i + 1, (*remainders, r)) for r in range(geo.stride[i])]
        if len(parts) == 1:
            return parts[0]
        stacked = jnp.stack(parts, at + i + 1)
        shape = list(stacked.shape)
        shape[at + i : at + i + 2] = [shape[at + i] * geo.stride[i]]
        return stacked.reshape(shape)

    full = interleave(0, ())
    config = [(0, 0, 0)] * value.ndim
    for i in range(n):
        config[at + i] = (-geo.lo[i], spatial[i] + geo.lo[i] - reach[i] * geo.stride[i], 0)
    return lax.pad(full, zero, config)


def first_of(g):
    """The gradient of the values, where those of values and positions are given."""
    return g[0] if isinstance(g, (tuple, list)) else g


@op(where="")
def max_pool_grad(
    grad: Array,
    input: Array,
    n: int,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
) -> Array:
    """The gradient of max pooling: each window's goes to the first of its largest elements."""
    spatial = input.shape[-n:]
    kernel, geo, out = geometry(n, spatial, kernel_size, stride, padding, dilation, ceil_mode)
    if _is_whole(spatial, kernel, geo, out):
        return jnp.where(_marks(_flat(input, n))[1], _flat(grad, n), 0).reshape(input.shape)
    if math.prod(kernel) > FEW_TAPS or math.prod(geo.stride) > FEW_TAPS:
        index = max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, True)[1]
        return scattered(grad, index, input.shape, n)
    batched = input if input.ndim == n + 2 else input[None]
    if on_cpu() and as_stored():  # 2 to 13 times as fast by itself
        _, tap = _scan_windows(batched, 2, kernel, geo, out)
        return scattered(grad, _flat_index(tap, 2, kernel, geo, spatial), input.shape, n)
    x, at = _to_nhwc(batched, n)
    value, _ = _to_nhwc(grad if grad.ndim == n + 2 else grad[None], n)
    _, tap = _scan_windows(x, at, kernel, geo, out)
    total = _from_nhwc(_gather_phases(value, tap, at, kernel, geo, out, spatial), at)
    return total if input.ndim == n + 2 else total[0]


def scattered(value, index, shape, n: int):
    """Zeros of `shape` with `value` added at flat spatial positions `index`."""
    lead = math.prod(shape[:-n])
    size = math.prod(shape[-n:])
    dtype = jnp.int32 if lead * size < 1 << 31 else jnp.int64
    rows = jnp.arange(lead, dtype=dtype)[:, None] * size
    at = (rows + index.reshape(lead, math.prod(index.shape[-n:])).astype(dtype)).reshape(-1)
    return jnp.zeros(lead * size, value.dtype).at[at].add(value.reshape(-1)).reshape(shape)


def _strides_of_max_pool1d(outs, input, *rest):
    return formats.follow_line(outs, input) if len(outs) == 2 else [None]  # without indices PyTorch has another kernel


def _max_pool_op(n: int, grad_name: str):
    def decorate(fn):
        strides = formats.follow if n > 1 else _strides_of_max_pool1d
        record = op(where="torch nn.functional", grad_name=grad_name, out=False, strides=strides)(fn)
        record.vjp(
            input=lambda g, input, kernel_size, stride, padding, dilation, ceil_mode: max_pool_grad(
                first_of(g), input, n, kernel_size, stride, padding, dilation, ceil_mode
            )
        )

        record.guards(out1=True)

        @record.check
        def check(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
            if n == 1 and not return_indices:
                check_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
            elif n == 1:
                check_max_pool1d_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
            else:
                check_max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode)
            if n == 1 and not return_indices:
                need_floats(input, "max_pool1d_impl")
            elif input.dtype.category in (BOOL, COMPLEX):
                raise errors.not_implemented(f"max_pool{builtins.max(n, 2)}d", input.dtype)

        return record

    return decorate


@_max_pool_op(1, "SqueezeBackward1")
def max_pool1d(
    input: Array,
    kernel_size: int | tuple,
    stride: int | tuple | None = None,
    padding: int | tuple = 0,
    dilation: int | tuple = 1,
    ceil_mode: bool = False,
    return_indices: object = False,
) -> Array:
    """The largest element of each window of the last dimension, and where it is if `return_indices`."""
    return max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@_max_pool_op(2, "MaxPool2DWithIndicesBackward0")
def max_pool2d(
    input: Array,
    kernel_size: int | tuple,
    stride: int | tuple | None = None,
    padding: int | tuple = 0,
    dilation: int | tuple = 1,
    ceil_mode: bool = False,
    return_indices: object = False,
) -> Array:
    """The largest element of each window of the last two dimensions, and where it is if `return_indices`."""
    return max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@_max_pool_op(3, "MaxPool3DWithIndicesBackward0")
def max_pool3d(
    input: Array,
    kernel_size: int | tuple,
    stride: int | tuple | None = None,
    padding: int | tuple = 0,
    dilation: int | tuple = 1,
    ceil_mode: bool = False,
    return_indices: object = False,
) -> Array:
    """The largest element of each window of the last three dimensions, and where it is if `return_indices`."""
    return max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _with_indices(n: int, fn):
    def max_pool_with_indices(
        input: Array, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True
    ):
        """The largest element of each window, and its position in the flattened spatial dimensions."""
        return fn(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    spaces = f"nn.functional.max_pool{n}d_with_indices" + (" torch.max_pool1d_with_indices" if n == 1 else "")
    return composite(where=spaces, name=f"max_pool{n}d_with_indices")(max_pool_with_indices)


max_pool1d_with_indices = _with_indices(1, max_pool1d)
max_pool2d_with_indices = _with_indices(2, max_pool2d)
max_pool3d_with_indices = _with_indices(3, max_pool3d)


def _counts(spatial, kernel, geo, out, count_include_pad):
    """How many elements each window's mean divides by: an array over the output positions."""
    sizes = []
    for size, k, s, p, o in zip(spatial, kernel, geo.stride, geo.lo, out):
        start = np.arange(o) * s - p
        stop = np.minimum(start + k, size + p)
        if not count_include_pad:
            start, stop = np.maximum(start, 0), np.minimum(stop, size)
        sizes.append(stop - start)
    total = sizes[0]
    for more in sizes[1:]:
        total = np.multiply.outer(total, more)
    return total


def _sum_blocks(x, at, kernel, out):
    """The sums of windows that lie side by side: the derivative of this form gives each element its window's, with no tap added to another."""
    n = len(kernel)
    for i in range(n):
        x = lax.slice_in_dim(x, 0, out[i] * kernel[i], axis=at + i)
    blocks = [size for o, k in zip(out, kernel) for size in (o, k)]
    return x.reshape(*x.shape[:at], *blocks, *x.shape[at + n :]).sum(tuple(at + 1 + 2 * i for i in range(n)))


def _sum_windows(x, at, kernel, geo, out):
    overlap = kernel != geo.stride or any(geo.lo) or any(o * k > s for o, k, s in zip(out, kernel, x.shape[at:]))
    if overlap or not jnp.issubdtype(x.dtype, jnp.inexact):
        return _added_windows(x, at, kernel, geo, out)
    fast = lambda x: _added_windows(x, at, kernel, geo, out)
    return differentiated_as(fast, lambda x: _sum_blocks(x, at, kernel, out))(x)


def _added_windows(x, at, kernel, geo, out):
    n = len(kernel)
    if math.prod(kernel) <= FEW_TAPS:
        total = None
        for part in windows(x, kernel, out, geo, at):
            total = part if total is None else total + part
        return total
    spread = lambda values, rest: (rest,) * at + tuple(values) + (rest,) * (x.ndim - n - at)
    need = [(o - 1) * s + k for o, s, k in zip(out, geo.stride, kernel)]
    hi = [m - lo - size for m, lo, size in zip(need, geo.lo, x.shape[at : at + n])]
    x = lax.pad(x, jnp.zeros((), x.dtype), spread([(a, b, 0) for a, b in zip(geo.lo, hi)], (0, 0, 0)))
    zero = np.zeros((), x.dtype)  # a constant, by which jax knows a sum that it can differentiate
    return lax.reduce_window(x, zero, lax.add, spread(kernel, 1), spread(geo.stride, 1), "VALID")


def avg_pool(n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """The mean of each window of the last `n` dimensions."""
    spatial = input.shape[-n:]
    kernel, geo, out = geometry(n, spatial, kernel_size, stride, padding, 1, ceil_mode)

    def pool(x, at):
        total = _sum_windows(x.astype(accumulator(x.dtype)), at, kernel, geo, out)
        count = divisor_override
        if count is None:
            count = _counts(spatial, kernel, geo, out, count_include_pad)
            count = int(count.flat[0]) if (count == count.flat[0]).all() else count
        if isinstance(count, np.ndarray):
            count = jnp.asarray(count.reshape(count.shape + (1,) * (x.ndim - n - at)), total.dtype)
        if jnp.issubdtype(x.dtype, jnp.integer):
            return lax.div(total, jnp.broadcast_to(jnp.asarray(count, total.dtype), total.shape))
        return (total / count).astype(x.dtype)

    return _channels_first(pool, input, n)


@op(where="torch nn.functional", grad_name="SqueezeBackward1", out=False, strides=formats.follow_line)
def avg_pool1d(
    input: Array,
    kernel_size: int | tuple,
    stride: int | tuple | None = None,
    padding: int | tuple = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window of the last dimension; padding counts unless `count_include_pad` is False."""
    return avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


avg_pool1d.guards(input=True)


@avg_pool1d.check
def _(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    check_avg_pool(1, input, kernel_size, stride, padding, ceil_mode)


@op(where="nn.functional _C._nn", out="exact", grad_name="AvgPool2DBackward0", strides=formats.follow)
def avg_pool2d(
    input: Array,
    kernel_size: int | tuple,
    stride: int | tuple | None = None,
    padding: int | tuple = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of the last two dimensions, or its sum over `divisor_override`."""
    return avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


avg_pool2d.guards(input=True)


@avg_pool2d.check
def _(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    check_avg_pool(2, input, kernel_size, stride, padding, ceil_mode, divisor_override)


@op(where="nn.functional _C._nn", out="exact", grad_name="AvgPool3DBackward0")
def avg_pool3d(
    input: Array,
    kernel_size: int | tuple,
    stride: int | tuple | None = None,
    padding: int | tuple = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of the last three dimensions, or its sum over `divisor_override`."""
    return avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


avg_pool3d.guards(input=True)


@avg_pool3d.check
def _(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    check_avg_pool(3, input, kernel_size, stride, padding, ceil_mode, divisor_override)


def _lp_pool(n, pool, input, norm_type, kernel_size, stride, ceil_mode):
    stride = None if stride in (None, ()) else stride
    if norm_type in (math.inf, -math.inf):
        largest = (max_pool1d, max_pool2d, max_pool3d)[n - 1]
        sizes = abs(input) if norm_type > 0 else -abs(input)
        out = largest(sizes, kernel_size, stride, 0, 1, ceil_mode)
        return out if norm_type > 0 else -out
    kernel = tuple_of(kernel_size, n)
    mean = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return pow(mul(mul(sign(mean), relu(abs(mean))), math.prod(kernel)), 1.0 / norm_type)


@composite(where="nn.functional")
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window, less the absolute value inside: (sum x^p)^(1/p)."""
    return _lp_pool(1, avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


@composite(where="nn.functional")
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of the last two dimensions, less the absolute value inside."""
    return _lp_pool(2, avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


@composite(where="nn.functional")
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window of the last three dimensions, less the absolute value inside."""
    return _lp_pool(3, avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


for _record in (max_pool1d, max_pool2d, max_pool3d, max_pool_grad, avg_pool1d, avg_pool2d, avg_pool3d):
    _record.channels = FOLLOWS
