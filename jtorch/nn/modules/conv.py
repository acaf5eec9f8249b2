"""Convolutions and transposed convolutions in one to three dimensions."""

import math

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.nn import functional as F
from jtorch.nn import init
from jtorch.nn.modules.lazy import LazyModuleMixin
from jtorch.nn.modules.module import Module, weight_and_bias
from jtorch.nn.modules.utils import ntuple, reversed_repeated
from jtorch.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_NAMES = {"same", "valid"}
_PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """What all convolutions share: the parameters, their start and their repr."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in _PADDING_NAMES:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {_PADDING_NAMES}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_amounts()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        self.weight = Parameter(torch.empty(shape, **factory))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, **factory))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pad_amounts(self):
        """The padding as F.pad wants it: last dimension first, a pair for each."""
        if not isinstance(self.padding, str):
            return reversed_repeated(self.padding, 2)
        amounts = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = d * (k - 1) if self.padding == "same" else 0
            amounts += [total // 2, total - total // 2]
        return amounts

    def reset_parameters(self):
        """Draw the start values anew: uniform in (-k, k), k = 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_ConvNd):
    """Convolution in `_ndim` dimensions."""

    _ndim = 0

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        sizes = ntuple(self._ndim)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            padding if isinstance(padding, str) else sizes(padding),
            sizes(dilation),
            False,
            sizes(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self._ndim
        return getattr(F, self._function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, *weight_and_bias(self))


class Conv1d(_Conv):
    """Convolution over sequences: (N, C, L) -> (N, C', L').

    Args:
        in_channels, out_channels: C and C'
        kernel_size: length of the window
        stride, dilation: steps of the window and inside it. Default: 1
        padding: added at both ends, or "same" or "valid". Default: 0
        groups: channels are split into that many groups that do not mix. Default: 1
        bias: add a learned bias. Default: True
        padding_mode: "zeros", "reflect", "replicate" or "circular"
    """

    _ndim = 1
    _function = "conv1d"


class Conv2d(_Conv):
    """Convolution over images: (N, C, H, W) -> (N, C', H', W'). The arguments are Conv1d's, numbers or pairs."""

    _ndim = 2
    _function = "conv2d"


class Conv3d(_Conv):
    """Convolution over volumes: (N, C, D, H, W). The arguments are Conv1d's, numbers or triples."""

    _ndim = 3
    _function = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """Transposed convolution in `_ndim` dimensions: the gradient of a convolution, as a layer."""

    _ndim = 0

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        sizes = ntuple(self._ndim)
        super().__init__(
            in_channels,
            out_channels,
            sizes(kernel_size),
            sizes(stride),
            sizes(padding),
            sizes(dilation),
            True,
            sizes(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        """The padding that makes the output as large as `output_size` asks."""
        if output_size is None:
            return ntuple(num_spatial_dims)(self.output_padding)
        n = num_spatial_dims
        has_batch = input.dim() == n + 2
        skip = 2 if has_batch else 1
        if len(output_size) == skip + n:
            output_size = output_size[skip:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} "
                f"or {skip + n} elements (got {len(output_size)})"
            )
        dilation = (1,) * n if dilation is None else dilation
        smallest = [
            (input.size(d + skip) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel_size[d] - 1) + 1
            for d in range(n)
        ]
        largest = [m + s - 1 for m, s in zip(smallest, stride)]
        if any(not lo <= size <= hi for size, lo, hi in zip(output_size, smallest, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range "
                f"from {smallest} to {largest} (for an input of {input.size()[2:]})"
            )
        return tuple(size - lo for size, lo in zip(output_size, smallest))

    def forward(self, input, output_size=None):
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._ndim, self.dilation
        )
        return getattr(F, self._function)(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over sequences.

    Args:
        in_channels, out_channels: number of channels
        kernel_size: length of the window
        stride, dilation: steps of the window and inside it. Default: 1
        padding: taken away at both ends of the result. Default: 0
        output_padding: added at one end of the result. Default: 0
        groups: channels are split into that many groups that do not mix. Default: 1
        bias: add a learned bias. Default: True
    """

    _ndim = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over images. The arguments are ConvTranspose1d's, numbers or pairs."""

    _ndim = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over volumes. The arguments are ConvTranspose1d's, numbers or triples."""

    _ndim = 3
    _function = "conv_transpose3d"


class _LazyConv(LazyModuleMixin):
    """A convolution whose `in_channels` is the number of channels of its first input."""

    def reset_parameters(self):
        """Draw the start values anew, once there are any."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def initialize_parameters(self, input, *args, **kwargs):
        if not self.has_uninitialized_params():
            return
        n = self._ndim
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input "
                f"to {self.__class__.__name__}, but "
                f"got input of size: {input.shape}"
            )
        self.in_channels = input.shape[1] if input.dim() == n + 2 else input.shape[0]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            shape = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        else:
            shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        with no_grad():
            self.weight.materialize(shape)
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyPlainConv(_LazyConv):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        # with no channels yet: nothing is drawn
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyTransposedConv(_LazyConv):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )  # fmt: skip
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyPlainConv, Conv1d):
    """A Conv1d that finds `in_channels` at its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlainConv, Conv2d):
    """A Conv2d that finds `in_channels` at its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlainConv, Conv3d):
    """A Conv3d that finds `in_channels` at its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposedConv, ConvTranspose1d):
    """A ConvTranspose1d that finds `in_channels` at its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposedConv, ConvTranspose2d):
    """A ConvTranspose2d that finds `in_channels` at its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposedConv, ConvTranspose3d):
    """A ConvTranspose3d that finds `in_channels` at its first input."""

    cls_to_become = ConvTranspose3d
