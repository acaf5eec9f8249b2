"""Dropout layers: they do something in training mode only."""

from jtorch.nn import functional as F
from jtorch.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    _function = None

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes elements with probability `p` and scales the rest by 1 / (1 - p)."""

    _function = "dropout"


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of (N, C, L) with probability `p`."""

    _function = "dropout1d"


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of (N, C, H, W) with probability `p`."""

    _function = "dropout2d"


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of (N, C, D, H, W) with probability `p`."""

    _function = "dropout3d"


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance through SELU (Klambauer et al., 2017)."""

    _function = None

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)
