"""Updates of some rows of a table, given as indices and values: what sparse gradients do to parameters.

Shapes follow from the number of indices, not from how many of them differ, so that a training loop compiles nothing after its first step.
Indices past the end are dropped.
"""

import jax.numpy as jnp

from .order import order
from .registry import Array, Number, op


def _flat(table, indices):
    """(the table with its indexed dimensions made one, the indices as numbers of rows there)."""
    n = indices.shape[0]
    flat = jnp.zeros(indices.shape[1], jnp.int64)
    inside = jnp.ones(indices.shape[1], bool)
    count = 1
    for row, size in zip(indices, table.shape[:n]):
        inside &= (row >= 0) & (row < size)
        flat = flat * size + row
        count *= size
    return table.reshape(count, *table.shape[n:]), jnp.where(inside, flat, count)


def _merged(flat, values, count):
    """(distinct rows, sorted, the rest past the end; for each the sum of its values)."""
    at = order(flat, 0)
    flat, values = flat[at], values[at]
    first = jnp.concatenate([jnp.ones(min(1, flat.size), bool), flat[1:] != flat[:-1]])
    group = jnp.cumsum(first) - 1
    summed = jnp.zeros_like(values).at[group].add(values, indices_are_sorted=True)
    rows = jnp.full_like(flat, count).at[group].set(flat, indices_are_sorted=True)
    return rows, summed


@op(where="", differentiable=False)
def rows_added(input: Array, indices: Array, values: Array, alpha: Number) -> Array:
    """`input` with alpha * values added at `indices` (indexed dimensions, number of values)."""
    table, flat = _flat(input, indices)
    return table.at[flat].add((values * alpha).astype(table.dtype), mode="drop").reshape(input.shape)


@op(where="", differentiable=False)
def rows_adam(
    input: Array, mean: Array, square: Array, indices: Array, values: Array, size: Number, beta1: Number, beta2: Number, eps: Number
) -> tuple[Array, Array, Array]:  # fmt: skip
    """A step of SparseAdam: the parameter and its running means, changed where the gradient has values."""
    table, flat = _flat(input, indices)
    rows, g = _merged(flat, values, table.shape[0])
    means, squares = mean.reshape(table.shape), square.reshape(table.shape)
    m, v = (x.at[rows].get(mode="fill", fill_value=0) for x in (means, squares))
    m = m + (g - m) * (1 - beta1)
    v = v + (g * g - v) * (1 - beta2)
    change = (-size * (m / (jnp.sqrt(v) + eps))).astype(table.dtype)
    new = table.at[rows].add(change, mode="drop")
    kept = [x.at[rows].set(y.astype(x.dtype), mode="drop") for x, y in ((means, m), (squares, v))]
    return tuple(x.reshape(input.shape) for x in (new, *kept))


@op(where="", differentiable=False)
def rows_adagrad(
    input: Array, total: Array, step: Array, indices: Array, values: Array, lr: Number, decay: Number, eps: Number
) -> tuple[Array, Array]:  # fmt: skip
    """A step of Adagrad: the parameter and its sum of squares, changed where the gradient has values."""
    table, flat = _flat(input, indices)
    rows, g = _merged(flat, values, table.shape[0])
    totals = total.reshape(table.shape)
    rate = (lr / (1 + (step.astype(jnp.float64) - 1) * decay)).astype(
        jnp.float64 if table.dtype.itemsize > 4 else jnp.float32
    )
    s = totals.at[rows].get(mode="fill", fill_value=0) + g * g
    change = (-rate * (g / (jnp.sqrt(s) + eps))).astype(table.dtype)
    new = table.at[rows].add(change, mode="drop"), totals.at[rows].set(s.astype(totals.dtype), mode="drop")
    return tuple(x.reshape(input.shape) for x in new)
