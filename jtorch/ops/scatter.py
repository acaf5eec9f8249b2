"""Ops that read or write one element for each of an index along a dimension: gather, scatter and its reductions."""

import builtins
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import deprecations, errors
from ..core import dtype as dt
from .arguments import axis, scalar_name, size_of
from .backend import accumulator, on_cpu
from .order import order
from .places import IN_BOUNDS, added, added_along, added_wide, as_1d, check_along, is_index, narrow, positions, within
from .registry import Array, Scalar, op


def _same_rank(index, other, words):
    if index.size and builtins.max(index.ndim, 1) != builtins.max(other.ndim, 1):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {words} tensor")


@op(out="exact", apart=True)
def gather(input: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    """The elements of `input` at `index` along `dim`; the result has the shape of `index`."""
    dim = axis(dim, input.ndim)
    if index.size == 0:
        return jnp.zeros(index.shape, input.dtype)
    if not is_index(index):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    _same_rank(index, input, "input")
    shape = index.shape
    input, index = as_1d(input, index)
    for d in range(input.ndim):
        if d != dim and index.shape[d] > input.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {size_of(index.shape)} to be no larger "
                f"than self {size_of(input.shape)} apart from dimension {dim}"
            )
    return _gathered(input, dim, index).reshape(shape)


gather.guards(input=True)


def _gathered(input, dim, index):
    box = tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(index.shape))
    index = narrow(index, input.shape[dim])
    return jnp.take_along_axis(input[box], index, axis=dim, mode=IN_BOUNDS)


gather.vjp(input=lambda g, input, dim, index: gather_grad(g, dim, index, tuple(input.shape)))
gather.check_values(lambda input, dim, index, *, sparse_grad=False: check_along(input, dim, index))


@op(where="")
def gather_grad(g: Array, dim: int, index: Array, shape: tuple) -> Array:
    """Zeros of `shape` with `g` added at `index` along `dim`."""
    dim = axis(dim, len(shape))
    if g.size == 0:
        return jnp.zeros(shape, g.dtype)
    g, index = as_1d(g, index)
    return added_along(jnp.zeros(shape or (1,), g.dtype), dim, index, g).astype(g.dtype).reshape(shape)


gather_grad.vjp(g=lambda g, dim, index: gather(g, dim, index))


@op(out="exact")
def take_along_dim(input: Array, indices: Array, dim: int | None = None) -> Array:
    """`gather` with the other dimensions broadcast; over the flattened tensors when `dim` is None."""
    if not is_index(indices, wide=True):
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {scalar_name(indices)}")
    if dim is None:
        input, indices, dim = input.reshape(-1), indices.reshape(-1), 0
    elif input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = axis(dim, input.ndim)
    before = np.broadcast_shapes(input.shape[:dim], indices.shape[:dim])
    after = np.broadcast_shapes(input.shape[dim + 1 :], indices.shape[dim + 1 :])
    input = jnp.broadcast_to(input, (*before, input.shape[dim], *after))
    indices = jnp.broadcast_to(indices, (*before, indices.shape[dim], *after))
    indices = indices % input.shape[dim]
    return jnp.take_along_axis(input, narrow(indices, input.shape[dim]), axis=dim, mode=IN_BOUNDS)


take_along_dim.grad_name = "GatherBackward0"
take_along_dim.sized = True


@take_along_dim.check_values
def _check_take_along(input, indices, dim=None):
    if dim is None:  # along a dimension PyTorch takes the remainder
        within(indices, 0, math.prod(input.shape))


