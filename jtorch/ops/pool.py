"""Pooling: the largest or the mean of each window, by fixed, adaptive or random windows, and its inverse."""

import builtins
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core.dtype import BOOL, COMPLEX, FLOAT, INT, scalar_name

from . import formats
from .activation import relu
from .arithmetic import abs, mul, sign
from .backend import accumulator, need_floats, on_cpu
from .conv import Geometry, tuple_of, windows
from .registry import Array, composite, op
from .transcendental import pow

FEW_TAPS = 32  # windows up to this size are unrolled: elementwise code, vectorised along the channels


def _geometry(n, spatial, kernel, stride, padding, dilation, ceil_mode):
    """(kernel, geometry, output size) of a pooling over `spatial`."""
    kernel = tuple_of(kernel, n)
    stride = kernel if stride is None or stride == () else tuple_of(stride, n)
    padding, dilation = tuple_of(padding, n), tuple_of(dilation, n)
    out = []
    for size, k, s, p, d in zip(spatial, kernel, stride, padding, dilation):
        o = (size + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (o - 1) * s >= size + p:
            o -= 1  # the last window must start inside the input or its left padding
        out.append(o)
    return kernel, Geometry(stride, padding, padding, dilation, 1), tuple(out)


def _to_nhwc(x, n: int):
    """`x` with the channels where the backend is fastest, and the first spatial dimension there."""
    if on_cpu() and x.ndim == n + 2:
        return jnp.moveaxis(x, 1, -1), 1
    return x, x.ndim - n


def _from_nhwc(x, at: int):
    return jnp.moveaxis(x, -1, 1) if at == 1 and on_cpu() else x


def _channels_first(fn, x, n: int):
    """Apply `fn(x, first spatial dimension)` in the backend's order; unbatched input gets a batch of one."""
    batched = x if x.ndim == n + 2 else x[None]
    y, at = _to_nhwc(batched, n)
    back = lambda r: _from_nhwc(r, at)[0] if x.ndim == n + 1 else _from_nhwc(r, at)
    got = fn(y, at)
    return tuple(map(back, got)) if isinstance(got, tuple) else back(got)


def _lowest(dtype):
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _scan_windows(x, at, kernel, geo, out):
    """(the largest of each window, the tap it is at): the first of equals, NaN above all."""
    best = where = None
    nan = jnp.issubdtype(x.dtype, jnp.floating)
    for tap, part in enumerate(windows(x, kernel, out, geo, at, _lowest(x.dtype))):
        if best is None:
            best, where = part, jnp.zeros(part.shape, jnp.int32)
            continue
        better = part > best
        if nan:
            better |= part != part
        best, where = jnp.where(better, part, best), jnp.where(better, jnp.int32(tap), where)
    return best, where


def _reduce_windows(x, at, kernel, geo, out):
    """The largest of each window, for windows too large to unroll."""
    n = len(kernel)
    spread = lambda values, rest: (rest,) * at + tuple(values) + (rest,) * (x.ndim - n - at)
    need = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, geo.stride, kernel, geo.dilation)]
    hi = [m - lo - size for m, lo, size in zip(need, geo.lo, x.shape[at : at + n])]
    config = spread([(a, b, 0) for a, b in zip(geo.lo, hi)], (0, 0, 0))
    x = lax.pad(x, jnp.asarray(_lowest(x.dtype), x.dtype), config)
    return lax.reduce_window(
        x,
        np.asarray(_lowest(x.dtype), x.dtype),
        lax.max,
        spread(kernel, 1),
        spread(geo.stride, 1),
        "VALID",
        window_dilation=spread(geo.dilation, 1),
    )


def _flat_index(tap, at, kernel, geo, out, spatial):
    """The position in the flattened spatial dimensions of the tap chosen in each window."""
    index, rest = 0, tap.astype(jnp.int64)
    for i in reversed(range(len(kernel))):
        position = lax.broadcasted_iota(jnp.int64, tap.shape, at + i) * geo.stride[i] - geo.lo[i]
        position = position + rest % kernel[i] * geo.dilation[i]
        rest = rest // kernel[i]
        index = index + position * math.prod(spatial[i + 1 :])
    return index


