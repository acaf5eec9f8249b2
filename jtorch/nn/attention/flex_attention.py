"""Attention whose scores and mask are functions of positions, computed densely: XLA fuses the function into the softmax."""

import dataclasses
import math

from jtorch import functions as torch
from jtorch.amp.autocast import autocast, get_autocast_dtype, is_autocast_enabled

from .block_mask import _DEFAULT_SPARSE_BLOCK_SIZE, BlockMask, noop_mask, ordered

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

FlexKernelOptions = dict


@dataclasses.dataclass(frozen=True)
class AuxRequest:
    """What else flex_attention returns."""

    lse: bool = False
    max_scores: bool = False


@dataclasses.dataclass(frozen=True)
class AuxOutput:
    """What was asked for by an AuxRequest."""

    lse: object = None
    max_scores: object = None


def _identity(score, batch, head, token_q, token_kv):
    return score


def and_masks(*mask_mods):
    """The mask that all of these allow. Raises RuntimeError for what is no function."""
    return _join(mask_mods, lambda a, b: a & b)


def or_masks(*mask_mods):
    """The mask that one of these allows. Raises RuntimeError for what is no function."""
    return _join(mask_mods, lambda a, b: a | b)


def _join(mods, op):
    if not all(map(callable, mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")

    def joined(b, h, q, kv):
        found = mods[0](b, h, q, kv)
        for mod in mods[1:]:
            found = op(found, mod(b, h, q, kv))
        return found

    return joined


def _indices(B, H, Q_LEN, KV_LEN, device):
    """Index tensors that broadcast to (B, H, Q_LEN, KV_LEN): a function of scalars, called with them, computes all of it."""
    sizes = (B, H, Q_LEN, KV_LEN)
    return [
        torch.arange(n, device=device).reshape([n if i == at else 1 for i in range(4)]) for at, n in enumerate(sizes)
    ]


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """The dense mask of a mask_mod (boolean) or the bias of a score_mod, of shape (B, H, Q_LEN, KV_LEN)."""
    B, H = B or 1, H or 1
    where = _indices(B, H, Q_LEN, KV_LEN, device)
    arguments = mod_fn.__code__.co_argcount if hasattr(mod_fn, "__code__") else 4
    if arguments == 5:
        return mod_fn(torch.zeros(B, H, Q_LEN, KV_LEN, device=device), *where)
    return mod_fn(*where).expand(B, H, Q_LEN, KV_LEN)


def create_block_mask(
    mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, _compile=False, separate_full_blocks=True,
):  # fmt: skip
    """The BlockMask of mask_mod(b, h, q, kv), a boolean function of indices.

    B, H: None where the mask is the same for all batches, or heads.
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    padded = torch.zeros(*mask.shape[:2], rows * size[0], columns * size[1], dtype=torch.bool, device=device)
    padded[..., :Q_LEN, :KV_LEN] = mask
    counts = padded.reshape(*mask.shape[:2], rows, size[0], columns, size[1]).sum((3, 5))
    full = counts == size[0] * size[1]
    some = (counts > 0) & ~full if separate_full_blocks else counts > 0
    wholly = ordered(full) if separate_full_blocks else (None, None)
    return BlockMask((Q_LEN, KV_LEN), *ordered(some), *wholly, size, mask_mod)


def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False, kernel_options=None, *,
    return_aux=None,
):  # fmt: skip
    """softmax(score_mod(query @ key.mT * scale) where the mask allows) @ value.

    Args:
        score_mod: (score, b, h, q, kv) -> score, elementwise: it is called once, with tensors that broadcast
        block_mask: a BlockMask; its mask_mod decides every score
        enable_gqa: fewer heads in key and value than in query

    Shape:
        query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev) -> (B, Hq, L, Ev)

    Raises ValueError where the numbers of heads, or the mask's lengths, do not fit. A query that may look nowhere gets zeros.
    """
    place = query.device.type
    if is_autocast_enabled(place):
        query, key, value = (_lower(t, get_autocast_dtype(place)) for t in (query, key, value))
        with autocast(place, enabled=False):
            return flex_attention(
                query,
                key,
                value,
                score_mod,
                block_mask,
                scale,
                enable_gqa,
                return_lse,
                kernel_options,
                return_aux=return_aux,
            )
    heads, kv_heads = query.shape[1], key.shape[1]
    if heads != kv_heads:
        if not enable_gqa:
            raise ValueError(
                f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. "
                "Try setting enable_gqa=True for GQA."
            )
        key, value = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (key, value))
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = _products(query, key) * scale
    where = _indices(query.shape[0], heads, query.shape[2], key.shape[2], query.device)
    if score_mod is not None:
        scores = score_mod(scores, *where)
    if block_mask is not None:
        block_mask.fits(query.shape[2], key.shape[2])
        scores = scores.masked_fill(~block_mask.mask_mod(*where), float("-inf"))
    highest = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - highest.masked_fill(highest == float("-inf"), 0.0))
    total = weights.sum(-1, keepdim=True)
    out = ((weights / total.masked_fill(total == 0, 1.0)).to(value.dtype)) @ value
    if return_aux is not None:
        lse = (total.log() + highest).squeeze(-1) if return_aux.lse else None
        return out, AuxOutput(lse, highest.squeeze(-1) if return_aux.max_scores else None)
    return (out, (total.log() + highest).squeeze(-1)) if return_lse else out


def _lower(t, dtype):
    return t.to(dtype) if t.is_floating_point() and t.dtype is not torch.float64 else t


def _products(query, key):
    """The scores, which are not rounded to the dtype of halves. Accelerators multiply halves several times as fast as what is wider."""
    wide = torch.float64 if query.dtype is torch.float64 else torch.float32
    if query.device.type == "cpu":
        return query.to(wide) @ key.to(wide).mT
    return (query @ key.mT).to(wide)
