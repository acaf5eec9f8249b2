"""The relaxed one-hot categorical (concrete, Gumbel-softmax) distribution."""

from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.categorical import Categorical
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import ExpTransform
from jtorch.distributions.utils import broadcast_all, clamp_probs, filled, rand, through

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot vector: log_softmax((logits + Gumbel noise) / temperature).

    Source: Maddison, Mnih and Teh, "The concrete distribution", ICLR 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # the exponentials sum to 1, which is not checked
    has_rsample = True

    probs = through("_categorical.probs")
    logits = through("_categorical.logits")
    param_shape = through("_categorical.param_shape")
    _new = through("_categorical._new")

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return self._finish_expanded(new, batch_shape)

    def rsample(self, sample_shape=Size()):
        u = clamp_probs(rand(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        k = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        normalizer = filled(self.temperature, float(k)).lgamma() + self.temperature.log() * (k - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + normalizer


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex that near its corners as `temperature` goes to 0: a one-hot draw with gradients."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    temperature = through("base_dist.temperature")
    probs = through("base_dist.probs")
    logits = through("base_dist.logits")

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, _instance=new)
