"""The Pareto distribution."""

from jtorch.distributions import constraints
from jtorch.distributions.exponential import Exponential
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import AffineTransform, ExpTransform
from jtorch.distributions.utils import broadcast_all, through

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Numbers from `scale` on with density proportional to x ** -(alpha + 1)."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    mode = through("scale")

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)  # infinite from there down
        return a * self.scale / (a - 1)

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self):
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
