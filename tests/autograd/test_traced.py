"""autograd/derive.py: a derivative is traced once, and numpy runs it as it was traced."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch.core.hosted import Steps
from jtorch.core.numpy_rules import ALIKE
from tests.memory import start_anew

F = jtorch.nn.functional
X = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
CASES = {
    "reads nothing": lambda x: x.sum(1),
    "reads its result": lambda x: x.exp(),
    "reads one of two": lambda x: x * jtorch.ones(5),
    "passes one through": lambda x: jtorch.addcmul(x, x * 2, x * 3),
    "by jax": lambda x: F.smooth_l1_loss(x, jtorch.zeros(6, 5)),
    "a number": lambda x: F.leaky_relu(x, 0.3),
    "picked": lambda x: x[jtorch.tensor([0, 2, 2])],
    "several results": lambda x: x.max(0).values,
    "a mean and a deviation": lambda x: F.layer_norm(x, (5,), jtorch.ones(5), jtorch.ones(5)),
}


@pytest.fixture
def ran(monkeypatch):
    """Runs every derivative by numpy as it was traced, too."""
    plans = []
    usual = jtorch.autograd.derive.Backward.make

    def make(self, present):
        plan, passed = usual(self, present)
        if plan is not None:
            plans.append(plan)
        return plan, passed

    monkeypatch.setattr(jtorch.autograd.derive.Backward, "make", make)
    return plans


@pytest.mark.usefixtures("own_programs")
@pytest.mark.parametrize("name", CASES)
def test_as_traced(name, ran):
    start_anew()
    x = jtorch.tensor(X, requires_grad=True)
    CASES[name](x).sum().backward()
    checked = 0
    for plan in ran:
        if plan.known is None:
            continue
        rng = np.random.default_rng(1)
        values = [rng.integers(0, 3, tuple(s.shape)).astype(s.dtype.np) for s in plan.operands] + [
            k(1) for k in plan.kinds
        ]
        found = Steps(ALIKE, *plan.known).run(values)
        for f, e in zip(found, jax.tree.leaves(plan.jit(*values)), strict=True):
            assert (f.shape, f.dtype) == (e.shape, e.dtype)
            np.testing.assert_allclose(f, e, rtol=1e-5, atol=1e-6)
        checked += 1
    assert checked


@pytest.mark.usefixtures("own_programs")
def test_no_derivative_is_traced_again(ran, monkeypatch):
    """Where numpy runs it."""
    net = lambda x: (x.sigmoid().tanh() * x.cos()).log1p().square().sqrt().sum()
    for n in (3, 4, 5):
        x = jtorch.rand(n, requires_grad=True)
        net(x).backward()
        for plan in ran if n > 3 else ():
            monkeypatch.setattr(plan, "jit", None)
        ran.clear()
        x.grad.numpy()
