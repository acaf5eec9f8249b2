"""Padding layers."""

from jtorch.nn import functional as F
from jtorch.nn.modules.module import Module
from jtorch.nn.modules.utils import ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Padding of the last `_ndim` dimensions.

    Args:
        padding: a number for all sides, or a pair for each dimension, the last one first
    """

    _ndim = 0
    _mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = ntuple(2 * self._ndim)(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad:
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input):
        n = self._ndim
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, self._mode)


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension with a value."""

    _ndim = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last two dimensions with a value."""

    _ndim = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last three dimensions with a value."""

    _ndim = 3


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads the last dimension with zeros."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads the last two dimensions with zeros."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads the last three dimensions with zeros."""


class ReflectionPad1d(_Pad):
    """Pads the last dimension with its reflection."""

    _ndim, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pads the last two dimensions with their reflection."""

    _ndim, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pads the last three dimensions with their reflection."""

    _ndim, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last dimension with its border."""

    _ndim, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pads the last two dimensions with their border."""

    _ndim, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pads the last three dimensions with their border."""

    _ndim, _mode = 3, "replicate"


class CircularPad1d(_CircularPad):
    """Pads the last dimension with its other end."""

    _ndim = 1


class CircularPad2d(_CircularPad):
    """Pads the last two dimensions with their other ends."""

    _ndim = 2


class CircularPad3d(_CircularPad):
    """Pads the last three dimensions with their other ends."""

    _ndim = 3
