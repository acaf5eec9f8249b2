"""Convolutions and their gradients: three linear maps, each the derivative of the other two.

On the CPU every map is computed with the channels last, where XLA is fastest, and by the form that XLA's CPU
compiler runs best (benchmarks/kernels_cnn.py measures them); elsewhere the compiler chooses.
"""

import itertools
import math

import jax
import jax.numpy as jnp
from jax import lax

from jtorch import config
from jtorch.core import dtype as dtypes
from jtorch.core import shapes
from jtorch.core.channel_order import CONVOLVES, FOLLOWS, as_stored, first, last
from jtorch.core.dtype import INT

from . import channels as channel_form
from . import depthwise, few, filters, formats, layers, narrow
from .backend import barrier, conjugate, on_cpu, on_tpu
from .conv_checks import check_conv
from .conv_shapes import Geometry, geometry, transposed_spatial
from .covered import covered, fold_input, fold_size, fold_weight, folded, unfold_input
from .registry import Array, composite, op

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolution",
]

# Measured on the CPU, float32.
FEW_IMAGES = 2  # up to so many a matmul with the windows, written out, beats the convolution for the weight's gradient
FEW_LARGE_IMAGES = 3  # the same where the windows are written out strip by strip
WHOLE_BYTES = 16 << 20  # largest copy of the windows that is made
LARGEST = 1 << 28  # bytes of windows that are written out at once
STRIP = 1 << 11  # positions of a strip
TINY_MAP = 16  # up to so many output positions (4x4) a matmul beats the convolution
UNROLLED = 6  # up to so many groups have kernels of their own


def _lax_conv(x, w, geo: Geometry):
    if jnp.issubdtype(x.dtype, jnp.integer):  # a GPU convolves floats alone: exact to 2**53
        return _lax_conv(x.astype(jnp.float64), w.astype(jnp.float64), geo).astype(x.dtype)
    return lax.conv_general_dilated(
        x,
        w,
        geo.stride,
        list(zip(geo.lo, geo.hi)),
        rhs_dilation=geo.dilation,
        feature_group_count=geo.groups,
        precision=_precision(),
    )


def _precision():
    """None on the CPU. On accelerators the TF32 that PyTorch allows in convolutions, or float32."""
    return None if on_cpu() else lax.Precision.HIGH if config.conv_tf32 else lax.Precision.HIGHEST


def wide(*arrays):
    """The arrays in float32 if they are of half precision: the CPU has no faster arithmetic for them."""
    if arrays[0].dtype.itemsize == 2 and jnp.issubdtype(arrays[0].dtype, jnp.floating):
        return tuple(None if a is None else a.astype(jnp.float32) for a in arrays)
    return arrays


def _forward(x, w, bias, geo: Geometry):
    """(N, C, *S) and (O, C/groups, *K) to (N, O, *T)."""
    n = w.ndim - 2
    if not x.size or not w.size:
        out = jnp.zeros((x.shape[0], w.shape[0], *geo.out(x.shape[2:], w.shape[2:])), x.dtype)
        return out if bias is None else out + bias.reshape(-1, *(1,) * n)
    if not on_cpu():
        out = _lax_conv(x, w, geo)
        return out if bias is None else out + bias.reshape(-1, *(1,) * n)
    dtype = x.dtype
    x, w, bias = wide(x, w, bias)
    if as_stored() and filters.covers(x, w, geo):
        out = filters.forward(x, w, geo)
        return (out if bias is None else out + bias.reshape(-1, *(1,) * n)).astype(dtype)
    out = _cpu_forward(last(x), w, geo)
    return first((out if bias is None else out + bias).astype(dtype))


