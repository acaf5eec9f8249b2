"""The Laplace distribution."""

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import broadcast_all, through

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Two exponentials of mean `scale`, back to back at `loc`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    mean = mode = through("loc")

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Laplace, batch_shape, _instance)

    @property
    def variance(self):
        return 2 * self.scale.pow(2)

    @property
    def stddev(self):
        return 2**0.5 * self.scale

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        eps = torch.finfo(self.loc.dtype).eps
        u = torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        far = value - self.loc
        return 0.5 - 0.5 * far.sign() * torch.expm1(-far.abs() / self.scale)

    def icdf(self, value):
        far = value - 0.5
        return self.loc - self.scale * far.sign() * torch.log1p(-2 * far.abs())

    def entropy(self):
        return 1 + torch.log(2 * self.scale)
