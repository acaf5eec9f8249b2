"""The numbers of a vmap's slices, for what checks values: an index that is out of bounds, a matrix without factors."""

from .lanes import Lane, Slices, is_traced
from .storage import as_numpy, at_hand


def of_slices(value, wait=False):
    """The numbers of all slices; None of what jax traces, and while they are not known, unless they are to be waited for."""
    if type(value) is not Lane:
        return None
    while type(value) is Lane:
        value = value.value
    known = not is_traced(value) and (wait or at_hand(value))
    return as_numpy(value).view(Slices) if known else None


__all__ = ["of_slices"]
