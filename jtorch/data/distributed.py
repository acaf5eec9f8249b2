"""The sampler that gives each process of a distributed run its share of the samples."""

import importlib
import math
import sys
from collections.abc import Iterator

from ..core import draw, rng
from .sampler import Sampler

__all__ = ["DistributedSampler"]


def _group():
    try:
        return importlib.import_module("jtorch.distributed")
    except ModuleNotFoundError:
        raise RuntimeError("Requires distributed package to be available") from None


def world() -> tuple[int, int]:
    """(number of processes, number of this one) of the process group; (1, 0) where there is none."""
    group = sys.modules.get("jtorch.distributed")  # without an import no group was made
    return (group.get_world_size(), group.get_rank()) if group and group.is_initialized() else (1, 0)


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th sample of an order that all processes agree on.

    Call `set_epoch` before each epoch.

    Args:
        dataset: the dataset; only its length matters
        num_replicas: the number of processes. Default: that of the process group
        rank: the number of this process. Default: that in the process group
        shuffle: draw the order anew in each epoch. Default: True
        seed: what to draw it from, the same in all processes. Default: 0
        drop_last: leave out the samples of an uneven end, rather than repeat some. Default: False
    """

    def __init__(
        self,
        dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        num_replicas = _group().get_world_size() if num_replicas is None else num_replicas
        rank = _group().get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            order = draw.randperm(rng.Generator().manual_seed(self.seed + self.epoch), n).tolist()
        else:
            order = list(range(n))
        if n < self.total_size:
            order *= math.ceil(self.total_size / n)
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch's order; without it every epoch has the same."""
        self.epoch = epoch
