"""torch.Stream and torch.Event: an XLA device runs its programs in one order, which is the one stream there is."""

import contextlib
import time

from .core import device as devices
from .core.record import tls

__all__ = ["Event", "Stream"]


class Stream(contextlib.ContextDecorator):
    """The order in which a device runs programs. All streams of a device are that one.

    Args:
        device: the device. Default: the default one
        priority: accepted
    """

    def __init__(self, device=None, *, priority=0):
        self.device = devices.get_default() if device is None else devices.resolve(device)
        self.device_index = self.device.index or 0
        self.device_type = self.device.type
        self.stream_id = 0
        self.priority = priority

    def query(self) -> bool:
        """Whether everything has run; it has once this is asked."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Run what this thread has recorded."""
        tls.me.flush("stream.synchronize")

    def wait_event(self, event) -> None:
        """Nothing to wait for: programs run in order."""

    def wait_stream(self, stream) -> None:
        """Nothing to wait for: programs run in order."""

    def record_event(self, event=None):
        """An event at this moment."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    def __eq__(self, other):
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self):
        return hash((self.device, self.stream_id))

    def __repr__(self):
        return (
            f"torch.Stream device_type={self.device_type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event:
    """A moment in the order of a device: what was recorded before it has run when `record` returns.

    Args:
        enable_timing: let elapsed_time be asked
    """

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.device = devices.get_default() if device is None else devices.resolve(device)
        self.enable_timing = enable_timing
        self.event_id = 0
        self._at = None

    def record(self, stream=None) -> None:
        """Mark this moment."""
        tls.me.flush("event.record")
        self._at = time.perf_counter()

    def wait(self, stream=None) -> None:
        """Nothing to wait for: programs run in order."""

    def query(self) -> bool:
        """Whether what came before has run."""
        return True

    def synchronize(self) -> None:
        """Run what this thread has recorded."""
        tls.me.flush("event.synchronize")

    def elapsed_time(self, end_event) -> float:
        """Milliseconds from this event to `end_event`. ValueError: one of them keeps no time or was not recorded."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1e3
