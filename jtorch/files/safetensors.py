"""The safetensors format: a JSON header, then the bytes of each tensor. Files in pieces with an index too.

Source of the format: https://github.com/huggingface/safetensors#format
"""

import io
import json
import math
import mmap as maps
import os
import struct
from collections.abc import Mapping

import numpy as np

from ..convert import as_numpy
from ..core import buffers
from ..core import device as devices
from ..core import dtype as dtypes
from ..core import storage as storages
from ..core.device import Device
from ..core.spec import Spec
from ..nn.modules.module import Module
from ..tensor import Tensor, make
from . import errors
from .container import fill
from .saving import replacing

DTYPES = {
    "F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "I64": dtypes.int64,
    "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8, "U64": dtypes.uint64, "U32": dtypes.uint32,
    "U16": dtypes.uint16, "U8": dtypes.uint8, "BOOL": dtypes.bool_, "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E5M2": dtypes.float8_e5m2, "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
    "F8_E8M0": dtypes.float8_e8m0fnu, "C64": dtypes.complex64,
}  # fmt: skip
_NAMES = {d: name for name, d in DTYPES.items()}
_LENGTH = struct.Struct("<Q")
_MAX_HEADER = 100_000_000
_METADATA = "__metadata__"
INDEX = ".index.json"


def _bad(detail) -> errors.CheckpointError:
    return errors.CheckpointError(f"Error while deserializing header: {detail}")


class _Entry:
    """Where a tensor lies: dtype, shape, first and last byte after the header."""

    __slots__ = ("dtype", "shape", "start", "stop")

    def __init__(self, name, described):
        try:
            kind, shape, (self.start, self.stop) = described["dtype"], described["shape"], described["data_offsets"]
        except (KeyError, TypeError, ValueError):
            raise _bad(f"tensor {name!r:.80} has no dtype, shape and data_offsets") from None
        if not isinstance(kind, str) or kind not in DTYPES:
            raise _bad(f"tensor {name!r:.80} has the unknown dtype {kind!r:.40}")
        if not isinstance(shape, list) or len(shape) > 64 or not all(map(_size, (*shape, self.start, self.stop))):
            raise _bad(f"tensor {name!r:.80} has a bad shape or bad offsets")
        self.dtype = DTYPES[kind]
        self.shape = tuple(shape)
        if math.prod(shape) * self.dtype.itemsize != self.stop - self.start:
            raise _bad(f"tensor {name!r:.80} has another size than its shape says")


def _size(n) -> bool:
    return type(n) is int and 0 <= n < 1 << 63


def _once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


class safe_open:
    """A safetensors file, of which single tensors are read: `with safe_open(path, "pt") as f: f.get_tensor(name)`.

    Args:
        filename: the path
        framework: accepted for compatibility; tensors are jtorch's
        device: where tensors go
        mmap: leave tensors in the file until they are read

    Raises CheckpointError when the file is damaged.
    """

    def __init__(self, filename, framework="pt", device="cpu", *, mmap=False):
        self._device = devices.resolve(device)
        self._open(open(filename, "rb"), mmap)

    @classmethod
    def _of(cls, data):
        made = cls.__new__(cls)
        made._device = devices.cpu
        made._open(io.BytesIO(data), False)
        return made

    def _open(self, file, mmap):
        self._file = file
        self._map = None
        try:
            self._read_header()
            if mmap:
                self._map = maps.mmap(file.fileno(), 0, access=maps.ACCESS_COPY)
        except BaseException:
            file.close()
            raise

    def _read_header(self):
        file = self._file
        length = file.seek(0, 2)
        file.seek(0)
        if length < _LENGTH.size:
            raise _bad("the header is too small")
        (n,) = _LENGTH.unpack(file.read(_LENGTH.size))
        if n > min(_MAX_HEADER, length - _LENGTH.size):
            raise _bad("the header is larger than the file")
        try:
            header = json.loads(file.read(n).decode(), object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise _bad(f"it is no JSON: {error!s:.80}") from None
        if not isinstance(header, dict):
            raise _bad("it is no JSON object")
        self._metadata = header.pop(_METADATA, None)
        if self._metadata is not None and not (
            isinstance(self._metadata, dict) and all(isinstance(v, str) for v in self._metadata.values())
        ):
            raise _bad("the metadata is no mapping of texts")
        self._entries = {name: _Entry(name, described) for name, described in header.items()}
        self._begin = _LENGTH.size + n
        at = 0
        for entry in sorted(self._entries.values(), key=lambda e: (e.start, e.stop)):
            if entry.start != at:
                raise _bad("the tensors overlap or leave holes")
            at = entry.stop
        if self._begin + at != length:
            raise _bad("the tensors do not fill the file")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._file.close()

    def keys(self) -> list:
        """The names, sorted."""
        return sorted(self._entries)

    def offset_keys(self) -> list:
        """The names, in the order of the file."""
        return sorted(self._entries, key=lambda name: self._entries[name].start)

    def metadata(self):
        """The texts that were saved with the tensors, or None."""
        return self._metadata

    def _entry(self, name) -> _Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise errors.CheckpointError(f"File does not contain tensor {name}") from None

    def get_tensor(self, name) -> Tensor:
        """A tensor by its name."""
        entry = self._entry(name)
        spec = Spec.dense(entry.shape, entry.dtype, self._device)
        start, nbytes = self._begin + entry.start, entry.stop - entry.start
        owner = None if self._map is None or not nbytes else np.frombuffer(self._map, np.uint8, nbytes, start)
        if owner is not None and owner.ctypes.data % entry.dtype.itemsize == 0:
            core = buffers.hosted(owner.view(entry.dtype.np), owner, self._device, lent=True)
            core.host.spec = spec
            return make(core, spec)
        core = buffers.allocate(spec.numel, entry.dtype, self._device, zeroed=False)
        fill(self._file, start, memoryview(core.host.buffer.view(np.uint8)), f"tensor {name}")
        core.host.spec = spec
        storages.settle(core)
        return make(core, spec)

    def get_slice(self, name):
        """A tensor of which parts are read by indexing."""
        return _Slice(self, name)


class _Slice:
    def __init__(self, file, name):
        self._file, self._name = file, name
        self._entry = file._entry(name)

    def get_shape(self) -> list:
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        return _NAMES[self._entry.dtype]

    def __getitem__(self, index):
        return self._file.get_tensor(self._name)[index]


# --- whole files -----------------------------------------------------------------------------------------------------------


def load(data) -> dict:
    """The tensors in the bytes of a safetensors file."""
    with safe_open._of(data) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def load_file(filename, device="cpu", *, mmap=False) -> dict:
    """The tensors in a safetensors file, or in all the files that an index (`*.index.json`) names.

    Args:
        filename: the path
        device: where the tensors go
        mmap: leave tensors in the file until they are read
    """
    filename = os.fspath(filename)
    if filename.endswith(INDEX):
        return _load_pieces(filename, device, mmap)
    with safe_open(filename, "pt", device, mmap=mmap) as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}


