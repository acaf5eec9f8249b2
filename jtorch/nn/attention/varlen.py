"""torch.nn.attention.varlen: attention over sequences of different lengths that lie one after the other in one tensor.

PyTorch has it on CUDA alone; here it is the same mathematics on every device: one attention in which a query sees the keys of its
own sequence, by a mask of (queries, keys). Memory grows with the product of the totals.
"""

from typing import NamedTuple

from ... import errors
from ... import functions as torch
from ...core.record import tls
from .. import functional as F

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What is returned beside the result: `lse`, the logarithms of the sums of exponentials, (heads, queries)."""

    lse: bool = False


def varlen_attn(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, return_aux=None, scale=None, window_size=(-1, -1), enable_gqa=False,
    seqused_k=None, block_table=None, num_splits=None,
):  # fmt: skip
    """Attention within each sequence of a packed batch.

    Shape:
        query (T_q, H, D), key and value (T_k, H_kv, D), cu_seq_q and cu_seq_k (N + 1,) -> (T_q, H, D), and with
        `AuxRequest(lse=True)` the float32 (H, T_q)

    window_size: (left, right), how many keys before and after its own place a query sees, -1: all; (-1, 0) is causal. The last query
    stands at the last key. seqused_k: (N,), only so many keys of each sequence are there; not differentiable.
    ValueError: numbers of heads that do not fit. Source: https://docs.pytorch.org/docs/stable/nn.attention.varlen.html
    """
    heads, kv_heads = query.shape[1], key.shape[-2]
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % kv_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={kv_heads}."
        )
    if block_table is not None:
        raise errors.unsupported("varlen_attn(block_table=...)", instead="keys and values gathered by the table")
    if seqused_k is not None and tls.me.grad and any(t.requires_grad for t in (query, key, value)):
        raise RuntimeError("seqused_k is an inference-only parameter.")
    mask = _visible(
        query.shape[0], key.shape[0], cu_seq_q, cu_seq_q if cu_seq_k is None else cu_seq_k, window_size, seqused_k
    )
    q, k, v = (t.transpose(0, 1) for t in (query, key, value))  # (H, T, D)
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], mask, scale=scale, enable_gqa=enable_gqa)[0]
    out = out.masked_fill(~mask.any(-1)[:, None], 0.0).transpose(0, 1).contiguous()
    if return_aux is None or not return_aux.lse:
        return out
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (q.float() @ k.float().repeat_interleave(heads // kv_heads, 0).transpose(1, 2)) * scale
    return out, scores.masked_fill(~mask, -float("inf")).logsumexp(-1)


def _visible(queries, keys, cu_q, cu_k, window, used):
    """Which keys each query sees, (queries, keys)."""
    (of_q, at_q, long_q), (of_k, at_k, long_k) = _places(queries, cu_q), _places(keys, cu_k)
    mask = of_q[:, None] == of_k
    if used is not None:
        long_k = used.to(long_k.dtype)
        mask = mask & (at_k < long_k[of_k])
    left, right = window
    if left >= 0 or right >= 0:
        ahead = at_k - (at_q + (long_k - long_q)[of_q])[:, None]  # by how much a key is after the query's own
        if left >= 0:
            mask = mask & (ahead >= -left)
        if right >= 0:
            mask = mask & (ahead <= right)
    return mask


def _places(total, cu):
    """Of each position its sequence and its place in it, and the lengths of the sequences."""
    at = torch.arange(total, device=cu.device)
    cu = cu.to(at.dtype)
    of = torch.searchsorted(cu[1:-1].contiguous(), at, right=True)
    return of, at - cu[of], cu[1:] - cu[:-1]


def varlen_attn_out(out, query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options):
    """varlen_attn, written to `out`; not differentiable. Returns what varlen_attn does."""
    got = varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, **options)
    if not isinstance(got, tuple):
        return out.copy_(got)
    return out.copy_(got[0]), got[1]
