"""Helpers that PyTorch's distributions keep beside their public names."""

from ... import functions as torch
from ...distributions import multivariate_normal as normal
from ...limits import finfo

__all__ = []
_batch_mv, _batch_mahalanobis, _precision_to_scale_tril = normal.matvec, normal.squared_length, normal.factor_of_inverse


def _clipped_sigmoid(x):
    """The sigmoid, kept off 0 and 1."""
    return torch.clamp(torch.sigmoid(x), min=finfo(x.dtype).tiny, max=1.0 - finfo(x.dtype).eps)
