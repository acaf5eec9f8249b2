"""Update formulas on tensors: the steps of differentiable optimizers."""

import pytest

import jtorch
from tests.oracle import both, torch


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3, "maximize": True},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ],
)
def test_differentiable_step(options):
    def run(t):
        start = t.ones(2, requires_grad=True)
        p = start.clone()
        optimizer = t.optim.SGD([p], lr=0.1, differentiable=True, **options)
        for power in (1, 2, 3):
            p.grad = start**power * p.clone()
            optimizer.step()
        p.sum().backward()
        return start.grad, p.detach()

    both(run)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("learned", [("lr",), ("weight_decay",), ("lr", "weight_decay")])
def test_numbers_are_learned_through_steps(name, learned):
    def run(t):
        start = t.tensor([1.0, -2.0], dtype=t.float64, requires_grad=True)
        values = {"lr": 0.01, "weight_decay": 0.3}
        numbers = {k: t.tensor(values[k], dtype=t.float64, requires_grad=True) for k in learned}
        p = start.clone()
        optimizer = getattr(t.optim, name)([p], differentiable=True, **{**values, **numbers})
        for _ in range(3):
            ((p.sum() - 2) ** 2).backward(inputs=(p,), create_graph=True)
            optimizer.step()
            optimizer.zero_grad()
        loss = (p**2).sum()
        return [p.detach(), *t.autograd.grad(loss, [*numbers.values(), start])]

    both(run)


def test_differentiable_rprop_keeps_double_precision():
    def run(t):
        p = t.ones(3, dtype=t.float64)
        optimizer = t.optim.Rprop([p], lr=0.9, differentiable=True)
        for g in ([1.0, 1.0, -1.0], [1.0, -1.0, 0.0], [0.5, 1.0, 1.0]):
            p.grad = t.tensor(g, dtype=t.float64)
            optimizer.step()
        return p.numpy().tolist()

    assert run(jtorch) == run(torch)
