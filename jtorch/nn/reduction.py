"""The `reduction` of a loss, and the two arguments that it replaced."""

import warnings

__all__ = ["legacy_reduction"]


def legacy_reduction(size_average, reduce, emit_warning=True) -> str:
    """The reduction that the deprecated `size_average` and `reduce` mean."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    if not reduce:
        name = "none"
    else:
        name = "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.",
            stacklevel=4,
        )
    return name
