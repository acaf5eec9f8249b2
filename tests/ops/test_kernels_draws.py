"""Gamma, Dirichlet and binomial draws: their distributions, their derivatives against PyTorch's, and what is refused."""

import numpy as np
import pytest
from scipy import stats

import jtorch
from tests import oracle
from tests.oracle import torch

N = 20_000


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("concentration", [0.05, 0.5, 1.0, 7.0, 300.0])
def test_gamma_is_gamma(concentration, dtype):
    jtorch.manual_seed(0)
    x = jtorch._standard_gamma(jtorch.full((N,), concentration, dtype=getattr(jtorch, dtype)))
    assert x.dtype is getattr(jtorch, dtype)
    assert stats.kstest(x.numpy(), stats.gamma(concentration).cdf).pvalue > 1e-3


def test_dirichlet_has_beta_margins():
    jtorch.manual_seed(0)
    alpha = np.array([0.3, 1.0, 4.0])
    x = jtorch._sample_dirichlet(jtorch.tensor(alpha).expand(N, 3)).numpy()
    assert np.allclose(x.sum(-1), 1)
    for i, a in enumerate(alpha):
        assert stats.kstest(x[:, i], stats.beta(a, alpha.sum() - a).cdf).pvalue > 1e-3


def test_binomial_is_binomial():
    jtorch.manual_seed(0)
    x = jtorch.binomial(jtorch.full((N,), 12.0), jtorch.full((N,), 0.3)).numpy()
    seen = np.bincount(x.astype(int), minlength=13)[:9]
    wanted = N * stats.binom(12, 0.3).pmf(np.arange(9))
    assert stats.chisquare(seen * wanted.sum() / seen.sum(), wanted).pvalue > 1e-3


@pytest.mark.parametrize("concentration", [0.02, 0.5, 1.0, 3.0, 30.0, 1000.0])
def test_gamma_slope(concentration):
    """PyTorch's is a patchwork of approximations, good to 1e-3; ours is the exact one."""
    x = np.random.default_rng(0).gamma(concentration, size=20)
    a = np.full(20, concentration)
    ours = jtorch._standard_gamma_grad(jtorch.tensor(a), jtorch.tensor(x)).numpy()
    its = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
    assert np.allclose(ours, its, rtol=1e-3)


@pytest.mark.parametrize("alpha", [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [30.0, 1.0, 0.5], [100.0, 200.0, 50.0]])
def test_dirichlet_slope(alpha):
    x = np.random.default_rng(0).dirichlet(alpha, size=10)
    args = [x, np.broadcast_to(alpha, x.shape).copy(), np.full(x.shape, sum(alpha))]
    ours = jtorch._dirichlet_grad(*map(jtorch.tensor, args)).numpy()
    its = torch._dirichlet_grad(*map(torch.tensor, args)).numpy()
    assert np.allclose(ours, its, rtol=2e-3)


@pytest.mark.parametrize("sampler, slope", [("_standard_gamma", "_standard_gamma_grad"), ("_sample_dirichlet", None)])
def test_backward_is_pytorchs(sampler, slope):
    """The gradient that the op gives for its draws is the one that PyTorch's formula gives for them."""
    alpha = jtorch.tensor([[0.5, 1.5, 4.0], [2.0, 0.3, 1.0]], dtype=jtorch.float64, requires_grad=True)
    g = jtorch.tensor([[1.0, -2.0, 0.5], [0.3, 1.0, 2.0]], dtype=jtorch.float64)
    x = getattr(jtorch, sampler)(alpha)
    (ours,) = jtorch.autograd.grad(x, alpha, g)
    a, x, g = (oracle.to_torch(t) for t in (alpha, x, g))
    if slope:
        its = g * torch._standard_gamma_grad(a, x)
    else:
        its = torch._dirichlet_grad(x, a, a.sum(-1, True).expand_as(a)) * (g - (x * g).sum(-1, True))
    assert np.allclose(ours.numpy(), its.numpy(), rtol=2e-3)


@pytest.mark.parametrize("concentration", [0.0, float("nan"), float("inf")])
def test_ends(concentration):
    """No endless loop where nothing can be accepted."""
    x = jtorch._standard_gamma(jtorch.tensor([concentration, 1.0]))
    assert x[1].isfinite()
    assert x[0].item() == pytest.approx(
        jtorch.finfo(jtorch.float32).tiny if concentration == 0 else concentration, nan_ok=True
    )


def test_integers_are_refused():
    for name in ("_standard_gamma", "_sample_dirichlet"):
        oracle.both(lambda module, name=name: getattr(module, name)(module.tensor([1, 2])))
