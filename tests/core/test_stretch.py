"""core/stretch.py: long recordings that nobody ends."""

import subprocess
import sys

import numpy as np
import pytest

import jtorch
from jtorch.core import ledger, stretch
from tests.oracle import torch

pytestmark = pytest.mark.usefixtures("own_programs")


def heat(lib, passes):
    u = lib.zeros(8, 8)
    u[0] = 100
    for _ in range(passes):
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return u


def life(lib, passes):
    lib.manual_seed(0)
    g = (lib.rand(16, 16) < 0.4).int()
    for _ in range(passes):
        n = sum(lib.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        g = lib.where(g == 1, (n == 2) | (n == 3), n == 3).int()
    return g


@pytest.mark.parametrize("passes", [50, 400])
@pytest.mark.parametrize("loop", [heat, life], ids=lambda f: f.__name__)
def test_simulations(loop, passes):
    """The parts of a long loop are a few programs, which are run again and again."""
    before = len(ledger.entries), ledger.counters.flushes
    got = loop(jtorch, passes).numpy()
    assert len(ledger.entries) - before[0] <= 12
    assert ledger.counters.flushes - before[1] >= passes * 10 // (2 * stretch.LONG)
    np.testing.assert_allclose(got, loop(torch, passes).numpy(), rtol=1e-4, atol=1e-4)


FIRST = """
import jtorch
from jtorch.core.record import tls
x = jtorch.ones(8)
for _ in range(1024):
    x = (x * 1.01).sin()
print(tls.me.graph.state.length)
"""


def test_the_first_recording_of_a_process():
    ended = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=120)
    assert int(ended.stdout) < 1024, ended.stderr


def test_what_is_differentiated_is_whole():
    """A step of a training loop is one program, however long; so is a later one of the same graph."""
    w = jtorch.full((4,), 0.999, requires_grad=True)
    for _ in range(2):
        before = ledger.counters.flushes
        x = jtorch.ones(4)
        for _ in range(stretch.LONG):
            x = x * w + 0.001
        x.sum().backward()
        assert ledger.counters.flushes == before
        assert w.grad.shape == (4,)
        w.grad.tolist()
        w.grad = None
        assert ledger.counters.flushes == before + 1


def test_no_part_is_cut_in_a_compiled_region():
    def loop(x):
        for _ in range(stretch.LONG):
            x = x.sin() + 0.1
        return x

    x = jtorch.ones(3)
    jtorch.synchronize()
    before = ledger.counters.flushes
    got = jtorch.compile(loop)(x)
    assert ledger.counters.flushes <= before + 1
    np.testing.assert_allclose(got.numpy(), loop(torch.ones(3)).numpy(), rtol=1e-5)


def fitted(lib, passes, way):
    """A third-order polynomial fitted without an optimizer."""
    lib.manual_seed(0)
    x = lib.linspace(-3, 3, 50)
    y = x.sin()
    weights = [lib.randn(()).requires_grad_() for _ in range(4)]
    for _ in range(passes):
        loss = (weights[0] + weights[1] * x + weights[2] * x**2 + weights[3] * x**3 - y).square().sum()
        if way == "backward":
            loss.backward()
            grads = [w.grad for w in weights]
        else:
            grads = lib.autograd.grad(loss, weights)
        with lib.no_grad():
            for w, g in zip(weights, grads):
                w -= 1e-5 * g
                w.grad = None
    return [w.item() for w in weights]


@pytest.mark.parametrize("way", ["backward", "grad"])
def test_training_without_an_optimizer(way):
    before = len(ledger.entries), ledger.counters.flushes
    got = fitted(jtorch, 200, way)
    assert len(ledger.entries) - before[0] <= 6
    assert ledger.counters.flushes - before[1] >= 5
    np.testing.assert_allclose(got, fitted(torch, 200, way), rtol=1e-4, atol=1e-5)
