"""torch.cuda.amp: the names that torch.amp had when it knew only CUDA."""

from .. import errors
from ..core import device as devices
from ..core import dtype as dtypes
from .autocast import autocast as _autocast
from .autocast import custom_bwd as _custom_bwd
from .autocast import custom_fwd as _custom_fwd
from .grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


def amp_definitely_not_available():
    """Whether there is no accelerator at all."""
    return devices.accelerator() is None


def _old(name, new):
    errors.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}({new})` instead.", FutureWarning
    )


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd(..., device_type="cuda")."""
    _old("custom_fwd", "args..., device_type='cuda'")
    return _custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """torch.amp.custom_bwd(..., device_type="cuda")."""
    _old("custom_bwd", "args..., device_type='cuda'")
    return _custom_bwd(bwd, device_type="cuda")


class autocast(_autocast):
    """torch.amp.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=dtypes.float16, cache_enabled=True):
        _old("autocast", "'cuda', args...")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """torch.amp.GradScaler("cuda", ...)."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _old("GradScaler", "'cuda', args...")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
