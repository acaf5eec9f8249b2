"""torch.utils.benchmark: timing statements, with the device's work waited for."""

from .compare import Colorize, Compare
from .timer import (
    Language,
    Measurement,
    TaskSpec,
    Timer,
    ordered_unique,
    select_unit,
    timer,
    trim_sigfig,
    unit_to_english,
)

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "timer", "trim_sigfig",
    "unit_to_english",
]  # fmt: skip
