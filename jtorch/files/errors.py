"""The errors of reading and writing checkpoints. Whatever is wrong with a file itself is a CheckpointError."""

import pickle

__all__ = ["CheckpointError"]


class CheckpointError(pickle.UnpicklingError, RuntimeError):
    """A file is damaged, is not a checkpoint, or asks for what a safe load does not give.

    PyTorch raises pickle.UnpicklingError for some of these files and RuntimeError for others: this is both.
    """


class EmptyFileError(CheckpointError, EOFError):
    """A file ends before anything has been read."""


class Outside(Exception):
    """Carries an error that is not the file's fault, such as a device that is not there, past the reader of the file."""


_CORRUPT = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is "
    "corrupted."
)


def archive(detail: str) -> CheckpointError:
    """The zip container is not what a zip container is."""
    return CheckpointError(f"PytorchStreamReader failed reading zip archive: {detail}. {_CORRUPT}")


def no_record(name: str) -> CheckpointError:
    return CheckpointError(f"PytorchStreamReader failed locating file {name}: file not found. {_CORRUPT}")


def ends_early(what: str) -> CheckpointError:
    return CheckpointError(f"the file ends in the middle of {what}")


def empty() -> EmptyFileError:
    return EmptyFileError("Ran out of input: the file is empty")


def storage_size(key, nbytes: int, have: int) -> CheckpointError:
    return CheckpointError(f"storage {key!r} is declared with {nbytes} bytes, and the file holds {have} bytes for it")


def outside_storage(size, stride, offset: int, nbytes: int) -> CheckpointError:
    return CheckpointError(
        f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} are out of bounds for storage of "
        f"size {nbytes}"
    )


def bad_layout(detail: str) -> CheckpointError:
    return CheckpointError(f"a tensor in the file cannot be: {detail}")


_UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
    "execution. Do it only if you got the file from a trusted source."
)


def forbidden_global(path: str) -> CheckpointError:
    """A class or function that is on no list."""
    name = path.removeprefix("builtins.")
    return CheckpointError(
        "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps only if "
        f"you trust the source of the checkpoint\033[0m. \n\t(1) {_UNSAFE}\n\t(2) Alternatively, allow the name that the file "
        f"asks for.\n\tWeightsUnpickler error: Unsupported global: GLOBAL {name} was not an allowed global by default. Please "
        f"use `torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context "
        "manager to allowlist this global if you trust this class/function."
    )


def unsafe(detail: str) -> CheckpointError:
    """The pickle does what a safe load does not do, or is no pickle."""
    return CheckpointError(f"Weights only load failed. {_UNSAFE}\n\n{detail}")


def unsupported_record(what: str, instead: str) -> CheckpointError:
    return CheckpointError(f"jtorch cannot load {what}\n  {instead}")


def two_dtypes() -> RuntimeError:
    return RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
