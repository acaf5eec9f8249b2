"""Timer: how long a statement takes, its work on the device included."""

import dataclasses
import enum
import math
import statistics
import sys
import textwrap
import time
import timeit

import numpy as np

from ... import errors, settings
from ...streams import wait

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Seconds, after all work is done."""
    wait("benchmark")
    return time.perf_counter()


def select_unit(t: float) -> tuple[str, float]:
    """(name, seconds) of the unit in which a time reads well."""
    return next(((name, size) for name, size in _UNITS if t >= size), _UNITS[-1])


def unit_to_english(u: str) -> str:
    """The word for a unit: "us" -> "microsecond"."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number with `n` significant digits, in single precision."""
    x = np.float32(x)
    if x == 0:
        return 0.0
    step = np.float32(10.0 ** (math.ceil(np.log10(np.abs(x))) - n))
    return float(np.round(x / step) * step)


def ordered_unique(elements) -> list:
    """The elements, each once, in their order."""
    return list(dict.fromkeys(elements))


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and what is under it, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def summarize(self) -> str:
        """The title and what was set up, on lines of their own."""
        setup = (
            ""
            if not self.setup or self.setup == "pass"
            else f"setup:\n{textwrap.indent(self.setup, '  ')}"
            if "\n" in self.setup
            else f"setup: {self.setup}"
        )
        parts = [self.title, self.description or "", setup]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclasses.dataclass
class Measurement:
    """Times of runs of `number_per_run` executions each; all statistics are seconds for one execution."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None

    times = property(lambda self: [t / self.number_per_run for t in self.raw_times])
    mean = property(lambda self: statistics.fmean(self.times))
    median = property(lambda self: statistics.median(self.times))
    label = property(lambda self: self.task_spec.label)
    sub_label = property(lambda self: self.task_spec.sub_label)
    description = property(lambda self: self.task_spec.description)
    env = property(lambda self: self.task_spec.env)
    num_threads = property(lambda self: self.task_spec.num_threads)
    stmt = property(lambda self: self.task_spec.stmt)
    title = property(lambda self: self.task_spec.title)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        if len(self.raw_times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def has_warnings(self) -> bool:
        """Whether the times scatter by more than a tenth."""
        return self.iqr / self.median > 0.1

    @staticmethod
    def merge(measurements) -> list:
        """Measurements of equal tasks as one."""
        groups = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        return [Measurement(1, [t for m in g for t in m.times], task, None) for task, g in groups.items()]

    def __repr__(self):
        unit, size = select_unit(self.median)
        runs = f"{len(self.raw_times)} measurement{'s' if len(self.raw_times) > 1 else ''}, {self.number_per_run} runs per measurement"
        lines = [object.__repr__(self), self.title]
        lines.append(
            f"  Median: {self.median / size:.2f} {unit}"
            if len(self.raw_times) > 1
            else f"  {self.median / size:.2f} {unit}"
        )
        if len(self.raw_times) > 1:
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit}")
        lines.append(f"  {runs}, {self.num_threads} thread{'s' if self.num_threads > 1 else ''}")
        return "\n".join(lines)


class Timer:
    """Measures a Python statement.

    Args:
        stmt, setup: code; `globals` are its names
        timer: the clock; the default waits for the device
        label, sub_label, description, env: what Compare groups by
        num_threads: set while measuring

    Raises NotImplementedError for C++ statements.
    Source: https://docs.pytorch.org/docs/stable/benchmark_utils.html
    """

    def __init__(
        self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None, sub_label=None,
        description=None, env=None, num_threads=1, language=Language.PYTHON,
    ):  # fmt: skip
        if language not in (Language.PYTHON, "py", "python"):
            raise errors.unsupported("C++ statements in a Timer", instead="Python")
        self._task_spec = TaskSpec(
            _dedent(stmt), _dedent(setup), global_setup, label, sub_label, description, env, num_threads
        )
        names = {"torch": sys.modules["jtorch"], **(globals or {})}  # a statement may say torch without importing it
        self._timer = timeit.Timer(self._task_spec.stmt, self._task_spec.setup, timer, names)

    def _seconds(self, number):
        before = settings.get_num_threads()
        settings.set_num_threads(self._task_spec.num_threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            settings.set_num_threads(before)

    def timeit(self, number=1000000) -> Measurement:
        """One run of `number` executions, after a short one to warm up."""
        self._seconds(max(number // 100, 2))
        return Measurement(number, [self._seconds(number)], self._task_spec)

    def _number(self, min_run_time):
        """Executions for a run that is long beside the clock's own cost."""
        overhead = statistics.median(timeit.Timer("pass", timer=self._timer.timer).timeit(1) for _ in range(5))
        number = 1
        while True:
            taken = self._seconds(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000 or taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback=None, min_run_time=0.2) -> Measurement:
        """Runs of a fitting number of executions until `min_run_time` seconds have been measured."""
        number, times = self._number(min_run_time), []
        while sum(times) < min_run_time:
            times.append(self._seconds(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None) -> Measurement:
        """Runs until the quartiles are within `threshold` of the median, or `max_run_time` seconds are over."""
        number, times = self._number(0.05), []
        while True:
            times.append(self._seconds(number))
            if callback is not None:
                callback(number, times[-1])
            found = Measurement(number, times, self._task_spec)
            settled = len(times) >= 4 and found.iqr / found.median < threshold and sum(times) >= min_run_time
            if settled or sum(times) >= max_run_time:
                return found

    def collect_callgrind(self, *args, **kwargs):
        """Raises NotImplementedError: instructions are not counted."""
        raise errors.unsupported("counting instructions", instead="blocked_autorange()")


def _dedent(code):
    lines = code.strip("\n").splitlines() or [""]
    width = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[width:].rstrip() for line in lines) if isinstance(code, str) else code
