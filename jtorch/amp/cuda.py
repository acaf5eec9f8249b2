"""torch.cuda.amp: the names that torch.amp had when it knew only CUDA."""

import functools

from .. import errors
from ..core import device as devices
from ..core import dtype as dtypes
from .autocast import autocast as _autocast
from .autocast import custom_bwd as _custom_bwd
from .autocast import custom_fwd as _custom_fwd
from .grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]

custom_fwd = functools.partial(_custom_fwd, device_type="cuda")
custom_bwd = functools.partial(_custom_bwd, device_type="cuda")


def amp_definitely_not_available():
    """Whether there is no accelerator at all."""
    return devices.accelerator() is None


def _deprecated(name):
    errors.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
    )


class autocast(_autocast):
    """torch.amp.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=dtypes.float16, cache_enabled=True):
        _deprecated("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """torch.amp.GradScaler("cuda", ...)."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _deprecated("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
