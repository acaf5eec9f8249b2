"""The Gumbel distribution."""

import math
import numbers

from jtorch import functions as torch
from jtorch.distributions import constraints
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import AffineTransform, ExpTransform
from jtorch.distributions.uniform import Uniform
from jtorch.distributions.utils import broadcast_all, euler_constant, through

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The largest of many: loc - scale * log(-log(u)) of a uniform u."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    mode = through("loc")

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = torch.finfo(self.loc.dtype)
        ends = info.tiny, 1 - info.eps
        if not (isinstance(loc, numbers.Number) and isinstance(scale, numbers.Number)):
            ends = [torch.full_like(self.loc, end) for end in ends]
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-torch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(Uniform(*ends, validate_args=validate_args), transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self):
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
