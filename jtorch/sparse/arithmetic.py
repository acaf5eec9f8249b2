"""Sums, products and quotients with sparse tensors."""

import numpy as np

from .. import errors, errors_sparse
from .. import functions as F
from ..core import dtype as dtypes
from ..ops.rows import rows_added
from ..tensor import Tensor
from .base import coo, dense, handles, host, into, is_sparse, like, linear, sparse_shape, unravel
from .conversions import coalesce, coalesced, to_compressed, to_dense, to_sparse
from .tape import conjugate, indexed_shape, lookup, masked, positions, step, sum_to, values_of, with_values

# --- sums ---------------------------------------------------------------------------------------------------------------


@handles("add", "__add__", "__radd__")
def add(input, other, *, alpha=1, out=None, label="AddBackward0"):
    """sparse + sparse is sparse, dense + sparse is dense. Shapes must be the same.

    RuntimeError: sparse + dense, which PyTorch wants the other way round.
    """
    if not is_sparse(other):
        if input._kind == "coo" or not isinstance(other, Tensor):
            raise errors_sparse.add_order()
        return into(out, to_dense(input) + other * alpha)
    if not is_sparse(input) and not isinstance(input, Tensor):
        raise errors_sparse.sizes_differ((), other._spec.shape)
    if tuple(input._spec.shape) != tuple(other._spec.shape):
        if is_sparse(input):
            raise errors_sparse.sum_sizes(input._spec.shape, other._spec.shape)
        raise errors_sparse.sizes_differ(input._spec.shape, other._spec.shape)
    types = input._spec.dtype, other._spec.dtype
    backward = lambda g: (_cast(g, types[0]), _cast(g if alpha == 1 else g * conjugate(alpha), types[1]))
    forward = _sum if is_sparse(input) else _onto
    return into(out, step(label, (input, other), lambda: forward(input, other, alpha), backward, False))


def _cast(g, dtype):
    return g if g._spec.dtype is dtype else g.to(dtype)


def _scaled(values, alpha):
    return values if type(alpha) is int and alpha == 1 else values * alpha


def _onto(a, b, alpha):
    """dense + alpha * sparse."""
    kind = F.promote_types(a._spec.dtype, b._spec.dtype)
    a = a.to(kind)
    if b._kind == "coo" and b._spec.dtype is kind and kind.category >= dtypes.FLOAT:
        indices, values = b._rows()
        if indices._spec.shape[0] and values._spec.numel:
            return rows_added(a, indices, values, alpha)
    count, rest = indexed_shape(b)
    if not b._of._spec.numel:
        return a.clone()
    flat = positions(b).reshape(-1)
    values = _scaled(b._of.to(kind), alpha).reshape((flat._spec.numel, *rest))
    return F.index_add(F.reshape(a, (count, *rest)), 0, flat, values).reshape(tuple(a._spec.shape))


def _sum(a, b, alpha):
    """sparse + alpha * sparse."""
    if a._kind != b._kind:
        raise errors_sparse.both_sparse_dims("add")
    second = _scaled(b._of, alpha)
    if all(x is y for x, y in zip(a._at, b._at)):
        return like(a, a._at, a._of + second, a._whole)
    if a._kind != "coo":
        summed = _sum(to_sparse(a), to_sparse(b), alpha)
        return to_compressed(coalesced(summed), a._kind, *([tuple(a._of._spec.shape[-2:])] if a._blocked else []))
    if a.sparse_dim() != b.sparse_dim():
        raise errors_sparse.densities(a.sparse_dim(), b.sparse_dim())
    kind = F.promote_types(a._of._spec.dtype, second._spec.dtype)
    values = F.cat([a._of.to(kind), second.to(kind)])
    joined = coo(a._spec.shape, F.cat([a._at[0], b._at[0]], 1), values)
    # Sums of sums stay as small as the table that they are in.
    return coalesced(joined) if a._whole and b._whole or joined._nnz() > indexed_shape(a)[0] else joined


@handles("sub", "subtract", "__sub__")
def sub(input, other, *, alpha=1, out=None):
    """input - alpha * other."""
    if is_sparse(other) and other._spec.dtype is dtypes.bool_:
        F.sub(F.ones((), dtype=input._spec.dtype), F.ones((), dtype=dtypes.bool_))  # says why bools have none
    return add(input, other, alpha=-alpha, out=out, label="SubBackward0")


