"""The von Mises distribution."""

import math

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.spec import Size
from jtorch.distributions import constraints
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.utils import broadcast_all, lazy_property, rand, through

_SPECIAL = torch.namespace("special")
i0e, i1e = _SPECIAL["i0e"], _SPECIAL["i1e"]

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles around `loc`: density proportional to exp(concentration * cos(x - loc)); angles are in radians.

    Sampling asks for a value at each round of rejection (Best and Fisher, Applied Statistics 28, 1979).
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    mean = mode = through("loc")

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(VonMises, batch_shape, _instance)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * (torch.cos(value - self.loc) - 1) - math.log(2 * math.pi) - i0e(k).log()

    @lazy_property
    def variance(self):
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    @lazy_property
    def _loc(self):
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(torch.double)

    @lazy_property
    def _proposal_r(self):
        """The parameter of the wrapped Cauchy that proposals are drawn from."""
        k = self._concentration
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return torch.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape=Size()):
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, k, r = (t.expand(shape) for t in (self._loc, self._concentration, self._proposal_r))
            x = torch.zeros(shape, dtype=torch.double, device=loc.device)
            done = torch.zeros(shape, dtype=torch.bool, device=loc.device)
            while not done.all():
                u1, u2, u3 = rand((3, *shape), loc).unbind()
                f = torch.cos(math.pi * u1)
                f = (1 + r * f) / (r + f)
                c = k * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