def _scatter_at(input, dim, index, src):
    """Check a scatter; the dimension and the parts of `src` and `index` that are used."""
    dim = axis(dim, input.ndim)
    if index.size and not is_index(index):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src is not None and src.dtype != input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if index.size == 0:
        return dim, None, None
    _same_rank(index, input, "self")
    index = as_1d(index)[0]
    shape = input.shape or (1,)
    too_big = builtins.any(d != dim and n > shape[d] for d, n in enumerate(index.shape))
    if src is None:
        if too_big:
            raise RuntimeError(
                f"Expected index {size_of(index.shape)} to be no larger than self {size_of(input.shape)} "
                f"apart from dimension {dim}"
            )
        return dim, index, None
    if builtins.max(src.ndim, 1) != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    src = as_1d(src)[0]
    if too_big or builtins.any(n > m for n, m in zip(index.shape, src.shape)):
        raise RuntimeError(
            f"Expected index {size_of(index.shape)} to be no larger than self {size_of(input.shape)} apart "
            f"from dimension {dim} and to be no larger size than src {size_of(src.shape)}"
        )
    return dim, index, src[tuple(slice(0, n) for n in index.shape)]


def _check_scatter(input, dim, index, *rest, **kw):
    check_along(input, dim, index)


def _scatter_name(args) -> str:
    src = args["src"]
    return "ScatterBackward0" if getattr(src, "ndim", 0) else "ScatterBackward1"


@op(inplace=True, apart=True, grad_name=_scatter_name, out="exact")
def scatter(
    input: Array,
    dim: int,
    index: Array,
    src: Scalar | None = None,
    *,
    value: Scalar | None = None,
    reduce: str | None = None,
) -> Array:
    """`input` with `src` (a tensor or a number) written at `index` along `dim`.

    `reduce` ("add" or "multiply") is PyTorch's older spelling of `scatter_add` and `scatter_reduce`.
    """
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    src = jnp.asarray(value if src is None else src)
    single = src.ndim == 0
    dim, index, part = _scatter_at(input, dim, index, None if single else src)
    if index is None:
        return input
    src = src.astype(input.dtype) if single else part
    at = as_1d(input)[0].at[positions(index, dim)]
    if reduce == "add":
        out = added(as_1d(input)[0], positions(index, dim), src)
    elif reduce == "multiply":
        out = at.min(src, mode=IN_BOUNDS) if input.dtype == np.bool_ else at.multiply(src, mode=IN_BOUNDS)
    else:
        out = at.set(src, mode=IN_BOUNDS)
    return out.reshape(input.shape)


# torch's convention where an index repeats: every writer receives the whole gradient
scatter.vjp(
    input=lambda g, dim, index, reduce: g if reduce == "add" else scatter(g, dim, index, 0),
    src=lambda g, dim, index, src: gather_padded(g, dim, index, tuple(src.shape)),
)
scatter.check_values(_check_scatter)


@scatter.check
def _check_scattered(input, dim, index, src=None, *, value=None, reduce=None):
    if src is None and value is None:
        raise errors.combination(
            "scatter", (input, dim, index), "(Tensor input, int dim, Tensor index, Tensor src or Number value)"
        )
    if reduce is not None and src is not None and not isinstance(src, int | float):
        deprecations.say("scatter")
    if getattr(src, "ndim", None) == 0:
        if src.dtype is not input.dtype:
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
        if index.ndim > 1:
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for number in (src, value):
        if isinstance(number, int | float):
            dt.check_number(number, input.dtype)


@op(where="")
def gather_padded(input: Array, dim: int, index: Array, shape: tuple) -> Array:
    """`gather`, filled up with zeros to `shape`: the derivative of a scatter in its source."""
    dim = axis(dim, input.ndim)
    if index.size == 0:
        return jnp.zeros(shape, input.dtype)
    input, index = as_1d(input, index)
    out = _gathered(input, dim, index)
    if not shape:
        return out.sum(dtype=accumulator(out.dtype)).astype(out.dtype)
    return jnp.pad(out, [(0, n - m) for n, m in zip(shape, out.shape)])


@op(inplace=True, apart=True, out="exact")
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """`input` with the elements of `src` added at `index` along `dim`."""
    dim, index, src = _scatter_at(input, dim, index, src)
    if index is None:
        return input
    return added_along(as_1d(input)[0], dim, index, src).astype(input.dtype).reshape(input.shape)


