"""The binomial distribution."""

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import ProbsOrLogits, outer_value

__all__ = ["Binomial"]

logsigmoid = torch.lookup("nn.functional", "logsigmoid")


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes of probability `probs` (or log-odds `logits`) in `total_count` trials."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        (total_count,) = self._take(probs, logits, total_count)
        self.total_count = total_count.type_as(self._param)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Binomial, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return value * self.logits + ways + n * logsigmoid(-self.logits)

    def _homogeneous_count(self, method) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise errors.inhomogeneous(method)
        return count

    def entropy(self):
        self._homogeneous_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = self._homogeneous_count("enumerate_support")
        values = torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = outer_value(values, len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
