"""Sequences of different lengths in batches of a few shapes, so that the programs recorded for them are used again."""

import bisect
from collections.abc import Iterator, Sequence

import numpy as np

from ..convert import as_elements
from ..core import draw, rng
from ..tensor import Tensor
from . import collate
from .sampler import Sampler, random_seed

__all__ = ["LengthBucketSampler", "PadToBucket", "length_boundaries"]


def length_boundaries(lengths: Sequence[int], buckets: int, multiple: int = 1) -> list[int]:
    """Padded lengths, at most `buckets` of them, each a multiple of `multiple`, that together pad the least.

    The last one holds the longest sequence. O(buckets * u^2) for u different (rounded) lengths.
    """
    if buckets < 1 or multiple < 1 or not len(lengths):
        raise ValueError(
            f"length_boundaries needs lengths, buckets >= 1 and multiple >= 1, got {len(lengths)} lengths, {buckets}, {multiple}"
        )
    rounded = -(-np.asarray(lengths, np.int64) // multiple) * multiple
    values, counts = np.unique(rounded, return_counts=True)
    if len(values) <= buckets:
        return values.tolist()
    # cost[k]: the least memory that pads the k shortest values; one more bucket at each pass
    total = np.concatenate([[0], np.cumsum(counts)])
    cost = np.concatenate([[0.0], values * total[1:].astype(np.float64)])
    cuts = []
    for _ in range(buckets - 1):
        # the bucket that ends at value j starts behind the first i values
        options = cost[:-1, None] + values[None, :] * (total[None, 1:] - total[:-1, None])
        options[np.tril_indices(len(values), -1)] = np.inf
        first = options.argmin(0)
        cuts.append(first)
        cost = np.concatenate([[0.0], options[first, np.arange(len(values))]])
    ends, j = [], len(values) - 1
    for first in reversed(cuts):
        ends.append(j)
        j = first[j] - 1
        if j < 0:
            break
    else:
        ends.append(j)
    return values[sorted(ends)].tolist()


class LengthBucketSampler(Sampler[list[int]]):
    """Batches of indices whose sequences fall into the same length bucket: a `batch_sampler` for DataLoader.

    Every batch but the last of a bucket has `batch_size` sequences, so with `PadToBucket` there are only as many shapes
    as buckets (twice as many at most without `drop_last`).

    Args:
        lengths: the length of each sequence
        batch_size: sequences in a batch
        boundaries: the padded lengths, ascending; the last holds the longest sequence. Default: chosen by
            `length_boundaries(lengths, buckets, multiple)`
        buckets: how many to choose. Default: 8
        multiple: what chosen lengths are a multiple of. Default: 8
        shuffle: draw the batches and their order anew in each epoch. Default: False, by length
        drop_last: leave out batches that are not full. Default: False
        generator: what to draw from. Default: a new one, seeded by the default generator in each epoch
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        boundaries: Sequence[int] | None = None,
        *,
        buckets: int = 8,
        multiple: int = 8,
        shuffle: bool = False,
        drop_last: bool = False,
        generator: rng.Generator | None = None,
    ):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        chosen = length_boundaries(lengths, buckets, multiple) if boundaries is None else list(boundaries)
        if sorted(set(chosen)) != chosen or not chosen:
            raise ValueError(f"boundaries should ascend, but got boundaries={boundaries}")
        if len(lengths) and max(lengths) > chosen[-1]:
            raise ValueError(f"boundaries should hold the longest sequence ({max(lengths)}), but end at {chosen[-1]}")
        self.boundaries = chosen
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator
        where = np.searchsorted(chosen, np.asarray(lengths, np.int64), side="left")
        order = np.lexsort((np.asarray(lengths), where))  # by bucket, in it by length
        self._members = [order[where[order] == b] for b in range(len(chosen))]

    def __iter__(self) -> Iterator[list[int]]:
        members = self._members
        if self.shuffle:
            generator = self.generator
            if generator is None:
                generator = rng.Generator().manual_seed(random_seed())
            members = [m[draw.randperm(generator, len(m))] for m in members if len(m)]
        batches = [
            m[start : start + self.batch_size].tolist()
            for m in members
            for start in range(0, len(m), self.batch_size)
            if not self.drop_last or start + self.batch_size <= len(m)
        ]
        if self.shuffle:
            batches = [batches[i] for i in draw.randperm(generator, len(batches)).tolist()]
        return iter(batches)

    def __len__(self) -> int:
        n = self.batch_size
        return sum(len(m) // n if self.drop_last else -(-len(m) // n) for m in self._members)


class PadToBucket:
    """A `collate_fn` that pads sequences to the bucket of the longest in the batch.

    A sample is a sequence (L, *), or a tuple or dict of values: those numbered or named in `fields` are padded, the
    rest is joined by `default_collate`. A sequence is a tensor, an array or a list of numbers.

    Args:
        boundaries: the padded lengths, ascending (a sampler's `boundaries`)
        padding_value: what to fill with. Default: 0
        fields: the positions or keys to pad. Default: the first one, of a dict all whose first value is a sequence
        with_lengths: give (batch, lengths) instead of the batch, lengths int64 (N,). Default: False
    """

    def __init__(self, boundaries: Sequence[int], padding_value=0, fields=None, with_lengths: bool = False):
        self.boundaries = list(boundaries)
        self.padding_value = padding_value
        self.fields = fields
        self.with_lengths = with_lengths

    def __call__(self, batch: list):
        """Join samples."""
        first = batch[0]
        if isinstance(first, dict):
            fields = [k for k in first if _is_sequence(first[k])] if self.fields is None else self.fields
            made = {k: self._join([s[k] for s in batch], k in fields) for k in first}
        elif isinstance(first, tuple):
            fields = (0,) if self.fields is None else self.fields
            columns = [self._join(column, k in fields) for k, column in enumerate(zip(*batch))]
            made = type(first)(*columns) if hasattr(first, "_fields") else columns
        else:
            fields, made = None, self._join(batch, True)
        if not self.with_lengths:
            return made
        which = next(iter(fields)) if fields else None
        lengths = [len(s if which is None else s[which]) for s in batch]
        return made, collate.default_collate(lengths)

    def _join(self, column, padded):
        if not padded:
            return collate.default_collate(list(column))
        arrays = [as_elements(x) if isinstance(x, Tensor) else np.asarray(x) for x in column]
        longest = max(len(a) for a in arrays)
        k = bisect.bisect_left(self.boundaries, longest)
        if k == len(self.boundaries):
            raise ValueError(f"a sequence of length {longest} is longer than the last boundary, {self.boundaries[-1]}")
        out = collate.allocate((len(arrays), self.boundaries[k], *arrays[0].shape[1:]), arrays[0].dtype)
        out[...] = self.padding_value
        for row, a in zip(out, arrays):
            row[: len(a)] = a
        return collate.over(out)


def _is_sequence(x) -> bool:
    return isinstance(x, list) or getattr(x, "ndim", 0) > 0
