"""torch.serialization: saving and loading in PyTorch's own formats, both ways.

What is wrong with a file raises `CheckpointError`, which is a pickle.UnpicklingError and a RuntimeError.
"""

import pickle
import sys
import warnings
from collections.abc import Callable

from . import legacy
from .core.device import Device
from .files import loading, names, safetensors, saving
from .files.errors import CheckpointError
from .files.legacy import load_legacy
from .files.locations import default_restore_location, location_tag, register_package, validate_cuda_device
from .files.names import StorageType
from .files.options import MAP_PRIVATE, MAP_SHARED, LoadEndianness, options
from .files.rebuild import _get_layout  # noqa: F401  files name it here
from .files.state import session
from .storage_api import CLASSES, UntypedStorage

__all__ = [
    "CheckpointError", "LoadEndianness", "SourceChangeWarning", "StorageType", "add_safe_globals",
    "check_module_version_greater_or_equal", "clear_safe_globals", "default_restore_location", "get_crc32_options",
    "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint",
    "load", "location_tag", "normalize_storage_type", "register_package", "safe_globals", "save", "set_crc32_options",
    "set_default_load_endianness", "set_default_mmap_options", "skip_data", "storage_to_tensor_type",
    "validate_cuda_device",
]  # fmt: skip

DEFAULT_PROTOCOL = 2
MAP_LOCATION = Callable[[UntypedStorage, str], UntypedStorage] | Device | str | dict[str, str] | None  # an annotation


class SourceChangeWarning(Warning):
    """The source of a module's class differs from what an old file says it was."""


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
) -> None:
    """Save an object, usually a state_dict, to a file that PyTorch can read.

    A path gets its file in one step, when all of it has been written: a save that fails leaves what was there.

    Args:
        obj: tensors and whatever holds them; tensors that share a storage share it in the file too
        f: a path, or an object with `write`
        pickle_module: pickle, or another module whose Pickler is written in Python, such as dill
        pickle_protocol: of Python's pickle. Default: 2, the one that PyTorch's safe load knows

    Raises TypeError for what PyTorch has no name for, RuntimeError when a storage is seen under two dtypes.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.save.html
    """
    saving.save(obj, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization, _disable_byteorder_record)


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Load what torch.save, ours or PyTorch's, has saved.

    Args:
        f: a path or a seekable file object
        map_location: where storages go: a device or its name, a dict from names in the file to names here, or a
            function(storage, name) -> storage or None. Default: where they were
        pickle_module: of a load that trusts the file. Default: pickle
        weights_only: build nothing but tensors, plain containers and what `add_safe_globals` allows. Default: True. False
            runs whatever code the file names
        mmap: leave the storages in the file until they are read. Default: False

    Raises CheckpointError when the file is damaged or names something that is not allowed.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """
    return loading.load(
        f, map_location, pickle_module, weights_only=weights_only, mmap=mmap, legacy=load_legacy,
        safetensors=safetensors.load_for_torch, **pickle_load_args,
    )  # fmt: skip


# --- what a safe load may name -------------------------------------------------------------------------------------------


def add_safe_globals(safe_globals) -> None:
    """Let safe loads name these classes and functions, or pairs (object, path in the file)."""
    for item in safe_globals:
        if item not in names.user_globals:
            names.user_globals.append(item)


def get_safe_globals() -> list:
    """What the user has allowed."""
    return list(names.user_globals)


def clear_safe_globals() -> None:
    """Forget what the user has allowed."""
    names.user_globals.clear()


class safe_globals:
    """`with safe_globals([...])`: add_safe_globals for the time of the block."""

    def __init__(self, safe_globals):
        self.safe_globals = list(safe_globals)

    def __enter__(self):
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exc):
        names.user_globals[:] = [x for x in names.user_globals if x not in self.safe_globals]


def get_unsafe_globals_in_checkpoint(f) -> list:
    """The names in a checkpoint that a safe load would refuse. Nothing of it is run."""
    return loading.unsafe_globals(f)


# --- settings --------------------------------------------------------------------------------------------------------------


def get_default_load_endianness():
    """The byte order assumed of files that do not say theirs; None is little."""
    return options.load.endianness


def set_default_load_endianness(endianness) -> None:
    """Set the byte order assumed of files that do not say theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether save computes the check sum of each record."""
    return options.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether save computes the check sum of each record; without it damage to the file goes unnoticed."""
    options.save.compute_crc32 = compute_crc32


def get_default_mmap_options():
    """How load maps files: mmap.MAP_PRIVATE or mmap.MAP_SHARED."""
    return options.load.mmap_flags


class set_default_mmap_options:
    """Let loads with mmap=True map files so: mmap.MAP_PRIVATE (writes stay here) or mmap.MAP_SHARED (they go to the file).

    Also a context manager.
    """

    def __init__(self, flags):
        if sys.platform == "win32":
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but "
                f"got {flags}"
            )
        self.prev = options.load.mmap_flags
        options.load.mmap_flags = flags

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        options.load.mmap_flags = self.prev


class skip_data:
    """Save and load everything but the bytes of storages: files get holes of their size, tensors get zeros.

    Args:
        materialize_fake_tensors: accepted for compatibility; there are no fake tensors here
    """

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self._before = session.skip_data, session.materialize_fake_tensors
        session.skip_data, session.materialize_fake_tensors = True, self.materialize_fake_tensors

    def __exit__(self, *exc):
        session.skip_data, session.materialize_fake_tensors = self._before


# --- small things ----------------------------------------------------------------------------------------------------------


def normalize_storage_type(storage_type):
    """The storage class under torch of a class of the same name elsewhere."""
    if storage_type.__name__ == "UntypedStorage":
        return UntypedStorage
    return CLASSES[storage_type.__name__]


def storage_to_tensor_type(storage):
    """The old tensor class that goes with a typed storage."""
    return legacy.CLASSES[storage.pickle_storage_type().replace("Storage", "Tensor")]


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True) -> bool:
    """Whether a module's `__version__` is at least this one. RuntimeError when it cannot be compared."""
    try:
        parts = module.__version__.split(".")
        return tuple(type(want)(parts[k]) for k, want in enumerate(req_version_tuple)) >= req_version_tuple
    except Exception as error:
        words = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared with tuple "
            f"{req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(words) from error
        warnings.warn(words + ", but continuing assuming that requirement is met", stacklevel=2)
        return True
