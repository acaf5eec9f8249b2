"""torch.func.rearrange: the dimensions of a tensor named, and put together in another order.

A. Rogozhnikov, Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation, 2022.
"""

import math
import re

from .. import errors_extend, functions

__all__ = ["rearrange"]


def rearrange(tensor, pattern, **axes_lengths):
    """Reorder, split and join dimensions as "b (h w) c -> (b h) w c" says; `h=2` gives a length that the shape does not.

    A list of tensors is stacked along a new first dimension. ValueError: the pattern and the shape do not go together.
    """
    if isinstance(tensor, (list, tuple)):
        tensor = functions.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise errors_extend.rearrange(pattern, "it needs one '->'")
    left, right = (_groups(side, pattern) for side in sides)
    left = _spelled_out(left, tensor.ndim, pattern)
    dots = [name for group in left for name in group if name.startswith(".")]
    right = [[n for name in group for n in (dots if name == "..." else [name])] for group in _flat_dots(right, dots)]
    names, wanted = [n for g in left for n in g], [n for g in right for n in g]
    if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        raise errors_extend.rearrange(pattern, "both sides must have the same names, each once")
    if len(left) != tensor.ndim:
        raise errors_extend.rearrange(pattern, f"{len(left)} dimensions for a tensor of {tensor.ndim}")
    lengths = _lengths(left, tensor.shape, axes_lengths, pattern)
    split = tensor.reshape([lengths[n] for n in names])
    moved = split.permute([names.index(n) for n in wanted])
    return moved.reshape([math.prod(lengths[n] for n in group) for group in right])


def _groups(side, pattern):
    """["b", "(h w)"] -> [["b"], ["h", "w"]]; 1 is a group without names."""
    if side.count("(") != side.count(")"):
        raise errors_extend.rearrange(pattern, "a parenthesis is missing")
    found = []
    for token in re.findall(r"\([^()]*\)|\S+", side.replace("…", "...")):
        parts = token.strip("()").split()
        if any(p not in ("...", "1") and not p.isidentifier() for p in parts):
            raise errors_extend.rearrange(pattern, f"{token!r} is no name")
        found.append([p for p in parts if p != "1"])
    return found


def _flat_dots(groups, dots):
    """An ellipsis that stands alone is as many dimensions as it is names."""
    return [one for g in groups for one in ([[d] for d in dots] if g == ["..."] else [g])]


def _spelled_out(left, ndim, pattern):
    if ["..."] not in left:
        if any("..." in g for g in left):
            raise errors_extend.rearrange(pattern, "an ellipsis on the left cannot be in parentheses")
        return left
    at = left.index(["..."])
    return [*left[:at], *([f".{k}"] for k in range(ndim - len(left) + 1)), *left[at + 1 :]]


def _lengths(left, shape, given, pattern):
    lengths = dict(given)
    for group, size in zip(left, shape):
        unknown = [n for n in group if n not in lengths]
        known = math.prod(lengths[n] for n in group if n in lengths)
        if len(unknown) > 1 or size % known:
            raise errors_extend.rearrange(pattern, f"the lengths of {group} do not follow from {size}")
        if unknown:
            lengths[unknown[0]] = size // known
        elif known != size:
            raise errors_extend.rearrange(pattern, f"{group} of {known} elements for a dimension of {size}")
    return lengths
