"""Embeddings whose gradient is sparse: one row for each index that was looked up."""

from .. import errors_sparse
from .. import functions as F
from ..autograd.mode import no_grad
from ..core.record import tls
from ..ops.linear import embedding_bags, embedding_rows
from .base import coo, padded
from .tape import masked, record, step


def needed(weight) -> bool:
    """Whether a lookup in this table is to leave a sparse gradient."""
    me = tls.me
    return me.grad and weight.requires_grad and not (me.extra and {"transforms", "taping", "lanes"} & me.extra.keys())


def _gradient(shape, indices, values, padding_idx):
    """The gradient of a table: rows `indices` (any shape), one row of `values` for each."""
    indices = indices.reshape(-1).detach().to(F.int64)
    if not shape[1]:  # rows without elements: PyTorch names none of them
        indices = indices[:0]
    values = values.reshape((indices.shape[0], shape[1]))
    every = coo(shape, indices.unsqueeze(0), values.detach())
    if padding_idx is None:
        return record(every, "EmbeddingSparseBackwardBackward0", (values,), _of_values(every.detach()), False)
    made = padded(shape, every._at[0], every._of, padding_idx)
    used = (indices != padding_idx).unsqueeze(1)  # the gradient of the values that are left out is zero
    return record(made, "EmbeddingSparseBackwardBackward0", (values,), lambda g: masked(g, every) * used, False)


def _of_values(pattern):
    return lambda g: masked(g, pattern)


def lookup(weight, indices, padding_idx, scale_grad_by_freq):
    """The rows of `weight` that `indices` names."""
    shape = tuple(weight._spec.shape)

    def backward(g):
        if scale_grad_by_freq:
            raise errors_sparse.scaled_by_frequency()
        return _gradient(shape, indices, g, padding_idx)

    return step(
        "EmbeddingBackward0",
        (weight,),
        lambda: embedding_rows(weight.detach(), indices, padding_idx, False),
        backward,
        False,
    )


def bags(weight, indices, offsets, per_sample_weights, mode, padding_idx, scale_grad_by_freq, include_last_offset):
    """The sum or mean of the rows in each bag."""
    shape, rows = tuple(weight._spec.shape), weight.detach()
    plain = None if per_sample_weights is None else per_sample_weights.detach()

    def forward():
        return embedding_bags(rows, indices, offsets, plain, mode, padding_idx, False, include_last_offset)

    def backward(g):
        if scale_grad_by_freq:
            raise errors_sparse.scaled_by_frequency()
        with no_grad():
            bag = _bag_of(indices, offsets, include_last_offset)
        spread = F.index_select(g, 0, bag)
        by_weights = None
        if per_sample_weights is not None:
            if per_sample_weights.requires_grad:
                by_weights = (spread * F.index_select(weight, 0, indices)).sum(1)
                if padding_idx is not None:
                    by_weights = by_weights * (indices != padding_idx)
            spread = spread * per_sample_weights.unsqueeze(1)
        if mode == "mean":
            with no_grad():
                valid = F.ones_like(bag) if padding_idx is None else (indices != padding_idx).to(F.int64)
                zeros = F.zeros((g._spec.shape[0],), dtype=F.int64, device=g._spec.device)
                sizes = F.index_add(zeros, 0, bag, valid).clamp(min=1)
                share = F.index_select(sizes, 0, bag).to(g._spec.dtype).reciprocal().unsqueeze(1)
            spread = spread * share
        return _gradient(shape, indices, spread, padding_idx), by_weights

    inputs = (weight,) if per_sample_weights is None else (weight, per_sample_weights)
    if per_sample_weights is None:
        return step("EmbeddingBagBackward0", inputs, forward, lambda g: backward(g)[0], False)
    return step("EmbeddingBagBackward0", inputs, forward, backward, False)


def _bag_of(indices, offsets, include_last_offset):
    """The number of the bag of each index."""
    starts = offsets[:-1] if include_last_offset else offsets
    places = F.arange(indices._spec.shape[0], dtype=starts._spec.dtype, device=indices._spec.device)
    return F.searchsorted(starts, places, right=True) - 1
