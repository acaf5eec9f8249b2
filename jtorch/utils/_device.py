"""A default device for a stretch of a program or for a function: `torch.utils._device`, which packages import."""

import functools
import inspect

from ..autograd.mode import wrap_generator
from ..core import device as devices

CURRENT_DEVICE = None


class DeviceContext:
    """What `with torch.device(device)` does: the device of tensors that are made inside without saying where."""

    def __init__(self, device):
        self.device = devices.resolve(device)

    def __enter__(self):
        self.device.__enter__()

    def __exit__(self, *exc):
        self.device.__exit__(*exc)


def device_decorator(device, func):
    """`func`, each call of which runs under this device; a generator whenever it runs."""
    if inspect.isgeneratorfunction(func):
        return wrap_generator(lambda: device, func)

    @functools.wraps(func)
    def call(*args, **kwargs):
        with device:
            return func(*args, **kwargs)

    return call


def set_device(device):
    """A decorator: the device of tensors that the function makes without saying where."""
    return lambda func: device_decorator(devices.resolve(device), func)