def _load_pieces(index, device, mmap):
    try:
        with open(index, encoding="utf-8") as file:
            places = json.load(file, object_pairs_hook=_once)["weight_map"]
        wrong = not isinstance(places, dict) or not all(isinstance(v, str) for v in places.values())
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise errors.CheckpointError(f"{index} is no index of safetensors files: {error!s:.80}") from None
    if wrong:
        raise errors.CheckpointError(f"{index} is no index of safetensors files")
    folder, found = os.path.dirname(index), {}
    for piece in sorted(set(places.values())):
        # A piece lies next to its index; anything else is an attempt to read another file.
        if piece in ("", ".", "..") or piece != os.path.basename(piece) or "\\" in piece or "\0" in piece:
            raise errors.CheckpointError(f"{index} names a file outside its folder: {piece!r:.120}")
        wanted = [name for name, where in places.items() if where == piece]
        with safe_open(os.path.join(folder, piece), "pt", device, mmap=mmap) as file:
            found.update((name, file.get_tensor(name)) for name in wanted)
    return {name: found[name] for name in places}


def load_for_torch(filename, map_location):
    """What torch.load gives for a `.safetensors` path."""
    if isinstance(map_location, dict) or (callable(map_location) and not isinstance(map_location, Device)):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. Use a device string or torch.device instead."
        )
    return load_file(filename, "cpu" if map_location is None else map_location)


def _header(tensors, metadata):
    if not isinstance(tensors, Mapping):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    seen = {}
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(t)}")
        if t.dtype not in _NAMES:
            raise errors.CheckpointError(f"safetensors has no dtype for {t.dtype} (tensor `{name}`)")
        if not t.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are trying "
                "to save tensors which are reference of each other in which case it's recommended to save only the full "
                "tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to pack it before saving."
            )
        if t.numel():
            seen.setdefault(t._storage, []).append(name)
    shared = [names for names in seen.values() if len(names) > 1]
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them "
            f"again: {shared}.\n  save a module by save_model, which keeps one of them, or clone the others"
        )
    names = sorted(tensors, key=lambda n: (-tensors[n].dtype.itemsize, _NAMES[tensors[n].dtype], n))
    header, at = {} if metadata is None else {_METADATA: dict(metadata)}, 0
    for name in names:
        t = tensors[name]
        header[name] = {"dtype": _NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return names, _LENGTH.pack(len(text)) + text


def _write(file, tensors, metadata):
    names, header = _header(tensors, metadata)
    file.write(header)
    for name in names:
        file.write(memoryview(np.ascontiguousarray(as_numpy(tensors[name])).reshape(-1).view(np.uint8)))


def save(tensors, metadata=None) -> bytes:
    """The bytes of a safetensors file with these tensors.

    Args:
        tensors: name -> contiguous tensor, no two of them on one storage
        metadata: name -> text
    """
    file = io.BytesIO()
    _write(file, tensors, metadata)
    return file.getvalue()


def save_file(tensors, filename, metadata=None) -> None:
    """Write a safetensors file; arguments of `save`. The file appears when it is whole."""
    _header(tensors, metadata)
    with replacing(os.fspath(filename)) as file:
        _write(file, tensors, metadata)


def save_model(model, filename, metadata=None) -> None:
    """Write a module's state_dict; of tensors that are one, only the first name is kept."""
    kept, metadata, first = {}, dict(metadata or {}), {}
    for name, t in model.state_dict().items():
        key = (id(t._storage), int(t._offset), t._spec)
        if t.numel() and key in first:
            metadata[name] = first[key]
        else:
            first[key] = name
            kept[name] = t.contiguous()
    save_file(kept, filename, metadata or None)


def load_model(model, filename, strict=True, device="cpu"):
    """Load what save_model wrote into a module; returns (missing, unexpected) names."""
    if not isinstance(model, Module):
        raise TypeError(f"load_model wants a module, got {type(model).__name__}")
    with safe_open(filename, "pt", device) as file:
        state = {name: file.get_tensor(name) for name in file.offset_keys()}
        for name, kept in (file.metadata() or {}).items():
            if kept in state and name not in state and name in model.state_dict():
                state[name] = state[kept]
    return model.load_state_dict(state, strict=strict)
