"""torch.PyTorchFileReader and PyTorchFileWriter: the records of a zip container, one by one."""

import io
import os
import weakref

from ..core import buffers
from ..core import dtype as dtypes
from ..storage_api import TypedStorage, UntypedStorage
from .container import Reader, Writer
from .saving import _root, bytes_of, replacing

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]


class PyTorchFileReader:
    """The records of an archive: a path, or an object with `read` and `seek`."""

    def __init__(self, source):
        own = isinstance(source, (str, os.PathLike))
        self._reader = Reader(open(source, "rb") if own else source)
        if own:
            weakref.finalize(self, self._reader.file.close)

    def get_record(self, name) -> bytes:
        """The bytes of a record. RuntimeError: there is none, or it is damaged."""
        return self._reader.read(name)

    def has_record(self, name) -> bool:
        return name in self._reader

    def get_all_records(self) -> list:
        """The names of all records."""
        return list(self._reader.records)

    def get_record_size(self, name) -> int:
        """How many bytes a record has."""
        return self._reader.size(name)

    def get_record_offset(self, name) -> int:
        """Where its bytes begin in the file."""
        return self._reader.offset(name)

    def get_record_header_offset(self, name) -> int:
        """Where its header begins in the file."""
        return self._reader._record(name).start

    def get_storage_from_record(self, name, numel, dtype):
        """An empty tensor, whose storage are the bytes of a record: `numel` elements."""
        self._reader.check(name, numel * dtype.itemsize)
        return UntypedStorage.of(buffers.copied(self.get_record(name), None, -1, 0, dtypes.uint8))._flat(dtype)[:0]

    def serialization_id(self) -> str:
        """The number that the writer gave the archive; empty if it gave none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes an archive: to a path, where it appears when it is whole, or to an object with `write`."""

    def __init__(self, target, compute_crc32=True, storage_alignment=64):
        path = isinstance(target, (str, os.PathLike))
        self._target, self._memory = target, io.BytesIO() if path else None
        self._root = _root(target) if path else "archive"
        self._writer = Writer(
            self._memory.write if path else target.write, self._root, alignment=storage_alignment, crc=compute_crc32
        )
        self._names, self._version, self._id = [], 3, None

    def archive_name(self) -> str:
        """The folder inside the archive."""
        return self._root

    def set_min_version(self, version) -> None:
        """At least this version of the format."""
        self._version = max(self._version, version)

    def get_all_written_records(self) -> set:
        """The names so far."""
        return set(self._names)

    def write_record(self, name, data, size) -> None:
        """A record of the first `size` bytes: of bytes, a string, or a storage."""
        if isinstance(data, TypedStorage):
            data = data.untyped()
        if isinstance(data, UntypedStorage):
            data = bytes_of(data._storage)
        raw = data.encode() if isinstance(data, str) else data
        self._writer.add(name, memoryview(raw)[:size])
        self._names.append(name)

    def write_record_metadata(self, name, size) -> None:
        """A record of zeros, to be filled in later."""
        self._writer.add_hole(name, size)
        self._names.append(name)

    def serialization_id(self) -> str:
        """A number that tells archives apart."""
        return self._id or self._writer.identity()

    def write_end_of_file(self) -> None:
        """The version, the number and the directory: the archive is whole."""
        self._id = self._writer.identity()
        self._writer.add("version", f"{self._version}\n".encode())
        self._writer.add(".data/serialization_id", self._id.encode())
        self._writer.finish()
        if self._memory is not None:
            with replacing(os.fspath(self._target)) as file:
                file.write(self._memory.getbuffer())
