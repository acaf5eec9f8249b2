"""auto, eager and jax.jit: the execution mode never changes a result beyond rounding."""

import threading

import jax
import numpy as np
import pytest

import jtorch
from tests.oracle import compare, to_torch

F = jtorch.nn.functional


def pointwise():
    x = jtorch.linspace(-2, 2, 24).view(4, 6)
    return (x.sin() * 2 + x.exp() / 3 - 1).clamp(-1, 4), x.gt(0), x.to(jtorch.int32), x.half() + 1


def views_and_writes():
    x = jtorch.arange(24.0).view(2, 3, 4)
    x[0, 1:] *= -1
    x.transpose(1, 2)[1, ::2].add_(5)
    x[x > 20] = 0
    return x, x.unfold(2, 2, 1).sum(-1), x[:, [0, 2]]


def gradients():
    w = jtorch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
    x = jtorch.linspace(0, 1, 15).view(5, 3)
    loss = F.cross_entropy((x @ w).tanh(), jtorch.tensor([0, 1, 2, 3, 0]))
    (g,) = jtorch.autograd.grad(loss, w, create_graph=True)
    g.pow(2).sum().backward()
    return loss.detach(), g.detach(), w.grad


def control_flow():
    x = jtorch.tensor([3.0, 4.0])
    n = 0
    while x.norm() > 0.1:
        x = x / 2 if x.sum() > 1 else x / 3
        n += 1
    return x, n


def training():
    jtorch.manual_seed(0)
    net = jtorch.nn.Sequential(jtorch.nn.Linear(4, 8), jtorch.nn.ReLU(), jtorch.nn.LayerNorm(8), jtorch.nn.Linear(8, 3))
    opt = jtorch.optim.Adam(net.parameters(), lr=1e-2)
    x, y = jtorch.randn(16, 4), jtorch.randint(0, 3, (16,))
    losses = []
    for _ in range(6):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, [p.detach() for p in net.parameters()]


PROGRAMS = [pointwise, views_and_writes, gradients, control_flow, training]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_auto_equals_eager(program):
    with jtorch.execution_mode("eager"):
        eager = to_torch(program())
    for _ in range(3):  # by op, then fused
        with jtorch.execution_mode("auto"):
            compare(eager, to_torch(program()), least=(1e-5, 1e-6))


def test_inside_jit():
    def program(x, w):
        y = F.relu(x @ w.t()) + x.sum()
        y[0] = 7
        return y.log_softmax(-1), y[:, 1:].t()

    x, w = jtorch.randn(4, 3), jtorch.randn(5, 3)
    compare(to_torch(program(x, w)), to_torch(jax.jit(program)(x, w)))


def test_jax_grad_and_vmap_over_jtorch_code():
    def loss(w):
        t = jtorch.tensor(w) if not isinstance(w, jtorch.Tensor) else w
        return (t.sin() * t).sum().__jax_array__()

    w = jtorch.linspace(0, 1, 5)
    a = w.__jax_array__()
    got = jax.grad(lambda a: loss(jax.tree.unflatten(jax.tree.structure(w), [a])))(a)
    np.testing.assert_allclose(got, np.sin(a) + a * np.cos(a), rtol=1e-5)


def test_a_traced_value_cannot_be_read():
    with pytest.raises(Exception, match=r"(?i)trac|data-dependent|concret"):
        jax.jit(lambda t: t * t.sum().item())(jtorch.ones(3))


def test_the_mode_belongs_to_the_thread():
    seen = []
    with jtorch.execution_mode("eager"):
        t = threading.Thread(target=lambda: seen.append(jtorch.get_execution_mode()))
        t.start()
        t.join()
    assert seen == [jtorch.config.mode]


def test_a_mode_that_there_is_not_is_refused(monkeypatch):
    for said, found in ((" Eager", "eager"), ("", "auto"), ("auto", "auto")):
        monkeypatch.setenv("JTORCH_MODE", said)
        assert jtorch.config._choice("JTORCH_MODE", "auto", "eager") == found
    monkeypatch.setenv("JTORCH_MODE", "eagre")
    with pytest.raises(ValueError, match="JTORCH_MODE is 'eagre'; it can be 'auto' or 'eager'"):
        jtorch.config._choice("JTORCH_MODE", "auto", "eager")
