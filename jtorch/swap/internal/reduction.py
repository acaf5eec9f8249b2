"""torch.nn._reduction: the numbers and names of what a loss does with its elements."""

import warnings

from ...nn.reduction import legacy_reduction as legacy_get_string

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]
_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction in PyTorch's C functions."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_enum(size_average, reduce, emit_warning=True) -> int:
    """The number of the reduction that the two deprecated arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
