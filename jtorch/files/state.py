"""What a load or save in this thread must know and cannot be told by arguments: files call functions by name."""

import threading

from ..core import device as devices
from ..core import storage as storages
from ..core.device import Device


class _Session(threading.local):
    """The settings of skip_data, and the load under way."""

    skip_data = False
    materialize_fake_tensors = False
    map_location = None
    filling = False  # the storages are filled only after the tensors are made: the legacy format

    def __init__(self):
        self.waiting = []

    def place(self, device):
        """Where a tensor that was on `device` goes."""
        where = self.map_location
        if isinstance(where, dict):
            where = where.get(device, device)
        elif where is None:
            where = device
        elif not isinstance(where, (str, Device)):
            raise RuntimeError(
                "Callable map_location not supported with _rebuild_wrapper_subclass or _rebuild_device_tensor_from_numpy"
            )
        return devices.resolve(where)

    def later(self, work, *args):
        """Do what needs the elements of tensors, as soon as they are there."""
        if self.filling:
            self.waiting.append((work, args))
        else:
            work(*args)

    def catch_up(self):
        while self.waiting:
            work, args = self.waiting.pop(0)
            work(*args)


def replace(tensor, op):
    """Put op of a tensor's elements in their place."""
    storages.settle(tensor._storage)
    made = op(tensor)
    tensor._storage, tensor._spec, tensor._offset = made._storage, made._spec, made._offset


session = _Session()
