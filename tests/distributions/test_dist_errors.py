"""What is refused, and with which words; what is warned of; the same expression evaluated with both libraries."""

import warnings

import pytest

import jtorch
from jtorch.core.ledger import counters
from tests import oracle
from tests.oracle import torch


@pytest.fixture(autouse=True)
def torch_validates():
    """PyTorch's compiler, which another test may have asked for, switches it off for good."""
    torch.distributions.Distribution.set_default_validate_args(True)


EXPRESSIONS = """
Bernoulli()
Bernoulli(0.5, 0.5)
Bernoulli(1.5)
Bernoulli("a")
Binomial(-1, T(0.5))
Binomial(3)
Categorical(T(0.5))
Categorical(logits=T(0.5))
Categorical()
Categorical(logits=O(0, 4))
Categorical(T([0.5,-0.5]))
Categorical(T([[0.5,0.5]])).log_prob(T(3))
Categorical(T([[0.5,0.5]])).log_prob(T([0,1,1]))
Dirichlet(T(1.))
Normal(0., -1.)
Normal(Z(2), O(3))
Normal(0., "a")
Normal(Z(2), O(2)).log_prob(3.)
Normal(Z(2), O(2)).log_prob(Z(3))
Normal(Z(2), O(2)).log_prob(T(float('nan')))
Normal(Z(2), O(2)).expand([3])
Uniform(1., 0.)
Uniform(0., 1.).log_prob(T(2.))
Uniform(T([0.,1.]), T([1.,1.]))
MultivariateNormal(T(0.), T([[1.]]))
MultivariateNormal(Z(2))
MultivariateNormal(Z(2), torch.eye(2), torch.eye(2))
MultivariateNormal(Z(2), O(2))
MultivariateNormal(Z(2), precision_matrix=O(2))
MultivariateNormal(Z(2), scale_tril=O(2))
MultivariateNormal(Z(2), -torch.eye(2))
MultivariateNormal(Z(3), torch.eye(2))
LowRankMultivariateNormal(T(0.), O(2,1), O(2))
LowRankMultivariateNormal(Z(2), O(2), O(2))
LowRankMultivariateNormal(Z(2), O(3,1), O(2))
LowRankMultivariateNormal(Z(2), O(2,1), O(3))
LowRankMultivariateNormal(Z(2), O(2,1), Z(2))
LKJCholesky(1)
LKJCholesky(3, -1.)
LKJCholesky(3, 1.).log_prob(O(3,3))
Wishart(T(2.))
Wishart(T(2.), O(2))
Wishart(T(1.), torch.eye(2))
Wishart(T(0.5), torch.eye(2))
Wishart(T(3.), torch.eye(2), torch.eye(2))
Wishart(3., precision_matrix=O(2))
Wishart(T(3.), scale_tril=O(2))
Independent(Normal(0.,1.), 1)
Independent(Normal(Z(2),1.), 2)
MixtureSameFamily(Normal(0.,1.), Normal(0.,1.))
MixtureSameFamily(Categorical(O(2)), 3)
MixtureSameFamily(Categorical(O(2)), Normal(Z(3),1.))
MixtureSameFamily(Categorical(O(2,2)), Normal(Z(3,2),1.))
MixtureSameFamily(Categorical(O(2)), Categorical(O(2,3))).rsample()
MixtureSameFamily(Categorical(O(2)), Normal(Z(2),1.)).rsample()
MixtureSameFamily(Categorical(O(2)), MultivariateNormal(Z(2,2),torch.eye(2))).cdf(Z(2))
Multinomial(T([1,2]), O(2))
Multinomial(3, O(2)).log_prob(T([1.,1.]))
Multinomial(-1, O(2))
TransformedDistribution(Normal(0.,1.), 3)
TransformedDistribution(Normal(0.,1.), [3])
TransformedDistribution(Normal(0.,1.), StickBreakingTransform())
TransformedDistribution(Normal(Z(0),1.), StickBreakingTransform())
TransformedDistribution(Normal(0.,1.), [AbsTransform()]).cdf(T(1.))
TransformedDistribution(Normal(0.,1.), [AbsTransform()]).log_prob(T(1.))
TransformedDistribution(Normal(Z(2),1.), [SoftmaxTransform()]).log_prob(T([.5,.5]))
Normal(0.,1.).enumerate_support()
Normal(0.,1.).sample(3)
Normal(0.,1.).rsample(3)
Bernoulli(0.5).rsample()
Bernoulli(0.5).cdf(T(1.))
Bernoulli(0.5).icdf(T(1.))
Beta(1.,1.).cdf(T(.5))
Beta(0.,1.)
Beta(1.,1.).log_prob(T(2.))
Gamma(1.,-1.)
Gamma(T([1.,2.]),T([1.,-1.]))
Gamma(1.,1.).log_prob(T(-1.))
Gamma(1.,1.).icdf(T(.5))
HalfCauchy(-1.)
HalfCauchy(1.).log_prob(T(-1.))
HalfNormal(1.).log_prob(T(-1.))
NegativeBinomial(-1., T(.5))
NegativeBinomial(1.)
NegativeBinomial(1., T(1.))
Geometric(0.)
Geometric(T([0.5,0.]))
Geometric()
Geometric(1.5)
Geometric(.5).log_prob(T(-1.))
Poisson(-1.)
Poisson(1.).log_prob(T(1.5))
RelaxedBernoulli(T(1.))
RelaxedOneHotCategorical(T(1.))
RelaxedOneHotCategorical(T(1.), T(.5))
OneHotCategorical(T(.5))
OneHotCategorical()
OneHotCategorical(O(2)).log_prob(T([1.,1.]))
VonMises(0.,1.)
VonMises(T(0.),T(-1.))
ContinuousBernoulli()
ContinuousBernoulli(1.5)
ContinuousBernoulli(0.5).log_prob(T(2.))
Pareto(1.,1.).log_prob(T(.5))
Weibull(-1.,1.)
Kumaraswamy(-1.,1.)
Kumaraswamy(1.,1.).log_prob(T(2.))
GeneralizedPareto(0.,-1.,1.)
GeneralizedPareto(0.,1.,1.).log_prob(T(-1.))
FisherSnedecor(-1.,1.)
StudentT(-1.)
Chi2(-1.)
InverseGamma(1.,1.).log_prob(T(-1.))
LogNormal(0.,-1.)
LogNormal(0.,1.).log_prob(T(-1.))
LogisticNormal(0.,1.)
LogisticNormal(Z(2),O(2)).log_prob(T([1.,1.,1.]))
Gumbel(0.,-1.)
Binomial(T([2.,3.]),T([.5,.5])).enumerate_support()
Binomial(3,T([.5,.5])).log_prob(T(4.))
kl_divergence(Normal(0.,1.), Gamma(1.,1.))
kl_divergence(Gamma(1.,1.), Cauchy(0.,1.))
kl_divergence(StudentT(1.), Cauchy(0.,1.))
kl_divergence(Independent(Normal(Z(2),1.),1), Independent(Normal(Z(2,2),1.),2))
kl_divergence(Binomial(3,T(.5)), Binomial(2,T(.5)))
kl_divergence(Binomial(2,T(.5)), Binomial(3,T(.5)))
kl_divergence(MultivariateNormal(Z(2),torch.eye(2)),MultivariateNormal(Z(3),torch.eye(3)))
kl_divergence(LowRankMultivariateNormal(Z(2),O(2,1),O(2)),LowRankMultivariateNormal(Z(3),O(3,1),O(3)))
kl_divergence(LowRankMultivariateNormal(Z(2),O(2,1),O(2)),MultivariateNormal(Z(3),torch.eye(3)))
kl_divergence(MultivariateNormal(Z(3),torch.eye(3)),LowRankMultivariateNormal(Z(2),O(2,1),O(2)))
kl_divergence(LogNormal(0.,1.), Gumbel(0.,1.))
kl_divergence(LogNormal(0.,1.), Weibull(1.,1.))
Distribution()
Distribution(validate_args=False)
Distribution(validate_args=False).expand([2])
Distribution(validate_args=False).support
Distribution(validate_args=False).arg_constraints
Distribution(validate_args=False).mean
Distribution(validate_args=False).mode
Distribution(validate_args=False).variance
Distribution(validate_args=False).rsample()
Distribution(validate_args=False).sample()
Distribution(validate_args=False).log_prob(1)
Distribution(validate_args=False).entropy()
Distribution(validate_args=False).perplexity()
Distribution(validate_args=False)
Distribution.set_default_validate_args(3)
u.broadcast_all("a", 1)
u.vec_to_tril_matrix(Z(4))
u.vec_to_tril_matrix(Z(2))
u.vec_to_tril_matrix(Z(5), -1)
u.tril_matrix_to_vec(Z(3,3), 4)
u.tril_matrix_to_vec(Z(2,3))
u.vec_to_tril_matrix(Z(6), -2)
c.dependent.check(1)
c.dependent.is_discrete
c.dependent.event_dim
c.independent(3,1)
c.independent(c.real,-1)
c.independent(c.real,1).check(T(1.))
c.cat([])
c.cat([3])
c.stack([3])
c.Constraint().check(1)
biject_to(3)
biject_to(c.boolean)
transform_to(c.boolean)
biject_to(c.lower_cholesky)
transform_to.register(3, 3)
biject_to(c.dependent)
Transform(cache_size=2)
Transform().sign
Transform()(1)
Transform().inv
Transform().log_abs_det_jacobian(1,1)
Transform().event_dim
ExpTransform().with_cache(2)
ComposeTransform([3])
IndependentTransform(ExpTransform(), 1)(T(1.))
IndependentTransform(3, 1)
ReshapeTransform((2,3),(5,))
ReshapeTransform((2,3),(6,))(Z(3,2))
ReshapeTransform((2,3),(6,)).inv(Z(5))
ReshapeTransform((2,3),(6,)).forward_shape((2,))
ReshapeTransform((2,3),(6,)).forward_shape((3,2))
ReshapeTransform((2,3),(6,)).inverse_shape(())
ReshapeTransform((2,3),(6,)).inverse_shape((5,))
StickBreakingTransform().forward_shape(())
StickBreakingTransform().inverse_shape(())
SoftmaxTransform().forward_shape(())
SoftmaxTransform().inverse_shape(())
CorrCholeskyTransform().forward_shape(())
CorrCholeskyTransform().forward_shape((4,))
CorrCholeskyTransform().inverse_shape((2,))
CorrCholeskyTransform().inverse_shape((2,3))
IndependentTransform(ExpTransform(),1).forward_shape(())
IndependentTransform(ExpTransform(),1).inverse_shape(())
AbsTransform().log_abs_det_jacobian(T(1.),T(1.))
SoftmaxTransform().sign
AbsTransform().sign
AbsTransform().inv.inv
StackTransform([3])
CatTransform([3])
CatTransform([ExpTransform()],lengths=[1,2])
CatTransform([ExpTransform()],lengths=[1])(Z(2))
StackTransform([ExpTransform()])(Z(2))
StackTransform([ExpTransform()], dim=3)(Z(2))
LowerCholeskyTransform().sign
Normal(0.,1.).log_prob("a")
OneHotCategoricalStraightThrough(O(3)).log_prob(Z(3))
ExponentialFamily().entropy()
ExponentialFamily(validate_args=False).entropy()
Normal(Z(2),O(2)).sample_n(2).shape
Normal(0,1)
Normal(0,T(1))
Normal(T(0),T(1)).sample()
Gumbel(T(0),T(1))
Laplace(T(0),T(1)).sample()
Exponential(T(1)).sample()
Uniform(T(0),T(1)).sample()
Bernoulli(T(1)).sample()
Poisson(T(1)).sample().shape
Categorical(T([1,1])).sample().shape
Gamma(T(1),T(1)).sample()
Cauchy(T(0),T(1)).sample()
Dirichlet(T([1,1])).sample()
Weibull(T(1),T(1))
StudentT(T(1)).sample()
HalfNormal(1).sample().shape
Binomial(3,0.5)
Categorical([0.5,0.5])
MixtureSameFamily(Categorical(O(3)), Normal(Z(3), 1.))
Independent(Normal(Z(3), 1.), 1)
LKJCholesky(3)
Multinomial(3, O(2))
Wishart(T([3.]), torch.eye(2))
Wishart(T([1.5]), torch.eye(2))
ComposeTransform([ExpTransform(), AffineTransform(0., 2.)])
StickBreakingTransform().inv.inv
Normal(Z(2), O(2), validate_args=False).log_prob(T(float("nan")))
Normal(0., -1., validate_args=False)
Normal(Z(2), O(2)).log_prob(Z(3, 1, 2)).shape
Dirichlet(O(3)).log_prob(O(2) / 2)
Bernoulli(O(2)).mean.shape
u.lazy_property(len).__name__
Normal.support, Normal.has_rsample, Bernoulli.has_enumerate_support
repr(Uniform.support), repr(Categorical.support), repr(Bernoulli.arg_constraints)
isinstance(Bernoulli.probs, property), isinstance(Bernoulli.logits, u.lazy_property)
Normal(T([0.], dtype=torch.float64), 1.).scale.dtype
Normal(T([0.], dtype=torch.float16), 1.).sample().dtype
[t.shape for t in u.broadcast_all(1, Z(2, 1), Z(3))]
[t.dtype for t in u.broadcast_all(1, 2)]
u.broadcast_all(True, 2.5)
u.probs_to_logits(T([0., .5, 1.])), u.probs_to_logits(T([0., .5, 1.]), True)
u.logits_to_probs(T([0., 1.])), u.logits_to_probs(T([0., 1.]), True), u.clamp_probs(T([0., .5, 1.]))
u.vec_to_tril_matrix(torch.arange(6.)), u.vec_to_tril_matrix(torch.arange(6.), -1), u.vec_to_tril_matrix(torch.arange(8.), 1)
u.tril_matrix_to_vec(torch.arange(9.).view(3, 3)), u.tril_matrix_to_vec(torch.arange(18.).view(2, 3, 3), -1), u.tril_matrix_to_vec(torch.arange(9.).view(3, 3), 1)
type("Mine", (Normal,), {"__init__": lambda self: Normal.__init__(self, 0., 1.)})().expand([2])
type("Mine", (Gamma,), {})(1., 1.).expand([2])
type("Mine", (Distribution,), {"arg_constraints": {}})().log_prob(1)
type("Mine", (Distribution,), {"arg_constraints": {}})()._validate_sample(T(1.))
Uniform(0., 1.).arg_constraints
d.LogNormal(Z(2), 1.).base_dist, d.half_normal.HalfNormal(2.).scale, d.studentT.StudentT(2.)
Chi2(T([2., 3.])).df, InverseGamma(1., 2.).rate, LogisticNormal(0., 1.).batch_shape, Beta(1., 2.).concentration0
MultivariateNormal(Z(2), torch.eye(2)).precision_matrix + 0, MultivariateNormal(Z(2), torch.eye(2)).scale_tril
LowRankMultivariateNormal(Z(2), O(2, 1), O(2)).precision_matrix.shape, LowRankMultivariateNormal(Z(2), O(2, 1), O(2)).scale_tril
Wishart(3., precision_matrix=torch.eye(2)).covariance_matrix
""".strip().splitlines()


