"""torch.monitor: events that handlers in this process see, and statistics over windows of time."""

import enum
import threading
import time
from datetime import datetime, timedelta

__all__ = [
    "Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
    "register_event_handler", "unregister_event_handler",
]  # fmt: skip

STAT_EVENT = "torch.monitor.Stat"
data_value_t = str | float | int | bool


class Aggregation(enum.Enum):
    """What a Stat makes of its values."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


class Event:
    """Something that happened: a name, a time, and data by name."""

    def __init__(self, name: str, timestamp, data: dict):
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """What register_event_handler gives, to be given to unregister_event_handler."""

    def __init__(self, callback):
        self.callback = callback


_handlers: list = []


def register_event_handler(callback) -> EventHandlerHandle:
    """Call callback(event) for every event from now on."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler) -> None:
    """Call a handler no more."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event) -> None:
    """Hand an event to all handlers."""
    for handle in list(_handlers):
        handle.callback(event)


class Stat:
    """Aggregations of values over windows of time. With `max_samples` a window ends when it has so many, and takes no more.

    A window that has ended is logged as an event at the next value, and get() shows it until another is. VALUE is not shown.
    """

    def __init__(self, name, aggregations, window_size: timedelta, max_samples=2**63 - 1):
        self.name, self._most = name, max_samples
        self._wanted = {a for a in aggregations if a is not Aggregation.VALUE}
        self._size = window_size.total_seconds()
        self._lock = threading.Lock()
        self._values, self._full = [], False
        self._shown = dict.fromkeys(self._wanted, 0.0)
        self._end = time.monotonic() + self._size

    @property
    def count(self) -> int:
        """The number of values in this window."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Note a value."""
        with self._lock:
            now = time.monotonic()
            if now >= self._end:
                self._log()
                self._full, self._end = False, now + self._size
            if not self._full:
                self._values.append(v)
                if len(self._values) >= self._most:
                    self._log()
                    self._full = True

    def get(self) -> dict:
        """{aggregation: value} of the last window that has ended."""
        return dict(self._shown)

    def _log(self):
        values, self._values = self._values, []
        if not values:
            return
        made = {
            Aggregation.COUNT: len(values), Aggregation.SUM: sum(values), Aggregation.MAX: max(values),
            Aggregation.MEAN: sum(values) / len(values), Aggregation.MIN: min(values),
        }  # fmt: skip
        self._shown = {a: float(made[a]) for a in self._wanted}
        data = {f"{self.name}.{a.name.lower()}": v for a, v in self._shown.items()}
        log_event(Event(STAT_EVENT, datetime.now(), data))


class TensorboardEventHandler:
    """A handler that writes what windows of Stats gave to a SummaryWriter."""

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event) -> None:
        """Write an event of a Stat; others are left."""
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
