"""torch.load for PyTorch's zip format: storages by name out of a container, and the pickle that makes tensors of them."""

import io
import mmap as maps
import os
import pickle
import sys
import warnings

import numpy as np

from .. import storage_api
from ..core import buffers
from ..core import device as devices
from ..core import dtype as dtypes
from ..core import storage as storages
from ..storage_api import TypedStorage, UntypedStorage
from . import errors, locations, names
from .container import MAGIC, Reader
from .opcodes import Source, Unpickler, globals_in
from .options import MAP_SHARED, LoadEndianness, options
from .state import session

_KEY = 1 << 12


def load(
    f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, legacy, safetensors, **pickle_load_args
):
    """See jtorch.serialization.load. `legacy`, `safetensors`: the readers of those formats."""
    safe = _mode(weights_only, pickle_module, pickle_load_args)
    mmap = options.load.mmap if mmap is None else mmap
    if is_path(f) and os.fspath(f).endswith(".safetensors"):
        return safetensors(os.fspath(f), map_location)
    with _opened(f) as file:
        plan = Plan(safe, pickle_module or pickle, map_location, pickle_load_args)
        before, session.map_location = session.map_location, map_location
        try:
            if not _starts_with(file, MAGIC):
                if mmap:
                    raise RuntimeError(
                        "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please "
                        "torch.save your checkpoint with this option in order to use mmap."
                    )
                return legacy(file, plan)
            reader = Reader(file)
            if "constants.pkl" in reader:
                raise errors.unsupported_record(
                    "a TorchScript archive", "Load it in PyTorch by torch.jit.load and save its state_dict()."
                )
            if mmap and not is_path(f):
                raise ValueError("f must be a file path in order to use the mmap argument")
            return load_zip(reader, plan, os.fspath(f) if mmap else None)
        except errors.Outside as error:
            raise error.args[0] from None
        finally:
            session.map_location = before


def _mode(weights_only, pickle_module, arguments) -> bool:
    """Whether to load safely, from the argument and PyTorch's two environment variables."""
    given = weights_only is not None
    safe = weights_only if given else pickle_module is None
    force, force_not = (
        os.environ.get(f"TORCH_FORCE_{name}WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
        for name in ("", "NO_")
    )
    if force and force_not:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if force:
        safe = True
    elif force_not and not given:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly "
            "passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=4,
        )
        safe = False
    if safe and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if safe and arguments:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=4)
    return safe


def is_path(f) -> bool:
    return isinstance(f, (str, os.PathLike))


class _opened:
    """A path as an open file, closed afterwards; a file object as it is."""

    def __init__(self, f):
        self.own = is_path(f)
        if not self.own:
            for name in ("seek", "tell", "read"):
                if not hasattr(f, name):
                    raise AttributeError(
                        f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load from a file that is "
                        "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
                    )
        self.file = open(f, "rb") if self.own else f

    def __enter__(self):
        return self.file

    def __exit__(self, *exc):
        if self.own:
            self.file.close()


def _starts_with(file, magic) -> bool:
    try:
        start = file.tell()
        got = file.read(len(magic))
        file.seek(start)
    except io.UnsupportedOperation as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like "
            "io.BytesIO and try to load from it instead."
        ) from None
    if not got:
        raise errors.empty()
    return got == magic


class Plan:
    """How one load treats names, storages and their places, whatever the format."""

    def __init__(self, safe, pickle_module, map_location, arguments):
        if safe and (unknown := arguments.keys() - {"encoding"}):
            raise TypeError(f"Unpickler.__init__() got an unexpected keyword argument '{min(unknown)}'")
        self.safe = safe
        self.module = pickle_module
        self.arguments = {"encoding": "utf-8", **arguments}
        self.meta = locations.is_meta(map_location)
        self.restore = locations.restorer(map_location)
        self.made = []
        self.names = names.Allowed() if safe else None

    def unpickle(self, file, persistent=None):
        """The next pickle of a seekable file."""
        if self.safe:
            return Unpickler(Source(file), self.names, persistent, self.arguments["encoding"]).load()
        unpickler = _trusting(self.module)(file, **self.arguments)
        if persistent is not None:
            unpickler.persistent_load = persistent
        return unpickler.load()

    def place(self, core, dtype, location) -> TypedStorage:
        """A storage just made, brought to where it belongs."""
        untyped = UntypedStorage.of(core)
        if not self.meta:
            untyped.fresh = True
            try:
                untyped = self.restore(untyped, location)
            except Exception as error:
                raise errors.Outside(error) from error
            if isinstance(untyped, TypedStorage):
                untyped = untyped.untyped()
            if not isinstance(untyped, UntypedStorage):
                wrong = TypeError(f"map_location must give a storage or None, got {type(untyped).__name__}")
                raise errors.Outside(wrong)
            untyped.fresh = False
        self.made.append(untyped._storage)
        return TypedStorage(wrap_storage=untyped, dtype=dtype)

    def settle(self):
        """Hand the buffers over to their devices."""
        session.catch_up()
        for core in self.made:
            host = core.host
            # Part of a mapped file that the device cannot use in place stays there until it is read.
            if host is not None and (host.owner.base is None or not host.buffer.ctypes.data % buffers.ALIGNMENT):
                storages.settle(core)


