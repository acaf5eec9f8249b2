"""The Weibull distribution."""

from jtorch import functions as torch
from jtorch.distributions import constraints
from jtorch.distributions.exponential import Exponential
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import AffineTransform, PowerTransform
from jtorch.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """scale * e ** (1 / concentration) of a standard exponential e."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._transforms(), validate_args=validate_args)

    def _transforms(self):
        return [PowerTransform(self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        for name in ("scale", "concentration", "concentration_reciprocal"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        new.base_dist = self.base_dist.expand(batch_shape)
        new.transforms = new._transforms()
        return self._finish_expanded(new, batch_shape)

    def _moment(self, n):
        return torch.exp(torch.lgamma(1 + n * self.concentration_reciprocal))

    @property
    def mean(self):
        return self.scale * self._moment(1)

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal

    @property
    def variance(self):
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def entropy(self):
        spread = torch.log(self.scale * self.concentration_reciprocal)
        return euler_constant * (1 - self.concentration_reciprocal) + spread + 1
