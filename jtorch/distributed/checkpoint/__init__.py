"""torch.distributed.checkpoint of one process: a folder that holds what torch.save writes, and loading into tensors that are there."""

from ...unavailable import refusing
from .folder import CheckpointException, FileSystemReader, FileSystemWriter, async_save, load, save
from .plans import DefaultLoadPlanner, DefaultSavePlanner, LoadPlanner, SavePlanner, StorageReader, StorageWriter

__all__ = [
    "CheckpointException", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "LoadPlanner",
    "SavePlanner", "StorageReader", "StorageWriter", "async_save", "load", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip

load_state_dict, save_state_dict = (
    refusing(
        f"distributed.checkpoint.{name}", "plans of sharded checkpoints", f"torch.distributed.checkpoint.{instead}"
    )
    for name, instead in (("load_state_dict", "load"), ("save_state_dict", "save"))
)
