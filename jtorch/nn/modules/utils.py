"""Small helpers that several layer families share: size tuples and the like."""

from collections.abc import Iterable
from itertools import repeat

__all__ = ["ntuple", "pair", "single", "triple"]


def ntuple(n: int):
    """A function that repeats a number n times, and makes a tuple of an iterable."""

    def parse(x):
        if isinstance(x, Iterable):
            return tuple(x)
        return tuple(repeat(x, n))

    parse.__name__ = f"_ntuple_{n}"
    return parse


single, pair, triple = ntuple(1), ntuple(2), ntuple(3)


def reversed_repeated(values, n: int) -> tuple:
    """(a, b) -> (b, b, a, a): the order in which F.pad wants paddings."""
    return tuple(v for v in reversed(values) for _ in range(n))
