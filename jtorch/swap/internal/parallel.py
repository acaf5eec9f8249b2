"""torch.nn.parallel beyond DataParallel: what needs a process group says that there is none."""

from ...nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Raises ValueError: there is no process group; one process computes on all devices."""

    def __init__(self, module, *args, **kwargs):
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group.\n"
            "  jtorch trains in one process: use the module itself"
        )
