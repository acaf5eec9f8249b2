"""torch.__future__: how `Module.to` and its like put new tensors in the place of parameters."""

from .nn.modules.conversion import CONVERSION

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
]  # fmt: skip


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether converting a module makes new parameters, instead of giving new data to those that there are."""
    CONVERSION.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What set_overwrite_module_params_on_conversion was told; False at first."""
    return CONVERSION.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether converting a module, and loading a state dict, swaps parameters with new ones by `torch.utils.swap_tensors`.

    The objects stay, everything that makes them changes: for parameters of subclasses. Wins over overwriting.
    """
    CONVERSION.swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What set_swap_module_params_on_conversion was told; False at first."""
    return CONVERSION.swap
