"""KL divergences: the same table of pairs as PyTorch, the same numbers and gradients, and how a pair is found."""

import warnings

import pytest

import jtorch
from jtorch.distributions import kl
from tests import oracle
from tests.oracle import torch

# class name -> parameters whose supports overlap where that matters
P = {
    "Bernoulli": "Bernoulli(T([0.0, 0.3, 0.9, 1.0]))",
    "Beta": "Beta(T([0.5, 2.0]), T([1.5, 3.0]))",
    "Binomial": "Binomial(T([3.0, 4.0]), T([0.3, 0.8]))",
    "Categorical": "Categorical(T([[0.2, 0.3, 0.5], [0.0, 1.0, 1.0]]))",
    "Cauchy": "Cauchy(T([0.0, 1.0]), T([1.0, 2.0]))",
    "ContinuousBernoulli": "ContinuousBernoulli(T([0.2, 0.7]))",
    "Dirichlet": "Dirichlet(T([[0.5, 1.0, 2.0], [3.0, 1.0, 1.0]]))",
    "Exponential": "Exponential(T([0.5, 2.0]))",
    "ExponentialFamily": "Wishart(T([3.5, 5.0]), T([[2.0, 0.3], [0.3, 1.0]]))",
    "Gamma": "Gamma(T([0.5, 3.0]), T([1.0, 2.0]))",
    "Geometric": "Geometric(T([0.3, 0.8]))",
    "Gumbel": "Gumbel(T([0.0, 1.0]), T([1.0, 0.5]))",
    "HalfNormal": "HalfNormal(T([1.0, 2.0]))",
    "Independent": "Independent(Normal(T([0.0, 1.0]), T([1.0, 2.0])), 1)",
    "Laplace": "Laplace(T([0.0, 1.0]), T([1.0, 0.5]))",
    "LowRankMultivariateNormal": "LowRankMultivariateNormal(T([[0.5, 1.0]]), T([[1.0], [0.5]]), T([1.0, 2.0]))",
    "MultivariateNormal": "MultivariateNormal(T([1.0, 0.0]), T([[2.0, 0.3], [0.3, 1.0]]))",
    "Normal": "Normal(T([0.0, 1.0]), T([1.0, 0.5]))",
    "OneHotCategorical": "OneHotCategorical(T([[0.2, 0.3, 0.5], [0.0, 1.0, 1.0]]))",
    "Pareto": "Pareto(T([1.0, 2.0]), T([0.8, 3.0]))",
    "Poisson": "Poisson(T([0.5, 3.0]))",
    "TransformedDistribution": "LogNormal(T([0.0, 1.0]), T([1.0, 0.5]))",
    "Uniform": "Uniform(T([0.1, 1.0]), T([0.8, 2.0]))",
}
Q = P | {
    "Bernoulli": "Bernoulli(T([0.2, 0.0, 1.0, 0.5]))",
    "Beta": "Beta(T([1.5, 0.5]), T([1.0, 2.0]))",
    "Binomial": "Binomial(T([3.0, 2.0]), T([0.4, 0.5]))",
    "Categorical": "Categorical(logits=T([[0.2, 0.3, 0.5], [0.0, -2.0, 1.0]]))",
    "Cauchy": "Cauchy(T([1.0, 1.0]), T([0.5, 3.0]))",
    "ContinuousBernoulli": "ContinuousBernoulli(T([0.4, 0.5]))",
    "Dirichlet": "Dirichlet(T([[1.5, 1.0, 0.3], [2.0, 2.0, 1.0]]))",
    "Exponential": "Exponential(T([1.5, 0.3]))",
    "ExponentialFamily": "Wishart(T([4.5, 6.0]), T([[1.0, -0.3], [-0.3, 1.5]]))",
    "Gamma": "Gamma(T([1.5, 2.0]), T([0.3, 1.5]))",
    "Geometric": "Geometric(logits=T([0.3, -0.8]))",
    "Gumbel": "Gumbel(T([0.5, 0.0]), T([2.0, 0.7]))",
    "HalfNormal": "HalfNormal(T([0.5, 3.0]))",
    "Independent": "Independent(Normal(T([1.0, 0.0]), T([2.0, 0.5])), 1)",
    "Laplace": "Laplace(T([1.0, 0.0]), T([2.0, 0.3]))",
    "LowRankMultivariateNormal": "LowRankMultivariateNormal(T([0.0, 1.0]), T([[0.3], [-0.5]]), T([0.5, 1.5]))",
    "MultivariateNormal": "MultivariateNormal(T([[0.0, 2.0]]), T([[1.0, -0.3], [-0.3, 1.5]]))",
    "Normal": "Normal(T([1.0, 0.0]), T([2.0, 0.7]))",
    "OneHotCategorical": "OneHotCategorical(T([[0.0, 0.3, 0.5], [0.5, 1.0, 1.0]]))",
    "Pareto": "Pareto(T([0.5, 2.5]), T([1.5, 2.0]))",
    "Poisson": "Poisson(T([1.5, 2.0]))",
    "TransformedDistribution": "LogNormal(T([1.0, 0.0]), T([2.0, 0.7]))",
    "Uniform": "Uniform(T([0.0, 0.5]), T([1.0, 3.0]))",
}
TABLE = torch.distributions.kl._KL_REGISTRY
PAIRS = sorted((p.__name__, q.__name__) for p, q in TABLE)


