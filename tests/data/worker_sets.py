"""Datasets that worker processes import: this module is light, and takes PyTorch or jtorch as `lib`."""

import os
import random
import signal
import time
from collections import namedtuple

import numpy as np

Pair = namedtuple("Pair", "left right")


class Rows:
    """n samples of one kind."""

    def __init__(self, lib, kind="tensor", n=11):
        self.lib = lib
        self.kind = kind
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return KINDS[self.kind](self.lib, int(i))


def drawn(lib, i):
    """Values of every generator that a worker seeds."""
    return i, lib.rand(3), lib.randn(2).numpy().tolist(), lib.randperm(4), random.random(), np.random.rand(2)


def told(lib, i):
    """What a worker knows of itself."""
    info = lib.utils.data.get_worker_info()
    return i, info.id, info.num_workers, info.seed, type(info.dataset).__name__


KINDS = {
    "tensor": lambda lib, i: lib.arange(6.0).reshape(2, 3) + i,
    "array": lambda lib, i: np.full((3, 2), i, np.float32),
    "dict": lambda lib, i: {"x": np.arange(3) + i, "name": f"n{i}", "deep": [i, (float(i), True)]},
    "namedtuple": lambda lib, i: Pair(lib.tensor([i, i + 1]), {"b": b"bytes"}),
    "scalars": lambda lib, i: (i, i / 2, np.float32(i), np.int16(i), i % 2 == 0, "s"),
    "drawn": drawn,
    "told": told,
    "made": lambda lib, i: lib.zeros(2, 3, dtype=lib.float64) + lib.ones(3) * i,
    "written": lambda lib, i: written(lib, i),
    "bfloat16": lambda lib, i: lib.full((40, 100), i, dtype=lib.bfloat16),
    "large": lambda lib, i: np.full((3, 64, 64), i, np.float32),
}  # fmt: skip


def written(lib, i):
    """Made by writing into a tensor, as padding collates do."""
    made = lib.zeros(4, 3)
    made[: i % 4] = lib.tensor([1.0, 2.0, 3.0])
    return made


def padded(lib, batch):
    """A collate function for sequences of different lengths."""
    rows = lib.nn.utils.rnn.pad_sequence([lib.arange(int(i) % 4 + 1) for i in batch], batch_first=True)
    return rows, lib.cat([lib.tensor([int(i)]) for i in batch]), lib.stack([lib.ones(2) * int(i) for i in batch], dim=1)


def stream(lib, n=10, sharded=True):
    """An iterable dataset of which each worker takes its part."""

    class Stream(lib.utils.data.IterableDataset):
        def __iter__(self):
            info = lib.utils.data.get_worker_info()
            first, step = (info.id, info.num_workers) if info is not None and sharded else (0, 1)
            return iter(range(first, n + 3 * first, step))

    return Stream()


class Faulty:
    """Raises, ends or sleeps at some samples."""

    def __init__(self, at):
        self.at = at

    def __len__(self):
        return 12

    def __getitem__(self, i):
        what = self.at.get(i)
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "exit":
            os._exit(3)
        elif what == "sleep":
            time.sleep(60)
        elif what is not None:
            raise what
        return i


class Odd(Exception):
    """Cannot be made from a message alone."""

    def __init__(self, one, two):
        super().__init__(one, two)


def reseed(number):
    """A worker_init_fn."""
    np.random.seed(number)


def refuse(number):
    """A worker_init_fn that fails."""
    raise OSError("no file")


class Process(Rows):
    """What process a sample was loaded in, and what it sees."""

    def __getitem__(self, i):
        return os.getpid(), os.environ.get("JAX_PLATFORMS"), os.environ.get("MADE_LATER"), os.getcwd(), os.getppid()


class Held:
    """Memory that a worker gets: samples are what it holds, and writing to it must stay in the worker."""

    def __init__(self, array, tensor):
        self.array = array
        self.tensor = tensor

    def __len__(self):
        return 4

    def __getitem__(self, i):
        self.array[i] += 100
        return np.array(self.array[i]), self.tensor[i], type(self.array).__name__
