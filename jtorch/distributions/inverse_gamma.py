"""The inverse gamma distribution."""

from jtorch import functions as torch
from jtorch.distributions import constraints
from jtorch.distributions.gamma import Gamma
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import PowerTransform
from jtorch.distributions.utils import filled, through

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The reciprocal of a gamma with shape `concentration` and inverse scale `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    concentration = through("base_dist.concentration")
    rate = through("base_dist.rate")

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(filled(base.rate, -1, ()))
        super().__init__(base, inverse, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(InverseGamma, _instance))

    @property
    def mean(self):
        a = self.concentration
        return torch.where(a > 1, self.rate / (a - 1), float("inf"))

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        return torch.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), float("inf"))

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
