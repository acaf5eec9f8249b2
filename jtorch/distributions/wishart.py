"""The Wishart distribution."""

import math
import numbers
import warnings

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.chi2 import Chi2
from jtorch.distributions.distribution import first_broken
from jtorch.distributions.exp_family import ExponentialFamily
from jtorch.distributions.multivariate_normal import FACTORS, GivenByMatrix, half_log_det
from jtorch.distributions.utils import standard_normal

__all__ = ["Wishart"]


def _mvdigamma(x, p):
    """The derivative of the multivariate log-gamma function of order p."""
    steps = torch.arange(p, dtype=x.dtype, device=x.device)
    return torch.digamma(x.unsqueeze(-1) - steps / 2).sum(-1)


class Wishart(GivenByMatrix, ExponentialFamily):
    """Sums of `df` outer products of normal vectors: positive-definite matrices (..., p, p) with mean df * covariance.

    Args:
        df: degrees of freedom, more than p - 1
        covariance_matrix, precision_matrix, scale_tril: exactly one of the covariance, its inverse, its lower factor

    Samples are made by Bartlett's decomposition; singular ones are drawn again, which asks for a value.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = dict(zip(FACTORS, (covariance_matrix, precision_matrix, scale_tril)))
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError(errors.ONE_MATRIX)
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise errors.matrix_needed("scale_tril")
        event = matrix.shape[-2:]
        if isinstance(df, numbers.Number):
            batch = Size(matrix.shape[:-2])
            self.df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch)
        if first_broken([(constraints.greater_than(event[-1] - 1), self.df)]) is not None:
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        super().__init__(batch, event, validate_args=validate_args)
        if first_broken([(constraints.greater_than_eq(event[-1]), self.df)]) is not None:
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim."
            )
        self._unbroadcasted_scale_tril = FACTORS[name](matrix)
        steps = torch.arange(event[-1], dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - steps.expand((*batch, -1)))

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        new.df = self.df.expand(batch_shape)
        new._dist_chi2 = self._dist_chi2.expand(batch_shape + self.event_shape[-1:])
        self._expand_matrices(new, batch_shape)
        return self._finish_expanded(new, batch_shape)

    @property
    def mean(self):
        return self.df.view((*self.df.shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, float("nan"))
        return factor.view((*factor.shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view((*self.df.shape, 1, 1)) * (v.pow(2) + outer)

    def _bartlett_sampling(self, sample_shape=Size()):
        p = self.event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed()
        rows, columns = torch.tril_indices(p, p, offset=-1)
        shape = (*sample_shape, *self._batch_shape, p * (p - 1) // 2)
        below = torch.zeros_like(noise)
        below[..., rows, columns] = standard_normal(shape, noise)
        factor = self._unbroadcasted_scale_tril @ (noise + below)
        return factor @ factor.mT

    def rsample(self, sample_shape=Size(), max_try_correction=None):
        """Samples; PyTorch replaces those that are in the support at first sight by others, so that is done here, and warned of, too."""
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        again = self._any_of_batch(self.support.check(sample))
        if not again.any():
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            others = self._bartlett_sampling(Size((int(again.sum()),)))
            sample[again] = others
            again = again.masked_scatter(again, self._any_of_batch(~self.support.check(others)))
            if not again.any():
                break
        return sample

    def _any_of_batch(self, found):
        return found.flatten(-len(self._batch_shape)).any(-1) if self._batch_shape else found

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p, factor = self.df, self.event_shape[-1], self._unbroadcasted_scale_tril
        trace = torch.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1)
        log_det = torch.lookup("linalg", "slogdet")(value).logabsdet
        return (
            -nu * (p * math.log(2.0) / 2 + half_log_det(factor))
            - torch.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * log_det
            - trace.sum(-1) / 2
        )

    def entropy(self):
        nu, p, factor = self.df, self.event_shape[-1], self._unbroadcasted_scale_tril
        return (
            (p + 1) * (p * math.log(2.0) / 2 + half_log_det(factor))
            + torch.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p)
            + nu * p / 2
        )

    @property
    def _natural_params(self):
        nu, p = self.df, self.event_shape[-1]
        return ((nu - p - 1) / 2, -self.precision_matrix / 2)

    def _log_normalizer(self, x, y):
        p = self.event_shape[-1]
        half = x + (p + 1) / 2
        log_det = torch.lookup("linalg", "slogdet")(-2 * y).logabsdet
        return half * (p * math.log(2.0) - log_det) + torch.mvlgamma(half, p=p)
