"""Default devices for a stretch of a program, by the module that packages import."""

from tests.oracle import both


def test_device():
    both(
        """
from torch.utils._device import CURRENT_DEVICE, DeviceContext, set_device
context = DeviceContext("meta")
with context:
    inside = torch.ones(2).device.type
    given = torch.ones(2, device="cpu").device.type
    with torch.device("cpu"):
        nested = torch.ones(2).device.type
after = torch.ones(2).device.type
kind = str(context.device)
@set_device("meta")
def made(n, k=1):
    "doc"
    return torch.zeros(n + k).shape, torch.zeros(n + k).device.type
result = made(2, k=3)
name, doc = made.__name__, made.__doc__
none = CURRENT_DEVICE is None
"""
    )


def test_a_bad_device():
    both(lambda t: __import__(f"{t.__name__}.utils._device", fromlist=["x"]).DeviceContext("nonsense"))


def test_a_generator():
    both(
        """
from torch.utils._device import set_device
@set_device("meta")
def made():
    given = yield torch.empty(1).device.type
    try:
        yield given, torch.empty(1).device.type
    except ValueError:
        yield "caught", torch.empty(1).device.type
    return torch.empty(1).device.type
running = made()
first = next(running)
outside = torch.empty(1).device.type
sent = running.send(3)
thrown = running.throw(ValueError("x"))
try:
    next(running)
except StopIteration as stop:
    last = stop.value
"""
    )
