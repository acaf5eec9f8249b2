"""torch.utils.benchmark: timing statements, with the device's work waited for."""

from .compare import Colorize, Compare
from .timer import Language, Measurement, TaskSpec, Timer, timer

__all__ = ["Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "timer"]
