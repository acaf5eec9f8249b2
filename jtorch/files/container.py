"""PyTorch's zip container: records by name, each stored uncompressed at a multiple of 64 bytes. Knows nothing of tensors.

The layout of a record and of the directory is that of the ZIP specification (PKWARE APPNOTE.TXT, sections 4.3 and 4.5); the
padding field `FB` and the data descriptor after each record are what PyTorch's own writer adds.
"""

import struct
import zlib
from typing import NamedTuple

import numpy as np

from . import errors

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_STORED, _DEFLATED = 0, 8
_FLAGS = 0x0808  # names are UTF-8, sizes follow the data once more
_CHUNK = 1 << 20
# A compressed record may become so many times as long as the whole file, but at least this many bytes are allowed.
_RATIO, _SMALL = 100, 1 << 26

MAGIC = b"PK\x03\x04"


class Record(NamedTuple):
    """Where a record lies: `start` is the place of its header."""

    name: str
    start: int
    method: int
    crc: int
    packed: int
    size: int


class Reader:
    """The records of a zip container in a seekable file. Every size and place is checked before it is believed."""

    def __init__(self, file):
        self.file = file
        self.length = file.seek(0, 2)
        if self.length is None:
            self.length = file.tell()
        self.records = {}
        self.root = ""
        self._ends = {}  # name -> where the next record begins
        self._read_directory()

    def _at(self, start, n, what="the archive") -> bytes:
        """`n` bytes from a place that the caller has checked to be inside the file."""
        self.file.seek(start)
        got = self.file.read(n)
        if len(got) != n:
            raise errors.ends_early(what)
        return got

    def _read_directory(self):
        count, size, start, shift = self._end()
        if start + shift < 0 or start + shift + size > self.length:
            raise errors.archive("the central directory lies outside the file")
        if count * _CENTRAL.size > size:
            raise errors.archive("the central directory is too short for its entries")
        data = self._at(start + shift, size)
        found, at = [], 0
        for _ in range(count):
            record, at = self._entry(data, at, shift)
            if not record.name.endswith("/"):  # a folder, in an archive that was packed anew
                found.append(record)
        if at != size:
            raise errors.archive("the central directory is longer than its entries")
        self._check_places(found, start + shift)
        if found:
            self.root = found[0].name.partition("/")[0]
        for record in found:
            root, _, name = record.name.partition("/")
            if root != self.root or not name:
                raise errors.archive("the records do not lie in one folder")
            if name in self.records:
                raise errors.archive(f"two records have the name {name}")
            self.records[name] = record

    def _end(self):
        """(entries, size of the directory, its place, how far everything is shifted) from the end of the file."""
        tail = self._at(max(0, self.length - _END.size - _MAX16), min(self.length, _END.size + _MAX16))
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or len(tail) - at < _END.size:
            raise errors.archive("failed finding central directory")
        _, disk, first, here, count, size, start, comment = _END.unpack_from(tail, at)
        if len(tail) - at != _END.size + comment:
            raise errors.archive("failed finding central directory")
        if disk or first or here != count:
            raise errors.archive("it has several parts")
        end = self.length - len(tail) + at
        place = end - _LOCATOR.size  # of the long form of what was just read, which PyTorch always writes too
        if place >= 0 and self._at(place, 4) == b"PK\x06\x07":
            return self._end64(place)
        # Something may stand before the archive: places count from its own beginning.
        return count, size, start, end - size - start

    def _end64(self, place):
        end = place - _END64.size
        if end < 0:
            raise errors.archive("failed finding central directory")
        magic, _, _, _, disk, first, here, count, size, start = _END64.unpack(self._at(end, _END64.size))
        if magic != b"PK\x06\x06" or disk or first or here != count:
            raise errors.archive("failed finding central directory")
        return count, size, start, end - size - start

    def _entry(self, data, at, shift):
        if len(data) - at < _CENTRAL.size:
            raise errors.archive("the central directory ends in the middle of an entry")
        magic, _, _, flags, method, _, _, crc, packed, size, n, extra, comment, disk, _, _, start = (
            _CENTRAL.unpack_from(data, at)
        )
        if magic != b"PK\x01\x02":
            raise errors.archive("the central directory has a bad entry")
        at += _CENTRAL.size
        if at + n + extra + comment > len(data):
            raise errors.archive("the central directory ends in the middle of an entry")
        try:
            name = data[at : at + n].decode()
        except UnicodeDecodeError:
            raise errors.archive("a record's name is not UTF-8") from None
        if flags & 0x2061 or disk not in (0, _MAX16):
            raise errors.archive(f"record {name!r} is encrypted or in several parts")
        if method not in (_STORED, _DEFLATED):
            raise errors.archive(f"record {name!r} is compressed by method {method}")
        if not name or "\0" in name or "\\" in name or name.startswith("/") or ".." in name.split("/"):
            raise errors.archive(f"the record name {name!r} points outside the archive")
        size, packed, start = _wide(data[at + n : at + n + extra], size, packed, start)
        if method == _STORED and packed != size:
            raise errors.archive(f"record {name!r} has two sizes")
        return Record(name, start + shift, method, crc, packed, size), at + n + extra + comment

    def _check_places(self, found, directory):
        """Records lie one after the other before the directory, and none inside another."""
        end = directory
        for record in sorted(found, key=lambda r: r.start, reverse=True):
            if record.start < 0 or record.start + _LOCAL.size + record.packed > end:
                raise errors.archive(f"record {record.name!r} lies outside the file or overlaps another")
            self._ends[record.name] = end
            end = record.start

    # -- reading ----------------------------------------------------------------------------------------------------------

    def offset(self, name) -> int:
        """Where the bytes of a record begin in the file."""
        record = self._record(name)
        magic, _, flags, method, _, _, _, _, _, n, extra = _LOCAL.unpack(self._at(record.start, _LOCAL.size))
        if magic != MAGIC or method != record.method:
            raise errors.archive(f"record {name!r} has a bad header")
        start = record.start + _LOCAL.size + n + extra
        if start + record.packed > self._ends[record.name]:
            raise errors.archive(f"record {name!r} lies outside the file or overlaps another")
        if self._at(record.start + _LOCAL.size, n) != record.name.encode():
            raise errors.archive(f"record {name!r} has another name in its header")
        return start

    def _record(self, name) -> Record:
        try:
            return self.records[name]
        except KeyError:
            raise errors.no_record(name) from None

    def __contains__(self, name):
        return name in self.records

    def size(self, name) -> int:
        return self._record(name).size

    def stored(self, name) -> bool:
        """Whether the bytes lie in the file as they are."""
        return self._record(name).method == _STORED

    def read(self, name) -> bytes:
        """The bytes of a record."""
        into = np.empty(self._fits(name), np.uint8)
        self.read_into(name, into)
        return into.tobytes()

    def _fits(self, name) -> int:
        """The size of a record, once it is known to be no bomb."""
        record = self._record(name)
        if record.method == _DEFLATED:
            if record.size > max(_SMALL, _RATIO * self.length) or record.size > 1100 * record.packed + 1100:
                raise errors.archive(f"record {name!r} would unpack to {record.size} bytes from {record.packed}")
        return record.size

    def check(self, name, nbytes) -> None:
        """Raise unless a record has exactly so many bytes and may be read."""
        if self._fits(name) != nbytes:
            raise errors.storage_size(name, nbytes, self.size(name))

    def read_into(self, name, flat) -> None:
        """Fill an array of bytes, as long as the record, and check the sum."""
        record = self._record(name)
        start = self.offset(name)
        view = memoryview(flat)
        if record.method == _STORED:
            fill(self.file, start, view, f"record {name!r}")
        else:
            self._inflate(record, start, view)
        # torch.serialization.set_crc32_options(False) leaves zeros in the place of the sum.
        if record.crc and zlib.crc32(view) != record.crc:
            raise errors.archive(f"record {name!r} does not have the check sum that the archive gives")

    def _inflate(self, record, start, view):
        unpack = zlib.decompressobj(-15)
        at, taken = 0, 0
        try:
            while taken < record.packed:
                chunk = self._at(start + taken, min(_CHUNK, record.packed - taken))
                taken += len(chunk)
                while chunk:
                    got = unpack.decompress(chunk, len(view) - at + 1)
                    if at + len(got) > len(view):
                        raise errors.archive(f"record {record.name!r} is longer than it says")
                    view[at : at + len(got)] = got
                    at += len(got)
                    chunk = unpack.unconsumed_tail
                    if not got and chunk:
                        raise errors.archive(f"record {record.name!r} is longer than it says")
        except zlib.error:
            raise errors.archive(f"record {record.name!r} cannot be unpacked") from None
        if at != len(view) or not unpack.eof:
            raise errors.archive(f"record {record.name!r} is shorter than it says")


