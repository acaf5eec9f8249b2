"""Sums, extremes and norms over dimensions. Knows arrays, never Tensor."""

import builtins
import functools
import math
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import errors
from ..core import dtype as dtypes
from ..tracebacks import shorten
from .arithmetic import div, sub, true_divide
from .backend import NARROW, accumulator, check_norm_dtype, conjugate, differentiated_as, extreme_over, on_cpu, sum_over
from .conversion import _zero, conj_of, convert, is_foreign, kind, opmath, to_float
from .logic import isnan, logical_not, logical_or, where
from .quotients import quotient
from .registry import Array, composite, op
from .rounding import abs, maximum, minimum, sgn
from .transcendental import exp, pow

RETURN_FIELDS = {
    "max_dim": ("values", "indices"),
    "min_dim": ("values", "indices"),
    "aminmax": ("min", "max"),
}

# ---- dimensions ----


def one_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; a 0-d tensor has one of size 1."""
    dim = operator.index(dim)
    n = builtins.max(ndim, 1)
    if not -n <= dim < n:
        raise errors.dim_range(dim, ndim)
    return dim % n


def all_dims(dim, ndim: int) -> tuple[int, ...]:
    """The reduced dimensions: None and () mean all of them."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    if ndim > 64:  # PyTorch keeps the set of dimensions in 64 bits
        raise RuntimeError("only tensors with up to 64 dims are supported")
    dims = [one_dim(d, ndim) for d in (dim if isinstance(dim, tuple | list) else (dim,))]
    for i, d in enumerate(dims):
        if d in dims[:i]:
            raise errors.repeated_dim(d)
    return tuple(d for d in dims if d < ndim)


def _size(shape, dim) -> int:
    return math.prod(shape[d] for d in all_dims(dim, len(shape)))


def _named(all_name, dim_name):
    """PyTorch numbers the node by overload: the whole tensor, or given dimensions."""
    return lambda args: all_name if args["dim"] is None else dim_name


def _front(x):
    """At least one dimension, for kernels along a dimension."""
    return x[None] if x.ndim == 0 else x


def _restore_dims(x, shape, dim, keepdim):
    return x if keepdim else jnp.expand_dims(x, all_dims(dim, len(shape)))


@op(where="", name="_spread", out=False)
def _spread(input: Array, shape: tuple, dim: object, keepdim: bool) -> Array:
    """A reduced tensor repeated over the dimensions that were reduced."""
    return jnp.broadcast_to(_restore_dims(input, shape, dim, keepdim), tuple(shape))


_spread.vjp(input=lambda g, dim, keepdim: sum(g, dim, keepdim))


@op(where="", name="_even_share", out=False)
def _even_share(g: Array, input: Array, out: Array, dim: object, keepdim: bool) -> Array:
    """g divided evenly among the elements equal to the result."""
    dims = all_dims(dim, input.ndim)
    g, out = (_restore_dims(x, input.shape, dim, keepdim) for x in (g, out))
    hit = input == out
    if kind(input) == "f":
        hit = hit | (jnp.isnan(input) & jnp.isnan(out))
    count = jnp.sum(hit, axis=dims, keepdims=True)
    return jnp.where(hit, g / jnp.maximum(count, 1).astype(g.dtype), jnp.zeros((), g.dtype))


_even_share.vjp(
    g=lambda g, input, out, dim, keepdim: _even_gather(g, input, out, dim, keepdim),
)


@op(where="", name="_equal_share", out=False)
def _equal_share(g: Array, input: Array, out: Array, dim: object, keepdim: bool) -> Array:
    """The same where nan is equal to nothing: nan for all elements over which the result is nan."""
    g, out = (_restore_dims(x, input.shape, dim, keepdim) for x in (g, out))
    hit = (input == out).astype(g.dtype)
    count = jnp.sum(hit, axis=all_dims(dim, input.ndim), keepdims=True)
    # Said outright: where g is known to XLA it takes a hit that is false for 0, whatever it is divided by.
    return jnp.where(count == 0, jnp.nan, g * hit / count).astype(g.dtype)


@op(where="", name="_even_gather", out=False)
def _even_gather(g: Array, input: Array, out: Array, dim: object, keepdim: bool) -> Array:
    """The transpose of _even_share: the mean of g over the elements equal to the result."""
    share = _even_share.fn(jnp.ones(out.shape, g.dtype), input, out, dim, keepdim)
    return jnp.sum(g * share, axis=all_dims(dim, input.ndim), keepdims=keepdim)


