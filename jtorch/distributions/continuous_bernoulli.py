"""The continuous Bernoulli distribution."""

import math

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.distribution import first_broken
from jtorch.distributions.exp_family import ExponentialFamily
from jtorch.distributions.utils import (
    ProbsOrLogits,
    bce_with_logits,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    rand,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers x in [0, 1] with density proportional to probs ** x * (1 - probs) ** (1 - x).

    Args:
        probs, logits: one of them; not the probability of anything
        lims: around 1/2, where the normaliser is 0/0, the span in which Taylor series are used

    Source: Loaiza-Ganem and Cunningham, "The continuous Bernoulli", NeurIPS 2019.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._take(probs, logits)
        if probs is not None:
            if validate_args is not None and first_broken([(constraints.unit_interval, self.probs)]) is not None:
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        return self._expanded(ContinuousBernoulli, batch_shape, new)

    @lazy_property
    def probs(self):
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        return torch.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _stable(self, formula, series):
        """`formula` of probs, and around 1/2 `series` of (probs - 1/2)."""
        return torch.where(self._outside_unstable_region(), formula(self._cut_probs()), series(self.probs - 0.5))

    def _cont_bern_log_norm(self):
        """log of the normaliser: 2 atanh(1 - 2 p) / (1 - 2 p)."""
        return self._stable(
            lambda p: (torch.log1p(-p) - p.log()).abs().log() - (1 - 2 * p).abs().log(),
            lambda d: math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * d.pow(2)) * d.pow(2),
        )

    @property
    def mean(self):
        return self._stable(
            lambda p: p / (2.0 * p - 1.0) + 1.0 / (torch.log1p(-p) - p.log()),
            lambda d: 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * d.pow(2)) * d,
        )

    @property
    def variance(self):
        return self._stable(
            lambda p: p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / (torch.log1p(-p) - p.log()).pow(2),
            lambda d: 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * d.pow(2)) * d.pow(2),
        )

    def rsample(self, sample_shape=Size()):
        return self.icdf(rand(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -bce_with_logits(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        curved = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = torch.where(self._outside_unstable_region(), curved, value)
        return torch.where(value <= 0, 0.0, torch.where(value >= 1, 1.0, inside)).to(inside.dtype)

    def icdf(self, value):
        p = self._cut_probs()
        log_other = torch.log1p(-p)
        curved = (torch.log1p(-p + value * (2.0 * p - 1.0)) - log_other) / (p.log() - log_other)
        return torch.where(self._outside_unstable_region(), curved, value)

    def entropy(self):
        log_other = torch.log1p(-self.probs)
        return self.mean * (log_other - torch.log(self.probs)) - self._cont_bern_log_norm() - log_other

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        near = (x > self._lims[0] - 0.5) & (x <= self._lims[1] - 0.5)
        cut = torch.where(near, self._lims[0] - 0.5, x)
        exact = torch.log(torch.abs(torch.expm1(cut))) - torch.log(torch.abs(cut))
        return torch.where(near, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0, exact)
