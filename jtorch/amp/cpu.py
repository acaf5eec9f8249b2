"""torch.cpu.amp: the names that torch.amp had for the CPU."""

from .. import errors
from ..core import dtype as dtypes
from .autocast import autocast as _autocast
from .grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast"]


def _old(name):
    errors.warn(
        f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
    )


class autocast(_autocast):
    """torch.amp.autocast("cpu", ...)."""

    def __init__(self, enabled=True, dtype=dtypes.bfloat16, cache_enabled=True):
        _old("autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """torch.amp.GradScaler("cpu", ...)."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _old("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
