"""torch.ao.quantization.fake_quantize and .qconfig: modules that round as quantization would, in training too, and pairs of them."""

from collections import namedtuple

from ... import functions as torch
from ...core import dtype as dtypes
from ...nn.modules.module import Module
from ...sundries import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_symmetric,
)
from .histograms import HistogramObserver
from .observers import (
    Factory,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
    resized,
)

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "QConfig", "default_fake_quant", "default_per_channel_qconfig",
    "default_per_channel_weight_fake_quant", "default_qat_qconfig", "default_qconfig", "default_weight_fake_quant", "disable_fake_quant",
    "disable_observer", "enable_fake_quant", "enable_observer", "get_default_qconfig",
]  # fmt: skip

_PER_CHANNEL = per_channel_symmetric, per_channel_affine, per_channel_affine_float_qparams


class FakeQuantizeBase(Module):
    """The base of modules that round; both of their parts can be switched off."""

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=dtypes.ALL["uint8"]))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=dtypes.ALL["uint8"]))

    def enable_fake_quant(self, enabled=True):
        """Round from now on, or no more."""
        self.fake_quant_enabled[0] = int(enabled)

    def disable_fake_quant(self):
        """Round no more."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        """Watch the range from now on, or no more."""
        self.observer_enabled[0] = int(enabled)

    def disable_observer(self):
        """Watch no more."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs):
        """The class with these arguments."""
        return Factory(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Rounds to the numbers that the range seen so far allows; gradients pass where nothing is clipped.

    Args:
        observer: what watches the range
        quant_min: the least number
        quant_max: the largest
        observer_kwargs: of the observer
    """

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = self.is_dynamic = is_dynamic
        self.activation_post_process = watching = observer(**observer_kwargs)
        self.quant_min, self.quant_max = watching.quant_min, watching.quant_max
        self.dtype, self.qscheme = watching.dtype, watching.qscheme
        self.ch_axis = getattr(watching, "ch_axis", -1)
        self.is_per_channel = self.qscheme in _PER_CHANNEL
        of_float = self.qscheme is per_channel_affine_float_qparams
        self.register_buffer("scale", torch.tensor([1.0]))
        self.register_buffer("zero_point", torch.tensor([0], dtype=dtypes.ALL["float32" if of_float else "int32"]))

    def calculate_qparams(self):
        """(scale, zero point) of the range."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        """X, rounded."""
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            for into, found in zip((self.scale, self.zero_point), self.calculate_qparams()):
                into.resize_(found.shape).copy_(found)
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            call, more = torch.fake_quantize_per_channel_affine, (self.ch_axis,)
        else:
            call, more = torch.fake_quantize_per_tensor_affine, ()
        watching = self.activation_post_process
        return call(X, self.scale, self.zero_point, *more, watching.quant_min, watching.quant_max)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        resized(self, ("scale", "zero_point"), state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self):
        """The switches and the grid."""
        watching = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={watching.quant_min}, quant_max={watching.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )


def _switch(name):
    def switch(mod):
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()

    switch.__name__ = name
    switch.__doc__ = f"{name} of a module that rounds; of others nothing. For Module.apply."
    return switch


disable_fake_quant, disable_observer, enable_fake_quant, enable_observer = map(
    _switch, ("disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer")
)

default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8, reduce_range=True
)
_WEIGHTS = {"quant_min": -128, "quant_max": 127, "dtype": torch.qint8}
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, qscheme=per_tensor_symmetric, **_WEIGHTS
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, qscheme=per_channel_symmetric, ch_axis=0, **_WEIGHTS
)


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """What watches or rounds activations, and what weights: classes, or what makes the modules. ValueError: a module."""

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(default_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)


def get_default_qconfig(backend="x86", version=0) -> QConfig:
    """Histograms of activations, and weights by channel (by tensor for qnnpack)."""
    if backend not in ("fbgemm", "x86", "qnnpack", "onednn"):
        raise AssertionError(f"backend: {backend} not supported.")
    by_tensor = backend == "qnnpack"
    return QConfig(
        HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")),
        default_weight_observer if by_tensor else default_per_channel_weight_observer,
    )