_even_gather.vjp(g=lambda g, input, out, dim, keepdim: _even_share(g, input, out, dim, keepdim))


@op(where="", name="_place", out=False)
def _place(g: Array, indices: Array, shape: tuple, dim: int, keepdim: bool) -> Array:
    """Zeros of `shape` with g at the chosen index of each slice."""
    if not len(shape):
        return g
    dim = one_dim(dim, len(shape))
    if not keepdim:
        g, indices = jnp.expand_dims(g, dim), jnp.expand_dims(indices, dim)
    at = lax.broadcasted_iota(indices.dtype, tuple(shape), dim)
    return jnp.where(at == indices, g, jnp.zeros((), g.dtype))


@op(where="", name="_add_at", out=False)
def _add_at(g: Array, indices: Array, shape: tuple, dim: int) -> Array:
    """Zeros of `shape` with each element of g added at its index along the dimension."""
    if not len(shape):
        return g
    zeros = jnp.zeros(tuple(shape), g.dtype)
    dim = one_dim(dim, len(shape))
    where_ = [lax.broadcasted_iota(indices.dtype, indices.shape, d) for d in range(indices.ndim)]
    where_[dim] = indices
    return zeros.at[tuple(where_)].add(g)


def _no_empty(record):
    """PyTorch cannot reduce nothing to a maximum."""

    @record.check
    def check(input, dim=None, *args, **kwargs):
        check_not_empty(record.name.split("_")[0], input, dim)


def check_not_empty(name, input, dim):
    if 0 not in input.shape:
        return
    if dim is None or dim == ():
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    for d in all_dims(dim, len(input.shape)):
        if input.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def general_cast(words):
    """A rule for out=: what can be cast may be, in an op's own words otherwise."""

    def rule(want, have):
        if not dtypes.can_cast(want, have):
            raise errors.out_dtype(want, have, words)

    return rule


# ---- sums, means and products ----


def _sum_dtype(x, dtype):
    if dtype is not None:
        return dtype.np
    return np.dtype(np.int64) if x.dtype.kind in "biu" else x.dtype


# pieces, and elements from which on there are some: of a product, of a sum
FOLDS, MANY_FACTORS, MANY_WHOLES = 16, 1 << 9, 1 << 12


def _pieces(x, dims, many):
    """Equal parts of what lies along the last dimensions, to be combined with each other elementwise before they are reduced: XLA goes one by
    one along the last dimension of products and of whole numbers. None where that is no gain."""
    kept = x.shape[: x.ndim - len(dims)]
    count = math.prod(x.shape[len(kept) :])
    folds = math.gcd(count, FOLDS)
    if not on_cpu() or folds == 1 or x.size < many or count < MANY_FACTORS or dims != tuple(range(len(kept), x.ndim)):
        return None
    parts = lax.split(x.reshape(*kept, folds, -1), (1,) * folds, axis=len(kept))
    return [lax.squeeze(part, (len(kept),)) for part in parts]


def _with_ones(found, x, dims, keepdims):
    return found.reshape(*x.shape[: x.ndim - len(dims)], *((1,) * len(dims) if keepdims else ()))


def _count(mask, dims, keepdims=False):
    """How many are true, as int64: added up in int8 and int32 where these suffice, in a tenth of the time."""
    short = np.int32 if mask.size < 1 << 31 else np.int64
    pieces = _pieces(mask, dims, MANY_WHOLES)
    if pieces is None:
        return jnp.sum(mask, axis=dims, keepdims=keepdims, dtype=short).astype(np.int64)
    few = functools.reduce(operator.add, (piece.astype(np.int8) for piece in pieces))
    return _with_ones(jnp.sum(few, -1, dtype=short), mask, dims, keepdims).astype(np.int64)


def _whole_sum(x, dims, keepdims, dtype):
    """The sum of integers."""
    pieces = _pieces(x, dims, MANY_WHOLES) if len(dims) == x.ndim else None
    if pieces is None:
        return sum_over(x.astype(dtype), dims, keepdims)
    total = functools.reduce(operator.add, (piece.astype(dtype) for piece in pieces))
    return _with_ones(jnp.sum(total, -1, dtype=dtype), x, dims, keepdims)


