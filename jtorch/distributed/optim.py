"""torch.distributed.optim: optimizers whose state is spread over processes, of which there is one."""

from .. import errors

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer:
    """Raises when made: state is not spread over processes. For isinstance."""

    def __init__(self, *args, **kwargs):
        raise errors.unsupported(
            "an optimizer spread over processes", instead="the optimizer itself: one process has all devices"
        )
