"""Running sums, products and extremes, differences and areas. Knows arrays, never Tensor."""

import builtins
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from .. import errors, errors_arguments
from ..core import dtype as dtypes
from . import formats
from .arithmetic import div, sub
from .backend import differentiated_as, on_cpu, on_tpu
from .conversion import SAME_SCALAR, convert, is_number, kind, like, opmath, to_float
from .join import cat
from .reduce import _add_at, _sum_dtype, all_dims, one_dim
from .registry import Array, Number, composite, op
from .transcendental import _complex_logaddexp

RETURN_FIELDS = {
    "cummax": ("values", "indices"),
    "cummin": ("values", "indices"),
}

# ---- scans ----

LONG = 1 << 15  # elements, from which on sums and products are added up one by one on the CPU


def _scan(fn, x, dim, **kwargs):
    dim = one_dim(dim, x.ndim)
    return x if x.ndim == 0 else fn(x, axis=dim, **kwargs)


def _scan_out(kernel):
    def rule(want, have):
        if have is dtypes.bool_:
            raise errors.not_implemented(kernel, have)
        if want is not have:
            raise errors.out_dtype(want, have)

    return rule


def _wide_scan(fn, x, dim):
    half = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
    out = _scan(fn, x.astype(jnp.float32) if half else x, dim)
    return out.astype(x.dtype)


def _scan_in_place(kernel):
    def rule(spec, dtype=None, **_):
        if dtype is not None and dtype is not spec.dtype:
            raise errors_arguments.scan_in_place(spec.dtype, dtype)
        if spec.dtype is dtypes.bool_:
            raise errors.not_implemented(kernel, spec.dtype)

    return rule


def _carried(join, x, axis, reverse=False):
    """The running `join(total so far, next)` of a tree of arrays along an axis, put one by one into the result.

    On the CPU a fifth to all of the time of XLA's tree of sums, and 2 to 50 times as fast as one of log(length) levels.
    """
    parts = jax.tree.map(lambda a: jnp.moveaxis(a, axis, 0), x)
    n = len(jax.tree.leaves(parts)[0])
    place = lambda i: n - 1 - i if reverse else i

    def step(i, state):
        total, out = state
        part = jax.tree.map(lambda a: lax.dynamic_index_in_dim(a, place(i), 0, False), parts)
        total = join(total, part)
        return total, jax.tree.map(lambda to, v: lax.dynamic_update_index_in_dim(to, v, place(i), 0), out, total)

    first = jax.tree.map(lambda a: a[place(0)], parts)
    out = lax.fori_loop(1, n, step, (first, parts))[1]  # the first is its own total, and all others are overwritten
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, axis), out)


def _running_total(join, plain):
    """`plain(x, axis, reverse)`, one by one where that is quicker."""

    def run(x, axis, reverse=False):
        if x.dtype == jnp.float64 and on_tpu():  # whose compiler takes minutes for the window of `plain`
            return lax.associative_scan(join, x, reverse, axis)
        if not on_cpu() or x.size < LONG:
            return plain(x, axis, reverse)
        fast = lambda x: _carried(join, x, axis, reverse)
        return differentiated_as(fast, lambda x: plain(x, axis, reverse))(x)

    return run


_cumulative_sum = _running_total(jnp.add, lax.cumsum)
_cumulative_product = _running_total(jnp.multiply, lax.cumprod)


@op(inplace=_scan_in_place("cumsum_out_cpu"), out=_scan_out("cumsum_out_cpu"), follows_out=True)
def cumsum(input: Array, dim: int, *, dtype: object = None) -> Array:
    """The running sum along a dimension."""
    return _wide_scan(_cumulative_sum, convert(input, _sum_dtype(input, dtype)), dim)


@op(where="", name="_cumsum_back", out=False)
def _cumsum_back(input: Array, dim: int) -> Array:
    """The running sum from the end."""
    return _scan(_cumulative_sum, input, dim, reverse=True)


cumsum.vjp(input=lambda g, dim: _cumsum_back(g, dim))
_cumsum_back.vjp(input=lambda g, dim: cumsum(g, dim))


