"""Ops on images and sequences: resampling, sampling on a grid, windows as columns, shuffles of pixels."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core.channel_order import FOLLOWS
from jtorch.core.dtype import INT
from jtorch.errors import warn

from . import channels, formats
from .adaptive_pool import adaptive_avg_pool as mean_windows
from .backend import accumulator, differentiated_as, need_floats
from .conv import spread, windows
from .conv_shapes import Geometry, tuple_of
from .pool_shapes import check_adaptive
from .registry import Array, composite, op
from .taps import cubic, cubic_taps, linear_taps, nearest_taps, resample, smooth_taps

# Shuffles.


@op(where="torch nn.functional", strides=formats.follow)
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Move channels into space: (*, C r^2, H, W) to (*, C, H r, W r)."""
    *lead, c, h, w = input.shape
    r = upscale_factor
    x = input.reshape(math.prod(lead), c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
    return x.reshape(*lead, c // (r * r), h * r, w * r)


@pixel_shuffle.check
def _(input, upscale_factor):
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}")
    square = upscale_factor * upscale_factor
    if input.shape[-3] % square:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={input.shape[-3]} is not divisible by {square}"
        )


@op(where="torch nn.functional", strides=formats.follow)
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """Move space into channels: (*, C, H r, W r) to (*, C r^2, H, W). What is empty keeps its shape, as in PyTorch."""
    if 0 in input.shape:
        return input
    *lead, c, h, w = input.shape
    r = downscale_factor
    x = input.reshape(math.prod(lead), c, h // r, r, w // r, r).transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(*lead, c * r * r, h // r, w // r)


@pixel_unshuffle.check
def _(input, downscale_factor):
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if downscale_factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {downscale_factor}")
    for dim, label in ((-2, "height"), (-1, "width")):
        if input.shape[dim] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {label} to be divisible by downscale_factor, but "
                f"input.size({dim})={input.shape[dim]} is not divisible by {downscale_factor}"
            )


@op(
    where="torch nn.functional",
    aliases=("native_channel_shuffle",),
    grad_name="ChannelShuffleBackward0",
    strides=formats.follow,
)
def channel_shuffle(input: Array, groups: int) -> Array:
    """Interleave the channels (dimension 1) of `groups` groups."""
    n, c, *rest = input.shape
    return input.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(input.shape)


@channel_shuffle.check
def _(input, groups):
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if input.shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {input.shape[1]} channels and {groups} groups."
        )


# Windows as columns.

MANY_TAPS = (
    48  # with more each dimension is taken by itself: all taps one by one take 30 times as long, and seconds to compile
)


def _blocks(spatial, kernel_size, dilation, padding, stride):
    """(kernel, geometry, how many windows in each dimension)."""
    n = len(spatial)
    kernel, dilation = tuple_of(kernel_size, n), tuple_of(dilation, n)
    padding, stride = tuple_of(padding, n), tuple_of(stride, n)
    geo = Geometry(stride, padding, padding, dilation, 1)
    return kernel, geo, geo.out(spatial, kernel)


def _side_by_side(kernel, geo) -> bool:
    """Whether no position is in two windows, and none inside lies between them."""
    return kernel == geo.stride and all(d == 1 or k == 1 for d, k in zip(geo.dilation, kernel))


def _by_dimension(kernel, out, geo):
    """For each dimension its part of (kernel, windows, geometry)."""
    for i in range(len(kernel)):
        at = slice(i, i + 1)
        yield kernel[at], out[at], Geometry(geo.stride[at], geo.lo[at], geo.hi[at], geo.dilation[at], 1)