def scope(module):
    d = module.distributions
    names = {name: getattr(d, name) for name in d.__all__}
    names |= {"T": module.tensor, "Z": module.zeros, "O": module.ones, "torch": module, "d": d}
    return names | {"c": d.constraints, "u": d.utils}


def outcome(text, module):
    """What an expression gives, or raises, with the first line of what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = repr(eval(text, scope(module)))
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
    return found.replace("jtorch", "torch"), [str(w.message).replace("jtorch", "torch") for w in caught]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(text):
    assert outcome(text, jtorch) == outcome(text, torch)


def test_default_of_validation():
    def program(module):
        d = module.distributions
        found = []
        try:
            for flag in (False, True):
                d.Distribution.set_default_validate_args(flag)
                normal = oracle.run(d.Normal, 0.0, -1.0)
                found += [flag, type(normal.error).__name__, d.Normal(0.0, 1.0)._validate_args]
        finally:
            d.Distribution.set_default_validate_args(True)
        return found

    oracle.both(program)


@pytest.mark.parametrize(
    "build", ["Normal(x, x + 1)", "Beta(x, x * 3)", "Gamma(x, x)", "Dirichlet(x)", "Bernoulli(x / 9)"]
)
def test_one_flush_a_distribution(build):
    """Validating parameters that are being computed runs what was recorded once; without validation nothing runs."""
    flushes = []
    for validate in (True, False):
        x = jtorch.tensor([0.5, 1.0]) * 2
        before = counters.flushes
        eval(build[:-1] + ", validate_args=validate)", scope(jtorch) | {"x": x, "validate": validate})
        flushes.append(counters.flushes - before)
        jtorch.flush()
    assert flushes == [1, 0]


def test_compiled_regions_do_not_validate():
    """As in PyTorch: a region that builds a distribution has no break."""

    @jtorch.compile(fullgraph=True)
    def region(scale):
        return jtorch.distributions.Normal(0.0, scale).log_prob(jtorch.ones(2)).sum()

    assert region(jtorch.ones(2)).item() == pytest.approx(-2.8378770664093453)
    assert region(-jtorch.ones(2)).isnan()


def test_transformations_do_not_validate():
    def log_prob(loc):
        return jtorch.distributions.Normal(loc, 1.0).log_prob(loc)

    found = jtorch.func.vmap(log_prob)(jtorch.zeros(3))
    assert found.tolist() == pytest.approx([-0.9189385332046727] * 3)
