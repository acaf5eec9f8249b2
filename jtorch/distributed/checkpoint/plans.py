"""torch.distributed.checkpoint's planners and storages: how sharded files are laid out. There are none, so planners only carry options."""

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "LoadPlanner",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
]


class SavePlanner:
    """What decides which process writes what. For isinstance."""


class LoadPlanner:
    """What decides which process reads what. For isinstance."""


class StorageWriter:
    """What shards are written to. For isinstance."""


class StorageReader:
    """What shards are read from. For isinstance."""


class DefaultSavePlanner(SavePlanner):
    """PyTorch's own: one process writes everything, so its options change nothing."""

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, dedup_replicated_tensors=None, **unused):
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors


class DefaultLoadPlanner(LoadPlanner):
    """PyTorch's own.

    Args:
        allow_partial_load: leave what is not in the folder as it is, instead of raising
    """

    def __init__(self, flatten_state_dict=True, flatten_sharded_tensors=True, allow_partial_load=False):
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
