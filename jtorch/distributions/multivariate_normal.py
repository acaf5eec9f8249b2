"""The multivariate normal distribution, and the solves with Cholesky factors that it shares with others."""

import math

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import lazy_property, standard_normal, through

__all__ = ["MultivariateNormal"]

_LINALG = {name: torch.lookup("linalg", name) for name in ("cholesky", "solve_triangular")}
cholesky, solve_triangular = _LINALG["cholesky"], _LINALG["solve_triangular"]


def matvec(matrix, vector):
    """Products of matrices (..., n, m) and vectors (..., m), broadcast over batches."""
    return torch.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def squared_length(factor, x):
    """x^T (L L^T)^-1 x of vectors x (..., n): their squared Mahalanobis length, for a lower factor L."""
    return solve_triangular(factor, x.unsqueeze(-1), upper=False).square().sum((-2, -1))


def half_log_det(factor):
    """Half of log det (L L^T)."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def factor_of_inverse(precision):
    """The lower factor L with L L^T = precision^-1, from the factor of the matrix turned by half a turn."""
    upper = torch.flip(cholesky(torch.flip(precision, (-2, -1))), (-2, -1)).mT
    eye = torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return solve_triangular(upper, eye, upper=False)


# The three ways to give a covariance, and the lower factor of each.
FACTORS = {"covariance_matrix": cholesky, "precision_matrix": factor_of_inverse, "scale_tril": lambda matrix: matrix}


class GivenByMatrix:
    """A covariance that was given as itself, as its inverse or as its lower factor; the other two are lazy."""

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape)

    @lazy_property
    def covariance_matrix(self):
        factor = self._unbroadcasted_scale_tril
        return torch.matmul(factor, factor.mT).expand(self._matrix_shape)

    @lazy_property
    def precision_matrix(self):
        return torch.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape)

    @property
    def _matrix_shape(self):
        n = self._event_shape[-1]
        return (*self._batch_shape, n, n)

    def _expand_matrices(self, new, batch_shape):
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        n = self._event_shape[-1]
        for name in FACTORS:
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand((*batch_shape, n, n)))


class MultivariateNormal(GivenByMatrix, Distribution):
    """Normal vectors with mean `loc` (..., n) and a covariance given in one of three ways, of shape (..., n, n).

    Args:
        loc: the mean
        covariance_matrix, precision_matrix, scale_tril: exactly one of the covariance, its inverse, and its lower
            Cholesky factor, which is the cheapest
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    mean = mode = through("loc")

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise errors.vector_location()
        given = dict(zip(FACTORS, (covariance_matrix, precision_matrix, scale_tril)))
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise ValueError(errors.ONE_MATRIX)
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise errors.matrix_needed("scale_tril matrix" if name == "scale_tril" else name)
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = FACTORS[name](matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        new.loc = self.loc.expand((*batch_shape, *self.event_shape))
        self._expand_matrices(new, batch_shape)
        return self._finish_expanded(new, batch_shape)

    @property
    def variance(self):
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=Size()):
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + matvec(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        length = squared_length(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + length) - half_log_det(factor)

    def entropy(self):
        spread = half_log_det(self._unbroadcasted_scale_tril)
        return (0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + spread).expand(self._batch_shape)
