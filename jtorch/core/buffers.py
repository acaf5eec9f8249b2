"""Storages over host buffers: fresh ones, copies, and files mapped into memory."""

import mmap as maps
import os
import sys

import numpy as np

from . import device as devices
from . import dtype as dtypes
from . import storage as storages
from .dtype import dtype as DType
from .pending import NO_DATA
from .spec import Spec
from .storage import Storage


def hosted(flat, owner, device=devices.cpu, lent=False) -> Storage:
    """A storage over a flat numpy buffer, a view of `owner`; its value moves to `device` when it is first needed."""
    made = Storage(None, None)
    storages.adopt(made, flat, owner, Spec.dense((flat.size,), dtypes.of(flat.dtype), device), lent)
    return made


def allocate(count: int, dtype: DType, device=devices.cpu, zeroed=True) -> Storage:
    """A storage of `count` elements. The buffer starts where the device can take it over without a copy."""
    if device.type == "meta":
        return Storage(NO_DATA, Spec.dense((count,), dtype, device))
    owner = (np.zeros if zeroed else np.empty)(count * dtype.itemsize + ALIGNMENT, np.uint8)
    start = -owner.ctypes.data % ALIGNMENT
    flat = owner[start : start + count * dtype.itemsize].view(dtype.memory)
    return hosted(flat, owner, device)


ALIGNMENT = 64


def filled(values, dtype, place) -> Storage:
    flat = np.array(values, dtype.memory).reshape(-1)
    owner = np.empty(flat.size, dtype.memory)
    owner[:] = flat
    return hosted(owner[:], owner, place)


def like(storage, place) -> Storage:
    base = storage.base
    if place.type == "meta" or storage.value is NO_DATA:
        return Storage(NO_DATA, Spec.of(tuple(base.shape), base.strides, base.dtype, place))
    made = filled(storages.memory(storage), base.dtype, place)
    made.host.spec = Spec.of(tuple(base.shape), base.strides, base.dtype, place)
    storages.settle(made)
    return made


def copied(buffer, byte_order, count, offset, dtype) -> Storage:
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    item = dtype.itemsize
    if byte_order is None and item > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    whole = np.frombuffer(buffer, np.uint8)
    if not 0 <= offset <= whole.size:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({whole.size}) (got {offset})")
    if count < 0:
        if (whole.size - offset) % item:
            raise ValueError(f"buffer size ({whole.size - offset}) must be a multiple of element size ({item})")
        count = (whole.size - offset) // item
    if offset + count * item > whole.size:
        raise ValueError(
            f"buffer has only {whole.size - offset} elements after offset {offset}, but specified a size of {count}"
        )
    owner = np.array(whole[offset : offset + count * item])
    if byte_order in ("little", "big") and byte_order != sys.byteorder:
        swap(owner, dtype)
    return hosted(owner.view(dtype.memory), owner)


def swap(flat, dtype) -> None:
    """Reverse the bytes of each number in an array of one dtype or of bytes, in place."""
    item = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if item > 1:
        flat.view(f"u{item}").byteswap(inplace=True)


def mapped(filename, shared, count, dtype) -> Storage:
    """A storage over the first `count` elements of a file."""
    nbytes = count * dtype.itemsize
    mode, words = ("r+b", "read-write") if shared else ("rb", "read-only")
    try:
        if shared and not os.path.exists(filename):
            open(filename, "xb").close()
        with open(filename, mode) as file:
            have = os.fstat(file.fileno()).st_size
            if have < nbytes:
                if not shared:
                    raise RuntimeError(
                        f"file <{filename}> size <{have}> is smaller than the required mapping size <{nbytes}>"
                    )
                file.truncate(nbytes)
            memory = (
                maps.mmap(file.fileno(), nbytes, access=maps.ACCESS_WRITE if shared else maps.ACCESS_COPY)
                if nbytes
                else b""
            )
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in {words} mode: {error.strerror} ({error.errno})"
        ) from error
    owner = np.frombuffer(memory, np.uint8, nbytes)
    return hosted(owner.view(dtype.memory), owner, lent=not shared)
