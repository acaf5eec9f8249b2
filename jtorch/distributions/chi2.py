"""The chi-squared distribution."""

from jtorch.distributions import constraints
from jtorch.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of `df` standard normals: Gamma(df / 2, 1 / 2)."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Chi2, _instance)
        for name in ("concentration", "rate"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return self._finish_expanded(new, batch_shape)

    @property
    def df(self):
        return self.concentration * 2
