"""The multivariate normal distribution whose covariance is of low rank, but for its diagonal."""

import math

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.multivariate_normal import (
    cholesky,
    half_log_det,
    matvec,
    solve_triangular,
    squared_length,
)
from jtorch.distributions.utils import lazy_property, standard_normal, through

__all__ = ["LowRankMultivariateNormal"]


def capacitance_factor(factor, diagonal):
    """The Cholesky factor of I + W^T D^-1 W: what Woodbury's identity needs to solve with W W^T + D."""
    capacitance = torch.matmul(factor.mT / diagonal.unsqueeze(-2), factor)
    eye = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return cholesky(capacitance + eye)


def log_det(diagonal, capacitance):
    """log det (W W^T + D), by the matrix determinant lemma."""
    return 2 * half_log_det(capacitance) + diagonal.log().sum(-1)


def low_rank_squared_length(factor, diagonal, x, capacitance):
    """x^T (W W^T + D)^-1 x of vectors x."""
    inner = matvec(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - squared_length(capacitance, inner)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with mean `loc` (..., n) and covariance W W^T + D: W `cov_factor` (..., n, r), D `cov_diag` (..., n).

    Sampling and densities cost O(n r^2) and never make a matrix of n x n.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    mean = mode = through("loc")

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise errors.vector_location()
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise errors.matrix_needed("cov_factor")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            batch = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand((*batch, -1))
        self.cov_factor, self.cov_diag = cov_factor.expand((*batch, -1, -1)), cov_diag.expand((*batch, -1))
        super().__init__(batch, event, validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = capacitance_factor(cov_factor, cov_diag)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return self._expanded(LowRankMultivariateNormal, batch_shape, new)

    @lazy_property
    def variance(self):
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._batch_shape + self._event_shape)

    def _expand_matrix(self, matrix):
        return matrix.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def scale_tril(self):
        return self._expand_matrix(cholesky(self.covariance_matrix))

    @lazy_property
    def covariance_matrix(self):
        factor = self._unbroadcasted_cov_factor
        return self._expand_matrix(factor @ factor.mT + torch.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self):
        inverse = self._unbroadcasted_cov_diag.reciprocal()
        scaled = self._unbroadcasted_cov_factor.mT * inverse.unsqueeze(-2)
        half = solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._expand_matrix(torch.diag_embed(inverse) - half.mT @ half)

    def rsample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        inner = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        outer = standard_normal(shape, self.loc)
        return self.loc + matvec(self._unbroadcasted_cov_factor, inner) + self._unbroadcasted_cov_diag.sqrt() * outer

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        length = low_rank_squared_length(factor, diagonal, value - self.loc, self._capacitance_tril)
        spread = log_det(diagonal, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + spread + length)

    def entropy(self):
        spread = log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return (0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + spread)).expand(self._batch_shape)
