"""torch.fft: discrete Fourier transforms, shifts and sample frequencies."""

import builtins
import math

import jax.numpy as jnp
import numpy as np

from .. import deprecations, errors
from ..core import dtype as dt
from ..core import shapes
from ..core.dtype import dtype as DType
from .arguments import axis, ints, scalar_name, size_of
from .registry import Array, composite, op

_SWAP = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _norm(norm) -> str:
    norm = "backward" if norm is None else norm
    if norm not in _SWAP:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm


_REAL = "{} expects a real{} input tensor, but got {}"
_FLOATS = "Only supports floating-point dtypes, but found: {}"


def _promoted(x, *, complex=False, real=None):
    kind = dt.of(x.dtype)
    if real and kind.is_complex:
        raise RuntimeError(real.format(scalar_name(x)))
    if kind.category < dt.FLOAT:
        kind = dt.default.dtype
    if kind.name in ("float16", "bfloat16") or kind.itemsize == 1:
        raise RuntimeError(f"Unsupported dtype {dt.scalar_name(kind)}")
    return x.astype(kind.to_complex().np if complex else kind.np)


def _line(x, n, dim):
    """The dimension of a one-dimensional transform and its length."""
    if x.ndim == 0:
        raise errors.no_dimension(dim, 0)
    d = axis(dim, x.ndim)
    if n is not None and n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    if n is None and x.shape[d] < 1:
        raise RuntimeError(f"Invalid number of data points ({x.shape[d]}) specified")
    return d, n


