"""Attention whose scores and mask are functions of positions, computed densely: XLA fuses the function into the softmax."""

import dataclasses
import math

from jtorch import functions as torch

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
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


def noop_mask(batch, head, token_q, token_kv):
    """True everywhere."""
    return batch.new_ones((), dtype=torch.bool, device=batch.device)


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


class BlockMask:
    """Which blocks of scores a mask leaves: partly (kv_indices, kv_num_blocks) or wholly (full_...), and the mask itself.

    Shapes: kv_num_blocks (B, H, blocks of queries), kv_indices (B, H, blocks of queries, blocks of keys).
    """

    def __init__(
        self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, BLOCK_SIZE, mask_mod, **more
    ):
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod=None, seq_lengths=None, compute_q_blocks=True,
    ):  # fmt: skip
        """The block mask of given blocks. Raises RuntimeError for indices of fewer than two dimensions."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1]
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, size, mask_mod or noop_mask
        )

    @property
    def shape(self):
        return (*self.kv_num_blocks.shape[:-1], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores."""
        return math.prod(self.shape)

    def to_dense(self):
        """1 for each block that is computed, (B, H, blocks of queries, blocks of keys)."""
        dense = _spread(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None:
            dense = dense | _spread(self.full_kv_num_blocks, self.full_kv_indices)
        return dense.int()

    def sparsity(self) -> float:
        """The share of blocks that are left out, in percent."""
        dense = self.to_dense()
        return 100.0 * (1 - dense.sum().item() / dense.numel())

    def to(self, device):
        """The same on another device."""
        parts = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        parts = [None if p is None else p.to(device) for p in parts]
        return BlockMask(self.seq_lengths, *parts, self.BLOCK_SIZE, self.mask_mod)

    def __repr__(self):
        return f"BlockMask(shape={tuple(self.shape)}, sparsity={self.sparsity():.2f}%)"


def _spread(counts, indices):
    n = indices.shape[-1]
    among = torch.arange(n, device=indices.device) < counts[..., None]
    hits = indices[..., None] == torch.arange(n, device=indices.device)
    return (hits & among[..., None]).any(-2)


def _ordered(blocks):
    """(counts, indices) of a boolean (..., rows, columns): the true columns first, each group in order."""
    indices = torch.argsort(blocks.int(), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(torch.int32), indices.to(torch.int32)


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
    wholly = _ordered(full) if separate_full_blocks else (None, None)
    return BlockMask((Q_LEN, KV_LEN), *_ordered(some), *wholly, size, mask_mod)


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

    Raises ValueError where the numbers of heads do not fit. A query that may look nowhere gets zeros.
    """
    heads, kv_heads = query.shape[1], key.shape[1]
    if heads != kv_heads:
        if not enable_gqa:
            raise ValueError(
                f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. "
                "Try setting enable_gqa=True for GQA."
            )
        key, value = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (key, value))
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query @ key.mT).float() * scale
    where = _indices(query.shape[0], heads, query.shape[2], key.shape[2], query.device)
    if score_mod is not None:
        scores = score_mod(scores, *where)
    if block_mask is not None:
        scores = scores.masked_fill(~block_mask.mask_mod(*where), float("-inf"))
    highest = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - highest.masked_fill(highest == float("-inf"), 0.0))
    total = weights.sum(-1, keepdim=True)
    out = ((weights / total.masked_fill(total == 0, 1.0)).to(value.dtype)) @ value
    if return_aux is not None:
        lse = (total.log() + highest).squeeze(-1) if return_aux.lse else None
        return out, AuxOutput(lse, highest.squeeze(-1) if return_aux.max_scores else None)
    return (out, (total.log() + highest).squeeze(-1)) if return_lse else out