def _windows_of(x, kernel, out, geo):
    """(N, C, *S) to (N, C, *kernel, *out)."""
    if _side_by_side(kernel, geo):
        fit = [(lo, o * k - lo - s, 0) for lo, o, k, s in zip(geo.lo, out, kernel, x.shape[2:])]
        x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *fit])
        x = x.reshape(*x.shape[:2], out[0], kernel[0], out[1], kernel[1])
        return x.transpose(0, 1, 3, 5, 2, 4)
    if math.prod(kernel) > MANY_TAPS:
        for i, (k, o, part) in enumerate(_by_dimension(kernel, out, geo)):
            x = jnp.stack(list(windows(x, k, o, part, 2 + 2 * i)), 2 + i)
        return x
    taps = jnp.stack(list(windows(x, kernel, out, geo, 2)), 2)
    return taps.reshape(*x.shape[:2], *kernel, *out)


def _add_windows(x, kernel, spatial, out, geo):
    """The transpose of `_windows_of`."""
    if _side_by_side(kernel, geo):
        x = x.transpose(0, 1, 4, 2, 5, 3).reshape(*x.shape[:2], *(o * k for o, k in zip(out, kernel)))
        fit = [(-lo, lo + s - o * k, 0) for lo, o, k, s in zip(geo.lo, out, kernel, spatial)]
        return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *fit])
    if math.prod(kernel) > MANY_TAPS:
        for i, (k, o, part) in reversed(list(enumerate(_by_dimension(kernel, out, geo)))):
            taps = (lax.index_in_dim(x, j, 2 + i, keepdims=False) for j in range(*k))
            x = spread(taps, k, spatial[i : i + 1], o, part, 2 + 2 * i)
        return x
    taps = x.reshape(*x.shape[:2], math.prod(kernel), *out)
    return spread((taps[:, :, i] for i in range(taps.shape[2])), kernel, spatial, out, geo, 2)


@op(where="nn.functional.unfold _C._nn.im2col", grad_name="Im2ColBackward0")
def im2col(input: Array, kernel_size, dilation=1, padding=0, stride=1) -> Array:
    """The windows of (N, C, H, W) as columns (N, C kh kw, L)."""
    x = input if input.ndim == 4 else input[None]
    kernel, geo, out = _blocks(x.shape[2:], kernel_size, dilation, padding, stride)
    cols = _windows_of(x, kernel, out, geo).reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(out))
    return cols if input.ndim == 4 else cols[0]


@im2col.check
def _(input, kernel_size, dilation=1, padding=0, stride=1):
    if input.ndim not in (3, 4):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got 2)"
        )
    spatial = tuple(input.shape[-2:])
    _check_window(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    if 0 in input.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
            f"{list(input.shape)}"
        )
    kernel, geo, out = _blocks(spatial, kernel_size, dilation, padding, stride)
    if any(o < 1 for o in out):
        out = tuple(max(o, 0) for o in out)
        raise RuntimeError(
            f"Given input with spatial size {spatial}, kernel_size={kernel}, dilation={geo.dilation}, "
            f"padding={geo.lo}, calculated shape of the array of sliding blocks as {out}, "
            "but its components must be at least one."
        )
    _check_columns(input, "im2col_out_cpu")


def _check_window(**sizes):
    """Refuse sizes of windows in the plane that are not two, or not positive (the padding: negative)."""
    for name, x in sizes.items():
        if isinstance(x, tuple) and len(x) not in (1, 2) or x == ():
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(x)}")
    for name, x in sizes.items():
        height, width = tuple_of(x, 2)
        short = name.removesuffix("_size")
        shown = f"{short}_height: {height} {short}_width: {width}"
        if name == "padding" and min(height, width) < 0:
            raise RuntimeError(f"padding should be non-negative, but got pad_height: {height} pad_width: {width}")
        if name != "padding" and min(height, width) <= 0:
            raise RuntimeError(f"{name.replace('_', ' ')} should be greater than zero, but got {shown}")


def _check_columns(input, kernel):
    if input.dtype.category == INT:
        raise errors.not_implemented(kernel, input.dtype)