def _input_grad(g, w, size, geo: Geometry):
    """(N, O, *T) and (O, C/groups, *K) to size (N, C, *S): the transpose of `_forward` in the input."""
    if not g.size or not w.size or not math.prod(size):
        return jnp.zeros(size, g.dtype)
    dtype = g.dtype
    if jnp.issubdtype(dtype, jnp.integer) and on_tpu():  # it has no products of 64-bit integers
        return _input_grad(g.astype(jnp.float64), w.astype(jnp.float64), size, geo).astype(dtype)
    if not (on_cpu() or jnp.issubdtype(dtype, jnp.integer)):
        return jax.linear_transpose(lambda x: _lax_conv(x, w, geo), jax.ShapeDtypeStruct(size, dtype))(g)[0]
    g, w = wide(g, w)
    return first(_cpu_input_grad(last(g), w, size, geo).astype(dtype))


def _weight_grad(x, g, size, geo: Geometry):
    """(N, C, *S) and (N, O, *T) to size (O, C/groups, *K): the transpose of `_forward` in the weight."""
    if not g.size or not x.size or not math.prod(size):
        return jnp.zeros(size, g.dtype)
    if not on_cpu():
        return jax.linear_transpose(lambda w: _lax_conv(x, w, geo), jax.ShapeDtypeStruct(size, g.dtype))(g)[0]
    dtype = g.dtype
    x, g = wide(x, g)
    return _cpu_weight_grad(last(x), last(g), size, geo).astype(dtype)


def _dims(n: int, kernel: str) -> tuple[str, str, str]:
    space = "XYZ"[:n]
    return f"N{space}C", kernel.replace("*", space), f"N{space}C"


def windows(x, kernel, out, geo: Geometry, at: int = 1, fill=0):
    """The input under each tap of the kernel, one array a tap; the spatial dimensions begin at `at`."""
    n = len(kernel)
    hi = [m - lo - size for m, lo, size in zip(_need(kernel, out, geo), geo.lo, x.shape[at : at + n])]
    before, after = [(0, 0, 0)] * at, [(0, 0, 0)] * (x.ndim - n - at)
    if any(geo.lo) or any(hi):
        config = [(a, b, 0) for a, b in zip(geo.lo, hi)]
        x = lax.pad(x, jnp.asarray(fill, x.dtype), before + config + after)
    for tap in itertools.product(*map(range, kernel)):
        start, stop, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
        for i, (t, d, o, s) in enumerate(zip(tap, geo.dilation, out, geo.stride), at):
            start[i], stop[i], step[i] = t * d, t * d + (o - 1) * s + 1, s
        yield lax.slice(x, start, stop, step)


def _need(kernel, out, geo: Geometry) -> list[int]:
    """How many positions of the padded input the windows reach over, in each dimension."""
    return [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, geo.stride, kernel, geo.dilation)]


def _corner(tap, kernel, geo: Geometry) -> tuple:
    """Where the first window has its tap number `tap`, an array: (0, *space, 0)."""
    at = []
    for k, d in zip(kernel[::-1], geo.dilation[::-1]):
        at.append(tap % k * d)
        tap = tap // k
    return (0, *at[::-1], 0)


def _columns(x, kernel, out, geo: Geometry):
    """(rows, taps * C): each row is the input under one window, written out once.

    A loop over the taps: one after the other they are as many kernels, and compiling those took a third of a network's first step.
    """
    n, taps, channels = len(kernel), math.prod(kernel), x.shape[-1]
    rows = x.shape[0] * math.prod(out)
    if taps == 1:
        return next(windows(x, kernel, out, geo)).reshape(rows, -1)
    hi = [m - lo - size for m, lo, size in zip(_need(kernel, out, geo), geo.lo, x.shape[1:-1])]
    if any(geo.lo) or any(hi):
        config = [(0, 0, 0), *((a, b, 0) for a, b in zip(geo.lo, hi)), (0, 0, 0)]
        x = barrier(lax.pad(x, jnp.zeros((), x.dtype), config))
    spans = [(o - 1) * s + 1 for o, s in zip(out, geo.stride)]

    def put(tap, cols):
        span = lax.dynamic_slice(x, _corner(tap, kernel, geo), (x.shape[0], *spans, channels))
        part = lax.slice(span, (0,) * span.ndim, span.shape, (1, *geo.stride, 1))
        return lax.dynamic_update_slice(cols, part, (*(0,) * (n + 1), tap * channels))

    start = jnp.zeros((x.shape[0], *out, taps * channels), x.dtype)
    # without the barrier XLA gathers the windows anew inside the matmul's operand
    return barrier(lax.fori_loop(0, taps, put, start).reshape(rows, -1))


