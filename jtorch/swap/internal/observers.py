"""torch.ao.quantization.observer: modules that watch the range of what goes through them, and say the scale and zero point for it."""

import functools
import math
import warnings

from ... import functions as torch
from ...autograd.mode import no_grad
from ...core import dtype as dtypes
from ...limits import finfo
from ...nn.modules.module import Module
from ...sundries import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)

__all__ = [
    "MinMaxObserver", "MovingAverageMinMaxObserver", "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase",
    "PerChannelMinMaxObserver", "PlaceholderObserver", "RecordingObserver", "UniformQuantizationObserverBase",
    "default_dynamic_quant_observer", "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer",
    "default_weight_observer",
]  # fmt: skip

_EPS = finfo(dtypes.ALL["float32"]).eps
_PER_TENSOR = per_tensor_affine, per_tensor_symmetric
_PER_CHANNEL = per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams
_RANGES = {  # dtype -> numbers that it can hold, and those of a reduced range
    "int8": ((-128, 127), (-64, 63)), "uint8": ((0, 255), (0, 127)), "int32": ((-(2**31), 2**31 - 1),) * 2,
    "int16": ((-(2**15), 2**15 - 1),) * 2, "uint16": ((0, 2**16 - 1),) * 2,
}  # fmt: skip


def _name(dtype):
    """int8 of torch.int8 and torch.qint8."""
    return str(dtype).rpartition(".")[2].removeprefix("q")


def resized(module, names, state_dict, prefix):
    """Give buffers the sizes that they have in a state dict: those of channels, of which there may be any number."""
    for name in names:
        if prefix + name in state_dict:
            getattr(module, name).resize_(state_dict[prefix + name].shape)


class Factory(functools.partial):
    """A class with some of its arguments, as a configuration holds it; `with_args` gives more of them."""

    def with_args(self, **kwargs):
        return Factory(self, **kwargs)


class ObserverBase(Module):
    """The base of modules that watch ranges: forward passes its input on, calculate_qparams gives (scale, zero point)."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @classmethod
    def with_args(cls, **kwargs):
        """The class with these arguments."""
        return Factory(cls, **kwargs)

    def calculate_qparams(self, **kwargs):
        """(scale, zero point)."""
        raise NotImplementedError(f"{type(self).__name__}.calculate_qparams")


class UniformQuantizationObserverBase(ObserverBase):
    """The base of observers of evenly spaced numbers.

    Args:
        dtype: torch.quint8, qint8, qint32 or the integers of these names
        qscheme: per tensor or per channel; affine, or symmetric around zero
        reduce_range: leave one bit out
        quant_min: the least number. Default: the dtype's
        quant_max: the largest
        eps: the least scale
    """

    _schemes = (*_PER_TENSOR, *_PER_CHANNEL)

    def __init__(
        self, dtype=torch.quint8, qscheme=per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
        factory_kwargs=None, eps=_EPS, is_dynamic=False,
    ):  # fmt: skip
        if qscheme not in self._schemes:
            raise NotImplementedError(f"{type(self).__name__}'s qscheme only support {self._schemes}")
        if is_dynamic and getattr(self, "averaging_constant", None) != 1:
            raise NotImplementedError(f"{type(self).__name__} doesn't support dynamic quantization")
        averaging = self.__dict__.pop("averaging_constant", None)
        super().__init__(dtype, is_dynamic)
        if averaging is not None:
            self.averaging_constant = averaging
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if not quant_min <= 0 <= quant_max:
                raise AssertionError("Used-specified quantization range must include 0.")
            if quant_min >= quant_max:
                raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")
            self.quant_min, self.quant_max = (q // 2 if reduce_range else q for q in (quant_min, quant_max))
        else:
            self.quant_min, self.quant_max = _RANGES.get(_name(dtype), ((0, 15),) * 2)[reduce_range]
        self._made = factory_kwargs or {}
        self.register_buffer("eps", torch.tensor([eps], **self._made))
        if reduce_range and _name(dtype) == "uint8" and qscheme in (per_tensor_symmetric, per_channel_symmetric):
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def _seen(self):
        """Whether something has been watched; a warning where not."""
        seen = self.min_val.numel() > 0 and not (self.min_val.dim() == 0 and self.min_val.item() == math.inf)
        if not seen:
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=3)
        return seen

    @no_grad()
    def calculate_qparams(self):
        """(scale, zero point) of the range seen, one of each or one a channel."""
        if not self._seen():
            return torch.tensor([1.0]), torch.tensor([0])
        return self._calculate_qparams(self.min_val, self.max_val)

    def _calculate_qparams(self, min_val, max_val):
        steps = float(self.quant_max - self.quant_min)
        low, high = min_val.clamp(max=0), max_val.clamp(min=0)
        if self.qscheme in (per_tensor_symmetric, per_channel_symmetric):
            scale = torch.maximum(torch.maximum(-low, high) / (steps / 2), self.eps)
            middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
            zero = {"uint8": middle, "uint16": 2**15}.get(_name(self.dtype), 0)
            zero_point = torch.full(scale.shape, zero, dtype=dtypes.ALL["int64"])
        elif self.qscheme is per_channel_affine_float_qparams:
            scale = (max_val - min_val) / steps
            scale = scale.where(scale > self.eps, 1.0)
            zero_point = -1 * min_val / scale
        else:
            scale = torch.maximum((high - low) / steps, self.eps)
            zero_point = self.quant_min - (low / scale).round().to(dtypes.ALL["int32"])
            zero_point = zero_point.clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1), zero_point.reshape(-1)

    def extra_repr(self):
        """The range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the largest value of all inputs."""

    _schemes = _PER_TENSOR

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register_buffer("min_val", torch.tensor(math.inf, **self._made))
        self.register_buffer("max_val", torch.tensor(-math.inf, **self._made))

    def _together(self, low, high):
        return torch.minimum(low, self.min_val), torch.maximum(high, self.max_val)

    @no_grad()
    def forward(self, x_orig):
        """The input, after it has been watched."""
        if x_orig.numel():
            low, high = self._together(*torch.aminmax(x_orig.detach().to(self.min_val.dtype)))
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        return x_orig

    def reset_min_max_vals(self):
        """Forget what has been watched."""
        self.min_val.fill_(math.inf)
        self.max_val.fill_(-math.inf)


class _Averaging:
    """Ranges that follow the inputs: the first one's, and from then on a part of the way to each next."""

    def __init__(self, averaging_constant=0.01, *args, **kwargs):
        self.__dict__["averaging_constant"] = averaging_constant
        super().__init__(*args, **kwargs)

    def _together(self, low, high):
        if self.min_val.dim() == 0 and self.min_val.item() == math.inf:
            return low, high
        follow = lambda before, now: before + self.averaging_constant * (now - before)
        return follow(self.min_val, low), follow(self.max_val, high)


