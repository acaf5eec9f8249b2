"""torch.monitor: the same statistics and events as PyTorch's."""

import datetime
import time

import jtorch.monitor
from tests.oracle import torch

assert torch.monitor


def program(monitor):
    seen, said = [], []
    handle = monitor.register_event_handler(lambda event: seen.append((event.name, dict(event.data))))
    kinds = monitor.Aggregation
    every = (kinds.SUM, kinds.COUNT, kinds.MEAN, kinds.MAX, kinds.MIN, kinds.VALUE)

    def note(stat):
        said.append((stat.name, stat.count, sorted((k.name, v) for k, v in stat.get().items())))

    short = monitor.Stat("short", every, datetime.timedelta(milliseconds=20))
    note(short)
    short.add(2.0)
    short.add(3.0)
    note(short)
    time.sleep(0.05)
    note(short)
    short.add(1.0)
    note(short)
    few = monitor.Stat("few", (kinds.SUM, kinds.COUNT), datetime.timedelta(days=1), 2)
    for value in (1.0, 2.0, 5.0):
        few.add(value)
        note(few)
    event = monitor.Event(name="mine", timestamp=datetime.datetime(2020, 1, 1), data={"x": 1, "s": "a", "f": 1.5})
    monitor.log_event(event)
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    return said, seen, event.name, event.data, event.timestamp


def test_like_torch():
    assert program(jtorch.monitor) == program(torch.monitor)


def test_tensorboard_handler():
    class Writer:
        def add_scalar(self, *args, **kwargs):
            written.append((args, kwargs))

    written, at = [], datetime.datetime(2020, 1, 1)
    handler = jtorch.monitor.TensorboardEventHandler(Writer())
    handler(jtorch.monitor.Event("other", at, {"a": 1.0}))
    handler(jtorch.monitor.Event("torch.monitor.Stat", at, {"a.sum": 2.0}))
    assert written == [(("a.sum", 2.0), {"walltime": at.timestamp()})]
