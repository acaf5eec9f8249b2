"""core/by_numpy.py: graphs that do not come back are run without a compiler, and give the same."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch import config
from jtorch.core import by_numpy, costs, hosted, ledger, little, numpy_windows, sight
from tests.oracle import torch

pytestmark = pytest.mark.usefixtures("own_programs")


@pytest.fixture(autouse=True)
def numpys(monkeypatch):
    """Every graph is numpy's at first, as if programs like it had been compiled."""
    monkeypatch.setattr(sight, "_VARIED", 0)
    monkeypatch.setattr(config, "cold_ops", -1)


def counted(fn):
    before = ledger.counters.compiles, ledger.counters.by_op
    fn()
    return ledger.counters.compiles - before[0], ledger.counters.by_op - before[1]


def decoder(t, lengths):
    """Losses of a decoder whose sentences have other lengths at each step."""
    t.manual_seed(0)
    embed, cell, out = t.nn.Embedding(7, 5), t.nn.GRUCell(5, 6), t.nn.Linear(6, 7)
    params = [p for m in (embed, cell, out) for p in m.parameters()]
    optimizer, losses = t.optim.Adam(params, 0.05), []
    for n in lengths:
        words = (t.arange(3 * n) * 5 % 7).reshape(3, n)
        h, loss = t.zeros(3, 6), 0
        for k in range(n - 1):
            h = cell(embed(words[:, k]), h)
            loss = loss + t.nn.functional.cross_entropy(out(h), words[:, k + 1])
        optimizer.zero_grad()
        loss.backward()
        t.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_graphs_of_other_lengths():
    found = []
    compiles, by_op = counted(lambda: found.extend(decoder(jtorch, range(2, 14))))
    assert compiles == 0
    assert by_op >= 12
    np.testing.assert_allclose(found, decoder(torch, range(2, 14)), rtol=1e-4)


def test_a_graph_that_comes_back_is_compiled(monkeypatch):
    monkeypatch.setattr(little, "ENOUGH", -1)
    x = jtorch.linspace(-1, 1, 6)
    jtorch.synchronize()
    seen = [counted(lambda: (x.sin() * 3).sum().item()) for _ in range(costs.AT_MOST_OFTEN + 2)]
    assert seen == [(0, 1)] * costs.AT_MOST_OFTEN + [(1, 0), (0, 0)]


def test_results_do_not_share_memory():
    x = jtorch.arange(6.0).reshape(2, 3)
    jtorch.synchronize()
    y = x.t().clone(memory_format=jtorch.preserve_format)
    z = x.view(3, 2).clone()
    jtorch.synchronize()
    for _ in range(4):
        x += 1
        jtorch.synchronize()
    assert y.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert z.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_what_numpy_lacks_has_executables():
    """Single operations among others, and values that do not fit."""
    x = jtorch.tensor([0.5, 3e9])
    assert (jtorch.special.i0e(x * 2) + 1).sum().isfinite().item()
    half = (x.bfloat16() * 2).float() + x
    assert half.tolist() == [1.5, pytest.approx(9e9, rel=1e-2)]
    assert (x + 1).to(jtorch.int32)[0].item() == 1


@pytest.mark.parametrize(
    "fn", [lambda x: x.exp().sum(), lambda x: (x.to(jtorch.complex64) * 1j).sin().exp().log().sqrt().abs().cos().sum()]
)
def test_same_as_eager(fn):
    x = jtorch.linspace(0, 1, 9)
    found = fn(x).item()
    with jtorch.execution_mode("eager"):
        assert found == pytest.approx(fn(x).item(), rel=1e-5)


def test_inside_somebodys_jit():
    @jax.jit
    def f(a):
        return a + (jtorch.arange(5) * 2).float().exp().sum().numpy()

    np.testing.assert_allclose(f(1.0), 1 + np.exp(np.arange(5) * 2.0).sum(), rtol=1e-6)


def test_large_graphs_are_compiled(monkeypatch):
    """Those that numpy would take longer for than the compiler."""
    monkeypatch.setattr(by_numpy, "LITTLE", 100)

    def run(n):
        jtorch.ones(n).sin().cos().tan().exp().sqrt().tanh().sigmoid().sum().item()

    assert counted(lambda: run(40)) == (0, 1), "compiling takes longer"
    monkeypatch.setattr(costs, "_NUMPYS", (1, 1, 1))
    assert counted(lambda: run(41)) == (1, 0)


def test_many_operations_that_turn_out_not_to_be_numpys(monkeypatch):
    """The program is compiled at its first run, and before any of them is run by itself."""
    monkeypatch.setattr(numpy_windows, "MULTIPLIED", 10)
    x = jtorch.ones(1, 2, 9, 9)
    layers = [jtorch.nn.Conv2d(2, 2, k, padding=1) for k in range(1, 9)]
    jtorch.synchronize()

    def run():
        return sum(layer(x).sum() for layer in layers).item()

    found = []
    assert counted(lambda: found.append(run())) == (1, 0)
    assert found[0] == pytest.approx(run(), rel=1e-5)


def test_long_loops_are_compiled(monkeypatch):
    monkeypatch.setattr(hosted, "ROUNDS", 4)
    layer, x = jtorch.nn.GRU(2, 3), jtorch.ones(6, 1, 2)
    jtorch.synchronize()
    first = layer(x)[0].sum()
    assert counted(first.item)[1] == 1
    monkeypatch.undo()
    assert first.item() == pytest.approx(layer(x)[0].sum().item(), rel=1e-5)
