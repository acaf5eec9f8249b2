"""TransformedDistribution: a draw of one distribution, taken through transforms."""

import functools
import operator

from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.independent import Independent
from jtorch.distributions.transforms import ComposeTransform, Transform
from jtorch.distributions.utils import sum_rightmost, through

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of `transforms` (one, or a list applied in order) of a draw of `base_distribution`.

    The density follows by the change of variables: log_prob(y) = base.log_prob(x) - log|det dy/dx|.
    Raises ValueError if the base's shape has too few dimensions for the transforms.
    """

    arg_constraints: dict = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        out = whole.forward_shape(shape)
        base_shape = whole.inverse_shape(out)
        if base_shape != shape:  # the transform's own parameters broadcast
            keep = len(base_shape) - base_event
            base_distribution = base_distribution.expand(base_shape[:keep])
        lift = whole.domain.event_dim - base_event
        self.base_dist = Independent(base_distribution, lift) if lift > 0 else base_distribution
        change = whole.codomain.event_dim - whole.domain.event_dim
        keep = len(out) - max(whole.codomain.event_dim, base_event + change)
        super().__init__(out[:keep], out[keep:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        base = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(base[: len(base) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return self._finish_expanded(new, batch_shape)

    has_rsample = through("base_dist.has_rsample")

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    def _forward(self, x):
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape=Size()):
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=Size()):
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        result, y = 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            event_dim += t.domain.event_dim - t.codomain.event_dim
            result = result - sum_rightmost(t.log_abs_det_jacobian(x, y), event_dim - t.domain.event_dim)
            y = x
        return result + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """The base's probability when the transforms decrease."""
        sign = functools.reduce(operator.mul, [t.sign for t in self.transforms], 1)
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
