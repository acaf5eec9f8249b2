"""Masks of attention by blocks: which blocks of scores are computed, in part or wholly, and how they look."""

import itertools
import math

from jtorch import functions as torch

__all__ = ["_DEFAULT_SPARSE_BLOCK_SIZE", "BlockMask", "noop_mask", "ordered"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def noop_mask(batch, head, token_q, token_kv):
    """True everywhere."""
    return batch.new_ones((), dtype=torch.bool, device=batch.device)


def _sliced_mask_mod_error(batch, head, token_q, token_kv):
    """The mask of a part: positions count from another start there, so the whole's function would be wrong silently."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is reset. "
        "You must set it from the original BlockMask's mask_mod."
    )


class BlockMask:
    """Which blocks of scores a mask leaves: partly (kv_indices, kv_num_blocks) or wholly (full_...), and the mask itself.

    Shapes: kv_num_blocks (B, H, blocks of queries), kv_indices (B, H, blocks of queries, blocks of keys); q_num_blocks and
    q_indices are the same seen from the keys. `mask[batch, head, block of queries]` is a part, whose mask_mod has to be set.
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

    def _blocks(self):
        """(the blocks that are computed in part, those that are wholly or None), boolean."""
        full = None if self.full_kv_num_blocks is None else _spread(self.full_kv_num_blocks, self.full_kv_indices)
        return _spread(self.kv_num_blocks, self.kv_indices), full

    def to_dense(self):
        """1 for each block that is computed, (B, H, blocks of queries, blocks of keys)."""
        some, full = self._blocks()
        return (some if full is None else some | full).int()

    def _seen_from_keys(self, at):
        blocks = self._blocks()[at]
        return (None, None) if blocks is None else ordered(blocks.transpose(-2, -1))

    q_num_blocks = property(lambda self: self._seen_from_keys(0)[0])
    q_indices = property(lambda self: self._seen_from_keys(0)[1])
    full_q_num_blocks = property(lambda self: self._seen_from_keys(1)[0])
    full_q_indices = property(lambda self: self._seen_from_keys(1)[1])

    def sparsity(self) -> float:
        """The share of scores that are left out, in percent; a block that sticks out counts as a whole one."""
        computed = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            computed += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - computed * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to(self, device):
        """The same on another device."""
        parts = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        parts = [None if p is None else p.to(device) for p in parts]
        return BlockMask(self.seq_lengths, *parts, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        sizes = self.kv_num_blocks.shape
        index = tuple(slice(i % n, i % n + 1) if isinstance(i, int) else i for i, n in zip(index, sizes))
        parts = (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        parts = [None if p is None else p[index] for p in parts]
        return BlockMask(self.seq_lengths, *parts, self.BLOCK_SIZE, _sliced_mask_mod_error)

    def fits(self, q_len: int, kv_len: int) -> None:
        """Raise ValueError where the mask was made for other lengths, RuntimeError where it is a part without a mask."""
        if self.mask_mod is _sliced_mask_mod_error:
            raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
        if tuple(self.seq_lengths) == (q_len, kv_len):
            return
        shorter = self.seq_lengths[0] < q_len or self.seq_lengths[1] < kv_len
        made = f"block_mask was created for block_mask.shape={self.shape} but got q_len={q_len} and kv_len={kv_len}. "
        if shorter:
            made += "As the block mask was created for a smaller length than you're using it for, you likely need to create a new "
            raise ValueError(made + "block mask.")
        made += "As the block mask was created for a larger length than you're using it for, you can either 1. create a new block "
        made += "mask with the correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
        made += "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left corner, which does "
        raise ValueError(made + "not work for all mask_mods!")

    def _adjust(self, new_q_len: int, new_kv_len: int):
        """The upper left corner, for these lengths."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        some, full = (None if b is None else ordered(b[..., :rows, :columns]) for b in self._blocks())
        return BlockMask((new_q_len, new_kv_len), *some, *(full or (None, None)), self.BLOCK_SIZE, self.mask_mod)

    def to_string(self, grid_size=(20, 20), limit=4) -> str:
        """A picture for each batch and head, `limit` of them: blocks that are computed black, mixed ones grey.

        grid_size: how many rows and columns to draw at most; -1 for all
        """
        dense = self.to_dense().numpy()
        rows, columns = dense.shape[-2:]
        if isinstance(grid_size, int):
            grid_size = (rows, columns) if grid_size == -1 else (grid_size, grid_size)
        high, wide = max(-(-rows // grid_size[0]), 1), max(-(-columns // grid_size[1]), 1)
        pictures = []
        for at in itertools.islice(itertools.product(*map(range, dense.shape[:-2])), limit):
            lines = (
                "".join(_shade(dense[at][r : r + high, c : c + wide].mean()) for c in range(0, columns, wide))
                for r in range(0, rows, high)
            )
            pictures.append(f"{at}\n" + "".join(f"{line}\n" for line in lines))
        if math.prod(dense.shape[:-2]) > limit:
            pictures.append(
                "...\nTo print out more, set BlockMask.to_string(limit=N)\n"
                "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
            )
        return "\n".join(pictures)

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self):
        sides = [
            f"{full}{side}{what}"
            for side in ("kv", "q")
            for full in ("", "full_")
            for what in ("_num_blocks", "_indices")
        ]
        shapes = [(name, getattr(self, name)) for name in sides]
        said = [f"{name}={None if t is None else t.shape}" for name, t in shapes]
        mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        said += [
            f"BLOCK_SIZE={self.BLOCK_SIZE}",
            f"shape={self.shape}",
            f"sparsity={self.sparsity():.2f}%",
            f"mask_mod={mod}",
        ]
        return "BlockMask(\n    " + ",\n    ".join(said) + "\n)"


def _shade(share: float) -> str:
    return "  " if share == 0 else "██" if share == 1 else "░░"


def _spread(counts, indices):
    n = indices.shape[-1]
    among = torch.arange(n, device=indices.device) < counts[..., None]
    hits = indices[..., None] == torch.arange(n, device=indices.device)
    return (hits & among[..., None]).any(-2)


def ordered(blocks):
    """(counts, indices) of a boolean (..., rows, columns): the true columns first, each group in order."""
    indices = torch.argsort(blocks.int(), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).to(torch.int32), indices.to(torch.int32)
