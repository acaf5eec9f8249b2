"""Variance and order statistics over dimensions. Knows arrays, never Tensor."""

import builtins
import functools
import math

import jax.numpy as jnp
from jax import lax

from .. import errors
from ..core.shapes import contiguous_strides
from .arithmetic import div, sub
from .conversion import complex, conj, is_number, kind
from .logic import where
from .matmul import matmul
from .order import PASSES, ranked, sorted_with_index
from .reduce import _even_share, _front, _name, _no_empty, _placed, _size, _spread, all_dims, mean, one_dim, sum
from .registry import Array, Scalar, composite, op
from .rounding import clamp
from .transcendental import sqrt

RETURN_FIELDS = {
    "median_dim": ("values", "indices"),
    "nanmedian_dim": ("values", "indices"),
    "mode": ("values", "indices"),
}

# ---- variance ----


def _var_args(dim, unbiased, correction):
    """The three overloads: (unbiased), (dim, unbiased, keepdim) and (dim, *, correction, keepdim)."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, correction


def _moments(input, dim, unbiased, keepdim, correction):
    dim, correction = _var_args(dim, unbiased, correction)
    wide = input.astype(jnp.float32) if input.dtype.itemsize == 2 else input
    dims, n = all_dims(dim, input.ndim), _size(input.shape, dim)
    centre = jnp.sum(wide, axis=dims, keepdims=True) / jnp.asarray(n, wide.dtype)
    gap = wide - _unless_equal(wide, dims, centre)
    square = gap.real**2 + gap.imag**2 if gap.dtype.kind == "c" else gap * gap
    total = jnp.sum(square, axis=dims, keepdims=keepdim)
    spread = total / jnp.asarray(builtins.max(n - correction, 0), total.dtype)
    return spread, centre if keepdim else jnp.squeeze(centre, dims)


def _unless_equal(x, dims, centre):
    """The mean, and the first element where that is next to it: where all are equal their mean is rounded, and a deviation of its
    last bit has a slope of the size of 1, where PyTorch's is flat."""
    if 0 in x.shape:
        return centre
    first = functools.reduce(lambda x, d: lax.slice_in_dim(x, 0, 1, axis=d), dims, x)
    return jnp.where(abs(centre - first) <= 4 * jnp.finfo(x.dtype).eps * abs(first), first, centre)


def _var_input(g, input, dim, unbiased, keepdim, correction):
    dim, correction = _var_args(dim, unbiased, correction)
    left = _size(input.shape, dim) - correction
    factor = 2 / left if left > 0 else math.nan if left < 0 else math.inf
    return _spread(g * factor, input.shape, dim, keepdim) * (input - mean(input, dim, True))


def _std_slope(g, out):
    # torch: flat where the deviation is 0
    return where(out == 0, 0, g / where(out == 0, 1, out * 2))


