"""A checkpoint in a folder: one file of torch.save. It is read into the tensors of the state_dict that is given."""

import concurrent.futures
import os

from ... import errors
from ...autograd.mode import no_grad
from ...serialization import load as load_file
from ...serialization import save as save_file
from ...tensor import Tensor
from .. import world
from ..collectives import barrier
from .plans import DefaultLoadPlanner, DefaultSavePlanner, StorageReader, StorageWriter

_FILE = "checkpoint.pt"


class CheckpointException(BaseException):
    """What went wrong in the processes of a checkpoint.

    Args:
        msg: where
        failures: {rank: error}
    """

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict:
        """{rank: error}."""
        return self._failures

    def __str__(self):
        return "".join((f"CheckpointException ranks:{self._failures.keys()}\n", *map(str, self._failures.values())))


class _Place:
    """A folder, as a reader or a writer of it."""

    def __init__(self, path, *args, **kwargs):
        self.path = os.fspath(path)


class FileSystemWriter(_Place, StorageWriter):
    """The folder to write to; options of sharded files are taken and unused."""


class FileSystemReader(_Place, StorageReader):
    """The folder to read from."""


def _folder(checkpoint_id, place, name):
    if place is not None and not isinstance(place, _Place):
        raise errors.unsupported(f"{name} of one's own", "FileSystemWriter and FileSystemReader")
    if checkpoint_id is None and place is None:
        raise RuntimeError(f"`checkpoint_id` must be specified if {name} is None.")
    return os.fspath(checkpoint_id) if checkpoint_id is not None else place.path


def _own(planner):
    """Raise for a planner that may do anything: a subclass of the default ones may too."""
    if planner is not None and type(planner) not in (DefaultSavePlanner, DefaultLoadPlanner):
        raise errors.unsupported("planners of one's own", "DefaultSavePlanner and DefaultLoadPlanner")


def _stateful(x):
    return not isinstance(x, (dict, Tensor)) and hasattr(x, "state_dict") and hasattr(x, "load_state_dict")


def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False, use_collectives=True):  # fmt: skip
    """Write a dict of tensors, values and objects that have a state_dict into the folder `checkpoint_id`. Returns None.

    Of several processes, which all have the same, the group's first one writes, and the others wait for it.

    RuntimeError: neither a folder nor a writer is given.
    """
    folder = _folder(checkpoint_id, storage_writer, "storage_writer")
    _own(planner)
    os.makedirs(folder, exist_ok=True)
    whole = {k: v.state_dict() if _stateful(v) else v for k, v in state_dict.items()}
    several = not no_dist and world.is_initialized() and world.get_world_size(process_group) > 1
    if not several or world.get_rank(process_group) == 0:
        save_file(whole, os.path.join(folder, _FILE))
    if several:
        barrier(process_group)


def async_save(state_dict, **kwargs):
    """As save, at once: a future that is done."""
    kept = {k: kwargs.get(k) for k in ("checkpoint_id", "storage_writer", "planner")}
    done = concurrent.futures.Future()
    done.set_result(save(state_dict, **kept))
    return done


def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Read the folder into `state_dict`: tensors are written to, values replaced, and objects given what they had.

    CheckpointException: a key is not there, or a tensor has another shape. RuntimeError: neither a folder nor a reader is given.
    """
    folder = _folder(checkpoint_id, storage_reader, "storage_reader")
    _own(planner)
    path = os.path.join(folder, _FILE)
    if not os.path.exists(path) and os.path.exists(os.path.join(folder, ".metadata")):
        raise errors.unsupported(
            "a folder of PyTorch's sharded files",
            "torch.distributed.checkpoint.format_utils.dcp_to_torch_save in PyTorch",
        )
    saved = load_file(path)
    objects = {k: v for k, v in state_dict.items() if _stateful(v)}
    wanted = {k: v.state_dict() if k in objects else v for k, v in state_dict.items()}
    partly = getattr(planner, "allow_partial_load", False)
    try:
        _agree(wanted, saved, "", partly)
    except (RuntimeError, ValueError) as error:
        raise CheckpointException("load", {0: error}) from error
    found = _filled(wanted, saved)
    for k, v in found.items():
        if k in objects:
            objects[k].load_state_dict(v)
        else:
            state_dict[k] = v


def _agree(wanted, saved, name, partly):
    """Raise unless `saved` has all that is wanted, or part of it: before anything is written to."""
    if isinstance(wanted, dict) and isinstance(saved, dict):
        for k, v in wanted.items():
            full = f"{name}{k}"
            if k in saved:
                _agree(v, saved[k], f"{full}.", partly)
            elif not partly:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {full}.")
    elif isinstance(wanted, Tensor) and isinstance(saved, Tensor) and wanted.shape != saved.shape:
        raise ValueError(f"Size mismatch between saved {saved.shape} and current: {wanted.shape} for {name[:-1]}")


def _filled(wanted, saved):
    if isinstance(wanted, dict) and isinstance(saved, dict):
        for k in [k for k in wanted if k in saved]:
            wanted[k] = _filled(wanted[k], saved[k])
        return wanted
    if isinstance(wanted, (list, tuple)) and isinstance(saved, (list, tuple)) and len(wanted) == len(saved):
        return type(wanted)(_filled(a, b) for a, b in zip(wanted, saved)) if type(wanted) in (list, tuple) else saved
    if isinstance(wanted, Tensor) and isinstance(saved, Tensor):
        with no_grad():
            wanted.detach().copy_(saved)
        return wanted
    return saved