@op(grad_name=_named("SumBackward0", "SumBackward1"), follows_out=True)
def sum(input: Array, dim: int | tuple | None = None, keepdim: bool = False, *, dtype: object = None) -> Array:
    """The sum over the given dimensions; of integers as int64."""
    if input.dtype == np.bool_ and _sum_dtype(input, dtype) == np.int64:
        return _count(input, all_dims(dim, input.ndim), keepdim)
    if input.dtype.kind in "iu" and _sum_dtype(input, dtype).kind in "iu":
        return _whole_sum(input, all_dims(dim, input.ndim), keepdim, _sum_dtype(input, dtype))
    x = convert(input, _sum_dtype(input, dtype))
    return sum_over(x.astype(accumulator(x.dtype)), all_dims(dim, input.ndim), keepdim).astype(x.dtype)


sum.vjp(input=lambda g, input, dim, keepdim: _spread(g, input.shape, dim, keepdim))


def _real_nansum(input, dim=None, keepdim=False, dtype=None):
    if kind(input) == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")


def _nansum_out(want, have):
    if want.category > dtypes.INT and (have.category == dtypes.COMPLEX or have.category <= dtypes.INT):
        raise errors.not_implemented("nansum_cpu", have)


@op(out=_nansum_out, follows_out="wider")
def nansum(input: Array, dim: int | tuple | None = None, keepdim: bool = False, *, dtype: object = None) -> Array:
    """The sum over the given dimensions, nan counted as 0."""
    if input.dtype.kind not in "biu":
        input = jnp.where(jnp.isnan(input), jnp.zeros((), input.dtype), input)
    return sum.fn(input, dim, keepdim, dtype=dtype)


nansum.check(_real_nansum)
nansum.vjp(
    input=lambda g, input, dim, keepdim: where(isnan(input), 0.0, _spread(g, input.shape, dim, keepdim)),
)


@op(
    grad_name=_named("MeanBackward0", "MeanBackward1"),
    out=general_cast("mean.dtype_out(): input types can't be cast to the desired output type {have}"),
    follows_out="wider",
)
def mean(input: Array, dim: int | tuple | None = None, keepdim: bool = False, *, dtype: object = None) -> Array:
    """The mean over the given dimensions."""
    x = input if dtype is None else convert(input, dtype.np)
    n = _size(x.shape, dim)
    wide = x.astype(jnp.float32) if x.dtype.itemsize == 2 else x
    return quotient(sum_over(wide, all_dims(dim, x.ndim), keepdim), np.asarray(n, wide.dtype)).astype(x.dtype)


mean.vjp(
    input=lambda g, input, dim, keepdim: _spread(
        true_divide(g, np.asarray(_size(input.shape, dim) or math.nan, g.dtype)), input.shape, dim, keepdim
    )
)


def _check_mean(input, dim=None, keepdim=False, dtype=None):
    wanted = input.dtype if dtype is None else dtype
    if wanted.category <= dtypes.INT:
        what = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {what} dtype must be either a floating point or complex dtype. "
            f"Got: {dtypes.scalar_name(wanted)}"
        )


mean.check(_check_mean)


@composite(out=_nansum_out)
def nanmean(input: Array, dim=None, keepdim: bool = False, *, dtype=None):
    """The mean over the given dimensions of the elements that are not nan."""
    if kind(input) in "bi":
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but got " + _name(input))
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {dtypes.scalar_name(dtype)}"
        )
    count = sum(logical_not(isnan(input)), dim, keepdim)
    return div(nansum(input, dim, keepdim, dtype=dtype), count)


def _name(x):
    d = x.dtype if isinstance(x.dtype, dtypes.dtype) else dtypes.of(x.dtype)
    return dtypes.scalar_name(d)


def _product(x, dims, keepdims):
    """The product over dimensions."""
    pieces = _pieces(x, dims, MANY_FACTORS)
    if pieces is None:
        return jnp.prod(x, axis=dims, keepdims=keepdims, dtype=accumulator(x.dtype))
    pieces = [piece.astype(accumulator(x.dtype)) for piece in pieces]
    product = jnp.prod(functools.reduce(operator.mul, pieces), axis=-1, dtype=pieces[0].dtype)
    return _with_ones(product, x, dims, keepdims)


