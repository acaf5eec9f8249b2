"""Pooling layers."""

from jtorch.nn import functional as F
from jtorch.nn.modules.module import Module
from jtorch.nn.modules.utils import ntuple, pair, single, triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    """The largest element of each window.

    Args:
        kernel_size: size of the window
        stride: step of the window. Default: kernel_size
        padding: added on both sides, as minus infinity. Default: 0
        dilation: step inside the window. Default: 1
        return_indices: also give the positions of the maxima, for MaxUnpool
        ceil_mode: round the output size up
    """

    _function = None

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _function = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _function = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    __doc__ = _MaxPoolNd.__doc__
    _function = "max_pool3d"


class _MaxUnpoolNd(Module):
    """Puts maxima back where MaxPool (with return_indices) found them; zero elsewhere."""

    _ndim = 0
    _function = None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        sizes = ntuple(self._ndim)
        self.kernel_size = sizes(kernel_size)
        self.stride = sizes(stride if stride is not None else kernel_size)
        self.padding = sizes(padding)

    def forward(self, input, indices, output_size=None):
        return getattr(F, self._function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _ndim = 1
    _function = "max_unpool1d"


class MaxUnpool2d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _ndim = 2
    _function = "max_unpool2d"


class MaxUnpool3d(_MaxUnpoolNd):
    __doc__ = _MaxUnpoolNd.__doc__
    _ndim = 3
    _function = "max_unpool3d"


class _AvgPoolNd(Module):
    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L).

    Args:
        kernel_size: size of the window
        stride: step of the window. Default: kernel_size
        padding: zeros added on both sides. Default: 0
        ceil_mode: round the output size up
        count_include_pad: padding counts in the mean. Default: True
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = single(kernel_size)
        self.stride = single(stride if stride is not None else kernel_size)
        self.padding = single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPool(_AvgPoolNd):
    """The mean of each window.

    Args:
        kernel_size: size of the window
        stride: step of the window. Default: kernel_size
        padding: zeros added on both sides. Default: 0
        ceil_mode: round the output size up
        count_include_pad: padding counts in the mean. Default: True
        divisor_override: divide the sum by this instead of the number of elements
    """

    _function = None

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    _function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    __doc__ = _AvgPool.__doc__
    _function = "avg_pool3d"


class _FractionalMaxPoolNd(Module):
    """Max pooling with windows of pseudo-random places (Graham, 2015).

    Args:
        kernel_size: size of the window
        output_size, output_ratio: size of the output, or its ratio to the input's; give one of them
        return_indices: also give the positions of the maxima
    """

    _sizes = None

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        sizes = type(self)._sizes
        name = type(self).__name__
        self.kernel_size = sizes(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = sizes(output_size) if output_size is not None else None
        self.output_ratio = sizes(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _sizes = staticmethod(pair)
    _function = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    __doc__ = _FractionalMaxPoolNd.__doc__
    _sizes = staticmethod(triple)
    _function = "fractional_max_pool3d"


class _LPPoolNd(Module):
    """The p-norm of each window.

    Args:
        norm_type: p
        kernel_size: size of the window
        stride: step of the window. Default: kernel_size
        ceil_mode: round the output size up
    """

    _function = None

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return getattr(F, self._function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _function = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _function = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    __doc__ = _LPPoolNd.__doc__
    _function = "lp_pool3d"


class _AdaptiveMaxPoolNd(Module):
    """Max pooling to a given output size (None: as the input's)."""

    _function = None

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        return getattr(F, self._function)(input, self.output_size, self.return_indices)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    __doc__ = _AdaptiveMaxPoolNd.__doc__
    _function = "adaptive_max_pool3d"


class _AdaptiveAvgPoolNd(Module):
    """Average pooling to a given output size (None: as the input's)."""

    _function = None

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    __doc__ = _AdaptiveAvgPoolNd.__doc__
    _function = "adaptive_avg_pool3d"
