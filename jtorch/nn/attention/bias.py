"""Causal masks for attention between sequences of different lengths."""

import enum

from jtorch import functions as torch

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of the mask begins."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


def CausalBias(variant, seq_len_q, seq_len_kv):
    """The boolean mask (seq_len_q, seq_len_kv) of a variant: true where a query may look."""
    shift = 0 if variant is CausalVariant.UPPER_LEFT else seq_len_kv - seq_len_q
    return torch.ones(seq_len_q, seq_len_kv, dtype=torch.bool).tril(shift)


def causal_upper_left(*size):
    """The mask whose diagonal begins at the first query and the first key."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_two(size))


def causal_lower_right(*size):
    """The mask whose diagonal ends at the last query and the last key."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two(size))


def _two(size):
    assert len(size) == 2, "causal_lower_right only supports 2D tensors"
    return size