def _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    spatial = input.shape[-n:]
    kernel, geo, out = _geometry(n, spatial, kernel_size, stride, padding, dilation, ceil_mode)

    def pool(x, at):
        if not return_indices and math.prod(kernel) > FEW_TAPS:
            return _reduce_windows(x, at, kernel, geo, out)
        best, tap = _scan_windows(x, at, kernel, geo, out)
        return (best, _flat_index(tap, at, kernel, geo, out, spatial)) if return_indices else best

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


def _first_of(g):
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
    kernel, geo, out = _geometry(n, spatial, kernel_size, stride, padding, dilation, ceil_mode)
    if math.prod(kernel) > FEW_TAPS or math.prod(geo.stride) > FEW_TAPS:
        index = _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, True)[1]
        return _scatter(grad, index, input.shape, n)
    batched = input if input.ndim == n + 2 else input[None]
    x, at = _to_nhwc(batched, n)
    value, _ = _to_nhwc(grad if grad.ndim == n + 2 else grad[None], n)
    _, tap = _scan_windows(x, at, kernel, geo, out)
    total = _from_nhwc(_gather_phases(value, tap, at, kernel, geo, out, spatial), at)
    return total if input.ndim == n + 2 else total[0]


def _scatter(value, index, shape, n: int):
    """Zeros of `shape` with `value` added at flat spatial positions `index`."""
    lead = math.prod(shape[:-n])
    flat = jnp.zeros((lead, math.prod(shape[-n:])), value.dtype)
    rows = jnp.arange(lead)[:, None]
    return flat.at[rows, index.reshape(lead, -1)].add(value.reshape(lead, -1)).reshape(shape)


