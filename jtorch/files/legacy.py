"""PyTorch's format before version 1.6: five pickles, then the storages one after the other.

Reading makes the storages first and fills them afterwards, since their bytes come last.
"""

import io
import pickle
import struct
import sys

import numpy as np

from ..core import buffers
from ..core import device as devices
from ..core import storage as storages
from ..storage_api import TypedStorage, UntypedStorage
from . import errors
from .container import fill
from .loading import as_text, described
from .pickler import make_pickler
from .state import session

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_COUNT = struct.Struct("<q")
_TAR = b"ustar"


def load_legacy(file, plan):
    """The object in a file of the old format, from where the file stands."""
    start = file.tell()
    head = file.read(512)
    file.seek(start)
    if head[257:262] == _TAR:
        raise errors.unsupported_record(
            "the .tar format of PyTorch before 0.1.10", "Load the file in PyTorch and save it again."
        )
    end = file.seek(0, 2)
    end = file.tell() if end is None else end
    file.seek(start)
    if plan.unpickle(file) != MAGIC_NUMBER:
        raise errors.CheckpointError("Invalid magic number; corrupt file?")
    version = plan.unpickle(file)
    if version != PROTOCOL_VERSION:
        raise errors.CheckpointError(f"Invalid protocol version: {version!s:.40}")
    system = plan.unpickle(file)
    little = system.get("little_endian", True) if isinstance(system, dict) else True
    found = _Storages(plan, end - file.tell())
    session.filling = True
    try:
        result = plan.unpickle(file, found.persistent)
        keys = plan.unpickle(file)
        if not isinstance(keys, list):
            raise errors.CheckpointError("the file has no list of storages")
        for key in keys:
            found.fill(file, key, end, little != (sys.byteorder == "little"))
        plan.settle()
    finally:
        session.filling = False
        session.waiting.clear()
    return result


class _Storages:
    """The storages of one file. They may not be longer together than the file."""

    def __init__(self, plan, left):
        self._plan = plan
        self._left = left
        self._buffers = {}
        self._roots = {}
        self._views = {}

    def persistent(self, pid):
        if type(pid) is tuple and pid and pid[0] in ("module", b"module"):
            if self._plan.safe or len(pid) < 2:
                raise errors.unsafe("Only persistent_load of storage is allowed, but got a module's source")
            return pid[1]
        dtype, key, location, numel = described(pid, 5)
        if key not in self._roots:
            self._make(key, dtype, location, numel)
        root = self._roots[key]
        if root.nbytes() < numel * dtype.itemsize:
            raise errors.storage_size(key, numel * dtype.itemsize, root.nbytes())
        found = root if root.dtype is dtype else TypedStorage(wrap_storage=root.untyped(), dtype=dtype)
        return found if pid[5] is None else self._view(found, pid[5])

    def _make(self, key, dtype, location, numel):
        self._left -= numel * dtype.itemsize
        if self._left < 0:
            raise errors.storage_size(key, numel * dtype.itemsize, max(0, self._left + numel * dtype.itemsize))
        core = buffers.allocate(numel, dtype)
        self._buffers[key] = core.host, core.host.buffer, dtype
        if self._plan.meta:
            core = buffers.allocate(numel, dtype, devices.meta)
        self._roots[key] = self._plan.place(core, dtype, location)

    def _view(self, root, metadata):
        if type(metadata) is not tuple or len(metadata) != 3 or not all(type(n) is int for n in metadata[1:]):
            raise errors.unsafe("a storage in the file has properties of the wrong type")
        key, offset, size = metadata
        if type(key) not in (str, int) or not 0 <= offset <= offset + size <= root.size():
            raise errors.storage_size("view", size, root.size())
        if key not in self._views:
            item = root.dtype.itemsize
            part = root.untyped()[offset * item : (offset + size) * item]
            part._storage.host.buffer = part._storage.host.buffer.view(root.dtype.np)
            self._views[key] = TypedStorage(wrap_storage=part, dtype=root.dtype)
        return self._views[key]

    def fill(self, file, key, end, swapped):
        key = as_text(key)
        key = str(key) if type(key) in (str, int) else None
        if key not in self._buffers:
            raise errors.CheckpointError("the file has bytes for a storage that no tensor uses")
        made, buffer, dtype = self._buffers.pop(key)
        at = file.tell()
        if end - at < _COUNT.size:
            raise errors.ends_early(f"storage {key}")
        (count,) = _COUNT.unpack(file.read(_COUNT.size))
        if count != buffer.size or end - at - _COUNT.size < buffer.nbytes:
            raise errors.storage_size(key, buffer.nbytes, end - at - _COUNT.size)
        if session.skip_data or self._plan.meta:
            file.seek(buffer.nbytes, 1)
            return
        fill(file, at + _COUNT.size, memoryview(buffer.view(np.uint8)), f"storage {key}")
        if swapped:
            buffers.swap(buffer, dtype)
        host = self._roots[key]._storage.host
        if host is None or host.owner is not made.owner:  # a map_location of the user's has made another storage
            self._roots[key].untyped().copy_(UntypedStorage.of(buffers.hosted(buffer, buffer)))


def save_legacy(file, obj, found, pickle_module, protocol) -> None:
    """Write an object to an open file in the old format."""

    def identify(x):
        if not isinstance(x, (TypedStorage, UntypedStorage)):
            return None
        return ("storage", *found.identify(x), None)

    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    head = io.BytesIO()  # what cannot be pickled fails before the file is touched
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle.dump(value, head, protocol=protocol)
    make_pickler(pickle_module, head, protocol, identify).dump(obj)
    keys = sorted(found.keys.values())
    pickle.dump(keys, head, protocol=protocol)
    file.write(head.getvalue())
    by_key = {key: core for core, key in found.keys.items()}
    for key in keys:
        flat = np.ascontiguousarray(storages.memory(by_key[key])).view(np.uint8)
        file.write(_COUNT.pack(flat.size // found.dtypes[key].itemsize))
        file.write(memoryview(flat))