@op(grad_name=_named("ProdBackward0", "ProdBackward1"), follows_out=True)
def prod(input: Array, dim: int | None = None, keepdim: bool = False, *, dtype: object = None) -> Array:
    """The product over a dimension, or of all elements."""
    x = convert(input, _sum_dtype(input, dtype))
    return _product(x, all_dims(dim, input.ndim), keepdim).astype(x.dtype)


@op(where="", out=False)
def _other_factors(g: Array, input: Array, out: Array, dim: int | None, keepdim: bool) -> Array:
    """g times the product of the other elements: the result over the element, where that is not zero."""
    if not input.ndim:
        return g
    dims, wide = all_dims(dim, input.ndim), accumulator(g.dtype)
    g, out = (_restore_dims(x.astype(wide), input.shape, dim, keepdim) for x in (g, out))

    def from_result(g, x, out):
        zero = x == 0
        one, count = jnp.ones((), x.dtype), jnp.sum(zero, dims, keepdims=True, dtype=np.int32)
        rest = jnp.prod(jnp.where(zero, one, x), dims, keepdims=True)  # a single zero's factor
        return g * conjugate(jnp.where(zero, jnp.where(count == 1, rest, out), out / jnp.where(zero, one, x)))

    def anew(g, x, out):  # what jax derives multiplies the others: right at every order, and without conjugates
        return conjugate(jax.vjp(lambda x: jnp.prod(x, dims, keepdims=True), x)[1](conjugate(g))[0])

    return differentiated_as(from_result, anew)(g, convert(input, wide), out)


prod.vjp(input=lambda g, input, out, dim, keepdim: _other_factors(g, input, out, dim, keepdim))
prod.guards(out=True)
for _record in (sum, nansum, prod):
    _record.keeps_history = 1


def _logsumexp_out(want, have):
    if have.category < dtypes.FLOAT:
        raise RuntimeError(
            f"logsumexp(): Expected floating point type for result tensor, but got: {dtypes.scalar_name(have)}"
        )


@op(out=_logsumexp_out, follows_out="wider")
@opmath
def logsumexp(input: Array, dim: int | tuple | None, keepdim: bool = False) -> Array:
    """log(sum(exp(input))) over the given dimensions, without overflow."""
    input = to_float(input)
    dims = all_dims(dim, input.ndim)
    if input.size == 0:
        return jnp.log(jnp.sum(jnp.exp(input), axis=dims, keepdims=keepdim))
    top = jnp.max(jnp.real(input), axis=dims, keepdims=True)
    top = lax.stop_gradient(jnp.where(jnp.isfinite(top), top, jnp.zeros_like(top)))
    total = jnp.sum(jnp.exp(input - top), axis=dims, keepdims=True)
    out = jnp.log(total) + top
    return out if keepdim else jnp.squeeze(out, dims)


logsumexp.targets.append("special.logsumexp")
logsumexp.vjp(
    input=lambda g, input, out, dim, keepdim: (
        _spread(g, input.shape, dim, keepdim) * conj_of(exp(input - _spread(out, input.shape, dim, keepdim)))
    ),
)


@op(differentiable=False, out=False)
def count_nonzero(input: Array, dim: int | tuple | None = None) -> Array:
    """The number of non-zero elements over the given dimensions."""
    return _count(input != 0, all_dims(dim, input.ndim))


def _truth(fn):
    def kernel(input, dim, keepdim):
        dims = () if dim == () else all_dims(dim, input.ndim)  # here () reduces nothing
        out = fn(input if input.dtype == bool else input != 0, axis=dims, keepdims=keepdim)
        return out.astype(input.dtype) if input.dtype == np.uint8 else out  # uint8 was the bool of old

    return kernel


def _truth_out(name):
    def rule(want, have):
        if have is not dtypes.bool_ and have is not dtypes.uint8:
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {dtypes.scalar_name(have)}")

    return rule


_any, _all = _truth(jnp.any), _truth(jnp.all)


@op(differentiable=False, out=_truth_out("any"))
def any(input: Array, dim: int | tuple | None = None, keepdim: bool = False) -> Array:
    """Whether an element is non-zero."""
    return _any(input, dim, keepdim)


@op(differentiable=False, out=_truth_out("all"))
def all(input: Array, dim: int | tuple | None = None, keepdim: bool = False) -> Array:
    """Whether all elements are non-zero."""
    return _all(input, dim, keepdim)


# ---- extremes ----


