"""torch.amp: mixed precision. `autocast` picks a dtype for each op, `GradScaler` keeps float16 gradients from vanishing."""

from .autocast import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