@op(inplace=_scan_in_place("cumprod_out_cpu"), out=_scan_out("cumprod_out_cpu"), follows_out=True)
def cumprod(input: Array, dim: int, *, dtype: object = None) -> Array:
    """The running product along a dimension."""
    return _wide_scan(_cumulative_product, convert(input, _sum_dtype(input, dtype)), dim)


cumprod.guards(out=True)
for _record in (cumsum, cumprod):
    _record.keeps_history = 1


@op(out=SAME_SCALAR)
@opmath
def logcumsumexp(input: Array, dim: int) -> Array:
    """The running log(sum(exp)) along a dimension."""
    if input.dtype.kind == "c":
        return _scan(_complex_logcumsumexp, input, dim)
    return _scan(_logcumsumexp if on_cpu() else lax.cumlogsumexp, input, dim)


def _one_by_one(join, x, axis):
    """`_carried`, of one array and to be differentiated: twice as fast then."""
    parts = jnp.moveaxis(x, axis, 0)

    def step(total, part):
        total = join(total, part)
        return total, total

    rest = lax.scan(step, parts[0], parts[1:])[1]
    return jnp.moveaxis(jnp.concatenate([parts[:1], rest]), 0, axis)


def _complex_logcumsumexp(x, axis):
    """One by one, since a sum of another order may differ by a turn of the imaginary part."""
    return _one_by_one(lambda total, part: _complex_logaddexp(part, total), x, axis) if x.size else x


def _logcumsumexp(x, axis):
    wide = x.astype(jnp.float32 if x.dtype.itemsize == 2 else jnp.float64)  # as PyTorch adds up
    return _one_by_one(jnp.logaddexp, wide, axis).astype(x.dtype) if x.size else x


def _logcumsumexp_input(g, input, out, dim):
    if kind(input) != "c":
        by = lambda fn: lambda g, x: jax.vjp(lambda x: fn(x, dim), x)[1](g)[0]
        g = jnp.where(out == jnp.inf, 0, g)  # from there on no element has a share
        # within a scan the second derivative of jnp.logaddexp is wrong where both are equal
        shares = differentiated_as(by(logcumsumexp.fn), by(partial(_scan, lax.cumlogsumexp)))(g, input)
        return jnp.where(input == jnp.inf, jnp.nan, shares)
    if input.ndim == 0:
        return g
    # the sum over later i of g[i] * exp(conj(input - out[i])), by logarithms: either factor alone overflows
    axis = one_dim(dim, input.ndim)
    terms = jnp.flip(jnp.log(g) - jnp.conj(out), axis)
    total = jnp.flip(_complex_logcumsumexp(terms, axis), axis)
    return jnp.exp(total + jnp.conj(input))


logcumsumexp.vjp(input=_logcumsumexp_input)
logcumsumexp.lack(logcumsumexp_out_cpu="bool int")


def _running(input, dim, better):
    dim = one_dim(dim, input.ndim)
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)

    def later(a, b):
        (x, i), (y, j) = a, b
        take = better(y, x)
        if input.dtype.kind == "f" or input.dtype.itemsize == 2 and input.dtype.kind == "V":
            take = (take & ~jnp.isnan(x)) | jnp.isnan(y)
        return jnp.where(take, y, x), jnp.where(take, j, i)

    at = lax.broadcasted_iota(jnp.int64, input.shape, dim)
    if on_cpu() and input.size:
        return _carried(later, (input, at), dim)
    return lax.associative_scan(later, (input, at), axis=dim)


@op(out=SAME_SCALAR)
def cummax(input: Array, dim: int) -> tuple[Array, Array]:
    """The running maximum along a dimension and its last index."""
    return _running(input, dim, jnp.greater_equal)


cummax.guards(input=True)


@op(out=SAME_SCALAR)
def cummin(input: Array, dim: int) -> tuple[Array, Array]:
    """The running minimum along a dimension and its last index."""
    return _running(input, dim, jnp.less_equal)


cummin.guards(input=True)


for _record in (cummax, cummin):
    _record.vjp(input=lambda g, input, out, dim: _add_at(g[0], out[1], input.shape, dim))
    _record.lack(**{f"{_record.name}_cpu": "complex"})


# ---- differences and areas ----


