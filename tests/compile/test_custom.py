"""torch.compile(backend=function): the function gets the graph of what runs, and what it returns runs instead."""

import operator
import warnings

import numpy as np
import pytest

import jtorch
import jtorch.nn.functional as F
from jtorch import nn
from jtorch.swap.internal import dynamo


class Backend:
    """Keeps the graphs that it gets; `change` may edit them."""

    def __init__(self, change=None):
        self.graphs, self.change = [], change

    def __call__(self, gm, inputs):
        assert len(inputs) == sum(n.op == "placeholder" for n in gm.graph.nodes)
        self.graphs.append(gm)
        if self.change is not None:
            for node in gm.graph.nodes:
                node.target = self.change.get(node.target, node.target)
            gm.graph.lint()
            gm.recompile()
        return gm.forward

    def targets(self, k=0):
        """What the nodes of a graph call, as names."""
        return [
            n.target if isinstance(n.target, str) else n.target.__name__
            for n in self.graphs[k].graph.nodes
            if n.op.startswith("call")
        ]


def test_the_graph_is_what_was_written():
    seen = Backend()
    weight = jtorch.ones(3)

    @jtorch.compile(backend=seen)
    def f(x, ys):
        a, b = x.chunk(2)
        with jtorch.no_grad():
            k = 1 - a
        return {"sum": jtorch.sin(a) + b @ weight, "k": k}, ys[0].T.float(), x.shape[0]

    x = jtorch.arange(6.0).reshape(2, 3).requires_grad_()
    out, turned, n = f(x, [jtorch.ones(2, 2)])
    assert n == 2 and not out["k"].requires_grad and out["sum"].requires_grad
    assert jtorch.equal(out["sum"], jtorch.sin(x[:1]) + x[1:] @ weight) and turned.shape == (2, 2)
    want = "chunk getitem _set_grad_enabled sub _set_grad_enabled sin getitem matmul add getattr float"
    assert seen.targets() == want.split()
    names = [n.name for n in seen.graphs[0].graph.nodes if n.op == "placeholder"]
    assert names == ["l_x_", "l_weight_", "l_ys_0_"]
    f(x, [jtorch.ones(2, 2)])
    assert len(seen.graphs) == 1  # the same graph is compiled once
    f(x.detach(), [jtorch.ones(2, 2)])
    assert len(seen.graphs) == 2


def test_what_the_backend_returns_is_what_runs():
    f = jtorch.compile(
        lambda x: jtorch.sin(x) + 2, backend=Backend({jtorch.sin: jtorch.cos, operator.add: operator.mul})
    )
    x = jtorch.tensor([0.0, 1.0])
    assert jtorch.equal(f(x), jtorch.cos(x) * 2)
    with pytest.raises(RuntimeError, match="compiler_fn did not return callable"):
        jtorch.compile(lambda x: x + 1, backend=lambda gm, inputs: None)(x)
    with pytest.raises(RuntimeError, match="gave 0 values where the graph has 1 tensors"):
        jtorch.compile(lambda x: x + 1, backend=lambda gm, inputs: lambda *a: ())(x)


def test_a_backend_is_asked_again_after_a_reset():
    seen = Backend({})
    f = jtorch.compile(lambda x: x + 1, backend=seen)
    for _ in range(2):
        f(jtorch.ones(2))
    jtorch.compiler.reset()
    f(jtorch.ones(2))
    assert len(seen.graphs) == 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.bn, self.l2 = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        h = F.relu(self.bn(self.l1(x)))
        if h.mean() > 0.3:  # Python needs a value: the graph ends here
            h = h * 2
        for row in h:
            h = h + row
        return self.l2(h)


def train(compiled):
    jtorch.manual_seed(0)
    net = Net()
    call = compiled(net)
    opt = jtorch.optim.SGD(call.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        opt.zero_grad()
        loss = F.cross_entropy(call(jtorch.randn(3, 4)), jtorch.randint(0, 2, (3,)))
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, net.calls, net.bn.num_batches_tracked.item(), net.bn.running_mean.tolist()


def test_training_with_a_break_in_the_graph():
    seen = Backend()
    got, want = train(lambda m: jtorch.compile(m, backend=seen)), train(lambda m: m)
    assert got[0] == pytest.approx(want[0], rel=1e-5) and got[1:3] == want[1:3]
    assert got[3] == pytest.approx(want[3], rel=1e-5)
    assert "batch_norm" in seen.targets(0) and "l2" not in str(seen.graphs[0].code)
    assert seen.targets(1)[-1] == "linear" and len(seen.graphs) <= 4


def test_writes_draws_and_custom_functions_happen_once():
    class Tenfold(jtorch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 10

    def f(x, w):
        x.mul_(2)
        x[0] = 7
        return Tenfold.apply(w) + jtorch.rand(3), x.sum()

    results = []
    for fn in (f, jtorch.compile(f, backend=Backend(), fullgraph=True)):
        jtorch.manual_seed(3)
        x, w = jtorch.ones(3), jtorch.ones(3, requires_grad=True)
        out, total = fn(x, w)
        out.sum().backward()
        results.append((x.tolist(), out.tolist(), total.item(), w.grad.tolist(), jtorch.rand(2).tolist(), x._version))
    assert results[0] == results[1]


def test_what_cannot_be_shown_says_so():
    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return y.sum()

    seen = Backend()
    x = jtorch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="hooked runs as it is.*register_hook is used"):
        jtorch.compile(hooked, backend=seen)(x).backward()
    assert x.grad.tolist() == [6, 6] and not seen.graphs
    with pytest.raises(RuntimeError, match="breaks at __bool__"):
        jtorch.compile(lambda x: x if x.sum() > 0 else -x, backend=seen, fullgraph=True)(x)


def test_a_whole_step_runs():
    net = nn.Linear(3, 1)
    opt = jtorch.optim.SGD(net.parameters(), lr=0.1)
    seen = Backend()

    @jtorch.compile(backend=seen)
    def step(x, y):
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = [step(jtorch.ones(2, 3), jtorch.ones(2, 1)).item() for _ in range(3)]
    assert losses[2] < losses[1] < losses[0] and len(seen.graphs) == 1


def test_backends_have_names_when_they_are_registered():
    seen = Backend()

    @dynamo.register_backend(name="seen by name")
    def by_name(gm, inputs):
        return seen(gm, inputs)

    try:
        assert dynamo.lookup_backend("seen by name") is by_name and dynamo.lookup_backend(by_name) is by_name
        for decorator in (jtorch.compile(backend="seen by name"), dynamo.optimize("seen by name")):
            assert decorator(lambda x: x.sin() + 1)(jtorch.zeros(2)).tolist() == [1, 1]
        assert seen.targets() == ["sin", "add"]
    finally:
        dynamo.named.clear()
    with pytest.raises(RuntimeError, match="Invalid backend: 'seen by name'"):
        jtorch.compile(lambda x: x, backend="seen by name")
    with dynamo.error_on_graph_break(True):
        assert dynamo.nonstrict_trace(len)([1]) == 1


def test_memory_shared_with_numpy_is_as_it_was_before_the_graph_runs():
    memory = np.zeros((4, 3))
    run = jtorch.compile(lambda x: x.add_(1).sum(), backend=Backend())
    for k in range(1, 4):
        assert run(jtorch.from_numpy(memory)).item() == 12.0 * k
        assert memory[0, 0] == k
    run = jtorch.compile(lambda x: x.sum(), backend=Backend())
    given = jtorch.from_numpy(np.ones((4, 3)))  # which nobody else has any more
    assert [run(given).item(), given.sum().item(), run(given).item()] == [12.0] * 3