def _trusting(module):
    class Trusting(module.Unpickler):
        """An unpickler that finds jtorch's objects under PyTorch's names."""

        def find_class(self, module_name, name):
            if "Storage" in name and name in storage_api.CLASSES:
                return names.StorageType(name)
            found = names.resolve(module_name, name)
            return super().find_class(module_name, name) if found is None else found

    return Trusting


def described(pid, fields) -> tuple:
    """The parts of a storage's id in a file, each of the type that it must have."""
    if type(pid) is not tuple or not pid or as_text(pid[0]) != "storage":
        raise errors.unsafe("Only persistent_load of storage is allowed")
    if len(pid) - 1 != fields:
        raise errors.unsafe(f"a storage in the file has {len(pid) - 1} properties, not {fields}")
    kind, key, location, numel = pid[1:5]
    key, location = as_text(key), as_text(location)
    if isinstance(kind, names.StorageType):
        dtype = kind.dtype
    elif kind is UntypedStorage:
        dtype = dtypes.uint8
    else:
        raise errors.unsafe("a storage in the file has no type")
    if type(key) is int and abs(key) < 1 << 64:
        key = str(key)
    if type(key) is not str or len(key) > _KEY or type(location) is not str or type(numel) is not int:
        raise errors.unsafe("a storage in the file has properties of the wrong type")
    if not 0 <= numel * dtype.itemsize < 1 << 63:
        raise errors.storage_size(key[:80], numel, 0)
    return dtype, key, location, numel


def as_text(x):
    """A name of a file as str: with encoding="bytes" those of Python 2 come as bytes."""
    return x.decode("ascii") if isinstance(x, bytes) else x


def load_zip(reader, plan, path=None):
    """The object in a zip container. `path`: map the storages of the file there instead of reading them."""
    loaded = {}
    swapped = _byte_order(reader) != sys.byteorder
    mapping = _map(path) if path is not None else None

    def persistent(pid):
        dtype, key, location, numel = described(pid, 4)
        found = loaded.get(key)
        if found is None:
            core = _read(reader, f"data/{key}", dtype, numel, plan.meta, mapping, swapped)
            found = loaded[key] = plan.place(core, dtype, location)
        elif found.nbytes() != numel * dtype.itemsize:
            raise errors.storage_size(key, numel * dtype.itemsize, found.nbytes())
        return found if found.dtype is dtype else TypedStorage(wrap_storage=found.untyped(), dtype=dtype)

    result = plan.unpickle(io.BytesIO(reader.read("data.pkl")), persistent)
    plan.settle()
    return result


def _read(reader, name, dtype, numel, meta, mapping, swapped):
    nbytes = numel * dtype.itemsize
    reader.check(name, nbytes)
    if meta:
        return buffers.allocate(numel, dtype, devices.meta)
    if session.skip_data:
        return buffers.allocate(numel, dtype)
    if mapping is not None and reader.stored(name) and not swapped:
        start = reader.offset(name)
        owner = np.frombuffer(mapping, np.uint8, nbytes, start)
        if nbytes and owner.ctypes.data % dtype.itemsize == 0:
            return buffers.hosted(owner.view(dtype.memory), owner, lent=options.load.mmap_flags != MAP_SHARED)
    core = buffers.allocate(numel, dtype, zeroed=False)
    bytes_of = core.host.buffer.view(np.uint8)
    reader.read_into(name, bytes_of)
    if swapped:
        buffers.swap(core.host.buffer, dtype)
    return core


def _map(path):
    shared = options.load.mmap_flags == MAP_SHARED
    with open(path, "r+b" if shared else "rb") as file:
        return maps.mmap(file.fileno(), 0, access=maps.ACCESS_WRITE if shared else maps.ACCESS_COPY)


def _byte_order(reader) -> str:
    if "byteorder" in reader:
        if reader.size("byteorder") > 16:
            raise errors.archive("it has no known byte order")
        found = reader.read("byteorder")
        if found not in (b"little", b"big"):
            raise errors.archive(f"Unknown endianness type: {found!r}")
        return found.decode()
    default = options.load.endianness
    return {None: "little", LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}.get(default, sys.byteorder)


def unsafe_globals(f) -> list:
    """The names in a checkpoint that a safe load would refuse."""
    with _opened(f) as file:
        if not _starts_with(file, MAGIC):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = Reader(file)
        if "constants.pkl" in reader:
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint"
            )
        known = {**names.allowed(), **names.user_allowed()}
        return sorted(globals_in(reader.read("data.pkl")) - set(known))
