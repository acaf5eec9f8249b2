"""KL divergences of distributions of two classes: -entropy of p - E_p[log q], from p's moments."""

import math

from jtorch import functions as torch
from jtorch.distributions.bernoulli import Bernoulli
from jtorch.distributions.beta import Beta
from jtorch.distributions.binomial import Binomial
from jtorch.distributions.continuous_bernoulli import ContinuousBernoulli
from jtorch.distributions.exponential import Exponential
from jtorch.distributions.gamma import Gamma
from jtorch.distributions.gumbel import Gumbel
from jtorch.distributions.kl import register_kl
from jtorch.distributions.laplace import Laplace
from jtorch.distributions.normal import Normal
from jtorch.distributions.pareto import Pareto
from jtorch.distributions.poisson import Poisson
from jtorch.distributions.uniform import Uniform
from jtorch.distributions.utils import euler_constant, filled

INF = float("inf")

# p, and those q to which the divergence is infinite because p gives weight to where q has none
INFINITE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _infinite(p, q):
    return filled(p.mean, INF, p.batch_shape)


for _p, _qs in INFINITE.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


# --- E_p[-log q] of each q, from moments of p


def _to_exponential(q, mean):
    return q.rate * mean - q.rate.log()


def _to_gamma(q, mean, log_mean):
    a = q.concentration
    return a.lgamma() - a * q.rate.log() - (a - 1) * log_mean + q.rate * mean


def _to_normal(q, mean, variance):
    square = variance + (mean - q.loc).pow(2)
    return 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * square / q.scale.pow(2)


def _to_gumbel(q, mean, exp_mean):
    """`exp_mean`: E[exp(-x / q.scale)]."""
    return q.scale.log() + (mean - q.loc) / q.scale + torch.exp(q.loc / q.scale) * exp_mean


def _to_continuous_bernoulli(q, mean):
    return -mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


def _to_uniform(q):
    return (q.high - q.low).log()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p, q):
    return -p.entropy() + _to_continuous_bernoulli(q, p.mean)


@register_kl(Beta, Exponential)
def _beta_exponential(p, q):
    return -p.entropy() + _to_exponential(q, p.mean)


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + _to_gamma(q, p.mean, log_mean)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
def _interval_normal(p, q):
    return -p.entropy() + _to_normal(q, p.mean, p.variance)


@register_kl(Beta, Uniform)
def _beta_uniform(p, q):
    return torch.where((q.low > 0) | (q.high < 1), INF, -p.entropy() + _to_uniform(q))


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p, q):
    return -p.entropy() + _to_exponential(q, p.mean)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p, q):
    return torch.where((q.low >= 0) | (q.high <= 1), INF, -p.entropy() + _to_uniform(q))


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    return -p.entropy() + _to_gamma(q, p.mean, -p.rate.log() - euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    return -p.entropy() + _to_gumbel(q, p.mean, p.rate / (p.rate + 1 / q.scale))


@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _any_normal(p, q):
    return -p.entropy() + _to_normal(q, p.mean, p.variance)


@register_kl(Gamma, Exponential)
def _gamma_exponential(p, q):
    return -p.entropy() + _to_exponential(q, p.mean)


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    exp_mean = (1 + 1 / (p.rate * q.scale)).pow(-p.concentration)
    return -p.entropy() + _to_gumbel(q, p.mean, exp_mean)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    exp_mean = torch.exp(-p.loc / q.scale + 0.5 * (p.scale / q.scale).pow(2))
    return -p.entropy() + _to_gumbel(q, p.mean, exp_mean)


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    far = p.loc - q.loc
    distance = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * (far / p.scale).pow(2))
    distance = distance + far * torch.erf(math.sqrt(0.5) * far / p.scale)
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


def _pareto_mean(p):
    """Finite where there is no mean too, so that a mask over it leaves no nan in gradients."""
    return p.alpha * p.scale / (p.alpha - 1)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    return torch.where(p.alpha <= 1, INF, -p.entropy() + _to_exponential(q, _pareto_mean(p)))


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    result = -p.entropy() + _to_gamma(q, _pareto_mean(p), p.scale.log() + p.alpha.reciprocal())
    return torch.where(p.alpha <= 1, INF, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    variance = p.scale.pow(2) * p.alpha / ((p.alpha - 1).pow(2) * (p.alpha - 2))
    result = -p.entropy() + _to_normal(q, _pareto_mean(p), variance)
    return torch.where(p.alpha <= 2, INF, result)


def _log_mean(low, high):
    """E[log x] of a uniform x."""
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    ends = (a - 1) * _log_mean(p.low, p.high) + (b - 1) * _log_mean(1 - p.high, 1 - p.low)
    return torch.where((p.high > 1) | (p.low < 0), INF, -p.entropy() + log_beta - ends)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p, q):
    result = -p.entropy() + _to_continuous_bernoulli(q, p.mean)
    return torch.where((p.high >= 1) | (p.low <= 0), INF, result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    return torch.where(p.low < 0, INF, -p.entropy() + _to_exponential(q, p.mean))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    result = -p.entropy() + _to_gamma(q, p.mean, _log_mean(p.low, p.high))
    return torch.where(p.low < 0, INF, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    steps = (-p.low / q.scale).exp() - (-p.high / q.scale).exp()
    return -p.entropy() + _to_gumbel(q, p.mean, q.scale * steps / (p.high - p.low))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    log_q = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _log_mean(p.low, p.high)
    return torch.where(p.low < q.scale, INF, -p.entropy() - log_q)
