"""How kernels choose by backend while they are traced, and the few forms that XLA's CPU compiler wants."""

import functools
import math
import operator

import jax
import jax.numpy as jnp
from jax import Array, lax

from jtorch import errors_nn as errors
from jtorch.core import cuts, rng
from jtorch.core import dtype as dtypes

__all__ = [
    "NARROW",
    "accumulator",
    "barrier",
    "by_columns",
    "check_norm_dtype",
    "column_sum",
    "conjugate",
    "differentiated_as",
    "extreme_over",
    "keep_mask",
    "magnitude",
    "need_floats",
    "materialize",
    "matmul_nt",
    "matmul_tn",
    "on_cpu",
    "on_tpu",
    "one_of",
    "sum_over",
    "widened",
]


def one_of(which, this, other):
    """What `this()` gives where `which`, a value of the program, holds, else `other()`: one of the two is computed, also where kernels are unnested."""
    with jax.disable_jit(False):
        return lax.cond(which, this, other)


MANY_COLUMNS, ROWS_AT_ONCE = 1 << 14, 8  # of `_down`
OF_LIBRARY = 1 << 12  # elements of `_seeing_nan`
# Of `_down` too: slices, or numbers next to each other, of so many elements.
FEW_SLICES, FEW_NUMBERS, LARGE_SUM = 16, 8, 1 << 14
FEW_ROWS, SMALL_PRODUCT = 128, 128 * 128  # of `matmul_tn`
FEW_COLUMNS, FEW_OF_SMALL, LARGE_WEIGHT = 64, 32, 1 << 16  # of `matmul_nt`
NARROW = (jnp.dtype(jnp.bfloat16), jnp.dtype(jnp.float16))


def _platform() -> str:
    place = jax.config.jax_default_device  # set while a program of another device is traced
    return place.platform if isinstance(place, jax.Device) else jax.default_backend()


def on_cpu() -> bool:
    """Whether the kernel being traced will run on the CPU. Tests override it."""
    return _platform() == "cpu"


def on_tpu() -> bool:
    """Whether it will run on a TPU, where 64 bits are two numbers of 32, and not everything is there for them. Tests override it."""
    return _platform() == "tpu"


@jax.custom_jvp
def barrier(x):
    """`x`, computed once and stored before anything that uses the result. Linear, at every order."""
    return lax.optimization_barrier(x)


@barrier.defjvp
def _barrier_jvp(primals, tangents):
    # Not every JAX release we support can differentiate an optimization barrier.
    return barrier(*primals), tangents[0]


@jax.custom_jvp
def _size(x):
    return jnp.abs(x)


_size.defjvps(lambda t, out, x: t * jnp.sign(x))


def magnitude(x: Array) -> Array:
    """|x|, whose derivative is 0 at 0 as PyTorch's; that of jax's own is 1 there."""
    return jnp.abs(x) if jnp.iscomplexobj(x) else _size(x)


def conjugate(x: Array) -> Array:
    """The factor by which the derivative of a product multiplies; real numbers as they are."""
    return jnp.conj(x) if jnp.iscomplexobj(x) else x


def materialize(x: Array) -> Array:
    """`x`, stored on the CPU, where XLA would compute it anew for each matmul that reads it transposed."""
    return barrier(x) if on_cpu() else x


def keep_mask(key: Array, chance: float, shape) -> Array:
    """True with probability `chance`. On the CPU drawn once: XLA would draw it anew for each that reads it, the derivative too."""
    keep = rng.bernoulli(key, chance, shape)
    return cuts.stored(keep) if on_cpu() else keep


def matmul_tn(a: Array, b: Array) -> Array:
    """`a.mT @ b`. On the CPU what is cheapest is transposed on its own first: a matmul with a transposed left operand runs at half
    speed there, unless few rows make a large result (benchmarks/kernels_gpt.py, `--products`)."""
    rows, columns, width = *a.shape[-2:], b.shape[-1]
    if not on_cpu() or a.ndim == 2 and rows <= FEW_ROWS and columns * width > SMALL_PRODUCT and columns <= 4 * width:
        return jnp.matmul(a.mT, b)
    if a.ndim > 2 or columns <= width or rows * columns < (rows + columns) * width:
        return jnp.matmul(barrier(a.mT), b)
    # The barrier around the product keeps XLA from folding its transpose into the matmul; a batched product must not have one: XLA 0.10's
    # compiler aborts on its layout. The result is turned once, and not by each of the optimizer's loops.
    return cuts.stored(barrier(jnp.matmul(barrier(b.mT), a)).mT)


