"""torch.distributed.rpc as PyTorch has it where it was built without: is_available() is False."""

__all__ = ["is_available"]


def is_available() -> bool:
    """False: processes talk by collectives and messages alone."""
    return False