@op(where="nn.functional.fold _C._nn.col2im", grad_name="Col2ImBackward0")
def col2im(input: Array, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Array:
    """The sum of columns (N, C kh kw, L) put back as windows of (N, C, H, W): the transpose of `unfold`."""
    x = input if input.ndim == 3 else input[None]
    spatial = tuple_of(output_size, 2)
    kernel, geo, out = _blocks(spatial, kernel_size, dilation, padding, stride)
    x = x.reshape(x.shape[0], x.shape[1] // math.prod(kernel), *kernel, *out)
    full = _add_windows(x, kernel, spatial, out, geo)
    return full if input.ndim == 3 else full[0]


@col2im.check
def _(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    spatial = tuple_of(output_size, 2)
    kernel, geo, out = _blocks(spatial, kernel_size, dilation, padding, stride)
    taps, count = math.prod(kernel), math.prod(out)
    if input.shape[-2] % taps:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={input.shape[-2]} and kernel_size={kernel}."
        )
    if input.shape[-1] != count:
        raise RuntimeError(
            f"Given output_size={spatial}, kernel_size={kernel}, dilation={geo.dilation}, padding={geo.lo}, "
            f"stride={geo.stride}, expected size of input's dimension 2 to match the calculated number of sliding "
            f"blocks {out[0]} * {out[1]} = {count}, but got input.size(2)={input.shape[-1]}."
        )
    _check_columns(input, "col2im_out_cpu")


# Sampling at points.

# Up to so many taps are gathered one by one, in half of the time of a gather of all. Eight in a fourth to a twentieth, but their gradients,
# made so, take up to twice as long: of volumes only the values are.
EACH, EACH_OF_VOLUMES = 4, 8


def _from_minus_one(n, align_corners, dtype):
    """n points from -1 to 1, rounded as PyTorch does: the identity puts points on pixels, where a bit decides the gradient."""
    if n < 2:
        return np.zeros(1, dtype)
    step, k = dtype(2) / dtype(n - 1), np.arange(n, dtype=dtype)
    line = np.where(k < n // 2, dtype(-1) + step * k, dtype(1) - step * (dtype(n - 1) - k)).astype(dtype)
    return line if align_corners else line * dtype(n - 1) / dtype(n)


@op(where="torch", grad_name="AffineGridGeneratorBackward0")
def affine_grid_generator(theta: Array, size: tuple, align_corners: bool) -> Array:
    """The points of an output of `size` mapped by affine matrices, in [-1, 1]."""
    spatial = size[2:]
    axes = []
    for i, s in enumerate(reversed(spatial)):
        line = _from_minus_one(s, align_corners, np.float64 if theta.dtype == np.float64 else np.float32)
        shape = [1] * len(spatial)
        shape[len(spatial) - 1 - i] = s
        axes.append(np.broadcast_to(line.reshape(shape), spatial))
    base = jnp.asarray(np.stack([*axes, np.ones(spatial)], -1), theta.dtype).reshape(-1, len(spatial) + 1)
    grid = jnp.matmul(base, theta.mT, precision=lax.Precision.HIGHEST)
    return grid.reshape(size[0], *spatial, len(spatial))


CORNERS_WARNING = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
    "Please specify align_corners=True if the old behavior is desired. "
    "See the documentation of grid_sample for details."
)


@composite(where="nn.functional")
def affine_grid(theta, size, align_corners=None):
    """A sampling grid (N, H, W, 2) or (N, D, H, W, 3) from affine matrices."""
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if align_corners is None:
        warn(CORNERS_WARNING)
    size = tuple(size)
    shown = f"({', '.join(map(str, size))})"
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {shown}."
        )
    n = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {shown}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {shown}")
    if theta.shape[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {n + 1}] but got: [{theta.shape[0]}, {n + 1}]."
        )
    if align_corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    return affine_grid_generator(theta, size, bool(align_corners))


def _unnormalize(x, size, align_corners):
    return (x + 1) / 2 * (size - 1) if align_corners else (x + 1) * (size / 2) - 0.5


def _clip(x, size):
    # PyTorch's gradient vanishes on the border itself too; nan is 0
    return jnp.where(x > 0, jnp.where(x >= size - 1, size - 1, x), 0)


