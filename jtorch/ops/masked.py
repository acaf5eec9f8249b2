"""torch.masked: reductions and normalisations of the elements that a mask keeps, written with other ops."""

import math

import numpy as np

from .. import errors
from ..core import dtype as dtypes
from . import activation, linalg
from .arithmetic import div, mul, sub
from .conversion import conj, kind, to_dtype
from .logic import isnan, where
from .reduce import (
    all_dims,
    amax,
    amin,
    any,
    argmax,
    argmin,
    logsumexp,
    mean,
    prod,
    sum,
)
from .registry import composite
from .rounding import maximum
from .scans import cumprod, cumsum
from .statistics import nanmedian_dim
from .transcendental import logaddexp, sqrt
from .views import expand

# ---- masks and what takes the place of a masked element ----


def _lowest(dtype, name):
    return _extreme(dtype, name, -1)


def _highest(dtype, name):
    return _extreme(dtype, name, 1)


def _extreme(dtype, name, sign):
    if dtype.category == dtypes.BOOL:
        raise NotImplementedError(f"identity of {name} on {dtype!r} input")
    if dtype.category == dtypes.COMPLEX:
        raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
    if dtype.category == dtypes.FLOAT:
        return sign * math.inf
    info = np.iinfo(dtype.np)
    return int(info.max if sign > 0 else info.min)


def _mask(input, mask):
    """The mask in the shape of the input, as bools."""
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return to_dtype(expand(mask, tuple(input.shape)), dtype=dtypes.bool_)


def _filled(input, mask, fill):
    """`input` with `fill`, a number or fill(dtype), where the mask holds not."""
    if mask is None:
        return input
    number = fill(input.dtype) if callable(fill) else fill
    if kind(input) == "b":
        number = bool(number)
    return where(_mask(input, mask), input, number)


def _dims(dim, ndim):
    """The reduced dimensions in order; () reduces all, and a 0-d tensor has none."""
    return tuple(sorted(all_dims(dim, ndim)))


def _cast(x, dtype):
    return x if x.dtype is dtype else to_dtype(x, dtype=dtype)


# ---- reductions ----


def _sum_dtype(input, dtype):
    if dtype is not None:
        return dtype
    return dtypes.int64 if kind(input) in "bi" else input.dtype


@composite(name="masked.sum", where="masked.sum")
def masked_sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the elements that the mask keeps."""
    dtype = _sum_dtype(input, dtype)
    return sum(_filled(input, mask, 0), _dims(dim, input.ndim), bool(keepdim), dtype=dtype)


@composite(name="masked.prod", where="masked.prod")
def masked_prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the elements that the mask keeps."""
    dtype = _sum_dtype(input, dtype)
    out = _filled(input, mask, 1)
    for d in reversed(_dims(dim, input.ndim)):
        out = prod(out, d, bool(keepdim))
    return _cast(out, dtype)


@composite(name="masked.cumsum", where="masked.cumsum")
def masked_cumsum(input, dim, *, dtype=None, mask=None):
    """The running sum of the elements that the mask keeps."""
    return _scan(cumsum, input, dim, dtype, _filled(input, mask, 0))


@composite(name="masked.cumprod", where="masked.cumprod")
def masked_cumprod(input, dim, *, dtype=None, mask=None):
    """The running product of the elements that the mask keeps."""
    return _scan(cumprod, input, dim, dtype, _filled(input, mask, 1))


def _scan(record, input, dim, dtype, filled):
    dtype = input.dtype if dtype is None else dtype
    if dtype is dtypes.bool_:
        raise errors.not_implemented(f"{record.name}_out_cpu", dtype)
    return record(filled, _first_dim(dim, input.ndim), dtype=dtype)


def _first_dim(dim, ndim):
    dims = _dims(dim, ndim)
    return dims[0] if dims else 0


@composite(name="masked.amax", where="masked.amax")
def masked_amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest of the elements that the mask keeps."""
    filled = _filled(input, mask, lambda d: _lowest(d, "amax"))
    return _cast(amax(filled, _dims(dim, input.ndim), bool(keepdim)), dtype or input.dtype)


@composite(name="masked.amin", where="masked.amin")
def masked_amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest of the elements that the mask keeps."""
    filled = _filled(input, mask, lambda d: _highest(d, "amin"))
    return _cast(amin(filled, _dims(dim, input.ndim), bool(keepdim)), dtype or input.dtype)


@composite(name="masked.argmax", where="masked.argmax")
def masked_argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the largest of the elements that the mask keeps, in the dtype of the input."""
    filled = _filled(input, mask, lambda d: _lowest(d, "argmax"))
    return _cast(argmax(filled, dim, bool(keepdim)), dtype or input.dtype)


@composite(name="masked.argmin", where="masked.argmin")
def masked_argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the smallest of the elements that the mask keeps, in the dtype of the input."""
    filled = _filled(input, mask, lambda d: _highest(d, "argmin"))
    return _cast(argmin(filled, dim, bool(keepdim)), dtype or input.dtype)


