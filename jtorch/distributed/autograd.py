"""torch.distributed.autograd as PyTorch has it where it was built without: is_available() is False."""

from .. import errors

__all__ = ["context", "is_available"]


def is_available() -> bool:
    """False: a backward pass goes along the tape of one process."""
    return False


class context:
    """A distributed backward pass; entering it raises."""

    def __enter__(self):
        raise errors.unsupported("backward passes over several machines", "loss.backward()")

    def __exit__(self, *args):
        return None
