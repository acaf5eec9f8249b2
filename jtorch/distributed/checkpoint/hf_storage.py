"""torch.distributed.checkpoint.hf_storage: folders of safetensors files that several processes write, each its part."""

from ... import errors

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageReader:
    """Raises NotImplementedError when made. For isinstance."""

    def __init__(self, *args, **kwargs):
        raise errors.unsupported(
            "a checkpoint of safetensors files in parts", "safetensors.torch, whose files each process reads whole"
        )


class HuggingFaceStorageWriter(HuggingFaceStorageReader):
    """Raises NotImplementedError when made. For isinstance."""