def _add_columns(cols, kernel, spatial, out, geo: Geometry):
    """The transpose of `_columns`: (N, *out, taps, C) to (N, *spatial, C)."""
    cols = barrier(cols)
    batch, channels, need = cols.shape[0], cols.shape[-1], _need(kernel, out, geo)
    apart = [(0, 0, 0), *((0, 0, s - 1) for s in geo.stride), (0, 0, 0)]
    zero = jnp.zeros((), cols.dtype)

    def add(tap, total):
        part = lax.pad(lax.dynamic_index_in_dim(cols, tap, cols.ndim - 2, keepdims=False), zero, apart)
        at = _corner(tap, kernel, geo)
        return lax.dynamic_update_slice(total, lax.dynamic_slice(total, at, part.shape) + part, at)

    total = lax.fori_loop(0, math.prod(kernel), add, jnp.zeros((batch, *need, channels), cols.dtype))
    crop = [(-lo, lo + size - m, 0) for lo, size, m in zip(geo.lo, spatial, need)]
    return lax.pad(total, zero, [(0, 0, 0), *crop, (0, 0, 0)])


def _windows_nbytes(images, out, kernel, channels, dtype) -> int:
    """Bytes of `_columns`, which writes nothing out where the kernel has one tap."""
    taps = math.prod(kernel)
    return 0 if taps == 1 else images * math.prod(out) * taps * channels * dtype.itemsize


def _by_images(fn, nbytes, *arrays):
    """`fn(*arrays)`, a batch of images at a time where the `nbytes` that it writes out are many."""
    images = len(arrays[0])
    parts = next(n for n in range(1, images + 1) if images % n == 0 and (nbytes <= n * LARGEST or n == images))
    if parts == 1:
        return fn(*arrays)
    made = lax.map(lambda part: fn(*part), tuple(a.reshape(parts, -1, *a.shape[1:]) for a in arrays))
    return made.reshape(-1, *made.shape[2:])


def _by_group(fn, geo: Geometry, *arrays, join: int = -1):
    """Run `fn(a group's part of each array, geometry of one group)` for each group, and join the results along `join`.

    arrays: pairs of an array and the dimension of its groups. Many groups go through a loop: one after the other they are as many
    kernels, whose compilation takes longer than an epoch.
    """
    one = geo._replace(groups=1)
    if geo.groups <= UNROLLED:
        parts = [fn(*(_part(x, i, geo.groups, axis) for x, axis in arrays), one) for i in range(geo.groups)]
        return jnp.concatenate(parts, join)
    stacks = tuple(_apart(x, geo.groups, axis) for x, axis in arrays)
    out = lax.map(lambda parts: fn(*parts, one), stacks)
    at = join % (out.ndim - 1)
    out = jnp.moveaxis(out, 0, at)
    return out.reshape(*out.shape[:at], out.shape[at] * out.shape[at + 1], *out.shape[at + 2 :])


def _part(x, i, groups, axis):
    size = x.shape[axis] // groups
    return lax.slice_in_dim(x, i * size, (i + 1) * size, axis=axis)


def _apart(x, groups, axis):
    """(groups, ...): the parts of `_part`, stacked."""
    axis %= x.ndim
    return jnp.moveaxis(x.reshape(*x.shape[:axis], groups, -1, *x.shape[axis + 1 :]), axis, 0)


