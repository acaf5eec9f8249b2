"""Sums and means of bags of table rows for XLA's CPU compiler, without the rows of all of them. Knows arrays only."""

import jax
import jax.numpy as jnp
from jax import lax

from . import backend

__all__ = ["MANY_NUMBERS", "equal_bags", "uneven_bags"]

MANY_NUMBERS = 1 << 16  # in the rows of all bags, from which on rows that are added up are not stored first
PIECE = 8  # rows that are added up by themselves


def _rows(x, at):
    return x.at[at].get(mode="promise_in_bounds")


def _factored(rows, factors, at):
    return rows if factors is None else rows * _rows(factors, at)[:, None].astype(rows.dtype)


def _added(weight, shape, length, wide, term):
    """The sum of `term(k)` over the rounds."""
    with jax.disable_jit(False):  # its loop stays one
        return lax.fori_loop(0, length, lambda k, total: total + term(k), jnp.zeros((shape, weight.shape[1]), wide))


def equal_bags(weight, indices, factors, mode, padding_idx):
    """Bags of one length, a row of each at a time: a third of the time that all rows take, which are written and read again."""
    wide = backend.accumulator(weight.dtype)
    bags, length = indices.shape

    def term(k):
        at = lax.dynamic_index_in_dim(indices, k, 1, False)
        rows = _rows(weight, at).astype(wide)
        rows = _factored(rows, factors, jnp.arange(bags) * length + k)
        return rows if padding_idx is None else jnp.where((at == padding_idx)[:, None], 0, rows)

    out = _added(weight, bags, length, wide, term)
    if mode == "mean":
        size = length if padding_idx is None else jnp.sum(indices != padding_idx, 1, keepdims=True)
        out = out / jnp.maximum(size, 1).astype(wide)
    return out.astype(weight.dtype)


def uneven_bags(weight, indices, starts, factors, mode, padding_idx):
    """Bags that start where they are told to, cut into pieces of one length: a row of each piece at a time, then the pieces of a bag."""
    wide = backend.accumulator(weight.dtype)
    count, bags = indices.shape[0], starts.shape[0]
    starts = starts.astype(jnp.int32)
    ends = jnp.concatenate([starts[1:], jnp.full(1, count, jnp.int32)])
    pieces = jnp.maximum(-(-(ends - starts) // PIECE), 0)
    before = jnp.cumsum(pieces, dtype=jnp.int32) - pieces
    many = count // PIECE + bags  # at most; those beyond the last bag's are of nothing
    bag = jnp.cumsum(jnp.zeros(many, jnp.int32).at[before].add(1, mode="drop"), dtype=jnp.int32) - 1
    skipped = jnp.arange(many, dtype=jnp.int32) - _rows(before, bag)
    first, end = _rows(starts, bag) + skipped * PIECE, _rows(ends, bag)

    def term(k):
        place = first + k
        at = jnp.minimum(place, count - 1)
        index = _rows(indices, at)
        rows = _rows(weight, index).astype(wide)
        own = place < end
        if padding_idx is not None:
            own &= index != padding_idx
        return jnp.where(own[:, None], _factored(rows, factors, at), 0)

    out = (
        jnp.zeros((bags, weight.shape[1]), wide)
        .at[bag]
        .add(_added(weight, many, PIECE, wide, term), mode="promise_in_bounds")
    )
    if mode == "mean":
        size = ends - starts
        if padding_idx is not None:
            so_far = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(indices != padding_idx, dtype=jnp.int32)])
            size = so_far[ends] - so_far[starts]
        out = out / jnp.maximum(size, 1)[:, None].astype(wide)
    return out.astype(weight.dtype)
