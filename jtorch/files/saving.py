"""torch.save: the pickle first, then the storages; a file appears under its name only when it is whole."""

import contextlib
import io
import os
import secrets
import shutil
import stat
import sys

import numpy as np

from ..core import storage as storages
from ..storage_api import TypedStorage, UntypedStorage
from . import locations
from .container import Writer
from .legacy import save_legacy
from .options import options
from .pickler import Storages, make_pickler
from .state import session


def save(obj, f, pickle_module, pickle_protocol, use_zip, disable_byteorder_record):
    """See jtorch.serialization.save."""
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not use_zip and session.skip_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    found = Storages(locations.location_tag)
    if use_zip:
        # Everything that can fail by the object's fault fails here, before the file is touched.
        data = io.BytesIO()
        make_pickler(pickle_module, data, pickle_protocol, lambda x: _id(found, x)).dump(obj)
        root = _root(f) if is_path else "archive"

        def put(file):
            _write_zip(file, root, data.getvalue(), found, disable_byteorder_record)
    else:

        def put(file):
            save_legacy(file, obj, found, pickle_module, pickle_protocol)

    if is_path:
        with replacing(os.fspath(f)) as file:
            put(file)
    else:
        put(f)
        flush = getattr(f, "flush", None)
        if flush is not None:
            flush()


def _id(found, x):
    return ("storage", *found.identify(x)) if isinstance(x, _STORAGES) else None


_STORAGES = (TypedStorage, UntypedStorage)


def _root(path) -> str:
    """The folder of the records: PyTorch's is the file's name without its ending."""
    name = os.path.basename(os.fspath(path))
    return os.path.splitext(name)[0] or "archive"


def _write_zip(file, root, data, found, disable_byteorder_record):
    writer = Writer(file.write, root, alignment=options.save.storage_alignment, crc=options.save.compute_crc32)
    writer.add("data.pkl", data)
    writer.add(".format_version", b"1")
    writer.add(".storage_alignment", str(options.save.storage_alignment).encode())
    if not disable_byteorder_record:
        writer.add("byteorder", sys.byteorder.encode())
    for core, key in found.keys.items():
        if session.skip_data:
            writer.add_hole(f"data/{key}", core.base.nbytes)
        else:
            writer.add(f"data/{key}", bytes_of(core))
    writer.add("version", b"3\n")
    if disable_byteorder_record:  # as PyTorch, whose writer adds it at the end where it is not there
        writer.add("byteorder", sys.byteorder.encode())
    writer.add(".data/serialization_id", writer.identity().encode())
    writer.finish()


def bytes_of(core) -> memoryview:
    """The bytes of a storage, in the order of memory."""
    return memoryview(np.ascontiguousarray(storages.memory(core)).view(np.uint8))


@contextlib.contextmanager
def replacing(path):
    """A file to write to, which takes the place of `path` when the block ends well, and is gone when it does not."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path) or '.'} does not exist.")
    if os.path.isdir(target):
        raise RuntimeError(f"open file failed with strerror: Is a directory: {path}")
    if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        with open(target, "wb") as file:  # a pipe or a device: there is nothing to replace
            yield file
        return
    temporary = os.path.join(folder, f".{os.path.basename(target)[:180]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if os.path.exists(target):
                shutil.copymode(target, temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
