"""The logistic-normal distribution."""

from jtorch.distributions import constraints
from jtorch.distributions.normal import Normal
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import StickBreakingTransform
from jtorch.distributions.utils import through

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: stick breaking of normals with means `loc` and standard deviations `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    loc = through("base_dist.base_dist.loc")
    scale = through("base_dist.base_dist.scale")

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))