_SAME_AS_INPUT = (
    "Expected the dtype for input and out to match, but got {want} for input's dtype and {have} for out's dtype."
)


@op(out=_SAME_AS_INPUT)
def amax(input: Array, dim: int | tuple | None = (), keepdim: bool = False) -> Array:
    """The largest element over the given dimensions; nan if there is one."""
    return extreme_over(input, all_dims(dim, input.ndim), keepdim, True)


@op(out=_SAME_AS_INPUT)
def amin(input: Array, dim: int | tuple | None = (), keepdim: bool = False) -> Array:
    """The smallest element over the given dimensions; nan if there is one."""
    return extreme_over(input, all_dims(dim, input.ndim), keepdim, False)


@op(where="", grad_name="MaxBackward1")
def max_all(input: Array) -> Array:
    """The largest of all elements."""
    return extreme_over(input, range(input.ndim), False, True)


@op(where="", grad_name="MinBackward1")
def min_all(input: Array) -> Array:
    """The smallest of all elements."""
    return extreme_over(input, range(input.ndim), False, False)


for _record in (amax, amin):
    _record.vjp(input=lambda g, input, out, dim, keepdim: _equal_share(g, input, out, dim, keepdim))
    _no_empty(_record)
    _record.lack(**{f"{_record.name[1:]}_values_cpu": "complex"})

for _record in (max_all, min_all):
    _record.vjp(input=lambda g, input, out: _even_share(g, input, out, None, False))
    _no_empty(_record)
    _record.lack(**{_record.name: "complex"})


# Measured on the CPU: from so many floats a reduction for the value and one for its place beat one for both, 2 to 10 times.
LONG = 48


def _find(input, axis: int | None, keepdim: bool, largest: bool):
    """The first index of the largest or smallest element, or of nan; in the flattened array where `axis` is None."""
    size = input.size if axis is None else input.shape[axis]
    if not on_cpu() or size < LONG or not (input.dtype.kind == "f" or input.dtype in NARROW):
        plain = jnp.argmax if largest else jnp.argmin
        return plain(input, axis=axis, keepdims=keepdim).astype(jnp.int64)
    x, at = (input.reshape(-1), 0) if axis is None else (input, axis)
    extreme = (jnp.max if largest else jnp.min)(x, axis=at, keepdims=True)
    hit = (x == extreme) | jnp.isnan(x)  # where there is a nan, nothing is equal to the extreme
    index = jnp.int32 if size < 2**31 else jnp.int64
    places = jnp.where(hit, lax.broadcasted_iota(index, x.shape, at), jnp.asarray(size, index))
    out = jnp.min(places, axis=at).astype(jnp.int64)
    if not keepdim:
        return out
    return out.reshape((1,) * input.ndim) if axis is None else jnp.expand_dims(out, axis)


def _extreme(input, dim, keepdim, largest):
    if input.ndim == 0:
        one_dim(dim, 0)
        return input, jnp.zeros((), jnp.int64)
    axis = one_dim(dim, input.ndim)
    values = extreme_over(input, axis, keepdim, largest)
    return values, _find(input, axis, keepdim, largest)


def _no_complex(record):
    @record.check
    def check(input, dim, keepdim=False):
        if kind(input) == "c":
            raise RuntimeError(f"{record.name[:3]}(): does not support complex input")


@op(where="", grad_name="MaxBackward0", out="exact")
def max_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The largest elements along a dimension and where they first are."""
    return _extreme(input, dim, keepdim, largest=True)


@op(where="", grad_name="MinBackward0", out="exact")
def min_dim(input: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest elements along a dimension and where they first are."""
    return _extreme(input, dim, keepdim, largest=False)


def _placed(g, input, out, dim, keepdim):
    return _place(g[0], out[1], input.shape, dim, keepdim)


for _record in (max_dim, min_dim):
    _record.vjp(input=_placed).transposed = True
    _no_empty(_record)
    _no_complex(_record)


_EXTREMES = "(Tensor input), (Tensor input, int dim) or (Tensor input, Tensor other)"


