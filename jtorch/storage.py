"""torch.storage: the classes of storages under PyTorch's name."""

from .storage_api import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
