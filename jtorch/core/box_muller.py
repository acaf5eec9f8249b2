"""Normal numbers from uniform ones, 16 at a time, as PyTorch's vectorised CPU kernel makes them.

Those of float32 take numpy some 60 passes, 23 ns a number, and XLA one, 4 ns on two cores: once a process has drawn many, the CPU's programs make them where
they have nothing else to do. Both give the same bits.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from .device import cpu
from .exactly import fma32, fma64, libm
from .packing import placed

ROW = 16
BLOCK = 1 << 14  # pairs that numpy transforms at once: the temporaries stay in the cache
FEW = 1 << 12  # pairs of a block while it is looked whether XLA is free
LITTLE, MUCH = 1 << 14, 1 << 17  # pairs of XLA's programs
WORTH = 1 << 22  # numbers that numpy makes in the time that compiling takes


drawn = [0]  # numbers of float32, by numpy
# Numbers of a draw for which some are made ahead: the passes take numpy 80 us for 16 numbers, 130 for 1024. How many are; so many draws
# with fewer taken from them than are WORTH_IT leave it at that for a while, twice as long each time.
SMALL, AHEAD, WORTH_IT, LONGEST = 256, 1 << 10, 2, 1 << 10


class Ahead:
    """Normal numbers made from what a generator will draw next, if it goes on so: they are known again by the uniform ones."""

    __slots__ = ("made", "at", "hits", "pause", "wait")

    def __init__(self):
        self.made = (np.empty(0, np.float32),) * 2  # uniform, normal
        self.at = 0
        self.hits = 0
        self.pause = 2
        self.wait = 2  # draws until it is tried

    def fill(self, unit, out, peek):
        """unit, out: in one dimension. peek: gives the uniform numbers that follow."""
        units, normals = self.made
        at, end = self.at, self.at + unit.size
        if end <= units.size and (units[at:end] == unit).all():
            out[...] = normals[at:end]
            self.at = end
            self.hits += 1
            return
        self.wait -= 1
        if self.wait > 0:
            _fill(unit.reshape(-1, ROW), out.reshape(-1, ROW), _standard)
            return
        if units.size:
            self.pause = 1 if self.hits >= WORTH_IT else min(2 * self.pause, LONGEST)
        units = np.concatenate([unit, peek(AHEAD)])
        normals = np.empty_like(units)
        _fill(units.reshape(-1, ROW), normals.reshape(-1, ROW), _standard)
        out[...] = normals[: unit.size]
        self.wait, self.hits, self.at, self.made = self.pause, 0, unit.size, (units, normals)


def fill(unit, out, mean, std, ahead=None, peek=None):
    """Each 16: eight radii from the first half, eight angles from the second; cosines first, then sines. ahead: where numbers may be made
    that are asked for later, with `peek`."""
    if ahead is not None and unit.dtype == np.float32 and unit.size <= SMALL:
        ahead.fill(unit, out, peek)
        _scale(out, mean, std)
        return
    unit, out = unit.reshape(-1, ROW), out.reshape(-1, ROW)
    if unit.dtype == np.float64:
        _fill(unit, out, functools.partial(_pair64, mean=mean, std=std))
        return
    if drawn[0] + out.size >= 2 * WORTH and out.size >= 4 * LITTLE and jax.config.jax_enable_x64:
        _shared(unit, out)
    else:
        drawn[0] += out.size
        _fill(unit, out, _standard)
    _scale(out, mean, std)


def _scale(out, mean, std):
    if mean != 0:
        mean, std = np.float64(np.float32(mean)), np.float64(np.float32(std))
        for part in np.array_split(out, max(1, out.size // BLOCK)):
            part[...] = fma32(part.astype(np.float64), std, mean)
    elif std != 1:
        out *= np.float32(std)


def _fill(unit, out, pair, block=BLOCK):
    step = 2 * block // ROW
    for i in range(0, len(unit), step):
        u1, u2 = unit[i : i + step, : ROW // 2].reshape(-1), unit[i : i + step, ROW // 2 :].reshape(-1)
        first, second = pair(u1, u2)
        out[i : i + step, : ROW // 2] = first.reshape(-1, ROW // 2)
        out[i : i + step, ROW // 2 :] = second.reshape(-1, ROW // 2)


def _shared(unit, out):
    """XLA makes the numbers from the front, once it is seen to be free; until then numpy makes them from the back.

    Its programs wait for all that have been started before, perhaps a whole step of a training.
    """
    rows, step, probe = len(unit), 2 * FEW // ROW, 2 * LITTLE // ROW
    with jax.ensure_compile_time_eval(), placed(cpu):
        first = _compiled()(unit[:probe])
        while rows > probe and not first.is_ready():
            below = max(probe, rows - step)
            _fill(unit[below:rows], out[below:rows], _standard)
            rows = below
        if not first.is_ready():
            _fill(unit[:probe], out[:probe], _standard)
            return
        results, at = [(0, first)], probe
        for pairs in (MUCH, LITTLE):
            size = 2 * pairs // ROW
            while rows - at >= size:
                results.append((at, _compiled()(unit[at : at + size])))
                at += size
        _fill(unit[at:rows], out[at:rows], _standard)
        for start, made in results:
            out[start : start + len(made)] = np.asarray(made)


@functools.cache
def _compiled():
    """A row of uniform numbers to a row of normal ones, by XLA."""

    def rows(unit):
        halves = _polar(
            unit[:, : ROW // 2], unit[:, ROW // 2 :], jnp, lambda x: x.astype(jnp.float32).astype(jnp.float64)
        )
        return jnp.concatenate(jax.lax.optimization_barrier(halves), 1)  # or each half would be made at each element

    return jax.jit(rows, compiler_options={"xla_allow_excess_precision": False})


def _standard(u1, u2):
    return _polar(u1, u2, np, _in_place)


def _pair64(u1, u2, mean, std):
    radius = np.sqrt(-2.0 * libm(math.log, 1 - u1))
    angle = (2.0 * math.pi) * u2
    mean, std = float(mean), float(std)
    return (
        fma64(radius * libm(math.cos, angle), std, mean),
        fma64(radius * libm(math.sin, angle), std, mean),
    )


# PyTorch's vector log, sine and cosine are those of the Cephes library (logf, sinf, cosf), each multiply and
# the add that follows it fused into one rounding. Values are float32 held in float64: products are exact. So XLA may fuse them too.


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


def _in_place(x):
    """To float32 and back, in the buffer of x."""
    x[...] = x.astype(np.float32)
    return x


def _polar(u1, u2, xp, rounded):
    """Radius times cosine and times sine, of float32. xp: numpy or jax.numpy; rounded: float64 to float32 and back."""
    radius = xp.sqrt(np.float32(-2) * _log(np.float32(1) - u1, xp, rounded))
    sine, cosine = _sincos(np.float32(2 * math.pi) * u2, xp, rounded)
    return radius * cosine, radius * sine


def _log(u, xp, rounded):
    """Natural logarithm of float32 in (0, 1]."""
    raw = u.view(np.uint32)
    exponent = (raw >> np.uint32(23)).astype(np.float64) - 126.0
    x = ((raw & np.uint32(0x7FFFFF)) | np.uint32(0x3F000000)).view(np.float32)  # in [0.5, 1)
    small = x < _SQRTHF
    exponent -= small
    x = xp.where(small, x + (x - np.float32(1)), x - np.float32(1)).astype(np.float64)
    z = rounded(x * x)
    y = xp.full_like(x, _LOG[0])
    for c in _LOG[1:]:
        y *= x
        y += c
        y = rounded(y)
    y *= x
    y = rounded(y)
    y *= z
    y += rounded(exponent * _LN2_LOW)
    y = rounded(y)
    y -= z * 0.5
    y = rounded(y)
    x += y
    x = rounded(x)
    exponent *= _LN2_HIGH
    exponent += x
    return exponent.astype(np.float32)


def _sincos(angle, xp, rounded):
    """Sine and cosine of float32 in [0, 2 pi]."""
    octant = (angle * np.float32(1.27323954473516)).astype(np.int32)
    octant = (octant + 1) & ~1
    y = octant.astype(np.float64)
    x = angle.astype(np.float64)
    for part in _PI4:
        x += y * part
        x = rounded(x)
    z = rounded(x * x)
    cosine = _times(_COS, z, xp, rounded)
    cosine *= z
    cosine = rounded(cosine)
    cosine *= z
    cosine += z * -0.5
    cosine = rounded(cosine)
    cosine += 1.0
    cosine = rounded(cosine)
    sine = _times(_SIN, z, xp, rounded)
    sine *= z
    sine = rounded(sine)
    sine *= x
    sine += x
    sine = rounded(sine)
    swap = (octant & 2) != 0
    sine, cosine = xp.where(swap, cosine, sine), xp.where(swap, sine, cosine)
    sine = xp.where((octant & 4) != 0, -sine, sine)
    cosine = xp.where(((octant - 2) & 4) == 0, -cosine, cosine)
    return sine.astype(np.float32), cosine.astype(np.float32)


def _times(coefficients, z, xp, rounded):
    """A polynomial of z, each step rounded once."""
    total = xp.full_like(z, coefficients[0])
    for c in coefficients[1:]:
        total *= z
        total += c
        total = rounded(total)
    return total