def by_columns(rows: int, weight: Array) -> bool:
    """Whether `matmul_nt` takes rows as columns: of large weights up to 64, of others up to 32."""
    return on_cpu() and 1 < rows <= (FEW_COLUMNS if weight.size >= LARGE_WEIGHT else FEW_OF_SMALL)


def matmul_nt(a: Array, b: Array) -> Array:
    """`a @ b.mT` of matrices, summed in float32 for 16-bit floats and not rounded back yet. On the CPU a few rows are the columns of
    the other product, which reads both operands along their rows: by hand 1.0 to 1.9 times as long (benchmarks/kernels_parts.py)."""
    over = lambda a, b: lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=accumulator(a.dtype))
    return cuts.stored(barrier(over(b, a)).mT) if by_columns(a.shape[0], b) else over(a, b)


def column_sum(x: Array, factors: Array | None = None) -> Array:
    """The sum over the rows of a matrix, each times its factor (a column) where there are any; on the CPU a product, 2 to 4 times as fast."""
    if on_cpu() and x.dtype in (jnp.float32, jnp.float64):
        return jnp.matmul(jnp.ones((1, x.shape[0]), x.dtype) if factors is None else factors.T, x)[0]
    return jnp.sum(x if factors is None else x * factors, axis=0)


def sum_over(x: Array, dims, keepdims: bool = False) -> Array:
    """The sum over dimensions, in the dtype of x."""
    return _down(_added, functools.partial(jnp.sum, promote_integers=False), x, dims, keepdims)


def extreme_over(x: Array, dims, keepdims: bool, largest: bool) -> Array:
    """The largest or smallest element over dimensions; nan if there is one."""
    rows, usual = (_largest, _seeing_nan(jnp.max)) if largest else (_smallest, _seeing_nan(jnp.min))
    if on_cpu() and x.dtype in NARROW:  # XLA's, of bfloat16, does not see a nan with a sign, as inf * 0 is
        return extreme_over(x.astype(jnp.float32), dims, keepdims, largest).astype(x.dtype)
    return _down(rows, usual, x, dims, keepdims)


def _down(rows, usual, x, dims, keepdims):
    """`usual(x, dims, keepdims=)`, with whole slices combined on the CPU where that is quicker.

    Over the first dimensions, where more than 16384 floats stay: XLA shares so many columns out between its threads, and each goes down one
    by one, without vectors (sum of 128x65536: 114 ms, not 26). Along a dimension of few elements: XLA's loop over these makes what is
    reduced at each of its turns, without vectors too (three channels times their weights, 16x3x128x128: 9.4 ms, not 0.14).
    """
    dims = range(x.ndim) if dims is None else (dims,) if isinstance(dims, int) else dims
    dims = {d % x.ndim for d in dims}
    if not on_cpu() or not x.size or x.dtype not in (jnp.float32, jnp.float64):
        return usual(x, axis=tuple(dims), keepdims=keepdims)
    kept = [1 if d in dims else n for d, n in enumerate(x.shape)]
    columns = math.prod(kept)
    over = [d for d in dims if x.shape[d] > 1]
    if len(over) == 1 and x.size >= LARGE_SUM and _is_short(x, over[0]):
        slices = jnp.moveaxis(x, over[0], 0)
    elif columns > MANY_COLUMNS and columns < x.size and all(n == 1 for n in kept[: max(over)]):
        slices = x.reshape(-1, columns)
    else:
        return usual(x, axis=tuple(dims), keepdims=keepdims)
    return rows(slices).reshape([n for d, n in enumerate(kept) if keepdims or d not in dims])


