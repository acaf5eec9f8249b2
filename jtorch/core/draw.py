"""The numbers that PyTorch's CPU generator gives: a Generator, a shape and a dtype in, a numpy array out.

Bit for bit PyTorch's on a CPU with AVX2, where its kernels fuse multiply and add. Exceptions: `exponential`,
`cauchy` and `log_normal` of types narrower than float64 use numpy's functions in double precision, then round
(a last bit differs perhaps once in 1e9); and on Intel's processors PyTorch itself draws `exponential`, and
`bernoulli` of a number, from MKL's streams, which are not these.
"""

import importlib
import math

import ml_dtypes
import numpy as np

from .. import errors, errors_arguments
from .dtype import bool_
from .rng import Generator
from .wide import is_wide

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_DIGITS = {np.dtype(np.float16): 11, np.dtype(ml_dtypes.bfloat16): 8, _F32: 24, _F64: 53}
_HALF_ULP = np.uint64(0x10000000)  # of a float32, as bits of a float64
_BELOW_F32 = np.uint64(0x1FFFFFFF)
_PI = math.pi


def int_bounds(low, high, d):
    """The bounds of random integers, checked as PyTorch does for this dtype."""
    if is_wide(low) or is_wide(high):
        raise errors_arguments.overflow()
    if d.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if d.is_floating_point:
        most = float(ml_dtypes.finfo(d.np).max)
        least = -most
    else:
        least, most = (0, 1) if d is bool_ else (int(np.iinfo(d.np).min), int(np.iinfo(d.np).max))
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not least <= bound <= most:
            raise RuntimeError(f"{name} is out of bounds for {errors.c_type(d)}")
    if d.is_floating_point:
        digits = 1 - int(math.log2(float(ml_dtypes.finfo(d.np).eps)))
        low, high = _representable(low, 1, digits, d), _representable(high, -1, digits, d)
        if low >= high:
            raise RuntimeError(
                f"random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={low} >= to={high}"
            )
    return low, high


def _representable(bound, inward, digits, d):
    """A bound of random integers (the upper one is not drawn), moved inward where its neighbour inside rounds to what lies outside."""
    inside = bound + inward
    rounded = int(np.array(inside).astype(d.np))
    if (rounded >= bound) == (inward > 0):
        return bound
    return rounded + inward * (1 << (abs(inside).bit_length() - digits))


def _np(dtype) -> np.dtype:
    return np.dtype(getattr(dtype, "np", dtype))


def _size(shape) -> int:
    return math.prod(shape)


# ---- arithmetic as the CPU does it ----


