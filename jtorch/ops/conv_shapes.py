"""The numbers of a convolution: strides, padding and sizes of its spatial dimensions."""

from typing import NamedTuple


class Geometry(NamedTuple):
    """Everything of a convolution but its arrays."""

    stride: tuple[int, ...]
    lo: tuple[int, ...]  # padding before
    hi: tuple[int, ...]  # padding after
    dilation: tuple[int, ...]
    groups: int

    def out(self, spatial, kernel) -> tuple[int, ...]:
        """The spatial size of the result."""
        return tuple(
            (s + lo + hi - d * (k - 1) - 1) // st + 1
            for s, k, st, lo, hi, d in zip(spatial, kernel, self.stride, self.lo, self.hi, self.dilation)
        )


def tuple_of(value, n: int) -> tuple[int, ...]:
    """One value for each of `n` dimensions."""
    if isinstance(value, int):
        return (value,) * n
    value = tuple(value)
    return value * n if len(value) == 1 else value


def geometry(kernel, stride, padding, dilation, groups) -> Geometry:
    """The geometry of a kernel of this size with arguments as a call has them."""
    n = len(kernel)
    stride, dilation = tuple_of(stride, n), tuple_of(dilation, n)
    if padding == "same":
        total = tuple(d * (k - 1) for d, k in zip(dilation, kernel))
        lo = tuple(t // 2 for t in total)
        return Geometry(stride, lo, tuple(t - a for t, a in zip(total, lo)), dilation, groups)
    pad = (0,) * n if padding == "valid" else tuple_of(padding, n)
    return Geometry(stride, pad, pad, dilation, groups)


def transposed_spatial(spatial, kernel, stride, padding, output_padding, dilation) -> tuple[int, ...]:
    """The spatial size of a transposed convolution's result."""
    n = len(kernel)
    rows = zip(
        spatial,
        kernel,
        tuple_of(stride, n),
        tuple_of(padding, n),
        tuple_of(output_padding, n),
        tuple_of(dilation, n),
    )
    return tuple((s - 1) * st - 2 * p + d * (k - 1) + extra + 1 for s, k, st, p, extra, d in rows)
