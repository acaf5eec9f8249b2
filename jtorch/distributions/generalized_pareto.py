"""The generalized Pareto distribution."""

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import broadcast_all, rand, through

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Excesses over a threshold `loc`: survival (1 + concentration z) ** (-1 / concentration), z = (x - loc) / scale.

    At concentration 0 it is the exponential distribution; below 0 it ends at loc - scale / concentration.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    mode = through("loc")

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(GeneralizedPareto, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, torch.where(self.concentration < 0, end, float("inf")))

    def _split(self):
        """Where the concentration is as good as 0, and the concentration with 1 in those places."""
        flat = torch.isclose(self.concentration, torch.zeros_like(self.concentration))
        return flat, torch.where(flat, torch.ones_like(self.concentration), self.concentration)

    def _z(self, x):
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape=Size()):
        return self.icdf(rand(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z, (flat, c) = self._z(value), self._split()
        curved = -(1 / c + 1) * torch.log1p(c * z)
        return torch.where(flat, -z, curved) - torch.log(self.scale)

    def log_survival_function(self, value):
        """log of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z, (flat, c) = self._z(value), self._split()
        return torch.where(flat, -z, -torch.log1p(c * z) / c)

    def log_cdf(self, value):
        """log of the probability of at most `value`."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return torch.exp(self.log_cdf(value))

    def icdf(self, value):
        log_left = torch.log1p(-value)
        flat, c = self._split()
        return torch.where(
            flat, self.loc - self.scale * log_left, self.loc + self.scale * torch.expm1(-c * log_left) / c
        )

    @property
    def mean(self):
        c = self.concentration
        return torch.where(c < 1, self.loc + self.scale / (1 - c), float("nan"))

    @property
    def variance(self):
        c = self.concentration
        return torch.where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), float("nan"))

    def entropy(self):
        return torch.log(self.scale) + self.concentration + 1
