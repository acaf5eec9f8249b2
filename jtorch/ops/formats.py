"""The strides of results: PyTorch keeps the channels last where its kernels find them there. Knows Specs only.

Each function here fits `@op(strides=...)`: from the results and the arguments of a kernel, as Specs, to strides or None
(row-major).
"""

import types

from jtorch.core import shapes

__all__ = [
    "follow",
    "follow_any",
    "follow_line",
    "follow_planes",
    "keep_format",
    "keep_order",
    "other_first",
    "suggests_channels_last",
]


def suggests_channels_last(spec) -> bool:
    """Whether the strides of 4 or 5 dimensions say channels last, gaps between elements or not."""
    if spec.ndim not in (4, 5) or spec.strides[1] == 0:
        return False
    least = 0
    for dim in (1, *range(spec.ndim - 1, 1, -1), 0):
        size, stride = spec.shape[dim], spec.strides[dim]
        if size == 0 or stride < least:
            return False
        # (N, 1, 1, 1) and (1, C, 1, 1) are both: row-major wins
        if dim == 0 and least == spec.strides[1]:
            return False
        least = stride * size if size > 1 else stride
    return True


def _channels_last(out):
    return shapes.channels_last_strides(tuple(out.shape))


def follow(outs, input, *rest, **named):
    """Channels last where the input has them last."""
    last = suggests_channels_last(input)
    return [_channels_last(o) if last and len(o.shape) == input.ndim else None for o in outs]


def follow_planes(outs, input, *rest, **named):
    """As `follow`, in two dimensions of space only."""
    return follow(outs, input) if input.ndim == 4 else [None] * len(outs)


def follow_any(outs, input, weight, *rest, **named):
    """Channels last where the input or the weight has them last."""
    return follow(outs, input if suggests_channels_last(input) or weight.ndim != input.ndim else weight)


def follow_line(outs, input, *rest, **named):
    """As `follow` for one dimension of space, which PyTorch's kernels take for the lower of two, the upper of size 1."""
    if input.ndim != 3:
        return [None] * len(outs)
    (n, c, length), (far, near, step) = input.shape, input.strides
    plane = types.SimpleNamespace(ndim=4, shape=(n, c, 1, length), strides=(far, near, length * step, step))
    if not suggests_channels_last(plane):
        return [None] * len(outs)
    return [(c * o.shape[2], 1, c) for o in outs]


def keep_order(outs, input, *rest, **named):
    """The input's order of dimensions, as an elementwise result has it."""
    return [_in_order(tuple(o.shape), input.strides) if len(o.shape) == input.ndim else None for o in outs]


def keep_format(outs, input, *rest, **named):
    """The strides of a new tensor like the input, whatever the kernel does along its dimensions."""
    kept = tuple(shapes.empty_like_strides(tuple(input.shape), input.strides))
    return [kept if tuple(o.shape) == tuple(input.shape) else None for o in outs]


def other_first(outs, input, other, *rest, **named):
    """An elementwise result whose second operand is asked first."""
    if not hasattr(other, "strides") or len(outs[0].shape) < max(input.ndim, other.ndim):
        return (None,)  # a number, or the sum of the losses
    known = [(tuple(x.shape), x.strides) for x in (other, input)]
    return (tuple(shapes.elementwise_strides(tuple(outs[0].shape), known)),)


def _in_order(shape, strides):
    return tuple(shapes.elementwise_strides(shape, [(shape, strides)]))
