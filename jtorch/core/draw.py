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
from . import box_muller
from .dtype import bool_
from .exactly import fma32, fma64, libm
from .rng import Generator
from .wide import is_wide

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_DIGITS = {np.dtype(np.float16): 11, np.dtype(ml_dtypes.bfloat16): 8, _F32: 24, _F64: 53}
_PI = math.pi
_BLOCK = 1 << 15  # numbers that are made at once: what lies between is not written to memory beyond the caches


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
        least, most = _whole_bounds(d)
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not least <= bound <= most:
            raise RuntimeError(f"{name} is out of bounds for {errors.c_type(d)}")
    if d.is_floating_point:
        digits = _digits(d)
        low, high = _representable(low, 1, digits, d), _representable(high, -1, digits, d)
        if low >= high:
            raise RuntimeError(
                f"random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={low} >= to={high}"
            )
    return low, high


def bounds_from(low, d):
    """The bounds of random integers from `low` to the largest that this dtype holds exactly, with all below it."""
    if is_wide(low):
        raise errors_arguments.overflow()
    if d.is_floating_point:
        most = 1 << _digits(d)
        if abs(low) > float(ml_dtypes.finfo(d.np).max):
            raise RuntimeError(f"from is out of bounds for {errors.c_type(d)}")
        low = _representable(low, 1, _digits(d), d)
        if low >= most:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                f"from={low} > to_inc={most}"
            )
    else:
        least, most = _whole_bounds(d)
        if not least <= low <= most:
            raise RuntimeError(f"from is out of bounds for {errors.c_type(d)}")
    return low, most + 1


def _digits(d) -> int:
    return 1 - int(math.log2(float(ml_dtypes.finfo(d.np).eps)))


def _whole_bounds(d):
    return (0, 1) if d is bool_ else (int(np.iinfo(d.np).min), int(np.iinfo(d.np).max))


def _representable(bound, inward, digits, d):
    """A bound of random integers (the upper one is not drawn), moved inward where its neighbour inside rounds to what lies outside."""
    inside = bound + inward
    rounded = int(np.array(inside).astype(d.np))
    if (rounded >= bound) == (inward > 0):
        return bound
    return rounded + inward * (1 << (abs(inside).bit_length() - digits))


def _np(dtype) -> np.dtype:
    return np.dtype(getattr(dtype, "np", dtype))


def _exactly(dtype, function, fast, x):
    return libm(function, x) if dtype == _F64 else fast(x)


# ---- uniform ----


def _unit64(gen: Generator, n: int) -> np.ndarray:
    return (gen.words64(n) & np.uint64((1 << 53) - 1)) * 2.0**-53


def _unit32(gen: Generator, n: int) -> np.ndarray:
    return _unit_of(gen.words32(n))


def _unit_of(words):
    return (words & np.uint32((1 << 24) - 1)).astype(np.float32) * np.float32(2.0**-24)


def _narrow(x: np.ndarray, dtype) -> np.ndarray:
    """float64 to `dtype`; to the 16-bit types by way of float32, as a C cast goes."""
    with np.errstate(over="ignore"):
        return (x.astype(np.float32) if dtype.itemsize == 2 else x).astype(dtype, copy=False)