scatter_add.vjp(
    input=lambda g: g,
    src=lambda g, dim, index, src: gather_padded(g, dim, index, tuple(src.shape)),
)
scatter_add.check_values(_check_scatter)


# ---------------------------------------------------------------- reductions into places


def _identity(reduce, dtype):
    if reduce in ("sum", "mean"):
        return jnp.zeros((), dtype)
    if reduce == "prod":
        return jnp.ones((), dtype)
    if dtype == np.bool_:
        return jnp.asarray(reduce == "amin")
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.asarray(-jnp.inf if reduce == "amax" else jnp.inf, dtype)
    info = jnp.iinfo(dtype)
    return jnp.asarray(info.min if reduce == "amax" else info.max, dtype)


def _here(at, before) -> tuple:
    """The index of places `at`: those of each element, or along dimension `before` those of each slice."""
    return (slice(None),) * before + at


def _prod_of_runs(base, at, src, before):
    """`base` times the `src` of each place, differentiable though places repeat, at every order and exact at zeros: a scan over the
    places in order."""
    if len(at) < base.ndim:
        at = positions(lax.broadcast_in_dim(at[0], src.shape, (before,)), before)
    flat = jnp.ravel_multi_index(at, base.shape, mode="clip").reshape(-1)
    at = order(flat, 0)
    place, value = flat[at], src.reshape(-1)[at]
    first = jnp.concatenate([jnp.ones(1, bool), place[1:] != place[:-1]])
    last = jnp.concatenate([place[1:] != place[:-1], jnp.ones(1, bool)])

    def join(a, b):
        return a[0] | b[0], jnp.where(b[0], b[1], a[1] * b[1])

    _, run = lax.associative_scan(join, (first, value))
    target = jnp.where(last, place, base.size)  # rows past the end are dropped
    return base * jnp.ones(base.size, base.dtype).at[target].set(run, mode="drop").reshape(base.shape)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def _multiplied(base, at, src, before):
    """The same, of XLA's scatter that multiplies, which jax does not differentiate where places repeat."""
    place = base.at[_here(at, before)]
    return place.min(src, mode=IN_BOUNDS) if base.dtype == np.bool_ else place.multiply(src, mode=IN_BOUNDS)


@_multiplied.defjvp
def _(before, primals, tangents):
    (base, at, src), (d_base, _, d_src) = primals, tangents
    of_base, of_src = _other_factors(base, at, src, before)
    moved = (of_base * d_base).at[_here(at, before)].add(of_src * d_src, mode=IN_BOUNDS)
    return _multiplied(base, at, src, before), moved


@functools.partial(jax.custom_jvp, nondiff_argnums=(3,))
def _other_factors(base, at, src, before):
    """What each element of `base` and of `src` is multiplied with: the quotient, where no factor of its place is zero."""
    here = _here(at, before)
    zeros = (base == 0).astype(jnp.int32).at[here].add((src == 0).astype(jnp.int32), mode=IN_BOUNDS)
    whole = _multiplied(jnp.where(base == 0, 1, base), at, jnp.where(src == 0, 1, src), before)

    def others(x, zeros, whole):
        alone = jnp.where(zeros == (x == 0), whole, jnp.zeros_like(whole))
        return alone / jnp.where(x == 0, 1, x)

    return others(base, zeros, whole), others(
        src, zeros.at[here].get(mode=IN_BOUNDS), whole.at[here].get(mode=IN_BOUNDS)
    )


@_other_factors.defjvp
def _(before, primals, tangents):
    """Not of the quotients: at a zero they are flat where the factors are not."""

    def exact(base, src):
        out, pull = jax.vjp(lambda base, src: _prod_of_runs(base, primals[1], src, before), base, src)
        return pull(jnp.ones_like(out))

    _, moved = jax.jvp(exact, (primals[0], primals[2]), (tangents[0], tangents[2]))
    return _other_factors(*primals, before), moved


