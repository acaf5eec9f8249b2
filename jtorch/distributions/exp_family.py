"""Exponential families: density exp(<natural parameters, statistics> - log normaliser + carrier)."""

from jtorch.autograd.entry import grad
from jtorch.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution whose log normaliser is known, so that its entropy is a Bregman divergence of it.

    A subclass gives `_natural_params`, `_log_normalizer(*natural_params)` and `_mean_carrier_measure`.
    Source: Nielsen and Nock, "Entropies and cross-entropies of exponential families", ICIP 2010.
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def _normalizer_and_slopes(self):
        """Natural parameters, the log normaliser there, and its gradients: the means of the statistics."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        return params, normalizer, grad(normalizer.sum(), params, create_graph=True)

    def entropy(self):
        carrier = self._mean_carrier_measure
        params, normalizer, slopes = self._normalizer_and_slopes()
        result = normalizer - carrier
        for p, slope in zip(params, slopes):
            result = result - (p * slope).reshape((*self._batch_shape, -1)).sum(-1)
        return result