@handles("rsub", "__rsub__")
def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    return add(other, input, alpha=-alpha, label="RsubBackward1")


# --- products -----------------------------------------------------------------------------------------------------------


@handles("mul", "multiply", "__mul__", "__rmul__")
def mul(input, other, *, out=None):
    """The product, sparse where one factor is: with a number, a dense tensor, or another sparse one of the same shape."""
    if not is_sparse(input):
        input, other = other, input
    if is_sparse(other):
        return into(out, _product(input, other))
    if isinstance(other, Tensor) and other._spec.ndim:
        return into(out, _times_dense(input, other))
    if isinstance(other, Tensor) and other.requires_grad:
        return into(out, with_values(input.detach(), values_of(input) * other, "MulBackward0"))
    kept, kind = input.detach(), input._spec.dtype
    made = step(
        "MulBackward0", (input,), lambda: like(kept, kept._at, kept._of * other, kept._whole),
        lambda g: _cast(g * conjugate(other), kind), False,
    )  # fmt: skip
    return into(out, made)


def _times_dense(input, other):
    kept, factor = input.detach(), other.detach()

    def backward(g):
        by_input = _cast(g * other.conj(), kept._spec.dtype) if input.requires_grad else None
        return by_input, _cast(
            sum_to(g * input.conj(), other._spec.shape), other._spec.dtype
        ) if other.requires_grad else None

    def forward():
        return like(kept, kept._at, kept._of * _at_pattern(factor, kept), kept._whole)

    return step("MulBackward0", (input, other), forward, backward)


def _at_pattern(other, pattern):
    """The elements of a dense factor, broadcast, where the pattern has values."""
    shape = tuple(pattern._spec.shape)
    if tuple(other._spec.shape) != shape:
        try:
            other = other.expand(shape)
        except RuntimeError:
            raise errors.inplace_shape("mul", shape, other._spec.shape) from None
    return masked(other, pattern.detach())


def _product(a, b):
    if a._kind != b._kind:
        raise errors_sparse.both_sparse_dims("mul")
    if all(x is y for x, y in zip(a._at, b._at)) and (a._whole or a._kind != "coo"):
        return with_values(a.detach(), values_of(a) * values_of(b), "MulBackward0")
    if a._kind != "coo":
        made = _product(to_sparse(a), to_sparse(b))
        return to_compressed(made, a._kind, *([tuple(a._of._spec.shape[-2:])] if a._blocked else []))
    if tuple(a._spec.shape) != tuple(b._spec.shape) or a.sparse_dim() != b.sparse_dim():
        raise errors_sparse.intersection()
    a, b = coalesce(a), coalesce(b)
    shape = sparse_shape(a)
    common = np.intersect1d(linear(host(a._at[0]), shape), linear(host(b._at[0]), shape), assume_unique=True)
    pattern = coo(a._spec.shape, dense(unravel(common, shape), a._spec.device), _none(a, len(common)), True)
    return with_values(pattern, lookup(a, pattern) * lookup(b, pattern), "MulBackward0")


def _none(like_, count):
    """Values that only have a shape."""
    return F.zeros((count, *like_._of._spec.shape[1:]), dtype=like_._spec.dtype, device=like_._spec.device)


@handles("div", "divide", "true_divide", "__truediv__")
def div(input, other, *, rounding_mode=None, out=None):
    """The values divided by a number or a tensor without dimensions. RuntimeError: any other divisor."""
    if not is_sparse(input) or is_sparse(other) or isinstance(other, Tensor) and other._spec.ndim:
        raise errors_sparse.divisor(tuple(other._spec.shape))
    if rounding_mode is not None and input._kind == "coo":
        input = coalesce(input)
    if rounding_mode is not None or isinstance(other, Tensor) and other.requires_grad:
        values = F.div(values_of(input), other, rounding_mode=rounding_mode)
        return into(out, with_values(input.detach(), values, "DivBackward0"))
    kept, kind = input.detach(), input._spec.dtype
    made = step(
        "DivBackward0", (input,), lambda: like(kept, kept._at, F.div(kept._of, other), kept._whole), lambda g: _cast(g / conjugate(other), kind), False,
    )  # fmt: skip
    return into(out, made)


@handles("floor_divide", "__floordiv__")
def floor_divide(input, other, *, out=None):
    """`div` rounded down."""
    return div(input, other, rounding_mode="floor", out=out)
