"""torch.distributed.fsdp: modules spread over processes, of which there are none. One process sees all devices."""

from .. import errors
from ..nn.modules.module import Module

__all__ = ["FSDPModule", "FullyShardedDataParallel", "MixedPrecision", "ShardingStrategy", "fully_shard"]


def _refuse(name):
    raise errors.unsupported(
        f"torch.distributed.fsdp.{name}", instead="the module itself, or torch.nn.DataParallel over all devices"
    )


class FSDPModule:
    """A module that fully_shard has spread: there is none. For isinstance."""


class FullyShardedDataParallel(Module):
    """Raises: there is no process group."""

    __unsupported__ = True

    def __init__(self, module, *args, **kwargs):
        _refuse("FullyShardedDataParallel")


class MixedPrecision:
    """The dtypes of a FullyShardedDataParallel: kept."""

    def __init__(self, **dtypes):
        self.__dict__.update(dtypes)


class ShardingStrategy:
    """How a FullyShardedDataParallel is spread."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD = range(1, 5)


def fully_shard(module, **kwargs):
    """Raises: there is no process group."""
    _refuse("fully_shard")


fully_shard.__unsupported__ = True
