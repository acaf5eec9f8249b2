"""Mixtures of distributions of one class."""

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.categorical import Categorical
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import through

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A draw of one component, which a Categorical picks.

    Args:
        mixture_distribution: Categorical with K outcomes
        component_distribution: a distribution whose last batch dimension is K
    """

    arg_constraints: dict = {}
    has_rsample = False

    mixture_distribution = through("_mixture_distribution")
    component_distribution = through("_component_distribution")

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        weights, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(weights), reversed(batch)):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        km, kc = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if km is not None and kc is not None and km != kc:
            raise ValueError(
                f"`mixture_distribution component` ({km}) does not equal `component_distribution.batch_shape[-1]` ({kc})"
            )
        self._num_component = km
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        return self._finish_expanded(new, batch_shape, new._component_distribution.event_shape)

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _weights(self):
        """Probabilities with a dimension for each one of an event."""
        probs = self.mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * self._event_ndims))

    def _average(self, x):
        return torch.sum(self._weights() * x, dim=-1 - self._event_ndims)

    @property
    def mean(self):
        return self._average(self.component_distribution.mean)

    @property
    def variance(self):
        """The law of total variance."""
        of_means = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._average(self.component_distribution.variance) + self._average(of_means)

    def _pad(self, x):
        """`x` with a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, x):
        x = self._pad(x)
        return torch.sum(self.component_distribution.cdf(x) * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        each = self.component_distribution.log_prob(self._pad(x))
        return torch.logsumexp(each + torch.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape=Size()):
        with no_grad():
            picked = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            at = len(sample_shape) + len(self.batch_shape)
            picked = picked.reshape((*picked.shape, *[1] * (self._event_ndims + 1)))
            shape = list(drawn.shape)
            shape[at] = 1
            return torch.gather(drawn, at, picked.expand(shape)).squeeze(at)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