def _max_pool_op(n: int, grad_name: str):
    def decorate(fn):
        record = op(where="torch nn.functional", grad_name=grad_name, out=False, strides=formats.follow)(fn)
        record.vjp(
            input=lambda g, input, kernel_size, stride, padding, dilation, ceil_mode: max_pool_grad(
                _first_of(g), input, n, kernel_size, stride, padding, dilation, ceil_mode
            )
        )

        @record.check
        def check(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
            if n == 1 and not return_indices:
                _check_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
            elif n == 1:
                _check_max_pool1d_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
            else:
                _check_max_pool(n, input, tuple(input.shape), kernel_size, stride, padding, dilation, ceil_mode)
            if n == 1 and not return_indices:
                need_floats(input, "max_pool1d_impl")
            elif input.dtype.category in (BOOL, COMPLEX):
                raise errors.not_implemented(f"max_pool{builtins.max(n, 2)}d", input.dtype)

        return record

    return decorate


@_max_pool_op(1, "SqueezeBackward1")
def max_pool1d(
    input: Array,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Array:
    """The largest element of each window of the last dimension, and where it is if `return_indices`."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@_max_pool_op(2, "MaxPool2DWithIndicesBackward0")
def max_pool2d(
    input: Array,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Array:
    """The largest element of each window of the last two dimensions, and where it is if `return_indices`."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@_max_pool_op(3, "MaxPool3DWithIndicesBackward0")
def max_pool3d(
    input: Array,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Array:
    """The largest element of each window of the last three dimensions, and where it is if `return_indices`."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _with_indices(n: int, fn):
    def max_pool_with_indices(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True
    ):
        """The largest element of each window, and its position in the flattened spatial dimensions."""
        return fn(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    spaces = f"nn.functional.max_pool{n}d_with_indices" + (" torch.max_pool1d_with_indices" if n == 1 else "")
    return composite(where=spaces, name=f"max_pool{n}d_with_indices")(max_pool_with_indices)


max_pool1d_with_indices = _with_indices(1, max_pool1d)
max_pool2d_with_indices = _with_indices(2, max_pool2d)
max_pool3d_with_indices = _with_indices(3, max_pool3d)


def _check_max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode):
    shape = tuple(input.shape)
    if input.ndim not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got:{list(shape)}"
        )
    settings = (("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("dilation", dilation))
    for label, value in settings:
        if not isinstance(value, int | None) and len(value) > 1:
            kinds = {"stride": "None, an int, list of ints, or", "padding": "an int, list of ints, or"}
            raise RuntimeError(
                f"max_pool1d() {label} must be {kinds.get(label, 'an int, list of ints or')} tuple of ints of size 1 "
                f"but got size {len(value)}"
            )
    k, p, d = (tuple_of(v, 1)[0] for v in (kernel_size, padding, dilation))
    s = k if stride in (None, ()) else tuple_of(stride, 1)[0]
    for label, value in (("kernel_size", k), ("stride", s), ("dilation", d)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {label} must be greater than zero, but got {value}")
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        )
    (size,) = _geometry(1, shape[-1:], k, s, p, d, ceil_mode)[2]
    if size <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")


def _check_max_pool1d_indices(input, kernel_size, stride, padding, dilation, ceil_mode):
    """PyTorch computes it in two dimensions, and its errors show that."""
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for max_pool1d)"
        )
    settings = (("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("dilation", dilation))
    for label, value in settings:
        if not isinstance(value, int | None) and len(value) > 1:
            raise RuntimeError(f"max_pool1d() argument '{label}' should contain one int (got {len(value)})")
    k, p, d = (tuple_of(v, 1)[0] for v in (kernel_size, padding, dilation))
    s = k if stride in (None, ()) else tuple_of(stride, 1)[0]
    planes = (*input.shape[:-1], 1, input.shape[-1])
    _check_max_pool(2, input, planes, (1, k), (1, s), (0, p), (1, d), ceil_mode)


def _check_max_pool(n, input, shape, kernel_size, stride, padding, dilation, ceil_mode):
    many = {2: "tuple of two ints", 3: "tuple of three ints"}[n]
    words = {
        "kernel_size": f"must either be a single int, or a {many}",
        "stride": f"must either be omitted, a single int, or a {many}",
        "padding": f"must either be a single int, or a {many}",
        "dilation": f"must be either a single int, or a {many}",
    }
    settings = (("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("dilation", dilation))
    for label, value in settings:
        if not isinstance(value, int | None) and len(value) not in ((0, 1, n) if label == "stride" else (1, n)):
            raise RuntimeError(f"max_pool{n}d: {label} {words[label]}")
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    stride = tuple_of(kernel_size if stride in (None, ()) else stride, n)
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    _check_half_padding(n, kernel_size, padding, dilation)
    if any(v < 0 for v in stride):
        raise RuntimeError("stride should be greater than zero, but got " + _spell("d", stride))
    if any(v <= 0 for v in tuple_of(dilation, n)):
        raise RuntimeError("dilation should be greater than zero, but got " + _spell("dilation", tuple_of(dilation, n)))
    if 0 in shape[-n - 1 :]:
        raise errors.max_pool_empty(n, shape)
    out = _geometry(n, shape[-n:], kernel_size, stride, padding, dilation, ceil_mode)[2]
    if any(o < 1 for o in out):
        raise _too_small(shape[-n - 1], shape[-n:], out)


def _check_settings(name, n, kernel_size, stride, padding, dilation):
    for label, value in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if not isinstance(value, int) and value is not None and len(value) not in (0, 1, n):
            many = {2: "a single int, or a tuple of two ints", 3: "a single int, or a tuple of three ints"}
            raise RuntimeError(f"{name}: {label} must either be {many.get(n, 'a single int')}")
    kernel = tuple_of(kernel_size, n)
    if any(k <= 0 for k in kernel):
        raise RuntimeError("kernel size should be greater than zero, but got " + _spell("k", kernel))
    if stride not in (None, ()) and any(s <= 0 for s in tuple_of(stride, n)):
        raise RuntimeError("stride should not be zero")
    if any(d <= 0 for d in tuple_of(dilation, n)):
        raise RuntimeError("dilation should be greater than zero, but got " + _spell("dilation", tuple_of(dilation, n)))


def _spell(label, values) -> str:
    return " ".join(f"{label}{axis}: {v}" for axis, v in zip("THW"[-len(values) :], values))


def _check_half_padding(n, kernel_size, padding, dilation):
    for k, p, d in zip(tuple_of(kernel_size, n), tuple_of(padding, n), tuple_of(dilation, n)):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )


def _check_output(n, input, kernel_size, stride, padding, dilation, ceil_mode):
    spatial = tuple(input.shape[-n:])
    _, _, out = _geometry(n, spatial, kernel_size, stride, padding, dilation, ceil_mode)
    if any(o < 1 for o in out):
        c = input.shape[-n - 1]
        one = (1,) if n == 1 else ()
        raise _too_small(c, (*one, *spatial), (*one, *out))


def _too_small(channels, spatial, out) -> RuntimeError:
    given, got = ("x".join(map(str, (channels, *s))) for s in (spatial, out))
    return RuntimeError(f"Given input size: ({given}). Calculated output size: ({got}). Output size is too small")


def _counts(n, spatial, kernel, geo, out, count_include_pad):
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


def _sum_windows(x, at, kernel, geo, out):
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


def _avg_pool(n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    spatial = input.shape[-n:]
    kernel, geo, out = _geometry(n, spatial, kernel_size, stride, padding, 1, ceil_mode)

    def pool(x, at):
        total = _sum_windows(x.astype(accumulator(x.dtype)), at, kernel, geo, out)
        count = divisor_override
        if count is None:
            count = _counts(n, spatial, kernel, geo, out, count_include_pad)
            count = int(count.flat[0]) if (count == count.flat[0]).all() else count
        if isinstance(count, np.ndarray):
            count = jnp.asarray(count.reshape(count.shape + (1,) * (x.ndim - n - at)), total.dtype)
        if jnp.issubdtype(x.dtype, jnp.integer):
            return lax.div(total, jnp.broadcast_to(jnp.asarray(count, total.dtype), total.shape))
        return (total / count).astype(x.dtype)

    return _channels_first(pool, input, n)


def _check_avg_pool(n, input, kernel_size, stride, padding, ceil_mode, divisor_override=None):
    if n == 1 and input.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for avg_pool1d)"
        )
    _check_settings(f"avg_pool{n}d", n, kernel_size, stride, padding, 1)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if input.ndim < n + 1:
        dim = -n - 1
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got {dim})"
        )
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    _check_half_padding(2, *(tuple_of(v, n)[:1] for v in (kernel_size, padding)), 1)
    _check_output(n, input, kernel_size, stride, padding, 1, ceil_mode)
    if input.dtype is not dtypes.int64:
        need_floats(input, "avg_pool3d_out_frame" if n == 3 else "avg_pool2d", halves=n < 3)


@op(where="torch nn.functional", grad_name="SqueezeBackward1", out=False)
def avg_pool1d(
    input: Array, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True
) -> Array:
    """The mean of each window of the last dimension; padding counts unless `count_include_pad` is False."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@avg_pool1d.check
def _(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    _check_avg_pool(1, input, kernel_size, stride, padding, ceil_mode)


@op(where="nn.functional _C._nn", out="exact", grad_name="AvgPool2DBackward0", strides=formats.follow)
def avg_pool2d(
    input: Array,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of the last two dimensions, or its sum over `divisor_override`."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@avg_pool2d.check
def _(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    _check_avg_pool(2, input, kernel_size, stride, padding, ceil_mode, divisor_override)


@op(where="nn.functional _C._nn", out="exact", grad_name="AvgPool3DBackward0")
def avg_pool3d(
    input: Array,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of each window of the last three dimensions, or its sum over `divisor_override`."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@avg_pool3d.check
def _(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    _check_avg_pool(3, input, kernel_size, stride, padding, ceil_mode, divisor_override)


def _adaptive_size(output_size, spatial) -> tuple[int, ...]:
    n = len(spatial)
    sizes = (output_size,) * n if output_size is None or isinstance(output_size, int) else tuple(output_size)
    return tuple(s if o is None else o for o, s in zip(sizes, spatial))


def _adaptive_windows(size: int, out: int):
    """Start and stop of each of `out` windows that cover `size` positions."""
    i = np.arange(out)
    return i * size // builtins.max(out, 1), -((-(i + 1) * size) // builtins.max(out, 1))


def _adaptive_avg_pool(n, input, output_size):
    spatial = input.shape[-n:]
    target = _adaptive_size(output_size, spatial)
    if 0 in target:
        return jnp.zeros((*input.shape[:-n], *target), input.dtype)
    if all(s % o == 0 for s, o in zip(spatial, target)):
        kernel = tuple(s // o for s, o in zip(spatial, target))
        if all(o == 1 for o in target):
            wide = input.astype(accumulator(input.dtype))
            axes = tuple(range(input.ndim - n, input.ndim))
            return jnp.mean(wide, axes, keepdims=True).astype(input.dtype)
        return _avg_pool(n, input, kernel, kernel, 0, False, True, None)
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


def check_adaptive(kind, n, input, output_size):
    name = f"adaptive_{kind}_pool{n}d"
    shape = list(input.shape)
    if n == 1:
        if input.ndim not in (2, 3):
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' "
                f"(while checking arguments for {name})"
            )
        if not isinstance(output_size, int) and len(output_size) != 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")
    elif not isinstance(output_size, int):
        if input.ndim <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        if len(output_size) != n:
            internal = f"{name}(): internal error: output_size.size() must be {n}"
            raise RuntimeError(internal if kind == "max" else f"{name}: output_size must be {n}")
    if input.ndim not in (n + 1, n + 2):
        colon = ":" if kind == "max" else ""
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {shape}")
    target = _adaptive_size(output_size, shape[-n:])
    if kind == "avg":
        _check_adaptive_avg(builtins.max(n, 2), n, input, target)
        return
    for i in range(input.ndim - n - 1, input.ndim):
        if shape[i] == 0 and i + n + 2 != input.ndim:
            raise errors.pool_empty(name, shape, i)
    if builtins.min(target) < 0:
        raise errors.negative_size(target, (*shape[:-n], *(1,) * (n == 1), *target))
    if input.dtype.category != FLOAT:
        raise errors.not_implemented("adaptive_max_pool3d_cpu" if n == 3 else "adaptive_max_pool2d", input.dtype)


def _check_adaptive_avg(planes, n, input, target):
    """PyTorch computes one dimension as two, and its errors show that."""
    name, extra = f"adaptive_avg_pool{planes}d", (1,) * (planes - n)
    shape, target = [*input.shape[:-n], *extra, *input.shape[-n:]], (*extra, *target)
    if builtins.min(target) < 0:
        shown = f"{{{target[0]}, {','.join(map(str, target[1:]))}}}"
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {shown}")
    one = all(t == 1 for t in target)
    if one:
        if input.dtype.category <= INT:
            raise errors.mean_dtype(input.dtype)
        return
    for i in range(len(shape) - planes, len(shape)):
        if shape[i] == 0:
            raise errors.pool_empty(name, shape, i)
    if input.dtype.category != FLOAT and (n == 3 or input.numel):
        raise errors.not_implemented(name if n < 3 else "adaptive_avg_pool3d_cpu", input.dtype)


@op(where="torch nn.functional", grad_name=_adaptive_name(1), out=False)
def adaptive_avg_pool1d(input: Array, output_size) -> Array:
    """The mean of each of `output_size` windows that cover the last dimension evenly."""
    return _adaptive_avg_pool(1, input, output_size)


def _adaptive_strides(outs, input, output_size):
    # one mean over everything has no order to keep
    return [None] if all(n == 1 for n in outs[0].shape[-2:]) else formats.follow(outs, input)


@op(where="nn.functional _C._nn", grad_name=_adaptive_name(2), strides=_adaptive_strides)
def adaptive_avg_pool2d(input: Array, output_size) -> Array:
    """The mean of each of `output_size` windows that cover the last two dimensions; None keeps a size."""
    return _adaptive_avg_pool(2, input, output_size)


@op(where="nn.functional _C._nn", grad_name=_adaptive_name(3))
def adaptive_avg_pool3d(input: Array, output_size) -> Array:
    """The mean of each of `output_size` windows that cover the last three dimensions; None keeps a size."""
    return _adaptive_avg_pool(3, input, output_size)


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
    index = jnp.broadcast_to(index, (*lead, *outs, *tall)).reshape(*lead, *outs, -1)
    flat = x.reshape(*lead, -1)
    values = jnp.take_along_axis(flat, index.reshape(*lead, -1), -1).reshape(index.shape)
    inside = jnp.broadcast_to(inside, (*lead, *outs, *tall)).reshape(index.shape)
    values = jnp.where(inside, values, jnp.asarray(_lowest(x.dtype), x.dtype))
    choice = jnp.argmax(values, -1, keepdims=True)
    pick = lambda a: jnp.take_along_axis(a, choice, -1)[..., 0]
    return pick(values), pick(index).astype(jnp.int64)


def _adaptive_max_pool(n, input, output_size, return_indices):
    spatial = input.shape[-n:]
    target = _adaptive_size(output_size, spatial)
    if 0 in target:
        empty = jnp.zeros((*input.shape[:-n], *target), input.dtype)
        return (empty, empty.astype(jnp.int64)) if return_indices else empty
    if all(s % o == 0 for s, o in zip(spatial, target)):
        kernel = tuple(s // o for s, o in zip(spatial, target))
        if math.prod(kernel) <= FEW_TAPS:
            return _max_pool(n, input, kernel, kernel, 0, 1, False, return_indices)
    starts, sizes = [], []
    for s, o in zip(spatial, target):
        start, stop = _adaptive_windows(s, o)
        starts.append(start)
        sizes.append(stop - start)
    got = _largest_at(input, starts, sizes, n)
    return got if return_indices else got[0]


@op(where="nn.functional", grad_name="SqueezeBackward1", out=False)
def adaptive_max_pool1d(input: Array, output_size, return_indices: bool = False) -> Array:
    """The largest of each of `output_size` windows that cover the last dimension evenly."""
    return _adaptive_max_pool(1, input, output_size, return_indices)


@op(where="nn.functional", grad_name="AdaptiveMaxPool2DBackward0", out=False, strides=formats.follow)
def adaptive_max_pool2d(input: Array, output_size, return_indices: bool = False) -> Array:
    """The largest of each of `output_size` windows that cover the last two dimensions."""
    return _adaptive_max_pool(2, input, output_size, return_indices)


@op(where="nn.functional", grad_name="AdaptiveMaxPool3DBackward0", out=False)
def adaptive_max_pool3d(input: Array, output_size, return_indices: bool = False) -> Array:
    """The largest of each of `output_size` windows that cover the last three dimensions."""
    return _adaptive_max_pool(3, input, output_size, return_indices)


for _n, _record in enumerate((adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d), 1):
    _record.check(lambda input, output_size, return_indices=False, n=_n: check_adaptive("max", n, input, output_size))


def _adaptive_with_indices(n: int, fn, spaces: str):
    def adaptive_max_pool_with_indices(input, output_size):
        """The largest of each of `output_size` windows, and its flat position."""
        return fn(input, output_size, True)

    composite(where=spaces, name=f"adaptive_max_pool{n}d_with_indices")(adaptive_max_pool_with_indices)


_space = "nn.functional.adaptive_max_pool{}d_with_indices"
_adaptive_with_indices(1, adaptive_max_pool1d, "torch.adaptive_max_pool1d " + _space.format(1))
_adaptive_with_indices(2, adaptive_max_pool2d, _space.format(2))
_adaptive_with_indices(3, adaptive_max_pool3d, _space.format(3))


def _fractional(n, input, samples, kernel_size, output_size, return_indices):
    """Windows that start at pseudo-random positions: `samples` (N, C, n) in [0, 1) says where."""
    kernel, target = tuple_of(kernel_size, n), tuple_of(output_size, n)
    x = input if input.ndim == n + 2 else input[None]
    starts, sizes = [], []
    for i in range(n):
        # torch draws the samples of the last dimension first
        sample = samples[..., n - 1 - i] if n == 2 else samples[..., i]
        sample = sample.astype(accumulator(x.dtype))
        size, k, o = x.shape[2 + i], kernel[i], target[i]
        alpha = (size - k) / (o - 1) if o > 1 else 0.0
        at = jnp.floor((jnp.arange(o) + sample[..., None]) * alpha) - jnp.floor(sample * alpha)[..., None]
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


@op(where="")
def at_indices(grad: Array, indices: Array, n: int) -> Array:
    """The elements at flat spatial positions: where an index occurs twice, both get it."""
    lead = math.prod(grad.shape[:-n])
    flat = jnp.take_along_axis(grad.reshape(lead, -1), indices.reshape(lead, math.prod(indices.shape[-n:])), 1)
    return flat.reshape(indices.shape)


@op(where="nn.functional")
def max_unpool1d(input: Array, indices: Array, kernel_size, stride=None, padding=0, output_size=None) -> Array:
    """Put each element at its index of the larger result; the rest is zero."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@op(where="nn.functional", strides=formats.follow)
def max_unpool2d(input: Array, indices: Array, kernel_size, stride=None, padding=0, output_size=None) -> Array:
    """Put each element at its index of the larger result; the rest is zero."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@op(where="nn.functional")
def max_unpool3d(input: Array, indices: Array, kernel_size, stride=None, padding=0, output_size=None) -> Array:
    """Put each element at its index of the larger result; the rest is zero."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _unpooled(n, spatial, kernel_size, stride, padding, output_size):
    kernel = tuple_of(kernel_size, n)
    stride = kernel if stride is None or stride == () else tuple_of(stride, n)
    padding = tuple_of(padding, n)
    default = tuple((s - 1) * st + k - 2 * p for s, st, k, p in zip(spatial, stride, kernel, padding))
    return default if output_size is None else tuple(output_size)[-n:]


def _check_unpool(n, input, indices, kernel_size, stride, padding, output_size):
    planes = (1,) if n == 1 else ()
    shape, other = ((*tuple(x.shape), *planes) for x in (input, indices))
    _check_unpooled_size(n, input, kernel_size, stride, padding, output_size)
    if indices.dtype is not dtypes.int64:
        got = f" but got: {scalar_name(indices.dtype)}" if n < 3 else ""
        raise RuntimeError("elements in indices should be type int64" + got)
    if shape != other:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(shape)}) but got indices tensor "
            f"with shape: {list(other)}"
        )
    dims = builtins.max(n, 2)
    for i in range(len(shape) - dims - 1 if len(shape) > dims + 1 else 1, len(shape)):
        if shape[i] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(shape)} with dimension {i} being empty."
            )


def _check_unpooled_size(n, input, kernel_size, stride, padding, output_size):
    """A size that is asked for may differ from the usual one by less than a stride."""
    if output_size is None:
        return
    if len(output_size) not in (n, n + 2):
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    usual = _unpooled(n, input.shape[-n:], kernel_size, stride, padding, None)
    wanted = tuple(output_size)[-n:]
    steps = tuple_of(kernel_size if stride in (None, ()) else stride, n)
    for dim, (size, middle, step) in enumerate(zip(wanted, usual, steps)):
        if not middle - step < size < middle + step:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {dim} must be between {middle - step} and {middle + step})'
            )


def _max_unpool(n, input, indices, kernel_size, stride, padding, output_size):
    spatial = _unpooled(n, input.shape[-n:], kernel_size, stride, padding, output_size)
    lead = math.prod(input.shape[:-n])
    flat = jnp.zeros((lead, math.prod(spatial)), input.dtype)
    rows = jnp.arange(lead)[:, None]
    size = math.prod(input.shape[-n:])
    flat = flat.at[rows, indices.reshape(lead, size)].set(input.reshape(lead, size))
    return flat.reshape(*input.shape[:-n], *spatial)


for _n, _record in enumerate((max_unpool1d, max_unpool2d, max_unpool3d), 1):
    _record.vjp(input=lambda g, indices, n=_n: at_indices(g, indices, n))

    @_record.check
    def _(input, indices, kernel_size, stride=None, padding=0, output_size=None, n=_n):
        _check_unpool(n, input, indices, kernel_size, stride, padding, output_size)
        need_floats(input, f"max_unpool{builtins.max(n, 2)}d")

    @_record.check_values
    def _(input, indices, kernel_size, stride=None, padding=0, output_size=None, n=_n):
        if not isinstance(indices, np.ndarray) or not indices.size:
            return
        spatial = _unpooled(n, input.shape[-n:], kernel_size, stride, padding, output_size)
        bad = indices[(indices < 0) | (indices >= math.prod(spatial))]
        if bad.size:
            size = "x".join(map(str, spatial))
            raise RuntimeError(f"Found an invalid max index: {int(bad.flat[0])} (output volumes are of size {size})")


for _n, _record in enumerate((fractional_max_pool2d_at, fractional_max_pool3d_at), 2):

    @_record.check
    def _(input, *args, n=_n):
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


def _lp_pool(n, pool, input, norm_type, kernel_size, stride, ceil_mode):
    kernel = tuple_of(kernel_size, n)
    stride = None if stride in (None, ()) else stride
    mean = pool(pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
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
