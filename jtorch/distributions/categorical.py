"""The categorical distribution."""

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import either, filled, outer_value, probs_and_logits, through

__all__ = ["Categorical"]


class Categorical(Distribution):
    """An index 0 ... K - 1 by the weights `probs` (normalised here) or the log-weights `logits`, of shape (..., K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    probs, logits = probs_and_logits(is_binary=False)
    param_shape = through("_param.shape")

    def __init__(self, probs=None, logits=None, validate_args=None):
        either(probs, logits)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        if given.dim() < 1:
            raise errors.needs_dimension(name)
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.logits

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Categorical, _instance)
        new._num_events = self._num_events
        return self._expanded(Categorical, batch_shape, new)

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return filled(self.probs, float("nan"), self._extended_shape())

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    variance = mean

    def sample(self, sample_shape=Size()):
        sample_shape = Size(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = torch.multinomial(rows, sample_shape.numel(), True)  # (batch, samples)
            return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, log_probs = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_probs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)  # 0 * -inf is 0 here
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = torch.arange(self._num_events, dtype=torch.long, device=self._param.device)
        values = outer_value(values, len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