def scope(module, leaves):
    def tensor(data):
        leaves.append(module.tensor(data, dtype=module.float64, requires_grad=True))
        return leaves[-1]

    d = module.distributions
    return {name: getattr(d, name) for name in d.__all__} | {"T": tensor}


def divergence(p, q, grad=True):
    def program(module):
        leaves = []
        names = scope(module, leaves)
        found = module.distributions.kl_divergence(eval(p, names), eval(q, names))
        if not grad or not found.requires_grad:
            return found
        finite = module.where(found.isfinite(), found, 0.0)
        return found, module.autograd.grad(finite.sum(), leaves, allow_unused=True)

    return program


def agree(program, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, got = oracle.run(program, torch), oracle.run(program, jtorch)
    oracle.agree(expected, got, layout=False, **options)


@pytest.fixture(autouse=True)
def eagerly():
    with jtorch.execution_mode("eager"):
        yield


def test_same_pairs():
    assert sorted((p.__name__, q.__name__) for p, q in kl._KL_REGISTRY) == PAIRS


# Where a branch that is not taken is infinite, PyTorch's in-place masks and our `where` differ in the nan they leave.
NO_GRAD = {("Bernoulli", "Bernoulli"), ("Categorical", "Categorical"), ("OneHotCategorical", "OneHotCategorical")}


@pytest.mark.parametrize("p, q", PAIRS)
def test_pair(p, q):
    agree(divergence(P[p], Q[q], (p, q) not in NO_GRAD))


@pytest.mark.parametrize(
    "p, q",
    [
        (P["Normal"], P["Cauchy"]),
        (P["TransformedDistribution"], P["Gumbel"]),
        (P["Independent"], "Independent(Normal(T([[1.0, 0.0]]), T([2.0, 0.5])), 2)"),
        ("Binomial(T([2.0]), T([0.4]))", "Binomial(T([3.0]), T([0.4]))"),
        (P["MultivariateNormal"], "MultivariateNormal(T([0.0]), T([[1.0]]))"),
        (P["LowRankMultivariateNormal"], "LowRankMultivariateNormal(T([1.0]), T([[1.0]]), T([1.0]))"),
        (P["MultivariateNormal"], "LowRankMultivariateNormal(T([1.0]), T([[1.0]]), T([1.0]))"),
        ("Uniform(T([-0.5]), T([1.0]))", "Beta(T([1.0]), T([1.0]))"),
        ("Uniform(T([0.0]), T([1.0]))", "ContinuousBernoulli(T([0.3]))"),
        ("ContinuousBernoulli(T([0.3]))", "Uniform(T([-1.0]), T([2.0]))"),
        ("Uniform(T([0.0]), T([1.0]))", "Beta(T([2.0]), T([3.0]))"),
        (P["TransformedDistribution"], "LogNormal(T([[0.0], [1.0]]), T([1.0]))"),
    ],
)
def test_edges(p, q):
    agree(divergence(p, q, grad=False))


def test_most_specific_pair_wins():
    def program(module):
        d = module.distributions

        class Mine(d.Normal):
            pass

        d.register_kl(Mine, d.Normal)(lambda p, q: module.tensor(7.0))
        try:
            mine, normal = Mine(0.0, 1.0), d.Normal(0.0, 1.0)
            return [d.kl_divergence(mine, normal), d.kl_divergence(mine, mine), d.kl_divergence(normal, mine)]
        finally:
            del d.kl._KL_REGISTRY[Mine, d.Normal]
            d.kl._KL_MEMOIZE.clear()

    agree(program)


def test_ambiguous_pair_warns():
    d = jtorch.distributions

    class A(d.Normal):
        pass

    class B(d.Normal):
        pass

    d.register_kl(A, d.Normal)(lambda p, q: 1)
    d.register_kl(d.Normal, B)(lambda p, q: 2)
    try:
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(A, B\). Please register_kl\(A, B\)"):
            assert d.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == 1
    finally:
        del kl._KL_REGISTRY[A, d.Normal], kl._KL_REGISTRY[d.Normal, B]
        kl._KL_MEMOIZE.clear()


def test_register_needs_classes():
    with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass but got 3"):
        jtorch.distributions.register_kl(jtorch.distributions.Normal, 3)