def _overloaded(whole, along, binary, input, args, kwargs):
    if is_foreign(input):
        name = binary.name.replace("imum", "")
        if not args and not kwargs:
            raise errors.argument(name, "input", "Tensor", input, 1)
        raise errors.combination(name, (input, *args), _EXTREMES)
    if not args and set(kwargs) <= {"out"}:
        return whole(input, **kwargs)
    first = args[0] if args else kwargs.get("dim", kwargs.get("axis", kwargs.get("other")))
    if not args and {"dim", "axis"} & {*kwargs} and not isinstance(first, int | np.integer):
        if is_foreign(first) or first.ndim or kind(first) not in "iu":
            raise errors.combination(binary.name.replace("imum", ""), (input,), _EXTREMES, kwargs)
        kwargs = {k: v if v is not first else first.item() for k, v in kwargs.items()}
        first = 0
    if "other" in kwargs or not isinstance(first, int | np.integer):
        return binary(input, *args, **kwargs)
    keepdim = args[1] if len(args) > 1 else kwargs.get("keepdim", False)
    if not isinstance(keepdim, builtins.bool | np.bool_):
        raise errors.argument(along.name.removesuffix("_dim"), "keepdim", "bool", keepdim)
    return along(input, *args, **kwargs)


@composite
def max(input, *args, **kwargs):
    """max(input), max(input, dim, keepdim=False) -> (values, indices), or max(input, other)."""
    try:
        return _overloaded(max_all, max_dim, maximum, input, args, kwargs)
    except Exception as error:
        shorten(error)
        raise


@composite
def min(input, *args, **kwargs):
    """min(input), min(input, dim, keepdim=False) -> (values, indices), or min(input, other)."""
    try:
        return _overloaded(min_all, min_dim, minimum, input, args, kwargs)
    except Exception as error:
        shorten(error)
        raise


@op(out="exact")
def aminmax(input: Array, *, dim: int | None = None, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest and the largest element."""
    dims = all_dims(dim, input.ndim)
    return extreme_over(input, dims, keepdim, False), extreme_over(input, dims, keepdim, True)


aminmax.vjp(
    input=lambda g, input, out, dim, keepdim: (
        _equal_share(g[0], input, out[0], dim, keepdim) + _equal_share(g[1], input, out[1], dim, keepdim)
    ),
)
aminmax.lack(aminmax_cpu="complex")


@aminmax.check
def _check_aminmax(input, dim=None, keepdim=False):
    if 0 in input.shape and dim is None:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    check_not_empty("aminmax", input, dim)


def _check_arg(record):
    @record.check
    def check(input, dim=None, keepdim=False):
        if kind(input) in "bc":
            what = {"b": "bool", "c": "complex"}[kind(input)]
            raise RuntimeError(f"{record.name}(): does not support {what} input")
        if 0 in input.shape and dim is None:
            raise IndexError(f"{record.name}(): Expected reduction dim to be specified for input.numel() == 0.")
        check_not_empty(record.name, input, dim)


def _arg(input, dim, keepdim, largest):
    axis = None if dim is None else one_dim(dim, input.ndim)
    if axis is not None and input.ndim == 0:
        return jnp.zeros((), jnp.int64)
    return _find(input, axis, keepdim, largest)


@op(differentiable=False, out="exact")
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The first index of the largest element."""
    return _arg(input, dim, keepdim, largest=True)


@op(differentiable=False, out="exact")
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """The first index of the smallest element."""
    return _arg(input, dim, keepdim, largest=False)


for _record in (argmax, argmin):
    _check_arg(_record)


# ---- norms ----


def _power_of(p):
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return 2.0 if p is None or p == "fro" else builtins.float(p)


@op(grad_name="LinalgVectorNormBackward0", out="exact")
def norm(
    input: Array, p: object = "fro", dim: int | tuple | None = None, keepdim: bool = False, dtype: object = None
) -> Array:
    """The p-norm over the given dimensions."""
    x = input if dtype is None else convert(input, dtype.np)
    if p == "nuc":
        dims = all_dims(dim, x.ndim)
        values = jnp.linalg.svd(jnp.moveaxis(x, dims, (-2, -1)), compute_uv=False)
        out = jnp.sum(values, axis=-1)
        return jnp.expand_dims(out, sorted(dims)) if keepdim else out
    half = x.dtype.itemsize == 2
    out = _vector_norm(x.astype(jnp.float32) if half else x, _power_of(p), all_dims(dim, x.ndim), keepdim)
    return out.astype(x.dtype) if half else out


_unless_nuclear = lambda call: False if call["p"] == "nuc" else None
norm.guards(input=_unless_nuclear, out=_unless_nuclear)


def _vector_norm(x, p, dims, keepdim):
    size = jnp.abs(x)
    if (p == math.inf or p < 0) and not builtins.all(x.shape[d] for d in dims):
        where = (
            "an empty tensor because"
            if len(dims) == x.ndim
            else f"the dimension {dims[0]}because this dimension is empty and"
        )
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {p:g} norm on {where} the operation does not have an identity"
        )
    if p == math.inf:
        found = functools.partial(extreme_over, largest=True) if size.size else functools.partial(jnp.max, initial=0)
        return found(size, dims, keepdims=keepdim)
    if p == -math.inf:
        return extreme_over(size, dims, keepdim, False)
    if p == 0:
        return jnp.sum(x != 0, axis=dims, keepdims=keepdim).astype(size.dtype)
    if p == 1:
        return jnp.sum(size, axis=dims, keepdims=keepdim)
    if p == 2:
        square = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
        return jnp.sqrt(jnp.sum(square, axis=dims, keepdims=keepdim))
    return jnp.sum(size**p, axis=dims, keepdims=keepdim) ** (1 / p)


