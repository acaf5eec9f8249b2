"""The multinomial distribution."""

import math

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.binomial import Binomial
from jtorch.distributions.categorical import Categorical
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import broadcast_all, through

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of K outcomes comes in `total_count` (an int) draws by `probs` or `logits`, of shape (..., K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    probs = through("_categorical.probs")
    logits = through("_categorical.logits")
    param_shape = through("_categorical.param_shape")
    _new = through("_categorical._new")

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand((*batch_shape, *self._event_shape))
        return self._finish_expanded(new, batch_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
            counts = torch.zeros(self._extended_shape(sample_shape), dtype=torch.long, device=drawn.device)
            return counts.scatter_add(-1, drawn, torch.ones_like(drawn)).type_as(self.probs)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0)
        return ways + (logits * value).sum(-1)

    def entropy(self):
        n = self.total_count
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weighted = torch.exp(self._binomial.log_prob(counts)) * torch.lgamma(counts + 1)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + weighted.sum([0, -1])
