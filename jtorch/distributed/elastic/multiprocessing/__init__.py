"""torch.distributed.elastic.multiprocessing: what a process says of its end."""

from . import errors

__all__ = ["errors"]