def _erased(input, here, reduce):
    """`input` with the places that are written to set to the identity of the reduction."""
    return input.at[here].set(_identity(reduce, input.dtype), mode=IN_BOUNDS)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4, 5))
def _extremum(input, at, src, reduce, include_self, before):
    here = _here(at, before)
    base = input if include_self else _erased(input, here, reduce)
    place = base.at[here]
    return place.max(src, mode=IN_BOUNDS) if reduce == "amax" else place.min(src, mode=IN_BOUNDS)


@_extremum.defjvp
def _(reduce, include_self, before, primals, tangents):
    """Ties share evenly, `input` among them; as in PyTorch also where it is not included, though it gets nothing then."""
    (input, at, src), (d_input, _, d_src) = primals, tangents
    here = _here(at, before)
    out = _extremum(input, at, src, reduce, include_self, before)
    won_src = src == out.at[here].get(mode=IN_BOUNDS)
    won_input = input == out
    count = won_input.astype(out.dtype).at[here].add(won_src.astype(out.dtype), mode=IN_BOUNDS)
    if not include_self:
        won_input = won_input.at[here].set(False, mode=IN_BOUNDS)
    zero = jnp.zeros((), out.dtype)
    moved = jnp.where(won_input, d_input, zero).at[here].add(jnp.where(won_src, d_src, zero), mode=IN_BOUNDS)
    return out, moved / jnp.maximum(count, 1)


def reduce_into(input, at, src, reduce, include_self, along=None, before=0):
    """`input` with each `src` reduced into its place `at`; along: the dimension and the index that the places come from. With one index
    for whole slices of `src`, before: their dimension."""
    here = _here(at, before)
    if reduce in ("amax", "amin"):
        return _extremum(input, at, src, reduce, include_self, before)
    if reduce == "prod":
        base = input if include_self else _erased(input, here, reduce)
        return (_multiplied if on_cpu() else _prod_of_runs)(base, at, src, before)
    add = lambda to, src: added_along(to, *along, src) if along else added_wide(to, here, src)
    if include_self and reduce == "sum":
        return add(input, src).astype(input.dtype)
    if len(at) < input.ndim:
        count = jnp.zeros(input.shape[before], jnp.int32).at[at].add(1, mode=IN_BOUNDS)
        count = count.reshape(-1, *(1,) * (input.ndim - before - 1))
    else:
        count = add(jnp.zeros(input.shape, jnp.int32), jnp.ones(src.shape, jnp.int32))
    base = input if include_self else jnp.where(count > 0, jnp.zeros((), input.dtype), input)
    out = add(base, src)
    if reduce == "sum":
        return out.astype(input.dtype)
    count = jnp.maximum(count + include_self, 1).astype(out.dtype)
    return out // count if jnp.issubdtype(out.dtype, jnp.integer) else (out / count).astype(input.dtype)


@op(inplace=True, apart=True, out="exact")
def scatter_reduce(
    input: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """`input` with the `src` that meet at each place of `index` reduced: sum, prod, mean, amax or amin."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    kernel = f"scatter_gather_tensor_cpu_reduce_{reduce}"
    if (
        reduce in ("amax", "amin")
        and jnp.issubdtype(input.dtype, jnp.complexfloating)
        or (reduce == "mean" and input.dtype == np.bool_)
    ):
        raise errors.not_implemented(kernel, dt.of(input.dtype))
    dim, index, src = _scatter_at(input, dim, index, src)
    if index is None:
        return input
    full = as_1d(input)[0]
    return reduce_into(full, positions(index, dim), src, reduce, include_self, (dim, index)).reshape(input.shape)


scatter_reduce.check_values(_check_scatter)
scatter_reduce.guards(input=True, src=True, out=True)


for _record in (gather, scatter, scatter_add, scatter_reduce):
    _record.sized = True
