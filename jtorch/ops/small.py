"""Many small matrices at once, for XLA's CPU compiler: products and linear systems. Knows arrays, never Tensor.

XLA calls a routine of its library for each matrix of a batch, which for small ones takes longer than their arithmetic. Here the loops
run along the batch: a step of an elimination is a few vectorised passes over all matrices.
"""

import functools
import math
import operator

import jax.numpy as jnp
from jax import lax

from .backend import barrier, on_cpu

__all__ = ["dot_general", "fits", "inverse", "multiplies", "product", "solved"]

LARGEST = 4  # rows of a system; with more LAPACK is as fast, and these steps take seconds to compile
FACTOR = 7  # rows and columns of a factor; from 8 on XLA's products are as fast
MANY = 32  # matrices
FLOATS = (jnp.dtype(jnp.float32), jnp.dtype(jnp.float64))


def multiplies(batch, rows: int, inner: int, columns: int, dtype) -> bool:
    """Whether products of such matrices are `product`'s: as one product a matrix they take up to 37 times as long."""
    small = max(rows, inner, columns) <= FACTOR and min(rows, columns) > 1 and inner
    return bool(on_cpu() and small and math.prod(batch) >= MANY and dtype in FLOATS)


def product(a, b):
    """`a @ b`, of batches that broadcast."""
    # as a product would have them; chains of products would be computed anew at each element
    a, b = barrier(a), barrier(b)
    terms = (a[..., :, k, None] * b[..., None, k, :] for k in range(a.shape[-1]))
    return functools.reduce(operator.add, terms)


def dot_general(lhs, rhs, dimension_numbers):
    """What `lax.dot_general` gives, of many small matrices; None for others."""
    (inner, inner_right), (batch, batch_right) = dimension_numbers
    free = [d for d in range(lhs.ndim) if d not in (*inner, *batch)]
    free_right = [d for d in range(rhs.ndim) if d not in (*inner_right, *batch_right)]
    sizes = tuple(math.prod(x.shape[d] for d in dims) for x, dims in ((lhs, free), (lhs, inner), (rhs, free_right)))
    lead = tuple(lhs.shape[d] for d in batch)
    if lhs.dtype != rhs.dtype or not multiplies(lead, *sizes, lhs.dtype):
        return None
    a = jnp.transpose(lhs, (*batch, *free, *inner)).reshape(*lead, *sizes[:2])
    b = jnp.transpose(rhs, (*batch_right, *inner_right, *free_right)).reshape(*lead, *sizes[1:])
    return product(a, b).reshape(*lead, *(lhs.shape[d] for d in free), *(rhs.shape[d] for d in free_right))


def fits(A) -> bool:
    """Whether systems of these square matrices are solved here."""
    return bool(on_cpu() and 0 < A.shape[-1] <= LARGEST and math.prod(A.shape[:-2]) >= MANY and A.dtype in FLOATS)


def solved(A, B):
    """(the X with `A @ X = B`, the 1-based place of the first zero pivot or 0), for matrices of one batch."""

    def solve(_, right, turned=False):
        at = lax.stop_gradient(A)
        return _solution(jnp.swapaxes(at, -1, -2) if turned else at, right)

    times = lambda X: product(A, X) if X.shape[-1] > 1 else jnp.matmul(A, X)
    turned = lambda _, right: solve(_, right, True)
    return lax.custom_linear_solve(times, B, solve, turned, has_aux=True)


def inverse(A):
    """(the inverse, the 1-based place of the first zero pivot or 0)."""
    return solved(A, jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape))


def _solution(A, B):
    """Elimination with partial pivoting and substitution. What more than one step reads is stored, or each would compute it anew."""
    n, batch = A.shape[-1], A.shape[:-2]
    both = jnp.concatenate([A, B], -1)
    rest = barrier(jnp.moveaxis(both.reshape(-1, *both.shape[-2:]), 0, -1))  # (rows, columns, matrices)
    info, upper = jnp.zeros(rest.shape[-1], jnp.int32), []
    for k in range(n):
        at = barrier(_pivot(rest[:, 0]))
        row = barrier(functools.reduce(lambda row, r: jnp.where(at == r, rest[r], row), range(1, n - k), rest[0]))
        info = jnp.where((info == 0) & (row[0] == 0), k + 1, info)
        upper.append(row)
        if k + 1 < n:
            here = (at == jnp.arange(1, n - k)[:, None])[:, None]
            left = jnp.where(here, rest[0], rest[1:])  # the first row takes the place of the pivot's
            rest = barrier(left[:, 1:] - barrier(left[:, 0] / row[0])[:, None] * row[1:])
    X = []
    for k, row in reversed(list(enumerate(upper))):
        known = (row[1 + i] * x for i, x in enumerate(X))
        X.insert(0, barrier(functools.reduce(operator.sub, known, row[n - k :]) / row[0]))
    X = jnp.moveaxis(jnp.stack(X), -1, 0)
    return X.reshape(B.shape), info.reshape(batch)


def _pivot(column):
    """The first row of the largest element, for (rows, matrices)."""
    best, at = jnp.abs(column[0]), jnp.zeros(column.shape[1], jnp.int32)
    for r in range(1, len(column)):
        size = jnp.abs(column[r])
        larger = size > best
        best, at = jnp.where(larger, size, best), jnp.where(larger, r, at)
    return at