def _slices(x, dim):
    n = x.shape[dim]
    return lax.slice_in_dim(x, 0, n - 1, axis=dim), lax.slice_in_dim(x, 1, n, axis=dim)


def _strides_of_differences(outs, input, n=1, dim=-1, prepend=None, append=None):
    return formats.keep_order(outs, input) if prepend is None and append is None else [None]  # joined, it is dense


@op(name="_diff", where="", strides=_strides_of_differences)
def differences(
    input: Array, n: int = 1, dim: int = -1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """The n-th differences of neighbours along a dimension."""
    dim = one_dim(dim, input.ndim)
    x = jnp.concatenate([p for p in (prepend, input, append) if p is not None], axis=dim)
    for _ in range(builtins.min(n, x.shape[dim])):
        before, after = _slices(x, dim)
        x = before ^ after if x.dtype.kind == "b" else after - before
    return x


differences.grad_name = "SubBackward0"


@op(name="_no_diff", where="", out=SAME_SCALAR, grad_name="CopyBackwards", strides=formats.keep_format)
def no_differences(input: Array) -> Array:
    """A copy: what is there before any difference is taken, and what takes no out= of another dtype."""
    return input


no_differences.check(lambda input: _need_dims(input))


@composite
def diff(
    input: Array, n: int = 1, dim: int = -1, prepend: Array | None = None, append: Array | None = None, *, out=None
):
    """The n-th differences of neighbours along a dimension."""
    keep = {} if out is None else {"out": out}
    if n == 0:
        return no_differences(input, **keep)
    return differences(input, n, dim, prepend, append, **keep)


def _need_dims(input):
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")


@differences.check
def _check_diff(input, n=1, dim=-1, prepend=None, append=None):
    _need_dims(input)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    along = one_dim(dim, input.ndim)
    for more in (prepend, append):
        if more is None:
            continue
        if more.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for d, (have, given) in enumerate(zip(input.shape, more.shape)):
            if d != along and have != given:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({d}) = {have}, but got tensor.size({d}) = {given}"
                )


def _panels(y, x, dim):
    """Twice the areas of the panels, in the dtype that they have: bytes wrap, as PyTorch's do."""
    before, after = _slices(y, dim)
    if x.ndim == 1 and y.ndim > 1:
        x = x.reshape([-1 if d == dim else 1 for d in range(y.ndim)])
    left, right = _slices(x, x.ndim - y.ndim + dim)
    return (before + after) * (right - left)


@op(where="torch", aliases=("trapz",), out=False)
def trapezoid(y: Array, x: Array | None = None, *, dx: Number = 1, dim: int = -1) -> Array:
    """The area under y by the trapezoidal rule."""
    dim = one_dim(dim, y.ndim)
    if y.shape[dim] == 0:
        return jnp.zeros(y.shape[:dim] + y.shape[dim + 1 :], y.dtype)
    if x is not None:
        return to_float(jnp.sum(_panels(y, x, dim), axis=dim)) / 2
    ends = to_float(lax.index_in_dim(y, 0, dim, False) + lax.index_in_dim(y, -1, dim, False))
    return (to_float(jnp.sum(y, axis=dim)) - ends * 0.5) * like(dx, ends)


trapezoid.guards(y=False, x=False)


def _no_bools(record):
    @record.check
    def check(y, x=None, dx=1, dim=-1):
        if x is not None and x.ndim == 1 and y.ndim and x.shape[0] != y.shape[one_dim(dim, y.ndim)]:
            raise RuntimeError(f"{record.name}: There must be one `x` value for each sample point")
        for arg in (y, x):
            if arg is not None and kind(arg) == "b":
                which = "`y`" if x is None else "`x` or `y`"
                raise RuntimeError(f"{record.name}: received a bool input for {which}, but bool is not supported")


trapezoid.grad_name = lambda args: "MulBackward1" if args["x"] is None else "DivBackward1"