def _reflect(x, size, align_corners):
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if span == 0:
        return jnp.zeros_like(x)
    x = jnp.abs(x - low)
    flips = jnp.floor(x / span)
    rest = x - flips * span
    return jnp.where(flips % 2 == 0, rest + low, span - rest + low)


def _bounded(x, size, padding_mode, align_corners):
    if padding_mode == "border":
        return _clip(x, size)
    if padding_mode == "reflection":
        return _clip(_reflect(x, size, align_corners), size)
    return x


def _pick(rows, index, spatial):
    """The pixels (N, P, C) of images whose pixels are `rows` (N * S, C), at positions `index`, one (N, P) a dimension; zero outside."""
    at, valid = 0, True
    for i, size in zip(index, spatial):
        valid = valid & (i >= 0) & (i < size)
        at = at * size + jnp.clip(i, 0, size - 1)
    at = at + jnp.arange(at.shape[0], dtype=at.dtype)[:, None] * math.prod(spatial)
    return jnp.where(valid[..., None], rows.at[at].get(mode="promise_in_bounds"), 0)


def _whole(x):
    """A coordinate as an integer; what is not finite lies outside."""
    return jnp.where(jnp.isfinite(x) & (jnp.abs(x) < 2.0**30), x, -100).astype(jnp.int32)


def _sample(input, grid, *how):
    if input.ndim == 4:
        return sampled(EACH, input, grid, *how)
    by = lambda each: lambda x, points: sampled(each, x, points, *how)
    return differentiated_as(by(EACH_OF_VOLUMES), by(EACH))(input, grid)


def sampled(each, input, grid, mode, padding_mode, align_corners):
    """`grid_sample`, up to `each` taps gathered one by one."""
    n = input.ndim - 2
    spatial = input.shape[2:]
    dtype = accumulator(input.dtype)
    channels, pixels = input.shape[1], math.prod(spatial)
    rows = jnp.moveaxis(input.astype(dtype), 1, -1).reshape(input.shape[0] * pixels, channels)
    points = grid.astype(dtype).reshape(grid.shape[0], math.prod(grid.shape[1:-1]), n)
    # the grid has x first, the image y first
    places = [_unnormalize(points[..., n - 1 - i], spatial[i], align_corners) for i in range(n)]
    bound = lambda x, size: _bounded(x, size, padding_mode, align_corners)
    taps = []  # (position in each dimension, weight)
    if mode == "nearest":
        taps.append(([_whole(jnp.round(bound(x, s))) for x, s in zip(places, spatial)], 1))
    elif mode == "bicubic":
        floors = [jnp.floor(x) for x in places]
        weights = [cubic(x - lax.stop_gradient(f)) for x, f in zip(places, floors)]
        for at in np.ndindex(4, 4):
            index = [_whole(bound(f + (k - 1), s)) for f, k, s in zip(floors, at, spatial)]
            taps.append((index, weights[0][at[0]] * weights[1][at[1]]))
    else:
        places = [bound(x, s) for x, s in zip(places, spatial)]
        floors = [lax.stop_gradient(jnp.floor(x)) for x in places]
        for corner in np.ndindex(*(2,) * n):
            index = [_whole(f) + c for f, c in zip(floors, corner)]
            taps.append((index, math.prod((x - f) if c else (f + 1 - x) for x, f, c in zip(places, floors, corner))))
    if len(taps) <= each:
        picked = [_pick(rows, index, spatial) for index, _ in taps]
    else:
        index = [jnp.concatenate([index[i] for index, _ in taps], 1) for i in range(n)]
        picked = jnp.split(_pick(rows, index, spatial), len(taps), 1)
    total = sum(p * (w if isinstance(w, int) else w[..., None]) for p, (_, w) in zip(picked, taps))
    total = jnp.moveaxis(total, -1, 1)
    return total.reshape(*input.shape[:2], *grid.shape[1:-1]).astype(input.dtype)


