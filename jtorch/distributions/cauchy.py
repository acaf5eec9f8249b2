"""The Cauchy distribution."""

import math

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import broadcast_all, filled, through

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Cauchy around `loc` with half width at half maximum `scale`; it has no mean."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    mode = through("loc")

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Cauchy, batch_shape, _instance)

    @property
    def mean(self):
        return filled(self.loc, float("nan"), self._extended_shape())

    @property
    def variance(self):
        return filled(self.loc, float("inf"), self._extended_shape())

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        eps = torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