def uniform(gen: Generator, shape, dtype=np.float32, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """torch.rand, and Tensor.uniform_(low, high)."""
    dtype, n = _np(dtype), math.prod(shape)
    if n <= _BLOCK:
        return _between(gen, n, dtype, low, high).reshape(shape)
    value = np.empty(n, dtype)
    for at in range(0, n, _BLOCK):
        part = value[at : at + _BLOCK]
        part[...] = _between(gen, part.size, dtype, low, high)
    return value.reshape(shape)


def _between(gen, n, dtype, low, high):
    if dtype == _F64:
        value = _unit64(gen, n)
        if (low, high) != (0.0, 1.0):
            span = float(high) - float(low)
            unit = 2.0**-64 if span > 1e280 else 1.0  # an exact product overflows on the way where a number is so large
            value = fma64(value, span * unit, float(low) * unit) / unit
    else:
        value = _unit32(gen, n)
        if (low, high) != (0.0, 1.0):
            start = np.float32(low)
            span = np.float32(high) - start
            value = fma32(value.astype(np.float64), np.float64(span), np.float64(start))
    value = value.astype(dtype, copy=False)
    top = np.array(high).astype(dtype)
    if dtype.itemsize == 2 or (low, high) != (0.0, 1.0):  # rounding may have reached the excluded end
        value[value == top] = np.array(low).astype(dtype)
    return value


# ---- normal ----


def normal(
    gen: Generator, shape, dtype=np.float32, mean: float = 0.0, std: float = 1.0, scattered: bool = False
) -> np.ndarray:
    """torch.randn and Tensor.normal_(mean, std); `scattered`: of a tensor that is not contiguous, one at a time."""
    dtype, n = _np(dtype), math.prod(shape)
    if n < 16 or scattered:
        return _narrow(fma64(scalar_normals(gen, n), float(std), float(mean)), dtype).reshape(shape)
    whole, rest = divmod(n, 16)
    if dtype.itemsize == 2:  # the last 16 are drawn instead of a partial block, not after it
        blocks, tail = _unit32(gen, whole * 16), _unit32(gen, 16) if rest else None
    else:
        unit = _unit64 if dtype == _F64 else _unit32
        blocks = unit(gen, n)[: whole * 16]
        tail = unit(gen, 16) if rest else None
    together = rest and n <= box_muller.SMALL  # it's passes that few numbers take time for
    if together:
        blocks = np.concatenate([blocks, tail])
    out = np.empty(n if not together else blocks.size, blocks.dtype)
    if dtype != _F32 or rest and not together:
        box_muller.fill(blocks, out[: blocks.size], mean, std)
    else:
        if gen.ahead is None:
            gen.ahead = box_muller.Ahead()
        box_muller.fill(blocks, out, mean, std, gen.ahead, lambda count: _coming(gen, count, blocks.size, rest))
    if together:
        out = np.concatenate([out[: n - 16], out[-16:]])
    elif rest:
        box_muller.fill(tail, out[n - 16 :], mean, std)
    return out.astype(dtype, copy=False).reshape(shape)


def _coming(gen, count, size, rest):
    """`count` uniform numbers that come. rest: how many of each draw are not used, before the last 16; then those of whole draws."""
    if not rest:
        return _unit_of(gen.coming32(count))
    draws = max(1, count // size)
    words = gen.coming32(draws * (size + rest)).reshape(draws, -1)
    return _unit_of(np.delete(words, np.s_[size - 16 : size - 16 + rest], 1).reshape(-1))


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
    span, n = high - low, math.prod(shape)
    if span >= 1 << 28:
        value = (gen.words64(n) % np.uint64(span)).view(np.int64)
    else:
        value = (gen.words32(n) % np.uint32(span)).astype(np.int64)
    if low:
        value += np.int64(low)
    return value.astype(_np(dtype), copy=False).reshape(shape)


def all_bits(gen: Generator, shape, dtype=np.int64) -> np.ndarray:
    """Tensor.random_(low, None) where low is the least int64: each of the 64 bits is drawn."""
    return gen.words64(math.prod(shape)).view(np.int64).astype(_np(dtype), copy=False).reshape(shape)


def random(gen: Generator, shape, dtype=np.int64) -> np.ndarray:
    """Tensor.random_(): all of a type's non-negative integers that it holds exactly."""
    dtype, n = _np(dtype), math.prod(shape)
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
        return (_unit64(gen, math.prod(shape)) < p).astype(_np(dtype)).reshape(shape)
    p = np.broadcast_to(p, p.shape if shape is None else shape)
    unit = _unit64(gen, p.size) if p.dtype == _F64 else _unit32(gen, p.size)
    return (unit.reshape(p.shape) < p.astype(unit.dtype)).astype(_np(dtype))


def exponential(gen: Generator, shape, dtype=np.float32, rate: float = 1.0) -> np.ndarray:
    """Tensor.exponential_(rate)."""
    dtype = _np(dtype)
    log = _exactly(dtype, math.log1p, np.log1p, -_unit64(gen, math.prod(shape)))
    return _narrow(-1.0 / rate * log, dtype).reshape(shape)


def cauchy(gen: Generator, shape, dtype=np.float32, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
    """Tensor.cauchy_(median, sigma)."""
    dtype = _np(dtype)
    tangent = _exactly(dtype, math.tan, np.tan, _PI * (_unit64(gen, math.prod(shape)) - 0.5))
    return _narrow(fma64(tangent, float(sigma), float(median)), dtype).reshape(shape)


def log_normal(gen: Generator, shape, dtype=np.float32, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
    """Tensor.log_normal_(mean, std)."""
    dtype = _np(dtype)
    value = fma64(scalar_normals(gen, math.prod(shape), dtype == _F64), float(std), float(mean))
    with np.errstate(over="ignore"):
        return _narrow(_exactly(dtype, math.exp, np.exp, value), dtype).reshape(shape)


def geometric(gen: Generator, p: float, shape, dtype=np.float32) -> np.ndarray:
    """Tensor.geometric_(p): the number of trials up to the first success."""
    with np.errstate(divide="ignore"):
        log = np.log(_unit64(gen, math.prod(shape)))
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