@composite(name="masked.mean", where="masked.mean")
def masked_mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the elements that the mask keeps; nan where there is none."""
    wanted = input.dtype if dtype is None else dtype
    if wanted.category <= dtypes.INT:
        which = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {wanted!r}"
        )
    dims = _dims(dim, input.ndim)
    if mask is None:
        return mean(input, dims, bool(keepdim), dtype=wanted)
    total = masked_sum(input, dims, keepdim=keepdim, dtype=wanted, mask=mask)
    return div(total, _count(input, dims, keepdim, mask))


def _count(input, dims, keepdim, mask):
    """How many elements of each reduced slice the mask keeps."""
    if mask is None:
        return math.prod(input.shape[d] for d in dims)
    return sum(_mask(input, mask), dims, bool(keepdim), dtype=dtypes.int64)


@composite(name="masked.median", where="masked.median")
def masked_median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median of the elements that the mask keeps; nan where there is none."""
    dtype = input.dtype if dtype is None else dtype
    dim = _first_dim(dim, input.ndim)
    exact = kind(input) == "f"
    x = input if exact else to_dtype(input, dtype=dtypes.float32)
    out = nanmedian_dim(_filled(x, mask, math.nan), dim, bool(keepdim))[0]
    if exact:
        return out
    if bool(any(isnan(out))):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return _cast(out, dtype)


@composite(name="masked.logsumexp", where="masked.logsumexp")
def masked_logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(input))) over the elements that the mask keeps."""
    filled = _filled(input, mask, lambda d: -math.inf if d.is_complex else _lowest(d, "logsumexp"))
    return _cast(logsumexp(filled, _dims(dim, input.ndim), bool(keepdim)), dtype or input.dtype)


@composite(name="masked.logaddexp", where="masked.logaddexp")
def masked_logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)) of the elements that each mask keeps."""
    parts = [_filled(x, m, lambda d: _lowest(d, "logaddexp")) for x, m in ((input, input_mask), (other, other_mask))]
    return _cast(logaddexp(*parts), dtype or input.dtype)


@composite(name="masked.norm", where="masked.norm")
def masked_norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The norm of the elements that the mask keeps."""
    fill = (lambda d: _highest(d, "norm")) if ord == -math.inf else 0
    filled = _filled(input, mask, fill)
    return linalg.vector_norm(filled, ord, _dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None else int(bool(unbiased))
    dtype = input.dtype if dtype is None else dtype
    if dtype.category <= dtypes.INT:
        dtype = dtypes.float32
    dims = _dims(dim, input.ndim)
    count = _count(input, dims, True, mask)
    gap = sub(input, div(masked_sum(input, dims, keepdim=True, dtype=dtype, mask=mask), count))
    total = masked_sum(mul(gap, conj(gap)), dims, keepdim=keepdim, dtype=dtype, mask=mask)
    if mask is None:
        left = max(count - correction, 0)
        return div(total, left) if left else div(total, total.new_zeros(()))
    left = sub(_count(input, dims, keepdim, mask), correction)
    return _cast(div(total, maximum(left, left.new_zeros(()))), dtype)


@composite(name="masked.var", where="masked.var")
def masked_var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the elements that the mask keeps."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@composite(name="masked.std", where="masked.std")
def masked_std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation of the elements that the mask keeps."""
    return sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))


# ---- normalisations ----


@composite(name="masked.softmax", where="masked.softmax")
def masked_softmax(input, dim, *, dtype=None, mask=None):
    """The softmax of the elements that the mask keeps; 0 for the others."""
    filled = _filled(input, mask, lambda d: _lowest(d, "amax"))
    return activation.softmax(filled, _first_dim(dim, input.ndim), dtype=dtype or input.dtype)


@composite(name="masked.log_softmax", where="masked.log_softmax")
def masked_log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of masked.softmax."""
    filled = _filled(input, mask, lambda d: _lowest(d, "amax"))
    return activation.log_softmax(filled, _first_dim(dim, input.ndim), dtype=dtype or input.dtype)


@composite(name="masked.softmin", where="masked.softmin")
def masked_softmin(input, dim, *, dtype=None, mask=None):
    """The softmax of the negative of the elements that the mask keeps; 0 for the others."""
    filled = _filled(input, mask, lambda d: _highest(d, "amin"))
    return activation.softmax(-filled, _first_dim(dim, input.ndim), dtype=dtype or input.dtype)


@composite(name="masked.normalize", where="masked.normalize")
def masked_normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The elements that the mask keeps, divided by their norm along a dimension; 0 for the others."""
    size = masked_norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return div(_filled(input, mask, 0), maximum(size, size.new_full((), eps)))