def _cpu_forward(x, w, geo: Geometry):
    kernel, n = w.shape[2:], w.ndim - 2
    channels = x.shape[-1]
    out = geo.out(x.shape[1:-1], kernel)
    dims = covered(x.shape[1:-1], kernel, out, geo)
    if 0 in dims:  # the innermost dimension alone lies beside the channels already, and gains nothing
        return _cpu_forward(fold_input(x, dims), fold_weight(w, dims), folded(geo, dims))
    if depthwise.covers(channels, w.shape, geo):
        return depthwise.forward(x, w, geo)
    if narrow.covers(channels, w.shape, geo):
        return narrow.forward(x, w, geo)
    if geo.groups > 1:
        return _by_group(_cpu_forward, geo, (x, -1), (w, 0))
    taps = math.prod(kernel)
    if n == 3 and taps > 1:
        y = _cpu_forward(layers.stacked(x, kernel, out, geo), layers.weight(w), layers.plane(geo))
        return y.reshape(x.shape[0], out[0], *y.shape[1:])
    if taps == 1 or x.dtype == jnp.float64 or (math.prod(out) <= TINY_MAP and channels >= 16):
        flat = last(w).reshape(w.shape[0], -1)
        nbytes = _windows_nbytes(len(x), out, kernel, channels, x.dtype)
        return _by_images(lambda x: (_columns(x, kernel, out, geo) @ flat.T).reshape(len(x), *out, -1), nbytes, x)
    if few.covers(channels, w.shape[0], kernel, x.size // channels, geo, x.dtype):
        return few.forward(x, w, geo)
    spec = jnp.transpose(w, (*range(2, n + 2), 1, 0))
    return _in_order(x, spec, geo.stride, zip(geo.lo, geo.hi), (1,) * n, geo.dilation)


def _cpu_input_grad(g, w, size, geo: Geometry):
    kernel, n = w.shape[2:], w.ndim - 2
    channels, spatial, out = size[1], size[2:], g.shape[1:-1]
    if dims := covered(spatial, kernel, out, geo):
        x = _cpu_input_grad(g, fold_weight(w, dims), fold_size(size, dims), folded(geo, dims))
        return unfold_input(x, size, dims)
    if depthwise.covers(channels, w.shape, geo):
        return depthwise.input_grad(g, w, size, geo)
    if narrow.covers(channels, w.shape, geo):
        return narrow.input_grad(g, w, size, geo)
    if geo.groups > 1:
        sub = (size[0], channels // geo.groups, *spatial)
        return _by_group(lambda g, w, one: _cpu_input_grad(g, w, sub, one), geo, (g, -1), (w, 0))
    taps = math.prod(kernel)
    if n == 3 and taps > 1:
        sub = (size[0] * out[0], kernel[0] * channels, *spatial[1:])
        x = _cpu_input_grad(g.reshape(-1, *g.shape[2:]), layers.weight(w), sub, layers.plane(geo))
        return layers.unstacked(x, size, kernel, out, geo)
    whole = jnp.issubdtype(g.dtype, jnp.integer)  # jax transposes no map of integers
    if whole or taps == 1 or g.dtype == jnp.float64 or (math.prod(out) <= TINY_MAP and channels >= 16):
        flat = last(w).reshape(w.shape[0], -1)

        def of(g):
            cols = (g.reshape(-1, w.shape[0]) @ flat).reshape(*g.shape[:-1], taps, channels)
            if taps > 1:
                return _add_columns(cols, kernel, spatial, out, geo)
            return spread([cols[..., 0, :]], kernel, spatial, out, geo)

        return _by_images(of, _windows_nbytes(len(g), out, kernel, channels, g.dtype), g)
    if few.covers(w.shape[0], channels, kernel, g.size // w.shape[0], geo, g.dtype):
        return few.input_grad(g, w, size, geo)
    need, reach = _need(kernel, out, geo), [d * (k - 1) for d, k in zip(geo.dilation, kernel)]
    lo = [r - a for r, a in zip(reach, geo.lo)]
    hi = [r + a + size - m for r, a, size, m in zip(reach, geo.lo, spatial, need)]
    spec = barrier(jnp.transpose(jnp.flip(w, tuple(range(2, n + 2))), (*range(2, n + 2), 0, 1)))
    return _in_order(g, spec, (1,) * n, zip(lo, hi), geo.stride, geo.dilation)


def _in_order(x, w, stride, padding, lhs_dilation, rhs_dilation):
    """A convolution with the dimensions where XLA's CPU runtime has them.

    Inside a loop XLA does not put them in order, and a convolution with others takes 20 times as long.
    """
    return lax.conv_general_dilated(
        x,
        w,
        stride,
        list(padding),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=_dims(w.ndim - 2, "*IO"),
        precision=_precision(),
    )


def spread(parts, kernel, spatial, out, geo: Geometry, at: int = 1):
    """The transpose of `windows`: add each tap's part back to the positions that it was read from."""
    total = None
    for tap, part in zip(itertools.product(*map(range, kernel)), parts):
        config = [(0, 0, 0)] * part.ndim
        for i, (t, d, o, s, lo, size) in enumerate(zip(tap, geo.dilation, out, geo.stride, geo.lo, spatial), at):
            config[i] = (t * d - lo, size + lo - t * d - (o - 1) * s - 1, s - 1)
        part = lax.pad(part, jnp.zeros((), part.dtype), config)
        total = part if total is None else total + part
    return total


def _cpu_weight_grad(x, g, size, geo: Geometry):
    kernel, n = size[2:], len(size) - 2
    channels, out, features = x.shape[-1], g.shape[1:-1], size[0]
    if depthwise.covers(channels, size, geo):
        return depthwise.weight_grad(x, g, size, geo)
    if narrow.covers(channels, size, geo, narrow.WIDEST_OF_WEIGHT):
        return narrow.weight_grad(x, g, size, geo)
    if geo.groups > 1:
        sub = (features // geo.groups, *size[1:])
        return _by_group(lambda x, g, one: _cpu_weight_grad(x, g, sub, one), geo, (x, -1), (g, -1), join=0)
    taps = math.prod(kernel)
    if n == 3 and taps > 1:
        sub = (features, kernel[0] * channels, *kernel[1:])
        w = _cpu_weight_grad(layers.stacked(x, kernel, out, geo), g.reshape(-1, *g.shape[2:]), sub, layers.plane(geo))
        return jnp.swapaxes(w.reshape(features, kernel[0], channels, *kernel[1:]), 1, 2)
    if few.covers(channels, features, kernel, x.size // channels, geo, x.dtype):
        return few.weight_grad(x, g, size, geo)
    windows_bytes = _windows_nbytes(len(x), out, kernel, channels, g.dtype)
    if windows_bytes > WHOLE_BYTES and x.shape[0] <= FEW_LARGE_IMAGES:
        return _weight_grad_by_strips(x, g, size, geo)
    if taps == 1 or x.dtype == jnp.float64 or x.shape[0] <= FEW_IMAGES:
        # the narrow side on the left, and the result with its features first: its transpose back is cheap
        of = lambda x, g: (g.reshape(-1, features).T @ _columns(x, kernel, out, geo))[None]
        flat = _by_images(of, windows_bytes, x, g).sum(0)
        return first(flat.reshape(features, *kernel, channels))
    # Channels are its images, images its channels, and the cotangent is its kernel.
    hi = [m - lo - size for m, lo, size in zip(_need(kernel, out, geo), geo.lo, x.shape[1:-1])]
    if min(hi) < 0:
        x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((0, min(b, 0), 0) for b in hi), (0, 0, 0)])
    x, g = jnp.swapaxes(barrier(x), 0, -1), jnp.moveaxis(barrier(g), 0, -2)
    padding = zip(geo.lo, (max(b, 0) for b in hi))
    w = _in_order(x, g, geo.dilation, padding, (1,) * n, geo.stride)
    return jnp.moveaxis(w, (0, -1), (1, 0))


def _weight_grad_by_strips(x, g, size, geo: Geometry):
    """`_cpu_weight_grad`, with the windows of so many rows written out at once that they stay in the caches."""
    features, channels, *kernel = size
    out = g.shape[1:-1]
    steps = -(-out[0] // max(1, STRIP // math.prod(out[1:])))
    rows = -(-out[0] // steps)
    need = _need(kernel, (steps * rows, *out[1:]), geo)
    config = [(0, 0, 0), *((lo, m - lo - s, 0) for lo, m, s in zip(geo.lo, need, x.shape[1:-1])), (0, 0, 0)]
    x = barrier(lax.pad(x, jnp.zeros((), x.dtype), config))
    g = lax.pad(g, jnp.zeros((), g.dtype), [(0, 0, 0), (0, steps * rows - out[0], 0), *[(0, 0, 0)] * len(out)])
    none = (0,) * len(kernel)
    one, shape = geo._replace(lo=none, hi=none), (rows, *out[1:])
    tall = _need(kernel, shape, geo)[0]

    def add(step, total):
        image, at = step // steps, step % steps * rows
        strip = lax.dynamic_slice(x, (image, at * geo.stride[0], *none), (1, tall, *x.shape[2:]))
        part = lax.dynamic_slice(g, (image, at, *none), (1, *shape, features)).reshape(-1, features)
        return total + barrier(part.T) @ _columns(strip, kernel, shape, one)

    start = jnp.zeros((features, math.prod(kernel) * channels), g.dtype)
    flat = lax.fori_loop(0, x.shape[0] * steps, add, start)
    return first(flat.reshape(features, *kernel, channels))


def _batched(x, n: int):
    return x if x.ndim == n + 2 else x[None]


def _fit(geo: Geometry, kernel, spatial, out) -> Geometry:
    """The geometry whose padding after makes `spatial` give exactly `out`."""
    return geo._replace(hi=tuple(m - lo - size for m, lo, size in zip(_need(kernel, out, geo), geo.lo, spatial)))


@op(where="")
def conv_plain(
    input: Array,
    weight: Array,
    stride=1,
    padding=0,
    dilation=1,
    groups: int = 1,
    out_size: tuple | None = None,
) -> Array:
    """A convolution of any rank without bias, with at most `out_size` positions where that is given."""
    n = weight.ndim - 2
    geo = geometry(weight.shape[2:], stride, padding, dilation, groups)
    if out_size is not None:
        geo = _fit(geo, weight.shape[2:], input.shape[-n:], out_size)
    out = _forward(_batched(input, n), weight, None, geo)
    return out if input.ndim == n + 2 else out[0]


@op(where="")
def conv_input_grad(grad: Array, weight: Array, size: tuple, stride=1, padding=0, dilation=1, groups: int = 1) -> Array:
    """The gradient of a convolution in its input, of the given full size."""
    n = weight.ndim - 2
    geo = geometry(weight.shape[2:], stride, padding, dilation, groups)
    geo = _fit(geo, weight.shape[2:], size[-n:], grad.shape[-n:])
    if grad.ndim == n + 2:
        return _input_grad(grad, weight, tuple(size), geo)
    return _input_grad(grad[None], weight, (1, *size), geo)[0]


@op(where="")
def conv_weight_grad(input: Array, grad: Array, size: tuple, stride=1, padding=0, dilation=1, groups: int = 1) -> Array:
    """The gradient of a convolution in its weight, of the given full size."""
    n = len(size) - 2
    geo = geometry(size[2:], stride, padding, dilation, groups)
    geo = _fit(geo, size[2:], input.shape[-n:], grad.shape[-n:])
    return _weight_grad(_batched(input, n), _batched(grad, n), tuple(size), geo)


@op(where="")
def conv_bias_grad(grad: Array, n: int) -> Array:
    """The sum over everything but the channels, which come before the last `n` dimensions."""
    grad = _batched(grad, n)
    return channel_form.sums(lambda g: (g,), channel_form.enter(grad))[0]


conv_plain.channels = conv_input_grad.channels = conv_weight_grad.channels = CONVOLVES
conv_bias_grad.channels = FOLLOWS


conv_plain.vjp(
    input=lambda g, input, weight, stride, padding, dilation, groups: conv_input_grad(
        g, conjugate(weight), tuple(input.shape), stride, padding, dilation, groups
    ),
    weight=lambda g, input, weight, stride, padding, dilation, groups: conv_weight_grad(
        conjugate(input), g, tuple(weight.shape), stride, padding, dilation, groups
    ),
)
conv_input_grad.vjp(
    grad=lambda g, grad, weight, stride, padding, dilation, groups: conv_plain(
        g, conjugate(weight), stride, padding, dilation, groups, _spatial(grad, weight)
    ),
    weight=lambda g, grad, weight, stride, padding, dilation, groups: conv_weight_grad(
        g, conjugate(grad), tuple(weight.shape), stride, padding, dilation, groups
    ),
)
conv_weight_grad.vjp(
    input=lambda g, input, grad, stride, padding, dilation, groups: conv_input_grad(
        grad, conjugate(g), tuple(input.shape), stride, padding, dilation, groups
    ),
    grad=lambda g, input, grad, stride, padding, dilation, groups: conv_plain(
        conjugate(input), g, stride, padding, dilation, groups, _spatial(grad, g)
    ),
)


def _spatial(x, weight) -> tuple[int, ...]:
    return tuple(x.shape)[-(weight.ndim - 2) :]


def _conv(input, weight, bias, stride, padding, dilation, groups):
    n = weight.ndim - 2
    geo = geometry(weight.shape[2:], stride, padding, dilation, groups)
    out = _forward(_batched(input, n), weight, bias, geo)
    return out if input.ndim == n + 2 else out[0]


def _small(input, weight, groups) -> bool:
    """Where PyTorch leaves a convolution over three dimensions to its older kernel."""
    size = (1,) * (5 - input.ndim) + tuple(input.shape)
    return groups == 1 and size[0] == 1 and math.prod(size[:4]) <= 20480 and min(weight.shape[-2:]) <= 3


def _strides(n: int, *, transposed=False):
    def strides(outs, input, weight, bias=None, *args):
        # PyTorch's kernel for three dimensions of space in float64 and integers is an older one
        plain = n == 3 and (input.dtype is dtypes.float64 or input.dtype.category == INT)
        plain = plain or n == 3 and _small(input, weight, args[-2 if transposed else -1])
        if plain or input.ndim == n + 2:
            return [None] if plain else formats.follow_any(outs, input, weight)
        last = formats.suggests_channels_last(weight)
        return [shapes.channels_last_strides((1, *outs[0].shape))[1:] if last else None]

    return strides if n > 1 else None


def _name(n):
    """The node's name: without a batch PyTorch's result has had one that is squeezed out."""
    return lambda args: "SqueezeBackward1" if args["input"].ndim == n + 1 else "ConvolutionBackward0"


def _conv_op(name: str):
    def decorate(fn):
        n = int(name[-2])
        record = op(where="torch nn.functional", grad_name=_name(n), out=False, strides=_strides(n))(fn)
        record.vjp(
            input=conv_plain.rules["input"],
            weight=conv_plain.rules["weight"],
            bias=lambda g: conv_bias_grad(g, n),
        )
        record.check(
            lambda input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1: check_conv(
                name, input, weight, bias, stride, padding, 0, dilation, groups, False
            )
        )
        record.channels, record.light = CONVOLVES, True
        record.guards(input=True, weight=True)
        return record

    return decorate


@_conv_op("conv1d")
def conv1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple = 1,
    padding: int | tuple | str = 0,
    dilation: int | tuple = 1,
    groups: int = 1,
) -> Array:
    """Cross-correlation of (N, C, L) or (C, L) with a weight (O, C/groups, K).

    `padding` is a number, or "valid" (none), or "same" (the result has the input's length).
    """
    return _conv(input, weight, bias, stride, padding, dilation, groups)


@_conv_op("conv2d")
def conv2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple = 1,
    padding: int | tuple | str = 0,
    dilation: int | tuple = 1,
    groups: int = 1,
) -> Array:
    """Cross-correlation of (N, C, H, W) or (C, H, W) with a weight (O, C/groups, KH, KW).

    `padding` is one or two numbers, or "valid" (none), or "same" (the result has the size of the input).
    """
    return _conv(input, weight, bias, stride, padding, dilation, groups)


@_conv_op("conv3d")
def conv3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple = 1,
    padding: int | tuple | str = 0,
    dilation: int | tuple = 1,
    groups: int = 1,
) -> Array:
    """Cross-correlation of (N, C, D, H, W) or (C, D, H, W) with a weight (O, C/groups, KD, KH, KW).

    `padding` is one or three numbers, or "valid" (none), or "same" (the result has the input's size).
    """
    return _conv(input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation):
    n = weight.ndim - 2
    spatial = transposed_spatial(input.shape[-n:], weight.shape[2:], stride, padding, output_padding, dilation)
    size = (*input.shape[: input.ndim - n - 1], weight.shape[1] * groups, *spatial)
    out = conv_input_grad.fn(input, weight, size, stride, padding, dilation, groups)
    return out if bias is None else out + bias.reshape(-1, *(1,) * n)


def _conv_transpose_op(name: str):
    def decorate(fn):
        n = int(name[-2])
        record = op(
            where="torch nn.functional",
            grad_name=_name(n),
            out=False,
            strides=_strides(n, transposed=True),
        )(fn)
        record.vjp(
            input=lambda g, input, weight, stride, padding, dilation, groups: conv_plain(
                g, conjugate(weight), stride, padding, dilation, groups, _spatial(input, weight)
            ),
            weight=lambda g, input, weight, stride, padding, dilation, groups: conv_weight_grad(
                g, conjugate(input), tuple(weight.shape), stride, padding, dilation, groups
            ),
            bias=lambda g: conv_bias_grad(g, n),
        )

        record.channels = CONVOLVES
        record.guards(input=True, weight=True)

        @record.check
        def check(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
            check_conv(name, input, weight, bias, stride, padding, output_padding, dilation, groups, True)

        return record

    return decorate


@_conv_transpose_op("conv_transpose1d")
def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple = 1,
    padding: int | tuple = 0,
    output_padding: int | tuple = 0,
    groups: int = 1,
    dilation: int | tuple = 1,
) -> Array:
    """The transpose of `conv1d` in its input: (N, C, L) with a weight (C, O/groups, K)."""
    return _conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


@_conv_transpose_op("conv_transpose2d")
def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple = 1,
    padding: int | tuple = 0,
    output_padding: int | tuple = 0,
    groups: int = 1,
    dilation: int | tuple = 1,
) -> Array:
    """The transpose of `conv2d` in its input: (N, C, H, W) with a weight (C, O/groups, KH, KW)."""
    return _conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


@_conv_transpose_op("conv_transpose3d")
def conv_transpose3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | tuple = 1,
    padding: int | tuple = 0,
    output_padding: int | tuple = 0,
    groups: int = 1,
    dilation: int | tuple = 1,
) -> Array:
    """The transpose of `conv3d` in its input: (N, C, D, H, W) with a weight (C, O/groups, KD, KH, KW)."""
    return _conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


@composite(where="torch")
def convolution(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride,
    padding,
    dilation,
    transposed: bool,
    output_padding,
    groups: int,
):
    """Convolution or transposed convolution of the rank that the weight says."""
    n = weight.ndim - 2
    if transposed:
        fn = (conv_transpose1d, conv_transpose2d, conv_transpose3d)[n - 1]
        return fn(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return (conv1d, conv2d, conv3d)[n - 1](input, weight, bias, stride, padding, dilation, groups)
