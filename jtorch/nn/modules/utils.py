"""Small helpers that several layer families share: size tuples and the like."""

from collections.abc import Iterable
from itertools import repeat

__all__ = ["consume_prefix_in_state_dict_if_present", "ntuple", "pair", "single", "triple"]


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


# PyTorch's names of these, which subclasses of layers outside import.
_ntuple, _reverse_repeat_tuple = ntuple, reversed_repeated
_single, _pair, _triple, _quadruple = single, pair, triple, ntuple(4)


def _list_with_default(out_size, defaults):
    """A size with the defaults in the place of None."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict, prefix) -> None:
    """Take a prefix off the keys of a state_dict, in place."""
    for key in [k for k in state_dict if k.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        short = key.removeprefix(prefix) if key.startswith(prefix) else "" if key == prefix.removesuffix(".") else None
        if short is not None and key:
            metadata[short] = metadata.pop(key)