@op(
    where="nn.functional",
    grad_name=lambda args: f"GridSampler{args['input'].ndim - 2}DBackward0",
    out=False,
)
def grid_sample(
    input: Array,
    grid: Array,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:
    """The input at the points of a grid (N, H, W, 2) or (N, D, H, W, 3), x first, in [-1, 1] of the image."""
    return _sample(input, grid, mode, padding_mode, align_corners)


@grid_sample.check
def _(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        warn(CORNERS_WARNING)
    sizes = f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {sizes}")
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with "
            f"sizes {list(grid.shape)}"
        )
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {4 if input.ndim == 4 else 5}D input and grid with same number of dimensions, but got {sizes}"
        )
    for dim, n in enumerate(input.shape[2:], 2):
        if n == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    if mode == "bicubic" and input.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    need_floats(input, f"grid_sampler_{input.ndim - 2}d_cpu{'_kernel_impl' if input.ndim == 4 else ''}")
    if grid.dtype is not input.dtype:
        raise errors.scalar_type(input.dtype, grid.dtype)


@composite(where="torch")
def grid_sampler(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool):
    """`grid_sample` with its modes as numbers."""
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    return grid_sample(input, grid, mode, ("zeros", "border", "reflection")[padding_mode], align_corners)


# Resampling. Each mode is, in each dimension, a fixed matrix from input to output positions, given by taps (taps.py).


def _resized(shape, size, scale_factor):
    """(the output's spatial size, the scale factors that remain in the coordinates)."""
    spatial = shape[2:]
    n = len(spatial)
    if size is not None:
        return tuple_of(size, n), (None,) * n
    factors = (scale_factor,) * n if isinstance(scale_factor, int | float) else tuple(scale_factor)
    factors = factors * n if len(factors) == 1 and n == 1 else factors
    return tuple(int(math.floor(s * f)) for s, f in zip(spatial, factors)), factors


def _interpolate_name(args):
    n, mode = args["input"].ndim - 2, args["mode"]
    kind = {
        "nearest": f"UpsampleNearest{n}D", "nearest-exact": f"UpsampleNearestExact{n}D", "linear": "UpsampleLinear1D",
        "bilinear": "UpsampleBilinear2D", "trilinear": "UpsampleTrilinear3D", "bicubic": "UpsampleBicubic2D",
        "lanczos": "UpsampleLanczos2D", "area": f"AdaptiveAvgPool{n}D",
    }[mode]  # fmt: skip
    return f"{kind}{'Aa' if args['antialias'] else ''}Backward0"


def _interpolate_strides(outs, input, size=None, scale_factor=None, mode="nearest", *rest):
    if mode != "area":
        return formats.follow(outs, input)
    return formats.follow_line(outs, input) if input.ndim == 3 else formats.follow_planes(outs, input)


