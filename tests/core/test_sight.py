"""core/sight.py: which programs are compiled at first sight."""

import pytest

import jtorch
from jtorch.core import costs, ledger, sight

pytestmark = pytest.mark.usefixtures("own_programs")


def counted(fn):
    before = ledger.counters.compiles, ledger.counters.by_op
    fn()
    return ledger.counters.compiles - before[0], ledger.counters.by_op - before[1]


def test_which_graphs_are_numpys():
    """A program that was compiled at sight, with other shapes; one of the ops of two such programs."""
    net = lambda x: x.sin().cos().tanh().exp().abs().sqrt().neg().sigmoid().sum().item()
    shapes = [jtorch.ones(n) for n in (5, 6, 7)]
    jtorch.synchronize()
    assert [counted(lambda x=x: net(x)) for x in shapes] == [(1, 0), (0, 1), (0, 1)]
    other = lambda x: x.cos().sin().exp().tanh().sqrt().abs().sigmoid().neg().sum().item()
    assert counted(lambda: other(jtorch.ones(8) * 1)) == (1, 0), "only one program had these ops"
    third = lambda x: x.exp().cos().sin().tanh().sqrt().neg().sigmoid().abs().sum().item()
    assert counted(lambda: third(jtorch.ones(9) * 1)) == (0, 1)


def test_what_comes_seldom_stays_numpys(monkeypatch):
    """Of many shapes none is compiled for coming a third time, but one that comes often is."""
    net = lambda n: jtorch.ones(n).sin().cos().tanh().exp().abs().sqrt().neg().sigmoid().sum().item()
    assert counted(lambda: net(3)) == (1, 0)
    assert counted(lambda: [net(n) for _ in range(4) for n in range(4, 12)]) == (0, 32)
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 2)
    assert counted(lambda: [net(n) for n in (20, 21, 20, 21, 20, 21)]) == (2, 4)


def test_a_step_that_numpy_runs_is_not_compiled_with_its_gradients():
    """Neither is the program with gradients among its results, which would run for those whose gradients die unseen."""
    model = jtorch.nn.Sequential(jtorch.nn.Linear(4, 9), jtorch.nn.Tanh(), jtorch.nn.Linear(9, 3), jtorch.nn.Sigmoid())
    opt = jtorch.optim.AdamW(model.parameters())
    jtorch.synchronize()

    def steps(n, times):
        x = jtorch.ones(n, 4)
        jtorch.synchronize()
        for _ in range(times):
            opt.zero_grad()
            model(x).square().sum().backward()
            opt.step()
        jtorch.synchronize()

    steps(5, 3)
    assert counted(lambda: steps(6, 8))[0] == 0


@pytest.mark.parametrize("scale", [1.0, 0.5], ids=["update", "clipped and updated"])
def test_an_update_alone_is_numpys(scale, monkeypatch):
    """Where the loss was looked at before the step, whose graph then is of many parameters and little work."""
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 4)
    params = [jtorch.nn.Parameter(jtorch.ones(3 + k, 5)) for k in range(8)]
    opt = jtorch.optim.AdamW(params, lr=0.125)

    def step():
        sum((p * p).sum() for p in params).backward()
        jtorch.synchronize()
        found = counted(
            lambda: (scale < 1 and jtorch.nn.utils.clip_grad_norm_(params, scale), opt.step(), jtorch.synchronize())
        )
        opt.zero_grad()
        return found

    assert [step() for _ in range(3)] == [(0, 1)] * 3
    assert (1, 0) in [step() for _ in range(8)], "one that comes often is compiled"


def test_many_passes_are_numpys(monkeypatch):
    """A loop that looks at none of its values is a graph of very many nodes, whole where it is differentiated."""

    def passes():
        x = jtorch.ones(4, requires_grad=True)
        for _ in range(60):
            x = x.sin().cos().tanh().exp() / 3
        return x.sum().item()

    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 2)
    monkeypatch.setattr(sight, "_VERY_MANY", 250)
    assert counted(lambda: [passes() for _ in range(3)]) == (0, 3)
    assert counted(lambda: [passes() for _ in range(sight._ENOUGH_OF_MANY)])[0] == 1


def growing(steps):
    """A cache that each step adds to, and reads whole."""
    cache, x = jtorch.zeros(1, 3), jtorch.ones(1, 3)
    for _ in range(steps):
        cache = jtorch.cat([cache, x])
        x = (cache.softmax(0) * cache).sum(0, keepdim=True).tanh()
    return cache


def test_loops_whose_tensors_grow_are_numpys():
    """The first one too: no other program has had its operations."""
    assert counted(lambda: growing(12).sum().item()) == (1, 0), "few sizes"
    assert counted(lambda: growing(40).sum().item()) == (0, 1)


def test_deterministic_algorithms():
    """All runs of a graph are the compiler's, so that they agree in every bit."""
    net = lambda x: (x.sin() * 0.3 + x.cos() * 0.7).tanh().exp().abs().sqrt().neg().sigmoid().sum().item()
    few = lambda x: (x * 0.3 + x).sum().item()
    net(jtorch.ones(5))
    with jtorch.random.fork_rng():
        x = jtorch.rand(6)
    jtorch.use_deterministic_algorithms(True)
    try:
        assert counted(lambda: net(x)) == counted(lambda: few(x)) == (1, 0)
        assert len({net(x) for _ in range(4)}) == len({few(x) for _ in range(4)}) == 1
    finally:
        jtorch.use_deterministic_algorithms(False)
    assert counted(lambda: net(jtorch.ones(7))) == (0, 1)