def _fma64(a, b, c):
    """a * b + c in float64, rounded once: product and sum with their errors, then the errors added."""
    if isinstance(c, float) and c == 0.0:
        return a * b
    p = a * b
    a_high, b_high = _upper(a), _upper(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    s = p + c
    back = s - p
    return s + (((p - (s - back)) + (c - back)) + error)


def _upper(x):
    t = x * 134217729.0  # 2**27 + 1, Veltkamp's split
    return t - (t - x)


def _fma32(a, b, c):
    """a * b + c of float32 values held in float64, rounded once to float32."""
    p = a * b  # exact
    s = p + c
    tie = (s.view(np.uint64) & _BELOW_F32) == _HALF_ULP
    if tie.any():  # an inexact sum that looks like a tie would round to even; push it to its side
        back = s - p
        error = (p - (s - back)) + (c - back)
        s = np.where(tie & (error != 0), np.nextafter(s, np.where(error > 0, np.inf, -np.inf)), s)
    return s.astype(np.float32)


def _libm(function, x: np.ndarray) -> np.ndarray:
    """A function of the C library on each element: numpy's own may differ in the last bit of a double."""
    return np.fromiter(map(function, x.tolist()), np.float64, x.size)


def _exactly(dtype, function, fast, x):
    return _libm(function, x) if dtype == _F64 else fast(x)


# ---- uniform ----


def _unit64(gen: Generator, n: int) -> np.ndarray:
    return (gen.words64(n) & np.uint64((1 << 53) - 1)) * 2.0**-53


def _unit32(gen: Generator, n: int) -> np.ndarray:
    return (gen.words32(n) & np.uint32((1 << 24) - 1)).astype(np.float32) * np.float32(2.0**-24)


def _narrow(x: np.ndarray, dtype) -> np.ndarray:
    """float64 to `dtype`; to the 16-bit types by way of float32, as a C cast goes."""
    with np.errstate(over="ignore"):
        return (x.astype(np.float32) if dtype.itemsize == 2 else x).astype(dtype, copy=False)


def uniform(gen: Generator, shape, dtype=np.float32, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """torch.rand, and Tensor.uniform_(low, high)."""
    dtype, n = _np(dtype), _size(shape)
    if dtype == _F64:
        value = _unit64(gen, n)
        if (low, high) != (0.0, 1.0):
            span = float(high) - float(low)
            unit = 2.0**-64 if span > 1e280 else 1.0  # an exact product overflows on the way where a number is so large
            value = _fma64(value, span * unit, float(low) * unit) / unit
    else:
        value = _unit32(gen, n)
        if (low, high) != (0.0, 1.0):
            start = np.float32(low)
            span = np.float32(high) - start
            value = _fma32(value.astype(np.float64), np.float64(span), np.float64(start))
    value = value.astype(dtype, copy=False)
    top = np.array(high).astype(dtype)
    if dtype.itemsize == 2 or (low, high) != (0.0, 1.0):  # rounding may have reached the excluded end
        value[value == top] = np.array(low).astype(dtype)
    return value.reshape(shape)


# ---- normal ----

_BLOCK = 1 << 14  # pairs transformed at once: the temporaries stay in the cache


def normal(
    gen: Generator, shape, dtype=np.float32, mean: float = 0.0, std: float = 1.0, scattered: bool = False
) -> np.ndarray:
    """torch.randn and Tensor.normal_(mean, std); `scattered`: of a tensor that is not contiguous, one at a time."""
    dtype, n = _np(dtype), _size(shape)
    if n < 16 or scattered:
        return _narrow(_fma64(scalar_normals(gen, n), float(std), float(mean)), dtype).reshape(shape)
    whole, rest = divmod(n, 16)
    if dtype.itemsize == 2:  # the last 16 are drawn instead of a partial block, not after it
        blocks, tail = _unit32(gen, whole * 16), _unit32(gen, 16) if rest else None
    else:
        unit = _unit64 if dtype == _F64 else _unit32
        blocks = unit(gen, n)[: whole * 16]
        tail = unit(gen, 16) if rest else None
    out = np.empty(n, blocks.dtype)
    _box_muller(blocks, out[: whole * 16], mean, std)
    if tail is not None:
        _box_muller(tail, out[n - 16 :], mean, std)
    return out.astype(dtype, copy=False).reshape(shape)


def _box_muller(unit, out, mean, std):
    """Each 16: eight radii from the first half, eight angles from the second; cosines first, then sines."""
    unit, out = unit.reshape(-1, 16), out.reshape(-1, 16)
    pair = _pair64 if unit.dtype == _F64 else _pair32
    step = _BLOCK // 8
    for i in range(0, len(unit), step):
        u1, u2 = unit[i : i + step, :8].reshape(-1), unit[i : i + step, 8:].reshape(-1)
        first, second = pair(u1, u2, mean, std)
        out[i : i + step, :8] = first.reshape(-1, 8)
        out[i : i + step, 8:] = second.reshape(-1, 8)


def _pair64(u1, u2, mean, std):
    radius = np.sqrt(-2.0 * _libm(math.log, 1 - u1))
    angle = (2.0 * _PI) * u2
    mean, std = float(mean), float(std)
    return (
        _fma64(radius * _libm(math.cos, angle), std, mean),
        _fma64(radius * _libm(math.sin, angle), std, mean),
    )


def _pair32(u1, u2, mean, std):
    mean, std = np.float64(np.float32(mean)), np.float64(np.float32(std))
    radius = np.sqrt(np.float32(-2) * _log32(np.float32(1) - u1))
    sine, cosine = _sincos32(np.float32(2 * _PI) * u2)
    first, second = radius * cosine, radius * sine
    if mean == 0:
        std = np.float32(std)
        return first * std, second * std
    return _fma32(first.astype(np.float64), std, mean), _fma32(second.astype(np.float64), std, mean)


# PyTorch's vector log, sine and cosine are those of the Cephes library (logf, sinf, cosf), each multiply and
# the add that follows it fused into one rounding. Values are float32 held in float64: products are exact.


def _constants(*values):
    return [np.float64(np.float32(v)) for v in values]


_SQRTHF = np.float32(0.707106781186547524)
_LOG = _constants(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_LN2_LOW, _LN2_HIGH = _constants(-2.12194440e-4, 0.693359375)
_SIN = _constants(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _constants(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_PI4 = _constants(-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # -pi/4 in three parts


def _round(x):
    """To float32 and back, in the buffer of x."""
    x[...] = x.astype(np.float32)
    return x


def _step(y, x, c):
    """y * x + c rounded once, in the buffer of y."""
    y *= x
    y += c
    return _round(y)


def _log32(u):
    """Natural logarithm of float32 in (0, 1]."""
    raw = u.view(np.uint32)
    exponent = (raw >> np.uint32(23)).astype(np.float64) - 126.0
    x = ((raw & np.uint32(0x7FFFFF)) | np.uint32(0x3F000000)).view(np.float32)  # in [0.5, 1)
    small = x < _SQRTHF
    exponent -= small
    x = np.where(small, x + (x - np.float32(1)), x - np.float32(1)).astype(np.float64)
    z = _round(x * x)
    y = np.full_like(x, _LOG[0])
    for c in _LOG[1:]:
        y = _step(y, x, c)
    y *= x
    _round(y)
    y = _step(y, z, _round(exponent * _LN2_LOW))
    y -= z * 0.5
    _round(y)
    x += y
    _round(x)
    return _step(exponent, _LN2_HIGH, x).astype(np.float32)


def _sincos32(angle):
    """Sine and cosine of float32 in [0, 2 pi]."""
    octant = (angle * np.float32(1.27323954473516)).astype(np.int32)
    octant = (octant + 1) & ~1
    y = octant.astype(np.float64)
    x = angle.astype(np.float64)
    for part in _PI4:
        x += y * part
        _round(x)
    z = _round(x * x)
    cosine = np.full_like(x, _COS[0])
    cosine = _step(_step(cosine, z, _COS[1]), z, _COS[2])
    cosine *= z
    _round(cosine)
    cosine = _step(cosine, z, z * -0.5)
    cosine += 1.0
    _round(cosine)
    sine = np.full_like(x, _SIN[0])
    sine = _step(_step(sine, z, _SIN[1]), z, _SIN[2])
    sine *= z
    _round(sine)
    sine = _step(sine, x, x)
    swap = (octant & 2) != 0
    sine, cosine = np.where(swap, cosine, sine), np.where(swap, sine, cosine)
    sine = np.where((octant & 4) != 0, -sine, sine)
    cosine = np.where(((octant - 2) & 4) == 0, -cosine, cosine)
    return sine.astype(np.float32), cosine.astype(np.float32)


def scalar_normals(gen: Generator, n: int, exact: bool = True) -> np.ndarray:
    """Standard normals one at a time, two a draw: the second is kept in the generator for the next call."""
    out = np.empty(n, np.float64)
    start = 0
    if n and gen.next_normal is not None:
        out[0] = gen.next_normal
        gen.next_normal = None
        start = 1
    pairs = (n - start + 1) // 2
    if not pairs:
        return out
    unit = _unit64(gen, 2 * pairs)
    first, second = _scalar_pairs(unit[0::2], unit[1::2], exact)
    both = np.empty(2 * pairs)
    both[0::2], both[1::2] = first, second
    out[start:] = both[: n - start]
    if (n - start) % 2:  # what is kept must be the C library's, whoever asked
        gen.next_normal = float(_scalar_pairs(unit[-2:-1], unit[-1:], True)[1][0])
    return out


def _scalar_pairs(u1, u2, exact):
    dtype = _F64 if exact else _F32
    radius = np.sqrt(-2.0 * _exactly(dtype, math.log1p, np.log1p, -u2))
    angle = (2.0 * _PI) * u1
    return (
        radius * _exactly(dtype, math.cos, np.cos, angle),
        radius * _exactly(dtype, math.sin, np.sin, angle),
    )


# ---- integers ----


def randint(gen: Generator, low: int, high: int, shape, dtype=np.int64) -> np.ndarray:
    """torch.randint(low, high), and Tensor.random_(low, high)."""
    span, n = high - low, _size(shape)
    if span >= 1 << 28:
        value = (gen.words64(n) % np.uint64(span)).view(np.int64)
    else:
        value = (gen.words32(n) % np.uint32(span)).astype(np.int64)
    if low:
        value += np.int64(low)
    return value.astype(_np(dtype), copy=False).reshape(shape)


def random_from(gen: Generator, low: int, shape, dtype=np.int64) -> np.ndarray:
    """Tensor.random_(low, None) where low is the least int64: all 64 bits."""
    return gen.words64(_size(shape)).view(np.int64).astype(_np(dtype), copy=False).reshape(shape)


def random(gen: Generator, shape, dtype=np.int64) -> np.ndarray:
    """Tensor.random_(): all of a type's non-negative integers that it holds exactly."""
    dtype, n = _np(dtype), _size(shape)
    if dtype == np.bool_:
        value = gen.words32(n) & np.uint32(1)
    elif dtype in _DIGITS:
        words = gen.words64(n) if dtype == _F64 else gen.words32(n)
        value = words % words.dtype.type((1 << _DIGITS[dtype]) + 1)
    else:
        words = gen.words64(n) if dtype == np.int64 else gen.words32(n)
        value = words % words.dtype.type(np.iinfo(dtype).max + 1)
    return value.astype(dtype).reshape(shape)


_LAPACK_FROM = 50_000  # elements from which LAPACK's row interchange beats importing nothing


def randperm(gen: Generator, n: int, dtype=np.int64) -> np.ndarray:
    """torch.randperm(n)."""
    dtype = _np(dtype)
    if n < 2:
        return np.arange(n).astype(dtype)
    place = np.arange(n - 1)
    if n < 0xFFFFFFFF // 20:
        target = (gen.words32(n - 1) % (n - place).astype(np.uint32)).astype(np.int64)
    else:
        target = (gen.words64(n - 1) % (n - place).astype(np.uint64)).view(np.int64)
    target += place
    return _swapped(n, target).astype(dtype, copy=False)


def _swapped(n: int, target: np.ndarray) -> np.ndarray:
    """range(n) after exchanging element i with element target[i], for each i in turn."""
    if n >= _LAPACK_FROM and n < 1 << 31:
        # the pivoting of an LU factorisation is this very loop; scipy comes with jax
        laswp = importlib.import_module("scipy.linalg.lapack").dlaswp
        column = np.arange(n, dtype=np.float64)[:, None]
        return laswp(column, target.astype(np.int32), overwrite_a=1)[:, 0].astype(np.int64)
    items = list(range(n))
    for i, j in enumerate(target.tolist()):
        items[i], items[j] = items[j], items[i]
    return np.array(items, np.int64)


# ---- the other distributions ----


def bernoulli(gen: Generator, p, shape=None, dtype=np.float32) -> np.ndarray:
    """Tensor.bernoulli_(p) for a number; torch.bernoulli(p) and bernoulli_(p) for an array of them."""
    if isinstance(p, int | float):
        return (_unit64(gen, _size(shape)) < p).astype(_np(dtype)).reshape(shape)
    p = np.broadcast_to(p, p.shape if shape is None else shape)
    unit = _unit64(gen, p.size) if p.dtype == _F64 else _unit32(gen, p.size)
    return (unit.reshape(p.shape) < p.astype(unit.dtype)).astype(_np(dtype))


def exponential(gen: Generator, shape, dtype=np.float32, rate: float = 1.0) -> np.ndarray:
    """Tensor.exponential_(rate)."""
    dtype = _np(dtype)
    log = _exactly(dtype, math.log1p, np.log1p, -_unit64(gen, _size(shape)))
    return _narrow(-1.0 / rate * log, dtype).reshape(shape)


def cauchy(gen: Generator, shape, dtype=np.float32, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
    """Tensor.cauchy_(median, sigma)."""
    dtype = _np(dtype)
    tangent = _exactly(dtype, math.tan, np.tan, _PI * (_unit64(gen, _size(shape)) - 0.5))
    return _narrow(_fma64(tangent, float(sigma), float(median)), dtype).reshape(shape)


def log_normal(gen: Generator, shape, dtype=np.float32, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
    """Tensor.log_normal_(mean, std)."""
    dtype = _np(dtype)
    value = _fma64(scalar_normals(gen, _size(shape), dtype == _F64), float(std), float(mean))
    with np.errstate(over="ignore"):
        return _narrow(_exactly(dtype, math.exp, np.exp, value), dtype).reshape(shape)


def geometric(gen: Generator, p: float, shape, dtype=np.float32) -> np.ndarray:
    """Tensor.geometric_(p): the number of trials up to the first success."""
    with np.errstate(divide="ignore"):
        log = np.log(_unit64(gen, _size(shape)))
    return np.ceil(log / math.log1p(-p)).astype(_np(dtype)).reshape(shape)


def multinomial(gen: Generator, weights, num_samples: int, replacement: bool = False) -> np.ndarray:
    """torch.multinomial: indices (int64) drawn by the weights, an array, of the last dimension.

    The caller checks the weights.
    """
    if not replacement or num_samples == 1:
        noise = exponential(gen, weights.shape, weights.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = (weights / noise).astype(weights.dtype)
        if num_samples == 1:
            return np.argmax(score, -1, keepdims=True)
        return np.argsort(-score.astype(np.float64), -1, kind="stable")[..., :num_samples]
    rows = weights.reshape(-1, weights.shape[-1])
    wide = weights.dtype if weights.dtype.itemsize >= 4 else _F32
    edges = np.add.accumulate(rows.astype(wide), 1)
    edges /= edges[:, -1:].copy()
    edges[:, -1] = 1
    edges = edges.astype(np.float64)
    unit = _unit64(gen, len(rows) * num_samples).reshape(len(rows), num_samples)
    index = [np.searchsorted(edge, u, side="left") for edge, u in zip(edges, unit)]
    return np.stack(index).reshape(*weights.shape[:-1], num_samples)


def check_multinomial(weights: np.ndarray, num_samples: int, replacement: bool) -> None:
    """Raise what torch.multinomial raises for weights that are no distribution."""
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.sum(-1) == 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
