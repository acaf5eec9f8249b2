"""Tensors made from numbers alone: constants, ranges, identities. Defaults are the caller's affair."""

import builtins
import math

import jax.numpy as jnp
from jax import lax

from .. import errors
from ..core import dtype as dt
from ..core.dtype import dtype as DType
from .backend import on_cpu
from .conversion import convert
from .registry import Array, Number, VarInts, op


def _size(size) -> tuple[int, ...]:
    if builtins.any(n < 0 for n in size):
        n = next(n for n in size if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{', '.join(map(str, size))}]")
    return tuple(size)


@op(where="", differentiable=False)
def full(size: VarInts, fill_value: Number, *, dtype: DType) -> Array:
    """A tensor of one value."""
    return jnp.full(_size(size), jnp.asarray(fill_value).astype(dtype.np), dtype.np)


def arange_size(start, end, step, exact) -> int:
    """The number of elements of a range, of ints for int64 exactly and in double precision otherwise."""
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise errors.unsupported_range(start, end)
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if exact and builtins.all(isinstance(v, int) for v in (start, end, step)):
        return len(range(start, end, step))
    span = (float(end) - float(start)) / float(step)
    if not math.isfinite(span):
        raise errors.unsupported_range(start, end)
    return math.ceil(span)


@op(where="", differentiable=False)
def arange(start: int | float, end: int | float, step: int | float, *, dtype: DType) -> Array:
    """The numbers from `start`, by `step`, short of `end`. Floats are computed in double and rounded once."""
    if dtype.category in (dt.BOOL, dt.COMPLEX):
        raise errors.not_implemented("arange_cpu", dtype)
    size = arange_size(start, end, step, dtype is dt.int64)
    if not (dtype.is_floating_point or dtype.is_complex):
        if dtype is dt.int64:  # the others are counted by the numbers as given, and only then are these cut
            size = arange_size(int(start), int(end), int(step), True)
        return (lax.iota(jnp.int64, size) * int(step) + int(start)).astype(dtype.np)
    exact = isinstance(start, int) and isinstance(step, int) and abs_below(start, end, 2**24)
    wide = jnp.int32 if exact else jnp.float64
    return (lax.iota(wide, size) * jnp.asarray(step, wide) + jnp.asarray(start, wide)).astype(dtype.np)


def abs_below(a, b, bound) -> bool:
    return -bound < a < bound and -bound < b < bound


@arange.check
def _check_arange(start, end, step, *, dtype):
    if dtype is dt.int64 and step and not int(step):
        raise ValueError("step must be nonzero")


def _gaps(steps, kind):
    """steps - 1 as XLA must not know it: by the rounded inverse of a constant that it multiplies with, 49 / 49 is less than 1."""
    return lax.optimization_barrier(jnp.asarray(steps - 1, kind))


@op(where="", differentiable=False)
def linspace(start: Number, end: Number, steps: int, *, dtype: DType) -> Array:
    """`steps` numbers from `start` to `end`, both included, counted from the nearer end."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    whole = not (dtype.is_floating_point or dtype.is_complex)
    kind = jnp.float64 if whole else dtype.np
    if dtype.is_floating_point and dtype.itemsize < 4:
        kind = jnp.float32
    start, end = (
        jnp.asarray(start).astype(dtype.np).astype(kind),
        jnp.asarray(end).astype(dtype.np).astype(kind),
    )
    if steps == 1:
        return jnp.full((1,), start, kind).astype(dtype.np)
    i = lax.iota(jnp.int32, steps)
    step = (end - start) / _gaps(steps, kind)
    # PyTorch's kernels round a product and its sum once; so does the wider type, however XLA compiles it.
    wide = jnp.float64 if kind == jnp.float32 and on_cpu() else kind
    start, end, step = start.astype(wide), end.astype(wide), step.astype(wide)
    up, down = start + step * i.astype(kind).astype(wide), end - step * (steps - 1 - i).astype(kind).astype(wide)
    return jnp.where(i < steps // 2, up, down).astype(kind).astype(dtype.np)


@op(where="", differentiable=False)
def logspace(start: Number, end: Number, steps: int, base: float = 10.0, *, dtype: DType) -> Array:
    """`base` to the powers of `linspace(start, end, steps)`."""
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    whole = not (dtype.is_floating_point or dtype.is_complex)
    kind = jnp.float64 if dtype.itemsize > 4 or whole else jnp.float32
    kind = dtype.np if dtype.is_complex else kind
    if steps == 1:
        return jnp.power(jnp.asarray(base, kind), jnp.asarray(start).astype(kind))[None].astype(dtype.np)
    # between whole numbers the ends are whole too
    start, end = (jnp.asarray(x).astype(dtype.np).astype(kind) for x in (start, end))
    i = lax.iota(jnp.int32, steps)
    step = (end - start) / _gaps(steps, kind)
    up, down = start + step * i.astype(kind), end - step * (steps - 1 - i).astype(kind)
    exponents = jnp.where(i < steps // 2, up, down)
    return convert(jnp.power(jnp.asarray(base, kind), exponents), dtype.np)


@op(where="", differentiable=False)
def linspace_between(start: Array, end: Array, steps: int, *, dtype: DType) -> Array:
    """linspace between two tensors of one element each, which nobody has to read."""
    return linspace.fn(start, end, steps, dtype=dtype)


@op(where="", differentiable=False)
def logspace_between(start: Array, end: Array, steps: int, base: float = 10.0, *, dtype: DType) -> Array:
    """logspace between two tensors of one element each, which nobody has to read."""
    return logspace.fn(start, end, steps, base, dtype=dtype)


@op(where="", differentiable=False)
def eye(n: int, m: int | None = None, *, dtype: DType) -> Array:
    """Ones on the diagonal of an n by m matrix of zeros."""
    m = n if m is None else m
    if n < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n}")
    if m < 0:
        raise RuntimeError(f"m must be greater or equal to 0, got {m}")
    return jnp.eye(n, m, dtype=dtype.np)


def _triangle(row, col, offset, lower, dtype):
    for name, n in (("row", row), ("col", col)):
        if n < 0:
            raise RuntimeError(f"{name} must be non-negative, got{n}")
    if dtype.name not in ("int32", "int64"):
        raise errors.not_implemented("tril_indices" if lower else "triu_indices", dtype)
    fn = jnp.tril_indices if lower else jnp.triu_indices
    return jnp.stack(fn(row, offset, col)).astype(dtype.np)


@op(where="", differentiable=False)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: DType) -> Array:
    """The row and column numbers of the lower triangle of a row by col matrix."""
    return _triangle(row, col, offset, True, dtype)


@op(where="", differentiable=False)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: DType) -> Array:
    """The row and column numbers of the upper triangle of a row by col matrix."""
    return _triangle(row, col, offset, False, dtype)


@op(where="torch")
def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of a vector, a column each, falling unless `increasing`."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    kind = x.dtype if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.int64
    x = x.astype(kind)
    columns = [jnp.ones_like(x)]
    for _ in range(1, n):
        columns.append(columns[-1] * x)
    columns = columns[:n] if increasing else columns[:n][::-1]
    return jnp.stack(columns, 1) if columns else jnp.zeros((x.shape[0], 0), kind)
