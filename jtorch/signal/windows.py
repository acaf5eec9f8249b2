"""torch.signal.windows: windows of a length, symmetric unless told otherwise."""

from ..windows import SIGNAL

globals().update(SIGNAL)

__all__ = sorted(SIGNAL)
