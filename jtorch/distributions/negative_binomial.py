"""The negative binomial distribution."""

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.gamma import Gamma
from jtorch.distributions.utils import ProbsOrLogits, lazy_property

logsigmoid = torch.lookup("nn.functional", "logsigmoid")

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes of probability `probs` (or log-odds `logits`) before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        (total_count,) = self._take(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(NegativeBinomial, batch_shape, _instance)

    @property
    def mean(self):
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=Size()):
        with no_grad():
            return torch.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        terms = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = torch.lgamma(n + value) - torch.lgamma(1.0 + value) - torch.lgamma(n)
        return terms + ways.masked_fill(n + value == 0.0, 0.0)
