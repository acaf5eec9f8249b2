"""Draws whose distribution is given by tensors: PyTorch's numbers for the same seed, and the generator left where PyTorch leaves it."""

import numpy as np
import pytest

import jtorch
from jtorch import sampling
from tests import oracle

torch = oracle.torch
RNG = np.random.RandomState(0)
UNIT, WIDE = RNG.rand(60), RNG.rand(60) * 40
ENDS = np.array([0.0, 1.0, 1e-3, 30.0, 0.0, 9.99, 10.0, 5e4])

DRAWS = {
    "gamma": lambda t, d: t._standard_gamma(t.tensor(np.concatenate([UNIT, WIDE, ENDS]), dtype=d)),
    "dirichlet": lambda t, d: t._sample_dirichlet(t.tensor(np.concatenate([UNIT, WIDE]), dtype=d).view(40, 3)),
    "poisson": lambda t, d: t.poisson(t.tensor(np.concatenate([UNIT, WIDE, ENDS]), dtype=d)),
    "binomial": lambda t, d: t.binomial(t.tensor(np.floor(WIDE * 9), dtype=d), t.tensor(UNIT, dtype=d)),
    "binomial of none and all": lambda t, d: t.binomial(t.full((3,), 5.0, dtype=d), t.tensor([0, 1, 0.5], dtype=d)),
    "binomial of nan": lambda t, d: t.binomial(
        t.tensor([3.0, 0, 40, 5], dtype=d), t.tensor([np.nan, np.nan, np.nan, 0.3], dtype=d)
    ),
    "strided": lambda t, d: t._standard_gamma(t.tensor(WIDE, dtype=d).view(6, 10).T[1:4, ::2]),
    "gumbel_softmax": lambda t, d: t.nn.functional.gumbel_softmax(t.tensor(WIDE, dtype=d).view(6, 10), 0.7),
    "hard gumbel_softmax": lambda t, d: t.nn.functional.gumbel_softmax(t.zeros(6, 10, dtype=d), hard=True, dim=0),
    "Beta": lambda t, d: t.distributions.Beta(t.tensor(UNIT, dtype=d), 2.0).sample((2,)),
    "LKJ": lambda t, d: t.distributions.LKJCholesky(3, t.tensor(0.5, dtype=d)).sample((2,)),
    "Wishart": lambda t, d: t.distributions.Wishart(t.tensor(4.0, dtype=d), t.eye(2, dtype=d)).sample(),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.filterwarnings("ignore:Singular sample")
def test_numbers(name, dtype):
    found = []
    for t in (jtorch, torch):
        t.manual_seed(3)
        t.empty(1, dtype=t.float64).normal_()  # leaves the second of a pair of normals
        drawn = DRAWS[name](t, getattr(t, dtype))
        found.append((drawn.numpy(), t.get_rng_state().numpy()[:24], t.randn(1, dtype=t.float64).item()))
    (ours, state, after), (its, its_state, its_after) = found
    # exp, log and matrix products of XLA round otherwise than PyTorch's
    exact = name.startswith(("gamma", "dirichlet", "poisson", "binomial", "strided"))
    np.testing.assert_allclose(ours, its, rtol=0 if exact else {"float32": 2e-5, "float64": 1e-11}[dtype], atol=0)
    assert ours.dtype == its.dtype and (state == its_state).all() and after == its_after


def test_gradient_goes_through_host_draws():
    alpha = jtorch.tensor([0.5, 2.0], requires_grad=True)
    x = jtorch._standard_gamma(alpha)
    assert x.grad_fn.name() == "StandardGammaBackward0"
    x.sum().backward()
    want = torch._standard_gamma_grad(torch.tensor([0.5, 2.0]), torch.from_numpy(x.detach().numpy()))
    np.testing.assert_allclose(alpha.grad.numpy(), want.numpy(), rtol=2e-3)


def test_what_is_compiled_draws_on_the_device():
    alpha, logits = jtorch.ones(3), jtorch.zeros(2, 3)
    f = jtorch.compile(lambda: (jtorch._standard_gamma(alpha), jtorch.nn.functional.gumbel_softmax(logits)))
    first, second = f(), f()
    assert not jtorch.equal(first[0], second[0]) and not jtorch.equal(first[1], second[1])


def test_negative_concentration_ends():
    assert jtorch._standard_gamma(jtorch.tensor([-2.0, 1.0])).isnan().tolist() == [True, False]


def test_many_numbers_are_not_drawn_one_by_one(monkeypatch):
    for name in ("poisson", "gamma", "binomial"):
        monkeypatch.delattr(sampling.rejection, name)
    n = sampling.MANY + 1
    draws = [
        jtorch.poisson(jtorch.full((n,), 4.0)), jtorch._standard_gamma(jtorch.full((n,), 4.0)),
        jtorch.binomial(jtorch.full((n,), 8.0), jtorch.full((1,), 0.5)),
    ]  # fmt: skip
    for drawn in draws:
        assert abs(drawn.mean().item() - 4.0) < 0.1
