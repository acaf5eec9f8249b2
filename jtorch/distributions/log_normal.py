"""The log-normal distribution."""

from jtorch.distributions import constraints
from jtorch.distributions.normal import Normal
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import ExpTransform
from jtorch.distributions.utils import through

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp of a normal with mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    loc = through("base_dist.loc")
    scale = through("base_dist.scale")

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogNormal, _instance))

    @property
    def mean(self):
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self):
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc
