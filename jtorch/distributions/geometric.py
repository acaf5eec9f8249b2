"""The geometric distribution."""

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.distribution import Distribution, first_broken
from jtorch.distributions.utils import ProbsOrLogits, bce_with_logits, broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success of probability `probs` (or log-odds `logits`), from 0 on."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            if first_broken([(constraints.positive, self.probs)]) is not None:
                raise errors.not_positive("probs", self.probs, self, self.probs[~(self.probs > 0)])

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Geometric, batch_shape, _instance)

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return torch.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = torch.empty(shape, dtype=self.probs.dtype, device=self.probs.device).uniform_()
            u = u.clamp(min=torch.finfo(self.probs.dtype).tiny)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)  # no failure: 0 * log(0) is 0
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self):
        return bce_with_logits(self.logits, self.probs) / self.probs
