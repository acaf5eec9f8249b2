"""core/prologue.py: what a loop records between its steps makes no other program of the step, at first."""

import pytest

import jtorch
from jtorch.core import costs, program
from jtorch.core.beside import compiled_beside
from jtorch.core.prologue import LENGTH
from tests.memory import start_anew
from tests.oracle import torch

STEPS = 24


def total(t, model):
    summed = t.zeros(())

    def after(loss):
        nonlocal summed
        summed += loss.detach()

    return after, lambda: [summed.item()], lambda loss: loss


def weight(t, model):
    """Of the losses, a number of the host at first, which numpy computes for each later step."""
    by = t.ones(2)

    def after(loss):
        nonlocal by
        by = by * 0.9 + 0.05

    return after, lambda: by.tolist(), lambda loss: (loss * by).sum()


def average(t, model):
    """Of the parameters."""
    kept = [p.detach().clone() for p in model.parameters()]

    def after(loss):
        with t.no_grad():
            for k, p in zip(kept, model.parameters()):
                k.mul_(0.9).add_(p, alpha=0.1)

    return after, lambda: [k.sum().item() for k in kept], lambda loss: loss


def last(t, model):
    """Of the losses, and the sum of the weights so far, which are results of the step before."""
    seen = []

    def after(loss):
        seen[:] = [loss.detach() * 2, model[0].weight.detach().sum()]

    return after, lambda: [x.item() for x in seen], lambda loss: loss


def clipped(t, model):
    """The parameters, which the step takes from what comes before it."""

    def after(loss):
        with t.no_grad():
            for p in model.parameters():
                p.clamp_(-0.15, 0.15)

    return after, list, lambda loss: loss


def train(t, keep, look=()):
    t.manual_seed(0)
    nn = t.nn
    layers = [
        layer for _ in range(4) for layer in (nn.Conv1d(6, 6, 3, padding=1, bias=False), nn.LayerNorm(12), nn.Tanh())
    ]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(72, 3))
    optimizer = t.optim.Adam(model.parameters(), 0.01)
    after, result, weigh = keep(t, model)
    batches = [(t.randn(8, 6, 12), t.randint(0, 3, (8,))) for _ in range(STEPS)]
    looked = []
    for k, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        loss = weigh(t.nn.functional.cross_entropy(model(inputs), targets))
        loss.backward()
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        after(loss)
        if k in look:
            looked.append(sum(p.grad.abs().sum().item() for p in model.parameters()))
    return [*looked, *result(), *(p.sum().item() for p in model.parameters())]


@pytest.mark.parametrize("keep", [total, average, last, weight, clipped])
@pytest.mark.parametrize("look", [(), (3, 20), range(STEPS)], ids=["never", "twice", "always"])
def test_as_pytorch(keep, look):
    assert train(jtorch, keep, look) == pytest.approx(train(torch, keep, look), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("keep", [total, average, last, weight])
def test_the_long_graph_is_compiled_once(monkeypatch, keep):
    compiled, parts = [], []
    usual, behind = program.Program.compile, program._behind
    monkeypatch.setattr(
        program.Program, "compile", lambda self, *a: (compiled.append(len(self.nodes)), usual(self, *a))
    )
    monkeypatch.setattr(program, "_behind", lambda *a: (parts.append(1), behind(*a)))
    monkeypatch.setattr(costs, "AT_MOST_IN_PARTS", program.LATE)
    start_anew()
    train(jtorch, keep)
    assert len([n for n in compiled if n > LENGTH]) == 1 and len(parts) >= program.LATE
    compiled_beside()
    compiled.clear()
    parts.clear()
    train(jtorch, keep)  # by now the step has a program of its own
    assert not [n for n in compiled if n > LENGTH] and len(parts) < 4


def test_a_program_of_its_own_waits_until_it_is_worth_the_compiler(monkeypatch):
    """What two starts cost more than one is little beside that."""
    beside = []
    monkeypatch.setattr(program, "beside", lambda *given: beside.append(given))
    start_anew()
    train(jtorch, total)
    assert not beside