class MovingAverageMinMaxObserver(_Averaging, MinMaxObserver):
    """Moving averages of the least and the largest value of each input."""


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the largest value of each channel.

    Args:
        ch_axis: the dimension of the channels
    """

    _schemes = _PER_CHANNEL

    def __init__(self, ch_axis=0, dtype=torch.quint8, qscheme=per_channel_affine, *args, **kwargs):
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", torch.tensor([], **self._made))
        self.register_buffer("max_val", torch.tensor([], **self._made))

    _together = MinMaxObserver._together

    @no_grad()
    def forward(self, x_orig):
        """The input, after it has been watched."""
        if x_orig.numel():
            rows = x_orig.detach().transpose(0, self.ch_axis).to(self.min_val.dtype).flatten(1)
            found = torch.aminmax(rows, dim=1)
            low, high = self._together(*found) if self.min_val.numel() else found
            self.min_val.resize_(low.shape).copy_(low)
            self.max_val.resize_(high.shape).copy_(high)
        return x_orig

    def _load_from_state_dict(self, state_dict, prefix, *args):
        resized(self, ("min_val", "max_val"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def reset_min_max_vals(self):
        """Forget what has been watched."""
        self.min_val, self.max_val = torch.tensor([]), torch.tensor([])


class MovingAveragePerChannelMinMaxObserver(_Averaging, PerChannelMinMaxObserver):
    """Moving averages of the least and the largest value of each channel."""


class PlaceholderObserver(ObserverBase):
    """Watches nothing: says the dtype that a part is to have."""

    def __init__(self, dtype=torch.float32, custom_op_name="", compute_dtype=None, quant_min=None, quant_max=None, qscheme=None,
                 eps=None, is_dynamic=False):  # fmt: skip
        super().__init__(dtype, is_dynamic or bool(compute_dtype))
        self.qscheme = per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, _EPS if eps is None else eps
        self.custom_op = custom_op_name

    def forward(self, x):
        """x."""
        return x

    def calculate_qparams(self):
        """Raises: there is no range."""
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")


class NoopObserver(PlaceholderObserver):
    """Watches nothing."""

    def __init__(self, dtype=dtypes.ALL["float16"], custom_op_name=""):
        super().__init__(dtype, custom_op_name)


class RecordingObserver(ObserverBase):
    """Keeps every input."""

    def __init__(self, dtype=torch.quint8):
        super().__init__(dtype)
        self.tensor_val = []

    def forward(self, x):
        """x, of which a copy is kept."""
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self):
        """Raises: no range is watched."""
        raise Exception("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self):
        """All inputs."""
        return self.tensor_val


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_weight_observer = MinMaxObserver.with_args(dtype=torch.qint8, qscheme=per_tensor_symmetric)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=per_channel_symmetric
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
