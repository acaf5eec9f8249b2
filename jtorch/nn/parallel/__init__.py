"""torch.nn.parallel: one module on several devices."""

from jtorch.nn.parallel.data_parallel import DataParallel, data_parallel
from jtorch.nn.parallel.distributed import DistributedDataParallel
from jtorch.nn.parallel.replicas import gather, parallel_apply, replicate, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]
