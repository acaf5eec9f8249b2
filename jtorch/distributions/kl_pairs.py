"""KL divergences of two distributions of one class, and of wrapped ones."""

from jtorch import functions as torch
from jtorch.distributions import errors
from jtorch.distributions.bernoulli import Bernoulli
from jtorch.distributions.beta import Beta
from jtorch.distributions.binomial import Binomial
from jtorch.distributions.categorical import Categorical
from jtorch.distributions.cauchy import Cauchy
from jtorch.distributions.continuous_bernoulli import ContinuousBernoulli
from jtorch.distributions.dirichlet import Dirichlet
from jtorch.distributions.exp_family import ExponentialFamily
from jtorch.distributions.exponential import Exponential
from jtorch.distributions.gamma import Gamma
from jtorch.distributions.geometric import Geometric
from jtorch.distributions.gumbel import Gumbel
from jtorch.distributions.half_normal import HalfNormal
from jtorch.distributions.independent import Independent
from jtorch.distributions.kl import kl_divergence, register_kl
from jtorch.distributions.laplace import Laplace
from jtorch.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    log_det,
    low_rank_squared_length,
)
from jtorch.distributions.multivariate_normal import (
    MultivariateNormal,
    half_log_det,
    solve_triangular,
    squared_length,
)
from jtorch.distributions.normal import Normal
from jtorch.distributions.one_hot_categorical import OneHotCategorical
from jtorch.distributions.pareto import Pareto
from jtorch.distributions.poisson import Poisson
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.uniform import Uniform
from jtorch.distributions.utils import euler_constant, sum_rightmost

softplus = torch.lookup("nn.functional", "softplus")
INF = float("inf")


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = torch.where(q.probs == 0, INF, one).masked_fill(p.probs == 0, 0)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = torch.where(q.probs == 1, INF, zero).masked_fill(p.probs == 1, 0)
    return one + zero


def _log_beta(d):
    return d.concentration1.lgamma() + d.concentration0.lgamma() - (d.concentration1 + d.concentration0).lgamma()


@register_kl(Beta, Beta)
def _beta(p, q):
    p_total, q_total = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    return (
        _log_beta(q)
        - _log_beta(p)
        + (p.concentration1 - q.concentration1) * p.concentration1.digamma()
        + (p.concentration0 - q.concentration0) * p.concentration0.digamma()
        + (q_total - p_total) * p_total.digamma()
    )


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return torch.where(p.total_count > q.total_count, INF, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    t = torch.where(q.probs == 0, INF, p.probs * (p.logits - q.logits))
    return torch.where(p.probs == 0, 0.0, t).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    def log_start(d):
        return d._cont_bern_log_norm() + torch.log1p(-d.probs)

    return p.mean * (p.logits - q.logits) + log_start(p) - log_start(q)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    total = p.concentration.sum(-1, keepdim=True)
    slope = p.concentration.digamma() - total.digamma()
    moved = ((p.concentration - q.concentration) * slope).sum(-1)
    return q._log_normalizer(q.concentration) - p._log_normalizer(p.concentration) + moved


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log normaliser between the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    p_params, p_normalizer, slopes = p._normalizer_and_slopes()
    q_params = q._natural_params
    result = q._log_normalizer(*q_params) - p_normalizer
    for a, b, slope in zip(p_params, q_params, slopes):
        result = result - sum_rightmost((b - a) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + torch.lgamma(b)
        - torch.lgamma(a)
        + (a - b) * torch.digamma(a)
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, far = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return -ratio.log() + far + ratio * euler_constant + torch.exp(torch.lgamma(1 + ratio) - far) - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, far = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + far / q.scale + ratio * torch.exp(-far / p.scale) - 1


# --- multivariate normals: (log det q - log det p + squared length of the means + trace - n) / 2


def _same_event(p, q, kind):
    if p.event_shape != q.event_shape:
        raise errors.different_events(kind)


def _inverse_half(q):
    """A with Sigma_q^-1 = D^-1 - A^T A, of a low-rank covariance."""
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    return solve_triangular(q._capacitance_tril, scaled, upper=False)


def _low_rank(q, far):
    factor, diagonal, capacitance = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    return log_det(diagonal, capacitance), low_rank_squared_length(factor, diagonal, far, capacitance)


def _square_sum(matrix):
    return matrix.square().sum((-2, -1))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_low(p, q):
    _same_event(p, q, "Low Rank Multivariate")
    spread, length = _low_rank(q, q.loc - p.loc)
    spread = spread - log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)
    half, w = _inverse_half(q), p._unbroadcasted_cov_factor
    d, d_q = p._unbroadcasted_cov_diag, q._unbroadcasted_cov_diag
    trace = (d / d_q).sum(-1) + _square_sum(w * d_q.rsqrt().unsqueeze(-1))
    trace = trace - _square_sum(half * d.sqrt().unsqueeze(-2)) - _square_sum(half.matmul(w))
    return 0.5 * (spread + length + trace - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low(p, q):
    _same_event(p, q, "(Low Rank) Multivariate")
    spread, length = _low_rank(q, q.loc - p.loc)
    factor = p._unbroadcasted_scale_tril
    spread = spread - 2 * half_log_det(factor)
    trace = _square_sum(factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    trace = trace - _square_sum(_inverse_half(q).matmul(factor))
    return 0.5 * (spread + length + trace - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_full(p, q):
    _same_event(p, q, "(Low Rank) Multivariate")
    factor = q._unbroadcasted_scale_tril
    spread = 2 * half_log_det(factor) - log_det(p._unbroadcasted_cov_diag, p._capacitance_tril)
    length = squared_length(factor, q.loc - p.loc)
    trace = _square_sum(solve_triangular(factor, p._unbroadcasted_cov_factor, upper=False))
    diagonal = torch.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    trace = trace + _square_sum(solve_triangular(factor, diagonal, upper=False))
    return 0.5 * (spread + length + trace - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _full_full(p, q):
    _same_event(p, q, "Multivariate")
    mine, its = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    spread = 2 * (half_log_det(its) - half_log_det(mine))
    length = squared_length(its, q.loc - p.loc)
    trace = _square_sum(solve_triangular(its, mine, upper=False))
    return 0.5 * (spread + length + trace - p.event_shape[0])


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return torch.where(p.scale < q.scale, INF, result)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), INF, result)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    """Source: Chyzak and Nielsen, arXiv 1905.10965."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()
