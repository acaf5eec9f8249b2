"""Storages whose home is memory that several processes map: what one process writes, the others read at their next use.

Reading copies the memory into an array, writing computes what has been recorded and copies the result back. Nothing orders the
processes: between the read and the write of an update another process may have written, as in PyTorch.
"""

import contextlib
import copyreg
import functools
import importlib
import mmap
import os
import sys
import tempfile
import threading
import weakref

import numpy as np

from .. import errors_storage
from . import device as devices
from . import storage as storages
from .spec import Spec
from .storage import Host, Storage


class SharedHost(Host):
    """A buffer that other processes may map too; `file` is the descriptor of its memory."""

    __slots__ = ("file", "__weakref__")

    def __init__(self, buffer, owner, spec, file):
        super().__init__(buffer, owner, spec, lent=True)
        self.file = file
        weakref.finalize(self, os.close, file)

    def shared(self) -> bool:
        return True

    among_processes = True


def is_shared(storage) -> bool:
    """Whether the storage's memory is one that other processes may map."""
    return type(storage.host) is SharedHost


@functools.cache
def reduction():
    """Python's module that sends things to processes, told of shared storages. It takes 14 ms to import: not with jtorch."""
    found = importlib.import_module("multiprocessing.reduction")
    found.ForkingPickler.register(Storage, _reduce)
    return found


def share(storage) -> None:
    """Move a storage on the CPU into memory that other processes may map.

    Raises RuntimeError where memory cannot be handed to another process: on Windows.
    """
    if is_shared(storage) or storage.base.device.type != "cpu":
        return
    if not reduction().HAVE_SEND_HANDLE or os.name == "nt":
        raise errors_storage.cannot_share()
    base = storage.base
    flat = storages.memory(storage)
    file = _new_file(max(1, flat.nbytes))
    _adopt(storage, file, base)
    storage.host.buffer[:] = flat


def _new_file(nbytes):
    """The descriptor of a file without a name, in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("jtorch", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.ftruncate(file, nbytes)
    return file


_here: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # identity of a file -> the storage over it


# Python's maps keep a second descriptor of their file where they can't be told not to.
_NO_COPY = {"trackfd": False} if sys.version_info >= (3, 13) else {}


def _identity(file):
    found = os.fstat(file)
    return found.st_dev, found.st_ino


def _adopt(storage, file, spec):
    memory = mmap.mmap(file, max(1, spec.nbytes), **_NO_COPY)
    owner = np.frombuffer(memory, np.uint8, spec.nbytes)
    storage._host = SharedHost(owner.view(spec.dtype.memory), owner, spec, file)
    storage.value = storage.spec = None
    _here[_identity(file)] = storage


forked = threading.local()  # `on`: the process that starts stands for a forked one, which gets copies


def _reduce(storage):
    """How a storage travels to another process: where it is shared, as a handle.

    One given to a process that starts anew is moved to such memory first, as in PyTorch. One sent through a queue is not: a handle
    would be lost with a sender that ends, and training that sends its parameters would go on in shared memory, slowly.
    """
    if reduction().context.get_spawning_popen() is not None and not getattr(forked, "on", False):
        with contextlib.suppress(OSError, RuntimeError):  # no memory, no descriptors, or a system without: a copy
            share(storage)
    if not is_shared(storage):
        return copyreg.dispatch_table[Storage](storage)
    base = storage.base
    return _arrive, (reduction().DupFd(storage.host.file), tuple(base.shape), base.strides, base.dtype)


def _arrive(handle, shape, strides, dtype):
    """The storage of a handle; the one that this process has over that memory, if it has one."""
    reduction()  # what has come may be sent on
    file = handle.detach()
    found = _here.get(_identity(file))
    if found is not None:
        os.close(file)
        return found
    made = Storage(None, None)
    _adopt(made, file, Spec.of(shape, strides, dtype, devices.cpu))
    return made
