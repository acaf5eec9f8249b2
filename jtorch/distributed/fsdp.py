"""torch.distributed.fsdp: its settings. Spreading a module over processes raises: one process sees all devices."""

from dataclasses import dataclass
from enum import Enum

from .. import errors
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from .fsdp_settings import (
    CPUOffloadPolicy,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    OffloadPolicy,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictConfig,
    StateDictSettings,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]


def _refuse(name):
    raise errors.unsupported(
        f"torch.distributed.fsdp.{name}", instead="the module itself, or torch.nn.DataParallel over all devices"
    )


class FSDPModule:
    """A module that fully_shard has spread: there is none. For isinstance."""


class UnshardHandle:
    """A gathering of parameters under way: there is none."""

    def wait(self):
        """Nothing to wait for."""


class FullyShardedDataParallel(Module):
    """Raises: modules are not spread over processes."""

    __unsupported__ = True

    def __init__(self, module, *args, **kwargs):
        _refuse("FullyShardedDataParallel")


@dataclass
class MixedPrecision:
    """The dtypes of a FullyShardedDataParallel: kept."""

    param_dtype: object = None
    reduce_dtype: object = None
    buffer_dtype: object = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: tuple = (_BatchNorm,)


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of fully_shard: kept."""

    param_dtype: object = None
    reduce_dtype: object = None
    output_dtype: object = None
    cast_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether a FullyShardedDataParallel keeps its parameters on the host: kept."""

    offload_params: bool = False


class ShardingStrategy(Enum):
    """How a FullyShardedDataParallel is spread."""

    FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2 = range(1, 6)


class BackwardPrefetch(Enum):
    """When a FullyShardedDataParallel fetches the next parameters in the backward pass."""

    BACKWARD_PRE, BACKWARD_POST = 1, 2


class StateDictType(Enum):
    """Which state_dict a FullyShardedDataParallel gives."""

    FULL_STATE_DICT, LOCAL_STATE_DICT, SHARDED_STATE_DICT = 1, 2, 3


class OptimStateKeyType(Enum):
    """What the keys of an optimizer's state are."""

    PARAM_NAME, PARAM_ID = 1, 2


def fully_shard(module, **kwargs):
    """Raises: modules are not spread over processes."""
    _refuse("fully_shard")


fully_shard.__unsupported__ = True


def register_fsdp_forward_method(module, method_name: str) -> None:
    """Accepted: a module that is not spread needs nothing before its methods."""