def _box(x, s, dim, *, last_half=False):
    """The dimensions of a transform over several, and their lengths; -1 keeps a length."""
    if dim is not None:
        dim = ints(dim)
        if dim and not x.ndim:
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        dims = tuple(axis(d, x.ndim) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(ints(s)) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(ints(s)) > x.ndim:
            raise RuntimeError(f"Got shape with {len(ints(s))} values but input tensor only has {x.ndim} dimensions.")
        dims = tuple(range(x.ndim - len(ints(s)), x.ndim))
    else:
        dims = tuple(range(x.ndim))
    if s is None:
        sizes = [x.shape[d] for d in dims]
        if last_half and sizes:
            sizes[-1] = 2 * (sizes[-1] - 1)
    else:
        sizes = [x.shape[d] if n == -1 else n for d, n in zip(dims, ints(s))]
        if last_half and sizes and ints(s)[-1] == -1:
            sizes[-1] = 2 * (x.shape[dims[-1]] - 1)
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, sizes


def _over(fn, x, dims, sizes, norm):
    for d, n in zip(dims, sizes):
        x = fn(x, n, d, norm)
    return x


def _fftn(x, dims, sizes, norm, inverse=False):
    x = _promoted(x, complex=True)
    if 0 < len(dims) <= 3:  # as many as one XLA transform takes
        return (jnp.fft.ifftn if inverse else jnp.fft.fftn)(x, sizes, dims, norm)
    return _over(jnp.fft.ifft if inverse else jnp.fft.fft, x, dims, sizes, norm)


def _rfftn(x, dims, sizes, norm, name):
    x = _promoted(x, real=_REAL.format(name, "-valued", "{}"))
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = jnp.fft.rfft(x, sizes[-1], dims[-1], norm)
    return _fftn(x, dims[:-1], sizes[:-1], norm) if len(dims) > 1 else x


def _irfftn(x, dims, sizes, norm):
    x = _promoted(x, complex=True)
    if not dims:
        raise RuntimeError("irfftn must transform at least one axis")
    if len(dims) > 1:
        x = _fftn(x, dims[:-1], sizes[:-1], norm, inverse=True)
    return jnp.fft.irfft(x, sizes[-1], dims[-1], norm)


# ---------------------------------------------------------------- where the results lie in memory
#
# torch (pocketfft and MKL alike) moves the transformed dimensions to the end, transforms, and hands back a view: the
# strides of a result tell of each of its passes.


def _pass_strides(shape, strides, dims, *, keep_last=False):
    """Strides after one pass over `dims`; `keep_last`: the last of them is halved, and stays last."""
    last = (dims[-1],) if keep_last else ()
    rest = dims[: len(dims) - len(last)]
    batch = sorted((d for d in range(len(shape)) if d not in dims), key=lambda d: -strides[d])
    order = (*batch, *sorted(rest, key=lambda d: -strides[d]), *last)
    out, step = [0] * len(shape), 1
    for d in reversed(order):
        out[d] = step
        step *= builtins.max(shape[d], 1)
    return tuple(out)


def _fitted(spec, dims, sizes, *, real=True):
    """Shape and strides of the input cut or padded to the lengths asked for; `real`: as real numbers, where it has them."""
    shape, strides = list(spec.shape), spec.strides
    wanted = dict(zip(dims, sizes))
    grown = [d for d, n in wanted.items() if n is not None and n > shape[d]]
    for d, n in wanted.items():
        shape[d] = shape[d] if n is None else n
    if grown:
        strides = shapes.contiguous_strides(shape)
    elif spec.dtype.category < (dt.FLOAT if real else dt.COMPLEX):  # converted first
        strides = shapes.empty_like_strides(tuple(spec.shape), spec.strides)
    return shape, strides


def _strides_c2c(spec, dims, sizes):
    shape, strides = _fitted(spec, dims, sizes, real=len(dims) == 1)
    return _pass_strides(shape, strides, dims) if dims else strides


def _strides_r2c(out, spec, dims, sizes, *, two_passes=False):
    shape, strides = _fitted(spec, dims, sizes)
    shape[dims[-1]] = out.shape[dims[-1]]
    if not two_passes:
        return _pass_strides(shape, strides, dims, keep_last=True)
    strides = _pass_strides(shape, strides, dims[-1:], keep_last=True)
    return _pass_strides(shape, strides, dims[:-1]) if len(dims) > 1 else strides


def _strides_c2r(out, spec, dims, sizes):
    kept = (*sizes[:-1], None if sizes[-1] is None else sizes[-1] // 2 + 1)
    shape, strides = _fitted(spec, dims, kept)
    if len(dims) > 1:
        strides = _pass_strides(shape, strides, dims[:-1])
    shape[dims[-1]] = out.shape[dims[-1]]
    return _pass_strides(shape, strides, dims[-1:], keep_last=True)


def _line_strides(kind, inverse=False):
    """The strides of a one-dimensional transform: "c2c", "r2c" or "c2r"."""

    def strides(outs, input, n, dim, norm):
        dims = (axis(dim, len(input.shape)),)
        if kind == "c2c":
            return (_strides_c2c(input, dims, (n,)),)
        return ((_strides_r2c if kind == "r2c" else _strides_c2r)(outs[0], input, dims, (n,)),)

    # an out= that is resized lies row by row, but for the inverse of a real signal
    strides.of_fresh = lambda input: input.dtype.is_complex or not inverse
    return strides


def _box_strides(kind, *, two_passes=False):
    """The strides of a transform over several dimensions."""

    def strides(outs, input, s, dim, norm):
        dims, sizes = _box(input, s, dim, last_half=kind == "c2r")
        if kind == "c2c":
            return (_strides_c2c(input, dims, sizes),)
        if kind == "c2r":
            sizes = [n if s is not None else None for n in sizes[:-1]] + [None if s is None else sizes[-1]]
            return (_strides_c2r(outs[0], input, dims, sizes),)
        return (_strides_r2c(outs[0], input, dims, sizes, two_passes=two_passes),)

    strides.of_fresh = lambda input: True
    return strides


def _kind(args) -> str:
    return "FftC2CBackward0" if args["input"].dtype.is_complex else "FftR2CBackward0"


def _out(name, real=False):
    """The rule of a transform for out=: of any size, but real or complex as the result is."""
    wanted = "floating point" if real else "complex"

    def rule(want, have):
        if not (have.is_floating_point if real else have.is_complex):
            raise errors.out_dtype(want, have, f"{name} expects a {wanted} output tensor, but got {{have}}")

    return rule


# ---------------------------------------------------------------- one dimension


@op(where="fft.fft", grad_name=_kind, strides=_line_strides("c2c"), out=_out("fft"))
def fft_fft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform along a dimension."""
    norm = _norm(norm)
    d, n = _line(input, n, dim)
    return jnp.fft.fft(_promoted(input, complex=True), n, d, norm)


@op(where="fft.ifft", grad_name=_kind, strides=_line_strides("c2c", True), out=_out("ifft"))
def fft_ifft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`."""
    norm = _norm(norm)
    d, n = _line(input, n, dim)
    return jnp.fft.ifft(_promoted(input, complex=True), n, d, norm)


@op(where="fft.rfft", grad_name="FftR2CBackward0", strides=_line_strides("r2c"), out=_out("rfft"))
def fft_rfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The first half of the transform of real numbers; the other half is its mirror."""
    norm = _norm(norm)
    d, n = _line(input, n, dim)
    return jnp.fft.rfft(_promoted(input, real=_REAL.format("rfft", "", "{}")), n, d, norm)


@op(where="fft.irfft", grad_name="FftC2RBackward0", strides=_line_strides("c2r"), out=_out("irfft", real=True))
def fft_irfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`; `n` tells odd lengths from even."""
    norm = _norm(norm)
    d, n = _line(input, n, dim)
    return _c2r(input, n, d, norm)


def _c2r(input, n, d, norm):
    n = 2 * (input.shape[d] - 1) if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return jnp.fft.irfft(_promoted(input, complex=True), n, d, norm)


@op(where="fft.hfft", grad_name="FftC2RBackward0", strides=_line_strides("c2r"), out=_out("hfft", real=True))
def fft_hfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The real transform of a signal whose second half mirrors the given first."""
    norm = _norm(norm)
    d, n = _line(input, n, dim)
    return _c2r(jnp.conj(input), n, d, _SWAP[norm])


@op(where="fft.ihfft", grad_name="ConjBackward0", strides=_line_strides("r2c", True), out=_out("ihfft"))
def fft_ihfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`."""
    norm = _norm(norm)
    d, n = _line(input, n, dim)
    return jnp.conj(jnp.fft.rfft(_promoted(input, real=_REAL.format("ihfft", "", "{}")), n, d, _SWAP[norm]))


# ---------------------------------------------------------------- several dimensions


@op(where="fft.fftn", grad_name="FftC2CBackward0", strides=_box_strides("c2c"), out=_out("fftn"))
def fft_fftn(
    input: Array, s: int | tuple | None = None, dim: int | tuple | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform over several dimensions."""
    dims, sizes = _box(input, s, dim)
    return _fftn(input, dims, sizes, _norm(norm))


@op(where="fft.ifftn", grad_name="FftC2CBackward0", strides=_box_strides("c2c"), out=_out("ifftn"))
def fft_ifftn(
    input: Array, s: int | tuple | None = None, dim: int | tuple | None = None, norm: str | None = None
) -> Array:
    """The inverse of `fftn`."""
    dims, sizes = _box(input, s, dim)
    return _fftn(input, dims, sizes, _norm(norm), inverse=True)


@op(where="fft.rfftn", grad_name="FftR2CBackward0", strides=_box_strides("r2c"), out=_out("rfftn"))
def fft_rfftn(
    input: Array, s: int | tuple | None = None, dim: int | tuple | None = None, norm: str | None = None
) -> Array:
    """The transform of real numbers over several dimensions; the last keeps its first half."""
    dims, sizes = _box(input, s, dim)
    return _rfftn(input, dims, sizes, _norm(norm), "rfftn")


@op(where="fft.irfftn", grad_name="FftC2RBackward0", strides=_box_strides("c2r"), out=_out("irfftn", real=True))
def fft_irfftn(
    input: Array, s: int | tuple | None = None, dim: int | tuple | None = None, norm: str | None = None
) -> Array:
    """The inverse of `rfftn`."""
    dims, sizes = _box(input, s, dim, last_half=True)
    return _irfftn(input, dims, sizes, _norm(norm))


@op(where="fft.hfftn", grad_name="FftC2RBackward0", strides=_box_strides("c2r"), out=_out("hfftn", real=True))
def fft_hfftn(
    input: Array, s: int | tuple | None = None, dim: int | tuple | None = None, norm: str | None = None
) -> Array:
    """The real transform of a Hermitian signal over several dimensions."""
    dims, sizes = _box(input, s, dim, last_half=True)
    if not dims:
        raise RuntimeError("hfftn must transform at least one axis")
    norm = _norm(norm)
    x = _promoted(input, complex=True)
    x = _fftn(x, dims[:-1], sizes[:-1], norm) if len(dims) > 1 else x
    return jnp.fft.irfft(jnp.conj(x), sizes[-1], dims[-1], _SWAP[norm])


@op(where="fft.ihfftn", grad_name="ConjBackward0", strides=_box_strides("r2c", two_passes=True), out=_out("ihfftn"))
def fft_ihfftn(
    input: Array, s: int | tuple | None = None, dim: int | tuple | None = None, norm: str | None = None
) -> Array:
    """The inverse of `hfftn`."""
    dims, sizes = _box(input, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    norm = _norm(norm)
    x = jnp.conj(jnp.fft.rfft(_promoted(input, real=_FLOATS), sizes[-1], dims[-1], _SWAP[norm]))
    return _fftn(x, dims[:-1], sizes[:-1], norm, inverse=True) if len(dims) > 1 else x


def _plane(many, name, grad_name):
    """The two-dimensional form of a transform over several dimensions."""

    def transform(
        input: Array, s: int | tuple | None = None, dim: int | tuple = (-2, -1), norm: str | None = None
    ) -> Array:
        return many.fn(input, s, dim, norm)

    transform.__name__ = f"fft_{name}"
    transform.__doc__ = f"`fft.{name[:-1]}n` over the last two dimensions, or those given."
    return op(transform, where=f"fft.{name}", grad_name=grad_name, strides=many.strides, out=many.out)


fft_fft2 = _plane(fft_fftn, "fft2", "FftC2CBackward0")
fft_ifft2 = _plane(fft_ifftn, "ifft2", "FftC2CBackward0")
fft_rfft2 = _plane(fft_rfftn, "rfft2", "FftR2CBackward0")
fft_irfft2 = _plane(fft_irfftn, "irfft2", "FftC2RBackward0")
fft_hfft2 = _plane(fft_hfftn, "hfft2", "FftC2RBackward0")
fft_ihfft2 = _plane(fft_ihfftn, "ihfft2", "ConjBackward0")


def _if_real(call):
    """From real numbers PyTorch's derivative asks the input for its kind, and keeps it for that; of another length it keeps a copy."""
    real, n = not call["input"].dtype.is_complex, call.get("n")
    whole = n is None or n == call["input"].shape[call.get("dim", -1)]  # only transforms along one dimension have an n
    return True if real and call.get("s") is None and whole else None


for _record in (fft_fft, fft_ifft, fft_rfft, fft_ihfft, fft_rfft2, fft_rfftn):
    _record.guards(input=_if_real)


# ---------------------------------------------------------------- shifts and frequencies


def _turn(x, dim, sign):
    dims = tuple(range(x.ndim)) if dim is None else tuple(axis(d, x.ndim) for d in ints(dim))
    if dim is not None and not dims:
        raise RuntimeError("`shifts` required")
    steps = [x.shape[d] // 2 if sign > 0 else (x.shape[d] + 1) // 2 for d in dims]
    return jnp.roll(x, steps, dims) if dims and x.size else x


@op(where="fft", grad_name="RollBackward0")
def fftshift(input: Array, dim: int | tuple | None = None) -> Array:
    """The frequency 0 moved to the middle."""
    return _turn(input, dim, 1)


@op(where="fft", grad_name="RollBackward0")
def ifftshift(input: Array, dim: int | tuple | None = None) -> Array:
    """The frequency 0 moved back to the front."""
    return _turn(input, dim, -1)


def _spacing(n, d, dtype):
    """Between two frequencies; infinite where there are no bins."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.float64(1.0) / (n * d), dtype.np)


@op(where="", differentiable=False)
def fft_fftfreq(n: int, d: float = 1.0, *, dtype: DType) -> Array:
    """The frequencies of the n bins of `fft`, at sample spacing `d`."""
    bins = jnp.arange(n, dtype=dtype.np)
    bins = jnp.where(jnp.arange(n) >= (n + 1) // 2, bins - n, bins)
    return (bins * _spacing(n, d, dtype)).astype(dtype.np)


@op(where="", differentiable=False)
def fft_rfftfreq(n: int, d: float = 1.0, *, dtype: DType) -> Array:
    """The frequencies of the bins of `rfft`, at sample spacing `d`."""
    return (jnp.arange(int(n / 2) + 1, dtype=dtype.np) * _spacing(n, d, dtype)).astype(dtype.np)


# ---------------------------------------------------------------- short-time transforms


def _frames(x, size, hop):
    count = 1 + (x.shape[-1] - size) // hop
    places = np.arange(count)[:, None] * hop + np.arange(size)
    return x[..., places.astype(np.int32)]


def _window(window, length, n_fft, dtype):
    window = jnp.ones((length,), dtype) if window is None else window.astype(dtype)
    left = (n_fft - length) // 2
    return jnp.pad(window, (left, n_fft - length - left))


def _check_stft(input, window, n_fft, hop_length, win_length, normalized, onesided, return_complex):
    length = input.shape[-1]
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        problem = "expected a tensor of floating point or complex values"
    elif input.ndim not in (1, 2):
        problem = "expected a 1D or 2D tensor"
    elif not 0 < n_fft <= length:
        problem = f"expected 0 < n_fft < {length}, but got n_fft={win_length}"  # torch names the other number
    elif hop_length <= 0:
        problem = f"expected hop_length > 0, but got hop_length={hop_length}"
    elif not 0 < win_length <= n_fft:
        problem = f"expected 0 < win_length <= n_fft, but got win_length={win_length}"
    elif window is not None and window.shape != (win_length,):
        problem = (
            f"expected a 1D window tensor of size equal to win_length={win_length}, "
            f"but got window with size {size_of(window.shape)}"
        )
    else:
        return

    def seen(x):
        return f"torch.{scalar_name(x)}Tensor{size_of(x.shape)}"

    shown = "None" if window is None else f"torch.{scalar_name(window)}Tensor{{{size_of(window.shape)}}}"
    raise RuntimeError(
        f"stft({seen(input)}, n_fft={n_fft}, hop_length={hop_length}, win_length={win_length}, "
        f"window={shown}, normalized={int(normalized)}, "
        f"onesided={None if onesided is None else int(onesided)}, return_complex={int(return_complex)}, "
        f"align_to_window=None) : {problem}"
    )


def _stft_strides(outs, *args):
    shape = tuple(outs[0].shape)
    pair = 1 if args[-1] else 2
    *lead, bins, frames = shape if pair == 1 else shape[:-1]
    strides = (*shapes.contiguous_strides((*lead, frames, bins)),)
    strides = tuple(n * pair for n in (*strides[:-2], strides[-1], strides[-2]))
    return (strides if pair == 1 else (*strides, 1),)


@op(where="", grad_name="SqueezeBackward4", strides=_stft_strides)
def stft_of(
    input: Array,
    window: Array | None,
    n_fft: int,
    hop_length: int,
    win_length: int,
    center: bool,
    pad_mode: str,
    normalized: bool,
    onesided: bool | None,
    edge: int,
    return_complex: bool,
) -> Array:
    """The transforms of overlapping windowed frames, (..., frequency, frame)."""
    if center:
        if input.dtype == np.bool_ and pad_mode == "reflect":
            raise errors.not_implemented("reflection_pad1d", dt.bool_)
        side = n_fft // 2
        if pad_mode == "reflect" and side >= input.shape[-1]:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({side}, {side}) at dimension 2 of input {[1] * (3 - input.ndim) + list(input.shape)}"
            )
        mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}.get(pad_mode)
        if mode is None:
            raise NotImplementedError(f"Unrecognised padding mode {pad_mode}")
        input = jnp.pad(input, [(0, 0)] * (input.ndim - 1) + [(side, side)], mode=mode)
    elif edge:
        input = jnp.pad(input, [(0, 0)] * (input.ndim - 1) + [(edge, edge)])
    _check_stft(input, window, n_fft, hop_length, win_length, normalized, onesided, return_complex)
    kind = input.dtype
    if window is not None:
        kind = dt.promote(dt.of(kind), dt.of(window.dtype)).np
    frames = _frames(input, n_fft, hop_length).astype(kind) * _window(window, win_length, n_fft, kind)
    norm = "ortho" if normalized else "backward"
    real = not jnp.issubdtype(kind, jnp.complexfloating)
    if onesided and not real:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    out = jnp.fft.rfft(frames, norm=norm) if real and onesided is not False else jnp.fft.fft(frames, norm=norm)
    out = jnp.swapaxes(out, -1, -2)
    return out if return_complex else jnp.stack([out.real, out.imag], -1)


def _check_istft(input, window, n_fft, hop_length, win_length, center, normalized, onesided, length, return_complex):
    if input.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim - 1}, {input.ndim}], but got -3)"
        )
    rows = input.shape[-2]
    whole = rows == n_fft if onesided is None else not onesided
    if not input.size:
        problem = "input tensor cannot be empty."
    elif input.ndim > 3:
        problem = f"expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}"
    elif rows != (n_fft if whole else n_fft // 2 + 1):
        wanted = "n_fft when onesided=False" if whole else "n_fft / 2 + 1 when onesided=True"
        problem = (
            f"expected the frequency dimension (3rd to the last) of the input tensor to match {wanted}, but got {rows}"
        )
    elif not 0 < hop_length <= win_length:
        problem = "expected 0 < hop_length <= win_length"
    elif not 0 < win_length <= n_fft:
        problem = "expected 0 < win_length <= n_fft"
    elif window is not None and window.shape != (win_length,):
        problem = "Invalid window shape. window has to be 1D and length of `win_length`"
    elif return_complex and not whole:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    elif not return_complex and window is not None and jnp.issubdtype(window.dtype, jnp.complexfloating):
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    else:
        return
    shown = "None" if window is None else f"torch.{scalar_name(window)}Tensor{{{size_of(window.shape)}}}"
    raise RuntimeError(
        f"istft(CPU{scalar_name(input)}Type{size_of(input.shape)}, n_fft={n_fft}, hop_length={hop_length}, "
        f"win_length={win_length}, window={shown}, center={int(center)}, normalized={int(normalized)}, "
        f"onesided={None if onesided is None else int(onesided)}, length={length}, return_complex={int(return_complex)}) : "
        f"{problem}"
    )


@op(where="", grad_name="SqueezeBackward1")
def istft_of(
    input: Array,
    window: Array | None,
    n_fft: int,
    hop_length: int,
    win_length: int,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> Array:
    """The signal whose short-time transforms come nearest to `input`."""
    _check_istft(input, window, n_fft, hop_length, win_length, center, normalized, onesided, length, return_complex)
    real = jnp.finfo(input.dtype).dtype
    window = _window(window, win_length, n_fft, real if window is None else window.dtype)
    spectra = jnp.swapaxes(input, -1, -2)
    norm = "ortho" if normalized else "backward"
    if return_complex:
        frames = jnp.fft.ifft(spectra, norm=norm)
    else:  # of a full spectrum, too, torch reads the first half
        frames = jnp.fft.irfft(spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    frames = frames * window
    count = frames.shape[-2]
    total = n_fft + hop_length * (count - 1)
    places = (np.arange(count)[:, None] * hop_length + np.arange(n_fft)).astype(np.int32)
    signal = jnp.zeros((*frames.shape[:-2], total), frames.dtype).at[..., places].add(frames)
    weight = jnp.zeros((total,), window.dtype).at[places].add(jnp.broadcast_to(window * window, places.shape))
    start = n_fft // 2 if center else 0
    end = total - n_fft // 2 if center else total
    if length is not None:
        end = builtins.min(start + length, total)
    signal, weight = signal[..., start:end], weight[start:end]
    signal = signal / weight
    if length is not None and end - start < length:
        signal = jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, length - (end - start))])
    return signal


def hop_of(hop_length, n_fft) -> int:
    return math.floor(n_fft / 4) if hop_length is None else hop_length


def _check_aligned(input, n_fft, hop_length, win_length):
    """An odd gap is halved to the lower side at both ends, so that the last frame may end behind the signal."""
    batch, length = (1, *input.shape)[-2:] if input.ndim else (1, 0)
    length += n_fft - win_length - 1
    if hop_length <= 0 or length < win_length or (length + 1 - n_fft) % hop_length:
        return
    frames, width = 1 + (length + 1 - n_fft) // hop_length, input.dtype.itemsize
    needed = ((batch - 1) * length + (frames - 1) * hop_length + n_fft) * width
    raise RuntimeError(
        f"setStorage: sizes [{batch}, {frames}, {n_fft}], strides [{length}, {hop_length}, 1], storage offset 0, and "
        f"itemsize {width} requiring a storage size of {needed} are out of bounds for storage of size "
        f"{batch * length * width}"
    )


@composite
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The Fourier transforms of overlapping windowed pieces of a signal."""
    if window is None:
        deprecations.say("stft")
    complex_input = "complex" in str(input.dtype)
    if return_complex is None:
        if not complex_input and (window is None or "complex" not in str(window.dtype)):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further "
                "require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    win_length = n_fft if win_length is None else win_length
    hop_length = hop_of(hop_length, n_fft)
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    gap = builtins.max(n_fft - win_length, 0) if align_to_window else 0
    if gap % 2:
        _check_aligned(input, n_fft, hop_length, win_length)
    return stft_of(
        input, window, n_fft, hop_length, win_length, center, pad_mode, normalized, onesided, gap // 2, return_complex
    )  # fmt: skip


@composite
def istft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
):
    """The inverse of `stft`."""
    if window is None:
        deprecations.say("istft")
    if "complex" not in str(input.dtype):
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    win_length = n_fft if win_length is None else win_length
    return istft_of(
        input, window, n_fft, hop_of(hop_length, n_fft), win_length, center, normalized, onesided, length,
        return_complex,
    )  # fmt: skip
