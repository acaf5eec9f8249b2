"""The LKJ distribution over Cholesky factors of correlation matrices."""

import math

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.beta import Beta
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import broadcast_all, standard_normal

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower factors L (dim x dim) of correlation matrices with density proportional to det(L L^T) ** (concentration - 1).

    At concentration 1 all correlation matrices are as likely. Sampled by the onion method.
    Source: Lewandowski, Kurowicka and Joe, J. Multivariate Analysis 100 (2009).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # row i of the factor is a point of the ball whose squared length is beta-distributed
        c = self.concentration
        step = torch.arange(dim - 1, dtype=c.dtype, device=c.device)
        step = torch.cat([torch.zeros(1, dtype=c.dtype, device=c.device), step])
        self._beta = Beta(step + 0.5, (c + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * step)
        super().__init__(c.shape, Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return self._expanded(LKJCholesky, batch_shape, new)

    def sample(self, sample_shape=Size()):
        with no_grad():
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            direction = standard_normal(self._extended_shape(sample_shape), self.concentration).tril(-1)
            size = direction.square().sum(-1, keepdim=True).sqrt()
            direction = torch.where(size > 0, direction / size, 0.0)  # the first row has no direction
            w = length.sqrt() * direction
            tiny = torch.finfo(w.dtype).tiny
            return w + (1 - w.square().sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        c, n = self.concentration, self.dim - 1
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=c.device)
        order = 2 * (c - 1).unsqueeze(-1) + self.dim - order
        alpha = c + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, n) - torch.lgamma(alpha) * n
        return (order * diagonal.log()).sum(-1) - normalizer
