"""torch.distributed.tensor.parallel: plans can be written, and are refused where a module would be spread over processes."""

from .. import errors

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]


class ParallelStyle:
    """How one module of a plan is spread; the layouts that it was written with are its attributes."""

    src_data_rank = 0

    def __init__(self, **layouts):
        self.__dict__.update(layouts)


class ColwiseParallel(ParallelStyle):
    """The rows of a layer's weight spread."""


class RowwiseParallel(ParallelStyle):
    """The columns of a layer's weight spread."""


class SequenceParallel(ParallelStyle):
    """The dimension of the sequence spread."""

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        super().__init__(sequence_dim=sequence_dim, use_local_output=use_local_output)


class PrepareModuleInput(ParallelStyle):
    """How the arguments of a module are spread."""


class PrepareModuleOutput(ParallelStyle):
    """How the results of a module are spread."""


class PrepareModuleInputOutput(ParallelStyle):
    """How both are."""


def parallelize_module(module, *args, **kwargs):
    """Raises: modules are not spread over processes."""
    raise errors.unsupported("modules spread over processes", instead="jax.sharding in one process")


loss_parallel = parallelize_module
