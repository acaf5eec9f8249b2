"""torch.nn.parallel: one module on several devices."""

from jtorch.nn.parallel.data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
