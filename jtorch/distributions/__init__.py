"""torch.distributions: random variables with densities, divergences, transforms and reparameterised samples."""

from jtorch.distributions import constraint_registry as constraint_registry
from jtorch.distributions import constraints as constraints
from jtorch.distributions import kl as kl
from jtorch.distributions import kl_cross as kl_cross
from jtorch.distributions import kl_pairs as kl_pairs
from jtorch.distributions import transforms as transforms
from jtorch.distributions import utils as utils
from jtorch.distributions.bernoulli import Bernoulli
from jtorch.distributions.beta import Beta
from jtorch.distributions.binomial import Binomial
from jtorch.distributions.categorical import Categorical
from jtorch.distributions.cauchy import Cauchy
from jtorch.distributions.chi2 import Chi2
from jtorch.distributions.constraint_registry import biject_to, transform_to
from jtorch.distributions.continuous_bernoulli import ContinuousBernoulli
from jtorch.distributions.dirichlet import Dirichlet
from jtorch.distributions.distribution import Distribution
from jtorch.distributions.exp_family import ExponentialFamily
from jtorch.distributions.exponential import Exponential
from jtorch.distributions.fishersnedecor import FisherSnedecor
from jtorch.distributions.gamma import Gamma
from jtorch.distributions.generalized_pareto import GeneralizedPareto
from jtorch.distributions.geometric import Geometric
from jtorch.distributions.gumbel import Gumbel
from jtorch.distributions.half_cauchy import HalfCauchy
from jtorch.distributions.half_normal import HalfNormal
from jtorch.distributions.independent import Independent
from jtorch.distributions.inverse_gamma import InverseGamma
from jtorch.distributions.kl import kl_divergence, register_kl
from jtorch.distributions.kumaraswamy import Kumaraswamy
from jtorch.distributions.laplace import Laplace
from jtorch.distributions.lkj_cholesky import LKJCholesky
from jtorch.distributions.log_normal import LogNormal
from jtorch.distributions.logistic_normal import LogisticNormal
from jtorch.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from jtorch.distributions.mixture_same_family import MixtureSameFamily
from jtorch.distributions.multinomial import Multinomial
from jtorch.distributions.multivariate_normal import MultivariateNormal
from jtorch.distributions.negative_binomial import NegativeBinomial
from jtorch.distributions.normal import Normal
from jtorch.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from jtorch.distributions.pareto import Pareto
from jtorch.distributions.poisson import Poisson
from jtorch.distributions.relaxed_bernoulli import RelaxedBernoulli
from jtorch.distributions.relaxed_categorical import RelaxedOneHotCategorical
from jtorch.distributions.studentT import StudentT
from jtorch.distributions.transformed_distribution import TransformedDistribution
from jtorch.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from jtorch.distributions.uniform import Uniform
from jtorch.distributions.von_mises import VonMises
from jtorch.distributions.weibull import Weibull
from jtorch.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