@op(where="torch", out=False)
def cumulative_trapezoid(y: Array, x: Array | None = None, *, dx: Number = 1, dim: int = -1) -> Array:
    """The running area under y by the trapezoidal rule."""
    dim = one_dim(dim, y.ndim)
    if y.shape[dim] == 0:
        return to_float(y)
    if x is not None:
        panels = _panels(y, x, dim)
        total = jnp.int64 if kind(panels) == "i" else panels.dtype
        return to_float(jnp.cumsum(panels, axis=dim, dtype=total)) / 2
    before, after = _slices(y, dim)
    both = before + after
    return jnp.cumsum(to_float(both) * (like(dx, to_float(both)) / 2), axis=dim)


cumulative_trapezoid.guards(y=False, x=False)


cumulative_trapezoid.grad_name = lambda args: "CumsumBackward0" if args["x"] is None else "DivBackward1"
for _record in (trapezoid, cumulative_trapezoid):
    _no_bools(_record)


# ---- the gradient of a sampled function ----


@composite(where="torch")
def gradient(input: Array, *, spacing=None, dim=None, edge_order: int = 1):
    """Central differences along each dimension, one-sided at the ends; `spacing`: numbers or coordinates."""
    dims = list(range(input.ndim)) if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
    steps = _steps(input, spacing, dim, len(dims))
    _check_gradient(input, dims, steps, edge_order)
    out = []
    for d, step in zip(dims, steps):
        d = one_dim(d, input.ndim)
        even = is_number(step)
        slope = (_even_slope if even else _uneven_slope)(input, d, step, edge_order)
        out.append(slope)
    return tuple(out)


def _steps(input, spacing, dim, count):
    if spacing is None:
        return [1] * count
    if isinstance(spacing, list | tuple):
        if dim is None and len(spacing) != input.ndim:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {input.ndim}', since dim argument was not given, but got a list of length "
                f"{len(spacing)}"
            )
        if dim is not None and len(spacing) != count:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
                f"the same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
                f"{count}."
            )
        return list(spacing)
    return [spacing if is_number(spacing) else spacing.item()] * count


def _check_gradient(input, dims, steps, edge_order):
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    for step in steps:
        if is_number(step):
            continue
        if step.device != input.device:
            raise RuntimeError(
                "torch.gradient expected each tensor to be on the same device, but got devices "
                f"{input.device} and {step.device}!"
            )
        if step.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{step.ndim} dimensions!"
            )
    for d in all_dims(tuple(dims), input.ndim):
        if input.shape[d] <= edge_order:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


def _even_slope(x, dim, step, edge_order):
    n = x.shape[dim]

    def at(k):
        return x.narrow(dim, k % n, 1)

    parts = [div(sub(x.narrow(dim, 2, n - 2), x.narrow(dim, 0, n - 2)), 2 * step)] if n > 2 else []
    if edge_order == 1:
        first, last = (div(sub(at(k + 1), at(k)), step) for k in (0, n - 2))
    else:
        first = div(at(0) * -3 + at(1) * 4 - at(2), 2 * step)
        last = div(at(n - 1) * 3 - at(n - 2) * 4 + at(n - 3), 2 * step)
    return cat([first, *parts, last], dim)


def _uneven_slope(x, dim, coordinates, edge_order):
    n = x.shape[dim]
    gaps = diff(coordinates)

    def at(k, length=1):
        return x.narrow(dim, k, length)

    def along(values):
        return values.view([-1 if d == dim else 1 for d in range(x.ndim)])

    parts = []
    if n > 2:
        a, b = along(gaps.narrow(0, 0, n - 2)), along(gaps.narrow(0, 1, n - 2))
        inner = at(0, n - 2) * div(-b, a * (a + b)) + at(1, n - 2) * div(b - a, a * b)
        parts = [inner + at(2, n - 2) * div(a, b * (a + b))]
    if edge_order == 1:
        first = div(sub(at(1), at(0)), gaps[0])
        last = div(sub(at(n - 1), at(n - 2)), gaps[n - 2])
    else:
        a, b = gaps[0], gaps[1]
        first = at(0) * div(-(2 * a + b), a * (a + b)) + at(1) * div(a + b, a * b) - at(2) * div(a, b * (a + b))
        a, b = gaps[n - 3], gaps[n - 2]
        last = at(n - 3) * div(b, a * (a + b)) - at(n - 2) * div(a + b, a * b)
        last = last + at(n - 1) * div(2 * b + a, b * (a + b))
    return cat([first, *parts, last], dim)
