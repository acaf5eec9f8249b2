"""torch.storage: the classes of storages under PyTorch's name."""

import io

from .serialization import load
from .storage_api import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b):
    """The storage in the bytes that PyTorch's `pickle.dump` of a tensor writes."""
    return load(io.BytesIO(b), weights_only=False)
