"""Memory stays flat over steps: nothing of a finished step is kept."""

import gc
import weakref
from itertools import pairwise

import jax
import pytest

import jtorch
from jtorch.core import paths
from jtorch.core.beside import compiled_beside


def live_bytes():
    jtorch.synchronize()
    gc.collect()
    return sum(a.nbytes for a in jax.live_arrays())


def model():
    net = jtorch.nn.Sequential(jtorch.nn.Linear(16, 32), jtorch.nn.Tanh(), jtorch.nn.Linear(32, 4))
    return net, jtorch.optim.Adam(net.parameters())


@pytest.mark.parametrize("mode", ["auto", "eager"])
def test_training_steps_leave_nothing(mode):
    with jtorch.execution_mode(mode):
        net, opt = model()
        x = jtorch.randn(8, 16)

        def step():
            opt.zero_grad()
            net(x).pow(2).mean().backward()
            opt.step()

        for _ in range(160):
            step()
            compiled_beside()
        held = []
        for _ in range(6):
            for _ in range(40):
                step()
            held.append((live_bytes(), len(gc.get_objects())))
        # What is made once, as a program for the look at the steps when it is worth it, is made in some of the times; a step's would be in all.
        more = [(b - a, y - x) for (a, x), (b, y) in pairwise(held)]
        assert min(b for b, _ in more) <= 0
        assert min(n for _, n in more) < 40


def test_states_do_not_grow():
    net, opt = model()
    x = jtorch.randn(8, 16)

    def step(i):
        opt.zero_grad()
        opt.param_groups[0]["lr"] = 1e-3 / (i + 1)
        (net(x) * float(i)).pow(2).mean().backward()
        opt.step()

    for i in range(6):
        step(i)
    before = paths.roots.states
    for i in range(6, 40):
        step(i)
    assert paths.roots.states == before


def test_a_dropped_graph_is_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x = jtorch.randn(4, requires_grad=True)
        y = (x * 2).sin()
        gone = weakref.ref(y)
        z = y.sum()
        z.backward()
        del y, z
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "Adafactor", "LBFGS"])
def test_a_dropped_optimizer_is_freed_without_the_collector(name):
    """With its parameters and their states, however many programs its steps have left."""

    def closure():
        return (x * x).sum()

    gc.collect()
    gc.disable()
    try:
        x = jtorch.ones(2, requires_grad=True)
        optimizer = getattr(jtorch.optim, name)([x], lr=0.1)
        schedule = jtorch.optim.lr_scheduler.StepLR(optimizer, 2)
        for _ in range(6):
            x.grad = jtorch.ones(2)
            optimizer.step(*((closure,) if name == "LBFGS" else ()))
            schedule.step()
            x.tolist()
        gone = [weakref.ref(kept) for kept in (x, optimizer, schedule)]
        x = optimizer = schedule = None
        assert [ref() for ref in gone] == [None, None, None]
    finally:
        gc.enable()


def test_backward_frees_what_was_saved():
    x = jtorch.randn(1000, requires_grad=True)
    jtorch.synchronize()
    y = x.exp().sin()
    jtorch.synchronize()
    loss = y.sum()
    before = live_bytes()
    loss.backward()
    x.grad = None
    assert live_bytes() < before


def test_accumulated_losses_kept_as_numbers_keep_nothing():
    net, _ = model()
    x = jtorch.randn(8, 16)
    total = 0.0
    for _ in range(6):  # what stays numpy's at first is on the device then
        total += net(x).sum().item()
    before = live_bytes()
    for _ in range(20):
        total += net(x).sum().item()
    assert live_bytes() <= before
