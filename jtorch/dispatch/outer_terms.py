"""Operators by short names, as the derivatives of `outer_elements.py` and `outer_moves.py` call them."""

import math

from ..core.shapes import wrap_dim
from ..tensor import CONSTANTS
from .outer import op


def conj(x):
    """The conjugate of a factor of a derivative, a tensor or a number; what is real as it is."""
    if hasattr(x, "_spec"):
        return op("conj", x) if x._spec.dtype.is_complex else x
    return x.conjugate() if isinstance(x, complex) else x


def product(a, b):
    return op("mul.Tensor" if hasattr(b, "_spec") else "mul.Scalar", a, b)


def ratio(a, b):
    return op("div.Tensor" if hasattr(b, "_spec") else "div.Scalar", a, b)


def mul(g, factor):
    """A gradient times a derivative, which is `factor`: its conjugate where that is complex."""
    return product(g, conj(factor))


def div(g, factor):
    """A gradient times a derivative, which is 1 / `factor`."""
    return ratio(g, conj(factor))


def neg(x):
    return op("neg", x)


def times(g, factor):
    """A gradient times a number that may be 1."""
    return g if factor == 1 else mul(g, factor)


def scaled(x, factor):
    return x if factor == 1 else product(x, factor)


def real(x):
    """The real part of a complex tensor."""
    return op("select.int", op("view_as_real", x), x._spec.ndim, 0)


def where(mask, a, b):
    return op("where.self", mask, a, b)


def masked(g, mask):
    """A gradient where `mask` is true; else zero."""
    return op("masked_fill.Scalar", g, op("logical_not", mask), 0)


def zeros(g):
    return op("zeros_like", g)


def along(dim, ndim):
    """The dimensions of a reduction, sorted; all of them where it names none."""
    dims = dim if isinstance(dim, (tuple, list)) else [] if dim is None else [dim]
    return sorted(wrap_dim(d, ndim) for d in dims) or list(range(ndim))


def spread(g, spec, dim, keepdim):
    """A result of a reduction over `dim`, as large as what was reduced."""
    if not keepdim and dim is not None:
        for d in along(dim, spec.ndim):
            g = op("unsqueeze", g, d)
    return op("expand", g, list(spec.shape))


def count(spec, dim):
    return math.prod(spec.shape[d] for d in along(dim, spec.ndim))


def shaped(g, spec):
    shape = list(spec.shape)
    if g.is_contiguous():
        return op("view", g, shape)
    return op("_unsafe_view", op("clone", g, memory_format=CONSTANTS["contiguous"]), shape)


def by_columns(spec):
    """Whether a matrix lies in memory column by column."""
    return tuple(spec.strides) == (1, spec.shape[0])


def left(g, other, spec):
    """The gradient of a product's left matrix, laid out as that is."""
    other = conj(other)
    return op("t", op("mm", other, op("t", g))) if by_columns(spec) else op("mm", g, op("t", other))


def right(g, self, spec):
    """The gradient of a product's right matrix, laid out as that is."""
    self = conj(self)
    return op("t", op("mm", op("t", g), self)) if by_columns(spec) else op("mm", op("t", self), g)


def swapped(x):
    return op("transpose.int", conj(x), 1, 2)


def outer(a, b):
    return op("mul.Tensor", op("unsqueeze", a, 1), op("unsqueeze", conj(b), 0))


def reduced(g, each, reduction, count):
    """What a loss makes of its elements' derivatives."""
    found = mul(each, g)
    return div(found, count) if reduction in (1, "mean") else found