@op(where="nn.functional", grad_name=_interpolate_name, out=False, strides=_interpolate_strides)
def interpolate(
    input: Array,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """Resample the spatial dimensions of (N, C, ...) to `size`, or by `scale_factor`."""
    out, factors = _resized(input.shape, size, scale_factor)
    if recompute_scale_factor:
        factors = (None,) * len(out)
    if mode == "area":
        return mean_windows(len(out), input, out)
    x = channels.enter(input)
    if mode in ("nearest", "nearest-exact"):
        return channels.leave(_nearest(x, out, factors, mode == "nearest-exact"))
    taps = {}
    for axis, (target, factor) in enumerate(zip(out, factors), channels.space(x.ndim)):
        if target == x.shape[axis] and (align_corners or not factor or factor == 1):
            continue
        if antialias:
            taps[axis] = smooth_taps(x.shape[axis], target, factor, align_corners, mode)
        else:
            kind = cubic_taps if mode == "bicubic" else linear_taps
            taps[axis] = kind(x.shape[axis], target, factor, align_corners)
    return channels.leave(resample(x, taps))


interpolate.channels = FOLLOWS
interpolate.asked = "dim"


def _nearest(x, out, factors, exact):
    # PyTorch's kernel for small planes goes by the sizes, not the factor, where one stays or doubles
    small = len(out) == 2 and sum(out) <= 128 and not exact
    for axis, (target, factor) in enumerate(zip(out, factors), channels.space(x.ndim)):
        size = x.shape[axis]
        if small and target in (size, 2 * size):
            factor = None
        index = nearest_taps(size, target, factor, exact)[0][:, 0]
        if target % size == 0 and (index == np.arange(target) // (target // size)).all():
            # whole copies: a broadcast, whose derivative is a sum and not a scatter
            times = target // size
            wide = jnp.broadcast_to(jnp.expand_dims(x, axis + 1), (*x.shape[: axis + 1], times, *x.shape[axis + 1 :]))
            x = wide.reshape(*x.shape[:axis], target, *x.shape[axis + 1 :])
        elif size % target == 0 and (index == np.arange(target) * (size // target)).all():
            x = lax.slice_in_dim(x, 0, size, size // target, axis)
        else:
            x = jnp.take(x, index, axis, indices_are_sorted=True)
    return x


MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear", "lanczos", "area", "nearest-exact")
_NEEDS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5, "lanczos": 4}


@interpolate.check
def _(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    if mode in ("nearest", "area", "nearest-exact", "lanczos") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    n = input.ndim - 2
    spatial = list(input.shape[2:])
    layout = "Please provide input tensor in (N, C, d1, d2, ...,dK) format and"
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(size, tuple) and len(size) != n:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {spatial} and output size of {size}. {layout} output size in (o1, o2, ...,oK) format."
        )
    if isinstance(scale_factor, tuple) and len(scale_factor) != n:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {spatial} and scale_factor of shape {scale_factor}. {layout} scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    _check_mode(input, mode)
    out, _ = _resized(tuple(input.shape), size, scale_factor)
    if min(*out, *spatial) <= 0:
        sizes = lambda s: ", ".join(f"{axis}: {v}" for axis, v in zip("DHW"[-n:], s))
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({sizes(spatial)}) output ({sizes(out)})"
        )
    if mode != "area" and input.shape[1] == 0:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(input.shape)}")
    _check_interpolated(input, mode, out, antialias)


def _check_interpolated(input, mode, out, antialias):
    """The dtypes of PyTorch's CPU kernels: floats, and bytes where images of bytes are usual."""
    n = input.ndim - 2
    if mode == "area":
        check_adaptive("avg", n, input, out)
    elif input.dtype is dtypes.uint8 and (n == 2 or mode in ("nearest", "nearest-exact")):
        return
    elif antialias:
        need_floats(input, "compute_index_ranges_weights", halves=False)
    elif n == 2 and mode != "bicubic":
        need_floats(input, f"upsample_{'bilinear' if mode == 'bilinear' else 'nearest'}2d_channels_last")
    else:
        kind = {"bicubic": "cubic", "nearest": "nearest", "nearest-exact": "nearest"}.get(mode, "linear")
        need_floats(input, f"compute_indices_weights_{kind}")


def _check_mode(input, mode):
    need = _NEEDS.get(mode)
    misfit = need not in (None, input.ndim)
    if mode not in MODES or input.ndim not in (3, 4, 5) or (misfit and "linear" not in mode):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: "
            f"{' | '.join(MODES)} (got {mode})"
        )
    if misfit:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {need}D input")


def _warn_older(name):
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


@composite(where="nn.functional")
def upsample(input: Array, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of `interpolate`."""
    _warn_older("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@composite(where="nn.functional")
def upsample_nearest(input: Array, size=None, scale_factor=None):
    """`interpolate` by the nearest element."""
    _warn_older("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


@composite(where="nn.functional")
def upsample_bilinear(input: Array, size=None, scale_factor=None):
    """`interpolate`, bilinear, corners aligned."""
    _warn_older("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)
