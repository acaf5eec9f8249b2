"""Operators that take dimensions together, or order what lies along one."""

import numpy as np

from ...core import dtype as dtypes
from ..builder import Value
from ..errors import option
from .pointwise import clamp, maximum, minimum, number
from .record import op


def _dims(x, dim):
    if dim is None or isinstance(dim, (list, tuple)) and not dim:
        return list(range(x.ndim))
    return [d % max(x.ndim, 1) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def reduced(g, kind, x, dim=None, keepdim=False) -> Value:
    """A reduction over some dimensions, or all."""
    dims = _dims(x, dim)
    if not x.ndim:
        return x
    kept = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]
    return g(kind, x, np.array(dims, np.int64), keepdims=int(bool(keepdim)), shape=kept)


@op("sum")
def total(g, input, dim=None, keepdim=False, dtype=None):
    return reduced(g, "ReduceSum", g.value(input, g.dtype), dim, keepdim)


@op("mean")
def mean(g, input, dim=None, keepdim=False, dtype=None):
    return reduced(g, "ReduceMean", g.value(input, g.dtype), dim, keepdim)


@op("prod")
def prod(g, input, dim=None, keepdim=False, dtype=None):
    return reduced(g, "ReduceProd", g.value(input, g.dtype), dim, keepdim)


@op("amax")
def amax(g, input, dim=(), keepdim=False):
    return reduced(g, "ReduceMax", input, dim, keepdim)


@op("amin")
def amin(g, input, dim=(), keepdim=False):
    return reduced(g, "ReduceMin", input, dim, keepdim)


@op("logsumexp")
def logsumexp(g, input, dim=None, keepdim=False):
    return reduced(g, "ReduceLogSumExp", g.value(input, g.dtype), dim, keepdim)


def _extreme(g, kind, pick, input, dim, keepdim):
    if dim is None:
        return reduced(g, kind, input)
    return [reduced(g, kind, input, dim, keepdim), _position(g, pick, input, dim, keepdim)]


@op("max")
def largest(g, input, dim=None, keepdim=False, other=None):
    if isinstance(dim, Value) or other is not None:
        return maximum(g, input, dim if other is None else other)
    return _extreme(g, "ReduceMax", "ArgMax", input, dim, keepdim)


@op("min")
def smallest(g, input, dim=None, keepdim=False, other=None):
    if isinstance(dim, Value) or other is not None:
        return minimum(g, input, dim if other is None else other)
    return _extreme(g, "ReduceMin", "ArgMin", input, dim, keepdim)


def _position(g, kind, x, dim, keepdim):
    if dim is None:
        x, dim = g.reshape(x, [-1], (int(np.prod(x.shape)),)), 0
    dim %= max(x.ndim, 1)
    shape = [1 if d == dim else n for d, n in enumerate(x.shape) if keepdim or d != dim]
    return g(kind, x, axis=dim, keepdims=int(bool(keepdim)), dtype=dtypes.int64, shape=shape)


@op("argmax")
def argmax(g, input, dim=None, keepdim=False):
    return _position(g, "ArgMax", input, dim, keepdim)


@op("argmin")
def argmin(g, input, dim=None, keepdim=False):
    return _position(g, "ArgMin", input, dim, keepdim)


@op("any")
def some(g, input, dim=None, keepdim=False):
    return _truth(g, "ReduceMax", input, dim, keepdim)


@op("all")
def every(g, input, dim=None, keepdim=False):
    return _truth(g, "ReduceMin", input, dim, keepdim)


def _truth(g, kind, x, dim, keepdim):
    x = g.cast(g.cast(x, dtypes.bool_), dtypes.int32)
    return g.cast(reduced(g, kind, x, dim, keepdim), dtypes.bool_)


def _count(g, x, dims):
    """How many elements are taken together, as a number of the result's dtype."""
    if not g.dynamic:
        return number(g, int(np.prod([x.shape[d] for d in dims])))
    sizes = g("Gather", g.sizes(x), np.array(dims, np.int64), axis=0, dtype=dtypes.int64, shape=(len(dims),))
    return g.cast(g("ReduceProd", sizes, keepdims=0, shape=()), g.dtype)


