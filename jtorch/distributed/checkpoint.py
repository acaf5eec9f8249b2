"""torch.distributed.checkpoint: folders of sharded files, which jtorch neither writes nor reads: one process saves with torch.save."""

from ..unavailable import refusing

__all__ = ["FileSystemReader", "FileSystemWriter", "async_save", "load", "load_state_dict", "save", "save_state_dict"]


def _refusing(name):
    return refusing(
        f"distributed.checkpoint.{name}", "sharded checkpoints", "torch.save and torch.load of the state_dict"
    )


save, load, async_save, save_state_dict, load_state_dict = map(
    _refusing, ("save", "load", "async_save", "save_state_dict", "load_state_dict")
)
FileSystemReader, FileSystemWriter = map(_refusing, ("FileSystemReader", "FileSystemWriter"))
