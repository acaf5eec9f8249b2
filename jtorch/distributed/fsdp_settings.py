"""What programs say of modules spread over processes before they spread them: kept, as the program said it."""

from dataclasses import dataclass

__all__ = [
    "CPUOffloadPolicy",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "OffloadPolicy",
    "OptimStateDictConfig",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "StateDictConfig",
    "StateDictSettings",
]


@dataclass
class OffloadPolicy:
    """Where fully_shard keeps parameters: where they are used."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """On the host."""

    pin_memory: bool = True


@dataclass
class StateDictConfig:
    """Where the values of a state_dict are."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Of whole parameters; in one process, or in all."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of each process's part, flat."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of each process's part."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Where the values of an optimizer's state_dict are."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Of whole parameters; in one process, or in all."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of each process's part, flat."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of each process's part."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """A kind of state_dict and how both are made."""

    state_dict_type: object
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
