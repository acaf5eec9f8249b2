"""The strides of results: PyTorch keeps the channels last where its kernels find them there. Knows Specs only.

Each function here fits `@op(strides=...)`: from the results and the arguments of a kernel, as Specs, to strides or None
(row-major).
"""

from jtorch.core import shapes

__all__ = ["follow", "follow_any", "follow_planes", "keep_order", "suggests_channels_last"]


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


def keep_order(outs, input, *rest, **named):
    """The input's order of dimensions, as an elementwise result has it."""
    return [_in_order(tuple(o.shape), input.strides) if len(o.shape) == input.ndim else None for o in outs]


def _in_order(shape, strides):
    return tuple(shapes.elementwise_strides(shape, [(shape, strides)]))
