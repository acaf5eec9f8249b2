"""The half-Cauchy distribution."""

import math

from jtorch import functions as torch
from jtorch.distributions import constraints
from jtorch.distributions.cauchy import Cauchy
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import AbsTransform
from jtorch.distributions.utils import filled, through

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The absolute value of a Cauchy around 0 of width `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = through("base_dist.scale")
    variance = through("base_dist.variance")

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self):
        return filled(self.scale, math.inf, self._extended_shape())

    @property
    def mode(self):
        return torch.zeros_like(self.scale)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        inside = self.base_dist.log_prob(value) + math.log(2)
        return torch.where(value >= 0, inside, -math.inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
