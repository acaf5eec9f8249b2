"""core/little.py: what numpy runs for good gives what XLA's program gave, and only where there is hardly anything to compute."""

import warnings

import numpy as np
import pytest

import jtorch
from jtorch import config
from jtorch.core import ledger, little
from tests.oracle import both

pytestmark = pytest.mark.usefixtures("own_programs")
RUNS = little.ENOUGH + 6


def policy(torch, x, made):
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(torch.sin(torch.arange(p.numel()) * 0.7 + k).reshape(p.shape))
    for k in range(RUNS):
        with torch.no_grad():
            q = net(x * (k + 1))
        made += [q.argmax(1).tolist(), round(q.max().item(), 3)]


def sampled(torch, x, made):
    torch.manual_seed(3)
    for _ in range(RUNS):
        d = torch.distributions.Categorical(logits=x[0, :4])
        a = d.sample()
        made += [a.item(), round(d.log_prob(a).item(), 4), round(d.entropy().item(), 4)]


def gradients(torch, x, made):
    w = torch.linspace(-1, 1, 8).requires_grad_()
    for k in range(RUNS):
        loss = ((x * w).sum(1) - k).pow(2).mean() + torch.where(w > 0, w, w.exp()).sum()
        w.grad = None
        loss.backward()
        made += [round(loss.item(), 2), [round(g, 2) for g in w.grad.tolist()]]


def edges(torch, x, made):
    """What compilers and libraries differ in, if they do."""
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, 2.5, -7.5])
    whole = torch.tensor([-7, 7, 0, 5])
    for k in range(RUNS):
        made += [
            str(special.max().item()), str(special[3:].min().item()), torch.clamp(special, -1, 1).tolist()[1:],
            special.round().tolist()[1:], (special > k).tolist(), special.nan_to_num(1.0).tolist(),
            (whole // 2).tolist(), (whole % 3).tolist(), torch.div(whole, 2, rounding_mode="trunc").tolist(),
            (special[5:] ** 2).tolist(), special.sign().tolist(), torch.sort(special[1:]).values.tolist(),
            special.isnan().any().item(), whole.sum().item(), whole.float().softmax(0).argmax().item(),
        ]  # fmt: skip


def written(torch, x, made):
    table = torch.zeros(4, 5)
    for k in range(RUNS):
        table[k % 4, k % 5] += k
        row = table[k % 4]
        made += [row.tolist(), row.view(-1)[1:3].tolist(), table.t()[2].tolist(), table.sum().item()]
        row *= 0.5
    made.append(table.numpy().tolist())


@pytest.mark.parametrize("program", [policy, sampled, gradients, edges, written])
def test_as_pytorch(program):
    def run(torch):
        made = []
        x = torch.arange(24.0).reshape(3, 8) / 10 - 1
        program(torch, x, made)
        return made

    both(run)


def how(f):
    """Of the last of many runs: whether numpy made it."""
    for _ in range(RUNS):
        f()
    before = ledger.counters.by_op
    f()
    return ledger.counters.by_op - before


X = np.linspace(-1, 1, 8, dtype=np.float32)


def read(x):
    return jtorch.nn.functional.softplus(jtorch.tensor(X) * x).tanh().sum().item()


def test_what_is_little(monkeypatch):
    x, large, half = jtorch.ones(8), jtorch.ones(64, 64), jtorch.ones(8, dtype=jtorch.bfloat16)
    jtorch.synchronize()
    assert how(lambda: read(x)) == 1
    assert how(lambda: (large @ large @ large @ large).sum().item()) == 0, "products"
    assert how(lambda: (large + 1).tanh().exp().numpy()) == 0, "results"
    assert how(lambda: (half.exp() + 1).sin().sum().item()) == 0, "numbers of 16 bits"
    monkeypatch.setattr(config, "deterministic", True)
    assert how(lambda: read(x)) == 0


def test_results_are_their_own():
    """None is a view of an operand, none can be written to from outside, and what they are put into is a program's as ever."""
    x = jtorch.linspace(0, 1, 12)
    jtorch.synchronize()
    kept = []
    for k in range(RUNS):
        y = (x + k).reshape(3, 4)
        z = y.t()
        kept.append((k, y, z, z.numpy()))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y += 1
    for k, y, z, array in kept:
        np.testing.assert_allclose(y.numpy(), x.numpy().reshape(3, 4) + k + 1, rtol=1e-6)
        np.testing.assert_array_equal(z.numpy(), y.numpy().T)
        assert array.flags.writeable and np.shares_memory(array, z.numpy())


def test_numbers_that_vary():
    x = jtorch.tensor([1.0, 2.0])
    for k in range(3 * RUNS):
        assert (x * (k / 4) + k).tolist() == [k / 4 + k, k / 2 + k]


def test_products_alone_ask_the_library_for_one_thread(monkeypatch):
    asked = []

    class Noted(little.one_thread):
        def __enter__(self):
            asked.append(self)
            return super().__enter__()

    monkeypatch.setattr(little, "one_thread", Noted)
    x = jtorch.arange(12.0).reshape(3, 4)
    for k in range(RUNS):
        (x * k).sum().item()
    assert not asked
    for k in range(RUNS):
        ((x * k) @ x.T).sum().item()
    assert asked
