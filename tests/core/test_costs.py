"""core/costs.py: how long programs wait before they are compiled."""

import numpy as np
import pytest

import jtorch
from jtorch.core import by_numpy, costs, hasty, ledger, parts, program

pytestmark = pytest.mark.usefixtures("own_programs")


def of(x):
    """The program that would compute a tensor."""
    graph = x._storage.value.graph
    state = graph.state
    return program.Program(
        state.nodes(), (False,) * (state.count - 1) + (True,), (False,) * len(graph.inputs), graph.device
    )


def rounds(x, n):
    for _ in range(n):
        x = (x.sin() * 0.5 + x.cos()).tanh()
    return x


def come_back(wait):
    """How long a program waits is counted when it comes back."""
    wait.done(1)
    return wait


def test_what_comes_often_waits_less():
    wait = costs.Wait(2, 50)
    ledger.counters.flushes += 7
    assert not wait.done(1)
    assert wait.done(2), "one flush in four"
    ledger.counters.flushes += 7
    assert not wait.done(3), "seldom"
    assert wait.done(50)


def test_costs_grow_with_what_a_program_is_made_of():
    x = jtorch.ones(8)
    jtorch.synchronize()
    few, many = of(rounds(x, 5)), of(rounds(x, 50))
    assert costs.size(many) >= 9 * costs.size(few) > 0
    assert costs.compiling(many, True) < costs.compiling(many, False)
    assert costs.compiling(few, False) < costs.compiling(many, False)
    wait = costs.by_op(few, 1, True)
    assert wait.done(1), "it has come often"
    assert wait.few == 1 < wait.most <= costs.AT_MOST
    large = of(rounds(jtorch.ones(1 << 16), 5))
    assert costs.in_haste(large, hasty.ENOUGH).most < costs.in_haste(few, hasty.ENOUGH).most


def test_what_comes_often_waits_for_a_part_of_what_compiling_takes(monkeypatch):
    """Whoever makes few steps never waits for the compiler's optimisation, and who makes many has lost little."""
    x = jtorch.ones(8)
    large = jtorch.ones(1 << 17)
    image = jtorch.ones(2, 8, 64, 64)
    jtorch.synchronize()
    for wait in (lambda prog: come_back(costs.by_numpy(prog, 2, True)), lambda prog: costs.in_haste(prog, 2)):
        assert wait(of(rounds(x, 5))).few == costs.AT_MOST_OFTEN
        assert 2 < wait(of(rounds(large, 1))).few < costs.AT_MOST_OFTEN
        assert wait(of(rounds(jtorch.ones(1 << 22), 1))).few == 2
        pooled = of(jtorch.nn.functional.max_pool2d(image * 1, 3, 1, 1))
        few = wait(pooled).few
        with monkeypatch.context() as patch:
            for node in pooled.nodes:
                patch.setattr(node.plan, "channels", None)
            assert few <= wait(pooled).few, "convolutions and what follows them take longer"
            assert wait(pooled).few > 2


def test_what_makes_much_on_its_way_is_made_in_haste_less_often(monkeypatch):
    """Resampling at points gathers and multiplies all that lies around them."""
    image, grid = jtorch.ones(1, 2, 320, 320), jtorch.zeros(1, 320, 320, 2)
    jtorch.synchronize()
    sampled = of(jtorch.nn.functional.grid_sample(image, grid, align_corners=False))
    few = costs.in_haste(sampled, 2).few
    monkeypatch.setattr(costs, "_HASTY_ELEMENT", 0)
    assert 2 < 2 * few < costs.in_haste(sampled, 2).few


def test_a_long_loop_of_few_operations_is_run_by_op_first(monkeypatch):
    """Many primitives of few operations take the compiler long, and each of their executables little."""
    monkeypatch.setattr(by_numpy, "FEW", -1)
    monkeypatch.setattr(parts, "LENGTH", 1 << 20)

    def net(n):
        x = jtorch.linspace(0, 1, 6 * 40 * 40).reshape(1, 6, 40, 40)
        w = jtorch.full((6, 1, 3, 3), 0.1)
        for _ in range(n):
            y = jtorch.nn.functional.conv2d(x, w, padding=1, groups=6)
            x = (x.sigmoid() * y.sin()).softmax(1) + (y.exp() * x).tanh().erf()
        return x.mean().item()

    ways = []
    for n in (48, 48, 48, 48):
        before = ledger.counters.compiles
        ways.append((net(n), ledger.counters.compiles - before))
    assert ways[0][1] == 0
    assert sum(made for _, made in ways) == 1, "it comes often"
    np.testing.assert_allclose([value for value, _ in ways], ways[0][0], rtol=1e-5)