def fill(file, start, view, what) -> None:
    """Fill a memoryview of bytes from a place in a file."""
    file.seek(start)
    into = getattr(file, "readinto", None)
    at = 0
    while at < len(view):
        if into is not None:
            n = into(view[at:])
        else:
            got = file.read(min(_CHUNK, len(view) - at))
            n = len(got)
            view[at : at + n] = got
        if not n:
            raise errors.ends_early(what)
        at += n


def _wide(extra, size, packed, start):
    """Sizes and place from the zip64 field, where the short ones are all ones."""
    at = 0
    while at + 4 <= len(extra):
        kind, n = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            values = list(struct.unpack_from(f"<{n // 8}Q", extra, at + 4)) if at + 4 + n <= len(extra) else []
            want = [v == m for v, m in ((size, _MAX32), (packed, _MAX32), (start, _MAX32))]
            if len(values) < sum(want):
                raise errors.archive("a record's size is missing")
            size = values.pop(0) if want[0] else size
            packed = values.pop(0) if want[1] else packed
            start = values.pop(0) if want[2] else start
            break
        at += 4 + n
    return size, packed, start


class Writer:
    """Writes records one after the other to an object with `write`, laid out as PyTorch's own writer does."""

    def __init__(self, write, root, *, alignment=64, crc=True):
        self._write = write
        self._root = root
        self._alignment = alignment
        self._crc = crc
        self._at = 0
        self._directory = []
        self._sums = 0

    def _put(self, data):
        self._write(data)
        self._at += len(data)

    def add(self, name, data) -> None:
        """A record of these bytes (bytes, or a memoryview of bytes)."""
        crc = zlib.crc32(data) if self._crc else 0
        self._sums = zlib.crc32(struct.pack("<2L", crc, zlib.crc32(name.encode())), self._sums)
        self._begin(name, crc, len(data))
        for start in range(0, len(data), 1 << 28):  # some file objects take no more than 2 GiB at once
            self._put(data[start : start + (1 << 28)])
        self._finish(crc, len(data))

    def add_hole(self, name, size) -> None:
        """A record of zeros, to be filled in later."""
        self._begin(name, 0, size)
        for start in range(0, size, _CHUNK):
            self._put(bytes(min(_CHUNK, size - start)))
        self._finish(0, size)

    def _begin(self, name, crc, size):
        raw = f"{self._root}/{name}".encode()
        start = self._at
        wide = struct.pack("<2H2Q", 1, 16, size, size) if size >= _MAX32 else b""
        if start >= _MAX32:
            wide = struct.pack("<2H", 1, len(wide[4:]) + 8) + wide[4:] + struct.pack("<Q", start)
        before = start + _LOCAL.size + len(raw) + len(wide) + 4
        padding = -before % self._alignment
        self._put(
            _LOCAL.pack(MAGIC, 0, _FLAGS if size else 0x0800, _STORED, 0, 0, 0, *_short_sizes(size, local=True),
                        len(raw), len(wide) + 4 + padding)
            + raw + wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        )  # fmt: skip
        self._directory.append(
            _CENTRAL.pack(b"PK\x01\x02", 0, 45 if wide else 0, _FLAGS if size else 0x0800, _STORED, 0, 0, crc,
                          *_short_sizes(size), len(raw), len(wide), 0, 0, 0, 0, min(start, _MAX32))
            + raw + wide
        )  # fmt: skip
        self._long = size >= _MAX32 or start >= _MAX32

    def _finish(self, crc, size):
        if size:
            self._put(struct.pack("<4sL2Q" if self._long else "<4s3L", b"PK\x07\x08", crc, size, size))

    def identity(self) -> str:
        """A number that tells archives apart, from the sums of the records so far."""
        return f"{zlib.crc32(b'names', self._sums):020d}{self._sums:020d}"

    def finish(self) -> None:
        """The directory."""
        data, start, count = b"".join(self._directory), self._at, len(self._directory)
        self._put(data)
        if count >= _MAX16 or len(data) >= _MAX32 or start >= _MAX32:
            end = self._at
            self._put(_END64.pack(b"PK\x06\x06", _END64.size - 12, 45, 45, 0, 0, count, count, len(data), start))
            self._put(_LOCATOR.pack(b"PK\x06\x07", 0, end, 1))
        shown = min(count, _MAX16)
        self._put(_END.pack(b"PK\x05\x06", 0, 0, shown, shown, min(len(data), _MAX32), min(start, _MAX32), 0))


def _short_sizes(size, local=False):
    if size >= _MAX32:
        return _MAX32, _MAX32
    return (0, 0) if local else (size, size)