@op(follows_out="wider")
def var(
    input: Array,
    dim: object = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Array:
    """The variance over the given dimensions: the squared distances from the mean over (n - correction)."""
    out = _moments(input, dim, unbiased, keepdim, correction)[0]
    return _narrow(out, input)


def _narrow(out, input):
    return out.astype(input.dtype) if input.dtype.itemsize == 2 else out


var.vjp(input=_var_input)


@op(follows_out="wider")
def std(
    input: Array,
    dim: object = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Array:
    """The standard deviation over the given dimensions: the root of var."""
    return _narrow(jnp.sqrt(_moments(input, dim, unbiased, keepdim, correction)[0]), input)


std.vjp(
    input=lambda g, input, out, dim, unbiased, keepdim, correction: _var_input(
        _std_slope(g, out), input, dim, unbiased, keepdim, correction
    ),
).transposed = True


@op(where="torch", out=False)
def var_mean(
    input: Array,
    dim: object = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Array, Array]:
    """The variance and the mean over the given dimensions."""
    out, centre = _moments(input, dim, unbiased, keepdim, correction)
    return _narrow(out, input), _narrow(centre, input)


@op(where="torch", out=False)
def std_mean(
    input: Array,
    dim: object = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Array, Array]:
    """The standard deviation and the mean over the given dimensions."""
    out, centre = _moments(input, dim, unbiased, keepdim, correction)
    return _narrow(jnp.sqrt(out), input), _narrow(centre, input)


def _mean_part(g, input, dim, keepdim):
    dim = None if isinstance(dim, bool) else dim
    return _spread(g / (_size(input.shape, dim) or math.nan), input.shape, dim, keepdim)


var_mean.vjp(
    input=lambda g, input, dim, unbiased, keepdim, correction: (
        _var_input(g[0], input, dim, unbiased, keepdim, correction) + _mean_part(g[1], input, dim, keepdim)
    ),
)
std_mean.vjp(
    input=lambda g, input, out, dim, unbiased, keepdim, correction: (
        _var_input(_std_slope(g[0], out[0]), input, dim, unbiased, keepdim, correction)
        + _mean_part(g[1], input, dim, keepdim)
    ),
)


def _checked(record, words):
    @record.check
    def check(input, dim=None, unbiased=None, keepdim=False, correction=None):
        if kind(input) in "bi":
            raise RuntimeError(words)
        if unbiased is not None and correction is not None:
            wanted = "(Tensor input, dim, bool unbiased, ...) or (Tensor input, dim, *, Number correction, ...)"
            raise errors.combination(record.name, (input,), wanted, {"correction": correction, "unbiased": unbiased})
        dim, correction = _var_args(dim, unbiased, correction)
        if (_size(input.shape, dim) if all(input.shape) else 0) <= correction:
            # PyTorch says so at each call; here it is said once for each kind of operands.
            errors.warn(
                f"{record.name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
                "(input numel divided by output numel)."
            )


for _record in (var, std):
    _checked(_record, "std and var only support floating point and complex dtypes")
for _record in (var_mean, std_mean):
    _checked(_record, f"{_record.name} only support floating point and complex dtypes")


# ---- order statistics ----


def _median(input, dim, keepdim, skip_nan):
    if input.ndim == 0:
        one_dim(dim, 0)
        return input, jnp.zeros((), jnp.int64)
    dim = one_dim(dim, input.ndim)
    size = input.shape[dim]
    middle = jnp.full([1 if d == dim else n for d, n in enumerate(input.shape)], (size - 1) // 2, jnp.int64)
    if input.dtype.kind not in "biu":
        numbers = jnp.sum(~jnp.isnan(input), axis=dim, keepdims=True, dtype=jnp.int64)
        if skip_nan:
            middle = jnp.maximum(numbers - 1, 0) // 2
        else:
            middle = jnp.where(numbers < size, numbers, middle)  # the first nan
    return tuple(x if keepdim else jnp.squeeze(x, dim) for x in ranked(input, dim, middle))


def _of_none(dtype):
    """The median of nothing: nan, and what PyTorch's cast makes of it."""
    return jnp.asarray(jnp.nan if dtype.kind not in "biu" else jnp.iinfo(dtype).min if dtype.itemsize > 2 else 0, dtype)


@op(where="", grad_name="MedianBackward0")
def median_all(input: Array) -> Array:
    """The lower median of all elements; nan if there is one."""
    if not input.size:
        return _of_none(input.dtype)
    return _median(input.reshape(-1), 0, False, False)[0]


@op(where="", grad_name="NanmedianBackward0")
def nanmedian_all(input: Array) -> Array:
    """The lower median of the elements that are not nan."""
    if not input.size:
        return _of_none(input.dtype)
    return _median(input.reshape(-1), 0, False, True)[0]


@op(where="", grad_name="MedianBackward1")
def median_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower median along a dimension and its index; nan if there is one."""
    return _median(input, dim, keepdim, False)


@op(where="", grad_name="NanmedianBackward1")
def nanmedian_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower median along a dimension, and its index, of the elements that are not nan."""
    return _median(input, dim, keepdim, True)


for _record in (median_all, nanmedian_all, median_dim, nanmedian_dim):
    _record.passes = PASSES
for _record in (median_all, nanmedian_all):
    _record.lack(median_cpu="bool complex")
    _record.vjp(input=lambda g, input, out: _even_share(g, input, out, None, False))
for _record in (median_dim, nanmedian_dim):
    _record.lack(median_out="bool complex")
    _record.vjp(input=_placed)
    _no_empty(_record)


_MEDIAN_OUT = (
    "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type torch.{have}Tensor does not "
    "equal torch.{want}Tensor (while checking arguments for median)",
    "Expected tensor for argument #1 'indices' to have scalar type {want}; but got torch.{have}Tensor instead "
    "(while checking arguments for median)",
)


@composite(out=_MEDIAN_OUT)
def median(input: Array, dim: int | None = None, keepdim: bool = False):
    """median(input), or median(input, dim, keepdim=False) -> (values, indices): the lower median."""
    return median_all(input) if dim is None else median_dim(input, dim, keepdim)


@composite(out=_MEDIAN_OUT)
def nanmedian(input: Array, dim: int | None = None, keepdim: bool = False):
    """As median, over the elements that are not nan."""
    return nanmedian_all(input) if dim is None else nanmedian_dim(input, dim, keepdim)


_MODE_OUT = "expected scalar type '{want}' but got '{have}' for %s output"


@op(lacks={"mode_cpu": "complex"}, out=(_MODE_OUT % "values", _MODE_OUT % "indices"))
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The most frequent value along a dimension, the smallest of several, and its last index."""
    dim = one_dim(dim, input.ndim)
    if input.ndim == 0:
        return input, jnp.zeros((), jnp.int64)
    values, at = sorted_with_index(input, dim)
    place = lax.broadcasted_iota(jnp.int64, input.shape, dim)
    before = jnp.roll(values, 1, axis=dim)
    start = lax.cummax(jnp.where((values != before) | (place == 0), place, 0), axis=dim)
    end = jnp.argmax(place - start, axis=dim, keepdims=True)
    picked = [jnp.take_along_axis(x, end, axis=dim) for x in (values, at)]
    return tuple(x if keepdim else jnp.squeeze(x, dim) for x in picked)


mode.vjp(input=_placed)
_no_empty(mode)


_INTERPOLATION = ("linear", "lower", "higher", "nearest", "midpoint")


def _quantile(input, q, dim, keepdim, interpolation, skip_nan):
    shape = input.shape
    x = input.reshape(-1) if dim is None else jnp.moveaxis(_front(input), one_dim(dim, input.ndim), -1)
    x = sorted_with_index(x, x.ndim - 1)[0]
    q = jnp.asarray(q, x.dtype)
    numbers = jnp.sum(~jnp.isnan(x), axis=-1, keepdims=True)
    last = (jnp.maximum(numbers, 1) if skip_nan else jnp.full_like(numbers, x.shape[-1])) - 1
    rank = q.reshape(-1) * last.astype(x.dtype)
    if not skip_nan:  # one nan is the quantile, and the gradient its own: nans are the last
        rank = jnp.where(numbers < x.shape[-1], last.astype(x.dtype), rank)
    if interpolation == "nearest":
        rank = jnp.round(rank)
    elif interpolation == "lower":
        rank = jnp.floor(rank)
    elif interpolation == "higher":
        rank = jnp.ceil(rank)
    below = jnp.floor(rank)
    low, high = (jnp.take_along_axis(x, r.astype(jnp.int64), axis=-1) for r in (below, jnp.ceil(rank)))
    if interpolation in ("linear", "midpoint"):
        share = jnp.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
        out = jnp.where(share < 0.5, low + share * (high - low), high - (high - low) * (1 - share))
    else:
        out = low
    out = jnp.moveaxis(out, -1, 0)  # (q, ...)
    if keepdim:
        kept = (1,) * len(shape) if dim is None else _with_one(shape, dim)
        out = out.reshape((out.shape[0], *kept))
    return out if q.ndim else out[0]


def _with_one(shape, dim):
    if not shape:
        return ()
    dim = one_dim(dim, len(shape))
    return tuple(1 if d == dim else n for d, n in enumerate(shape))


def _quantile_strides(outs, input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The quantiles of one slice lie side by side."""
    if is_number(q) or not q.ndim:
        return (None,)
    return ((1, *(s * q.shape[0] for s in contiguous_strides(outs[0].shape[1:]))),)


@op(out="quantile() out tensor must be same dtype as the input tensor", strides=_quantile_strides)
def quantile(
    input: Array, q: Scalar, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Array:
    """The q-th quantiles, interpolated between the neighbours; nan if there is one."""
    return _quantile(input, q, dim, keepdim, interpolation, False)


quantile.guards(input=False)


@op(out="quantile() out tensor must be same dtype as the input tensor", strides=_quantile_strides)
def nanquantile(
    input: Array, q: Scalar, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Array:
    """The q-th quantiles of the elements that are not nan."""
    return _quantile(input, q, dim, keepdim, interpolation, True)


nanquantile.guards(input=False)


@quantile.check
def _check_quantile(input, q, dim=None, keepdim=False, interpolation="linear"):
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if not is_number(q) and q.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not is_number(q) and len(q.shape) > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if interpolation not in _INTERPOLATION:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if 0 in input.shape:
        raise RuntimeError("quantile() input tensor must be non-empty")


def _check_rank(input, q, dim=None, keepdim=False, interpolation="linear"):
    if is_number(q) and not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")


nanquantile.check(_check_quantile)
for _record in (quantile, nanquantile):
    _record.check_values(_check_rank)
    _record.grad_name = "SqueezeBackward4"


# ---- covariance ----


@composite
def cov(input: Array, *, correction: int = 1, fweights: Array | None = None, aweights: Array | None = None):
    """The covariances of the rows of a matrix, whose columns are observations with whole and with real weights."""
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if kind(input) == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.ndim < 2 else input
    n = x.shape[1]
    weights = _weights(fweights, aweights, n)
    total = n if weights is None else sum(weights)
    weighted = x if weights is None else x * weights
    x = sub(x, div(sum(weighted, 1, True), total))
    other = x if weights is None else x * weights
    left = _degrees(total, weights, aweights, correction)
    products = matmul(x, conj(other.t()))
    return div(products, left if not is_number(left) or left else products.new_zeros(())).squeeze()


def _degrees(total, weights, aweights, correction):
    """The divisor of the products, not below 0."""
    if weights is None:
        if total - correction <= 0:
            errors.warn(
                "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."
            )
        return builtins.max(total - correction, 0)
    taken = correction
    if correction != 0 and aweights is not None:
        taken = div(sum(weights * aweights), total) * correction
    left = sub(total, taken)
    return where(left <= 0, 0, left)


def _weights(fweights, aweights, n):
    """The product of the weights; None without any."""
    for name, w, kinds, words in (
        ("fweights", fweights, "i", "integral"),
        ("aweights", aweights, "f", "floating point"),
    ):
        if w is None:
            continue
        if w.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions"
            )
        if kind(w) not in kinds:
            raise RuntimeError(f"cov(): expected {name} to have {words} dtype but got {name} with {_name(w)} dtype")
        if w.numel() != n:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{w.numel()} != {n}"
            )
        if n and (w < 0).any().item():
            raise RuntimeError(f"cov(): {name} cannot be negative")
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


@composite
def corrcoef(input: Array):
    """The correlation coefficients of the rows of a matrix, whose columns are observations."""
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    out = cov(input)
    if out.ndim == 0:
        return div(out, out)
    spread = sqrt(out.diag().real if kind(out) == "c" else out.diag())
    out = div(div(out, spread.view(-1, 1)), spread.view(1, -1))
    if kind(out) == "c":
        return complex(clamp(out.real, -1, 1), clamp(out.imag, -1, 1))
    return clamp(out, -1, 1)