def _seeing_nan(usual):
    """`usual`, jnp.max or jnp.min, that gives nan where there is one: the library that XLA's CPU compiler leaves reductions of 4096 elements
    and more to in jaxlib 0.10 passes nan over. Sums show it: where one is nan, the elements are looked at."""

    def run(x, axis, keepdims):
        found = usual(x, axis=axis, keepdims=keepdims)
        if not on_cpu() or x.size < OF_LIBRARY or not jnp.issubdtype(x.dtype, jnp.floating):
            return found
        nan = lambda: jnp.where(jnp.any(jnp.isnan(x), axis, keepdims=keepdims), jnp.asarray(jnp.nan, x.dtype), found)
        return one_of(jnp.any(jnp.isnan(jnp.sum(x, axis))), nan, lambda: found)

    def seeing(x, axis, keepdims):
        plain = functools.partial(usual, axis=axis, keepdims=keepdims)
        return differentiated_as(functools.partial(run, axis=axis, keepdims=keepdims), plain)(x)

    return seeing


def _is_short(x, d) -> bool:
    """Whether a dimension has few elements, and fewer where they lie next to each other."""
    return x.shape[d] <= (FEW_SLICES if math.prod(x.shape[d + 1 :]) > 1 else FEW_NUMBERS)


def _by_rows(combine, x):
    def combined(rows):
        return functools.reduce(combine, (lax.index_in_dim(rows, k, keepdims=False) for k in range(len(rows))))

    if len(x) <= FEW_SLICES:
        return combined(x)
    first = len(x) % ROWS_AT_ONCE or ROWS_AT_ONCE
    start = combined(x[:first])
    blocks = x[first:].reshape(-1, ROWS_AT_ONCE, *x.shape[1:])
    with jax.disable_jit(False):
        return lax.scan(lambda made, rows: (combine(made, combined(rows)), None), start, blocks)[0]


def _as_reduced(combine, usual):
    """Combines the rows of an array, with the derivatives of XLA's reduction: a loop's would write all of the array at each turn."""
    run = jax.custom_jvp(functools.partial(_by_rows, combine))
    run.defjvp(lambda primals, tangents: (run(*primals), jax.jvp(lambda x: usual(x, 0), primals, tangents)[1]))
    return run


_added = _as_reduced(operator.add, jnp.sum)
_largest, _smallest = _as_reduced(jnp.maximum, jnp.max), _as_reduced(jnp.minimum, jnp.min)


def accumulator(dtype):
    """The type in which 16-bit floats are summed and combined: float32, as PyTorch does."""
    return jnp.dtype(jnp.float32) if dtype in NARROW else dtype


def differentiated_as(fast, plain):
    """`fast`, with the derivatives of `plain`.

    For gradients computed from saved results, whose own derivative must see those results as the functions of
    the inputs that they are. `plain` takes the same arguments and ignores the saved ones."""
    run = jax.custom_jvp(fast)
    run.defjvp(lambda primals, tangents: (run(*primals), jax.jvp(plain, primals, tangents)[1]))
    return run


def widened(kernel):
    """Run a kernel in float32 when its floats have 16 bits, and round its results once, at the end."""

    @functools.wraps(kernel)
    def wide(*args, **kwargs):
        narrow = [a.dtype for a in (*args, *kwargs.values()) if isinstance(a, Array) and a.dtype in NARROW]
        if not narrow:
            return kernel(*args, **kwargs)
        args = [_widen(a) for a in args]
        kwargs = {name: _widen(a) for name, a in kwargs.items()}
        out = kernel(*args, **kwargs)
        return jax.tree.map(lambda x: x.astype(narrow[0]) if x.dtype == jnp.float32 else x, out)

    return wide


def _widen(a):
    return a.astype(jnp.float32) if isinstance(a, Array) and a.dtype in NARROW else a


def need_floats(spec, kernel: str, *, halves: bool = True) -> None:
    """Refuse what PyTorch's kernel of this name has no implementation for: with `halves` False, 16 bits on the CPU."""
    dtype = spec.dtype
    if not dtype.is_floating_point or (not halves and dtype.itemsize == 2 and spec.device.type == "cpu"):
        raise errors.not_implemented(kernel, dtype)


def check_norm_dtype(name: str, have, asked) -> None:
    """Refuse to compute a norm of numbers of `have` in a dtype that PyTorch does not take for them."""
    if asked.category < dtypes.FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtypes.scalar_name(asked)}")
    if have.is_complex != asked.is_complex:
        kind = "complex" if have.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {dtypes.scalar_name(asked)}")
    if dtypes.promote(have, asked) is not asked:
        raise RuntimeError(
            f"{name}: the dtype of the input ({dtypes.scalar_name(have)}) should be convertible without narrowing to the specified "
            f"dtype ({dtypes.scalar_name(asked)})"
        )
