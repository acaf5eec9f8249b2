"""Where storages go: the registry of taggers and deserializers, and map_location."""

import re

from ..core import device as devices
from ..core.device import Device
from ..cuda import device_count
from ..storage_api import UntypedStorage

# (priority, tagger, deserializer), lowest priority first.
_registry: list = []


def register_package(priority, tagger, deserializer) -> None:
    """Add a way to name the place of a storage in files and to bring one there.

    Args:
        priority: lower ones are asked first
        tagger: function(storage) -> name, or None for storages that it does not know
        deserializer: function(storage, name) -> storage, or None for names that it does not know
    """
    _registry.append((priority, tagger, deserializer))
    _registry.sort(key=lambda entry: entry[0])


def location_tag(storage) -> str:
    """The name of a storage's place, for a file."""
    for _, tagger, _ in _registry:
        found = tagger(storage)
        if found:
            return found
    raise RuntimeError(f"don't know how to determine data location of {storage.type()}")


def default_restore_location(storage, location):
    """A storage, read to the host, brought to the place that its file names."""
    for _, _, deserializer in _registry:
        found = deserializer(storage, location)
        if found is not None:
            return found
    raise RuntimeError(
        f"don't know how to restore data location of {storage.type()} (tagged with {location})\n"
        "  give torch.load a map_location, such as 'cpu'"
    )


def restorer(map_location):
    """function(storage, location) -> storage, for what torch.load was given."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        name = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, name)
    if isinstance(map_location, Device):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def restore(storage, location):
        found = map_location(storage, location)
        return default_restore_location(storage, location) if found is None else found

    return restore


def is_meta(map_location) -> bool:
    """Whether nothing is to be read."""
    if isinstance(map_location, Device):
        return map_location.type == "meta"
    return map_location == "meta" if isinstance(map_location, str) else False


def validate_cuda_device(location) -> int:
    """The index of the CUDA device of this name; RuntimeError when it is not there."""
    return _accelerator("cuda", location).index


def _accelerator(kind, location) -> Device:
    index = int(re.fullmatch(rf"{kind}:?(\d*)", location)[1] or 0)
    here = devices.accelerator()
    name = kind.upper()
    if here is None or (kind == "tpu" and here != "tpu"):
        raise RuntimeError(
            f"Attempting to deserialize object on a {name} device but torch.{kind}.is_available() is False. If you are running "
            "on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    if index >= device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on {name} device {index} but torch.{kind}.device_count() is {device_count()}. "
            "Please use torch.load with map_location to map your storages to an existing device."
        )
    return devices.resolve(f"{kind}:{index}")


def _kind(name):
    def tag(storage):
        return str(storage.device) if storage.device.type == name else None

    def bring(storage, location):
        if re.fullmatch(rf"{name}:?\d*", location):
            return storage.to(device=_accelerator(name, location))
        return None

    return tag, bring


def _meta(storage, location):
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


register_package(
    10,
    lambda storage: "cpu" if storage.device.type == "cpu" else None,
    lambda storage, location: storage if location == "cpu" else None,
)
register_package(20, *_kind("cuda"))
register_package(21, *_kind("tpu"))
register_package(22, lambda storage: "meta" if storage.device.type == "meta" else None, _meta)
