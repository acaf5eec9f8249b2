"""The categorical distribution over one-hot vectors, and its straight-through estimator."""

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.categorical import Categorical
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import one_hot, through

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """A one-hot vector of size K by the weights `probs` or the log-weights `logits`, of shape (..., K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    probs = mean = through("_categorical.probs")
    logits = through("_categorical.logits")
    param_shape = through("_categorical.param_shape")
    _param = through("_categorical._param")
    _new = through("_categorical._new")

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(OneHotCategorical, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return self._finish_expanded(new, batch_shape)

    @property
    def mode(self):
        return one_hot(self._categorical.mode, self._event_shape[0]).to(self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):
        indices = self._categorical.sample(Size(sample_shape))
        return one_hot(indices, self._event_shape[0]).to(self.probs.detach())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *[1] * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same; `rsample` passes gradients to `probs` as if a sample were the probabilities.

    Source: Bengio, Leonard and Courville, "Estimating or propagating gradients through stochastic neurons", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape=Size()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
