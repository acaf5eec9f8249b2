"""Student's t distribution."""

import math

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.chi2 import Chi2
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import broadcast_all, standard_normal, through

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, moved by `loc` and stretched by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    mode = through("loc")

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(StudentT, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return self._expanded(StudentT, batch_shape, new)

    @property
    def mean(self):
        return self.loc.masked_fill(self.df <= 1, float("nan"))

    @property
    def variance(self):
        df = self.df
        finite = self.scale.pow(2) * df / (df - 2)
        return torch.where(df > 2, finite, float("inf")).masked_fill(df <= 1, float("nan"))

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        x = standard_normal(shape, self.df)
        return self.loc + self.scale * (x * torch.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def _log_beta(self):
        half = 0.5 * self.df
        return torch.lgamma(half) + 0.5 * math.log(math.pi) - torch.lgamma(half + 0.5)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = self.scale.log() + 0.5 * self.df.log() + self._log_beta()
        return -0.5 * (self.df + 1.0) * torch.log1p(y**2.0 / self.df) - normalizer

    def entropy(self):
        half = 0.5 * (self.df + 1)
        slope = torch.digamma(half) - torch.digamma(0.5 * self.df)
        return self.scale.log() + half * slope + 0.5 * self.df.log() + self._log_beta()
