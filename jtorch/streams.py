"""Streams and events over jax: there is one queue a device, which jax orders by data, so streams do nothing and events time."""

import time

import jax

from .core import device as devices
from .core.record import tls

__all__ = ["Event", "Stream", "StreamContext", "wait"]


def wait(cause="synchronize") -> None:
    """Run what this thread has recorded and wait until every array of this process is computed."""
    tls.me.flush(cause)
    for array in jax.live_arrays():
        if not array.is_deleted():
            array.block_until_ready()


class Stream:
    """A queue of a device. All streams of a device are the one that jax has: waiting orders nothing that is not ordered.

    Args:
        device: the device; the current accelerator, or the CPU where there is none
        priority: accepted
    """

    def __new__(cls, device=None, priority=0, **kwargs):
        self = super().__new__(cls)
        if isinstance(device, int):
            device = devices.Device(devices.accelerator() or "cuda", device)
        self.device = devices.Device(devices.accelerator() or "cpu") if device is None else devices.Device(device)
        self.priority = priority
        self.stream_id = kwargs.get("stream_id", 0)
        self._before = []
        return self

    device_index = property(lambda self: self.device.index or 0)
    device_type = property(lambda self: self.device.type)
    cuda_stream = property(lambda self: 0)

    def synchronize(self) -> None:
        """Wait for all work."""
        wait()

    def query(self) -> bool:
        """True: what was asked for has been queued, and reading a value waits for it."""
        wait()
        return True

    def wait_stream(self, stream) -> None:
        """Accepted: jax orders by data."""

    def wait_event(self, event) -> None:
        """Accepted: jax orders by data."""

    def record_event(self, event=None):
        """Record an event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        _current.append(self)
        return self

    def __exit__(self, *exc):
        _current.pop()

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self):
        return hash((self.device, self.stream_id))

    def __repr__(self):
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


_current: list = []


def current_stream(device=None) -> Stream:
    """The stream chosen last, or the default one."""
    return _current[-1] if _current else Stream(device)


def default_stream(device=None) -> Stream:
    """The one stream."""
    return Stream(device)


def set_stream(stream) -> None:
    """Accepted: all streams are one."""


class StreamContext:
    """Context: a stream is the current one. None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            _current.append(self.stream)
        return self.stream

    def __exit__(self, *exc):
        if self.stream is not None:
            _current.pop()


class Event:
    """A moment in the work of a device.

    Args:
        enable_timing: the event can be asked for times: recording it then waits for the work before it, so that the time
            between two events is that of the work between them
    """

    def __init__(self, device=None, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess:
            enable_timing = False
        self.device = devices.Device(devices.accelerator() or "cpu") if device is None else devices.Device(device)
        self.enable_timing = enable_timing
        self._time = None

    event_id = property(lambda self: id(self))
    cuda_event = event_id

    def record(self, stream=None) -> None:
        """Now: after all work that was asked for so far."""
        if self.enable_timing:
            wait("Event.record")
        self._time = time.perf_counter()

    def query(self) -> bool:
        """Whether the work before the event is done: it is waited for."""
        if not self.enable_timing and self._time is not None:
            wait("Event.query")
        return True

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if not self.enable_timing and self._time is not None:
            wait("Event.synchronize")

    def wait(self, stream=None) -> None:
        """Accepted: jax orders by data."""

    def elapsed_time(self, end_event) -> float:
        """Milliseconds between two recorded events. Raises ValueError where one was not recorded or not made for timing."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3

    def __repr__(self):
        return f"torch.Event device_type={self.device.type}, device_index={self.device.index or 0}, event_flag={int(self.enable_timing)}"