def _variance(g, input, dim, unbiased, correction, keepdim):
    if isinstance(dim, bool):  # var(unbiased)
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    dims = _dims(input, dim)
    middle = reduced(g, "ReduceMean", input, dims, True)
    away = g("Sub", input, middle)
    squares = reduced(g, "ReduceSum", g("Mul", away, away), dims, keepdim)
    count = _count(g, input, dims)
    if correction:
        count = g("Sub", count, number(g, correction))
    return g("Div", squares, count), dims


@op("var")
def var(g, input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return _variance(g, input, dim, unbiased, correction, keepdim)[0]


@op("std")
def std(g, input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return g("Sqrt", _variance(g, input, dim, unbiased, correction, keepdim)[0])


@op("var_mean")
def var_mean(g, input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    found, dims = _variance(g, input, dim, unbiased, correction, keepdim)
    return [found, reduced(g, "ReduceMean", input, dims, keepdim)]


@op("std_mean")
def std_mean(g, input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    found, dims = _variance(g, input, dim, unbiased, correction, keepdim)
    return [g("Sqrt", found), reduced(g, "ReduceMean", input, dims, keepdim)]


@op("linalg_norm")
def linalg_norm(g, input, ord=None, dim=None, keepdim=False, *, dtype=None):
    if (
        ord is not None
        and ord != "fro"
        and (isinstance(dim, (list, tuple)) and len(dim) > 1 or dim is None and input.ndim > 1)
    ):
        raise option("linalg.norm", f"for matrices and ord={ord}")
    return norm(g, input, ord, dim, keepdim)


@op("norm", "vector_norm", "linalg_vector_norm")
def norm(g, input, p=2, dim=None, keepdim=False, dtype=None, *, ord=None):
    order = p if ord is None else ord
    if order is None or order == "fro" or order == 2:
        return reduced(g, "ReduceL2", input, dim, keepdim)
    if order == 1:
        return reduced(g, "ReduceL1", input, dim, keepdim)
    if order in (float("inf"), float("-inf")):
        return reduced(g, "ReduceMax" if order > 0 else "ReduceMin", g("Abs", input), dim, keepdim)
    powers = reduced(g, "ReduceSum", g("Pow", g("Abs", input), number(g, order)), dim, keepdim)
    return g("Pow", powers, number(g, 1 / order))


@op("normalize")
def normalize(g, input, p=2.0, dim=1, eps=1e-12):
    return g("Div", input, clamp(g, norm(g, input, p, dim, True), eps))


@op("cosine_similarity")
def cosine_similarity(g, x1, x2, dim=1, eps=1e-8):
    products = reduced(g, "ReduceSum", g("Mul", x1, x2), dim)
    a, b = (clamp(g, norm(g, x, 2, dim), eps) for x in (x1, x2))
    return g("Div", products, g("Mul", a, b))


@op("pairwise_distance")
def pairwise_distance(g, x1, x2, p=2.0, eps=1e-6, keepdim=False):
    return norm(g, g("Add", g("Sub", x1, x2), number(g, eps)), p, -1, keepdim)


@op("softmax")
def softmax(g, input, dim=None, dtype=None, *others):
    return g("Softmax", g.value(input, g.dtype), axis=_softmax_dim(input, dim))


@op("log_softmax")
def log_softmax(g, input, dim=None, dtype=None, *others):
    return g("LogSoftmax", g.value(input, g.dtype), axis=_softmax_dim(input, dim))


@op("softmin")
def softmin(g, input, dim=None, dtype=None, *others):
    return softmax(g, g("Neg", input), dim)


def _softmax_dim(x, dim):
    return dim if dim is not None else 0 if x.ndim in (0, 1, 3) else 1


@op("cumsum")
def cumsum(g, input, dim, dtype=None):
    return g("CumSum", g.value(input, g.dtype), np.array(dim, np.int64))


@op("topk")
def topk(g, input, k, dim=-1, largest=True, sorted=True):
    names = g.node("TopK", [input, g.ints([k])], 2, axis=dim, largest=int(largest), sorted=int(sorted))
    return [Value(names[0], input.dtype, g.shape), Value(names[1], dtypes.int64, g.shape)]


@op("sort")
def sort(g, input, dim=-1, descending=False, stable=False):
    return topk(g, input, g.size(input, dim), dim, descending)


@op("argsort")
def argsort(g, input, dim=-1, descending=False, stable=False):
    return sort(g, input, dim, descending)[1]