def _nuclear_slope(g, input, dims, keepdim):
    """g U V^H: the sum of the singular values grows along both sets of singular vectors."""
    x = jnp.moveaxis(input, dims, (-2, -1))
    u, _, vh = jnp.linalg.svd(x, full_matrices=False)
    g = jnp.squeeze(g, dims) if keepdim else g
    return jnp.moveaxis(g[..., None, None] * (u @ vh), (-2, -1), dims)


def norm_slope(g, input, out, p, dim, keepdim):
    """The gradient of a p-norm, with PyTorch's 0 for elements that are 0."""
    if p == "nuc":
        return _nuclear_slope(g, input, all_dims(dim, input.ndim), keepdim)
    p = _power_of(p)
    full_g, full = (_spread(x, input.shape, dim, keepdim) for x in (g, out))
    if p == 0:
        return _zero(full_g)
    if p == 1:
        return full_g * sgn(input)
    if p in (math.inf, -math.inf):
        # taken once more: that of another program may be rounded another way, and equal none of the sizes
        size, pick = abs(input), jnp.max if p > 0 else jnp.min
        out = pick(size, axis=all_dims(dim, input.ndim), keepdims=keepdim)
        return sgn(input) * _even_share(g, size, out, dim, keepdim)
    safe = where(full == 0, 1.0, full)
    if p == 2:
        return where(full == 0, 0.0, full_g * (input / safe))
    # jax.vjp gives nan at 0 through 0 * inf; torch gives 0
    size = abs(input)
    lever = pow(where(size == 0, 1.0, size) / safe, p - 1)
    return where(logical_or(size == 0, full == 0), 0.0, full_g * sgn(input) * lever)


norm.vjp(input=norm_slope).transposed = True


@norm.check
def _check_norm(input, p="fro", dim=None, keepdim=False, dtype=None):
    name, have = f"linalg.{'matrix' if p == 'nuc' else 'vector'}_norm", input.dtype
    if have.category <= dtypes.INT:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {dtypes.scalar_name(have)}"
        )
    if dtype is not None:
        check_norm_dtype(name, have, dtype)
    if p == "nuc" and (dtype or have).itemsize == 2:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {dtypes.scalar_name(dtype or have)}")


@composite
def dist(input: Array, other: Array, p=2):
    """The p-norm of the difference."""
    if kind(input) in "bi" and kind(other) in "bi" and "i" in kind(input) + kind(other):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {_name(input)} instead."
        )
    return norm(sub(input, other), p)


@op(inplace=True, out="exact")
def renorm(input: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Each slice along a dimension scaled down to a norm of at most `maxnorm`."""
    keep = one_dim(dim, input.ndim)
    dims = tuple(d for d in range(input.ndim) if d != keep)
    over = _vector_norm(lax.stop_gradient(input), builtins.float(p), dims, True) > maxnorm
    # what keeps its size has no part in the slope of a norm, which there is none of at 0
    size = _vector_norm(jnp.where(over, input, jnp.ones_like(input)), builtins.float(p), dims, True)
    factor = jnp.where(over, maxnorm / (size + 1e-7), jnp.ones_like(size))
    return input * factor.astype(input.dtype)


@renorm.check
def _check_renorm(input, p, dim, maxnorm):
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    _check_norm(input)
