"""Causal masks for attention between sequences of different lengths: tensors that attention knows by their variant."""

import enum
import warnings

from ... import functions as torch
from ...dispatch.override import arm
from ...tensor import Tensor
from ..functional import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of the mask begins, or ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A mask (seq_len_q, seq_len_kv) for `scaled_dot_product_attention`, true where a query may look; elsewhere a tensor of no use.

    Args:
        variant: the CausalVariant
        seq_len_q, seq_len_kv: how many queries and keys
    """

    def __new__(cls, variant, seq_len_q, seq_len_kv):
        arm()  # classes of the package itself do not, when they are defined
        return super().__new__(cls, variant, seq_len_q, seq_len_kv)  # PyTorch's is of this shape too

    def __init__(self, variant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device=None):
        """The mask as a tensor of bools."""
        shift = 0 if self.variant is CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q
        return torch.ones(self.seq_len_q, self.seq_len_kv, dtype=torch.bool, device=device).tril(shift)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is scaled_dot_product_attention:
            return _attend(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self):
        return repr(self._materialize())


def _attend(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if is_causal:
        raise ValueError("CausalBias should not be used with causal=True")
    upper = attn_mask.variant is CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
    mask = None if upper else attn_mask._materialize(query.device)
    return scaled_dot_product_attention(query, key, value, mask, dropout_p, upper, scale=scale, enable_gqa=enable_gqa)


def causal_upper_left(*size) -> CausalBias:
    """The mask whose diagonal begins at the first query and the first key."""
    assert len(size) == 2, "causal_upper_left only supports 2D tensors"
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size) -> CausalBias:
    """The mask whose diagonal ends at the last query and the last key."""
    assert len(size) == 2, "causal_lower_right only supports 2D tensors"
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
