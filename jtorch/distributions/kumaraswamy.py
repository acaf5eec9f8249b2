"""The Kumaraswamy distribution."""

from jtorch import functions as torch
from jtorch.distributions import constraints
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import AffineTransform, PowerTransform
from jtorch.distributions.uniform import Uniform
from jtorch.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers in [0, 1] with cdf 1 - (1 - x ** concentration1) ** concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero = torch.zeros_like(self.concentration0)
        base = Uniform(zero, zero + 1, validate_args=validate_args)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        for name in self.arg_constraints:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n):
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * torch.exp(torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b))

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * ((a - 1) / (a * b - 1)).log()
        return log_mode.masked_fill((a < 1) | (b < 1), float("nan")).exp()

    @property
    def variance(self):
        return self._moment(2) - self.mean.pow(2)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - torch.log(a) - torch.log(b)
