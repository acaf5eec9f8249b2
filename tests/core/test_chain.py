"""Steps that gather and run as one program: the numbers are PyTorch's, whatever is looked at, and whenever."""

import threading

import pytest

import jtorch
from jtorch.core import chain, record
from jtorch.core.beside import THREAD, beside, compiled_beside
from tests.memory import start_anew
from tests.oracle import torch

STEPS = 60


def zero_first(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


def zero_between(model, optimizer, x):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def zero_last(model, optimizer, x):
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def training(t, step, every, optimizer, compiled=False):
    """What a loop has seen: the losses that it kept, weights, gradients, after other learning rates and written weights."""
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Linear(8, 2))
    optimizer = getattr(t.optim, optimizer)(model.parameters(), lr=0.01)
    call = t.compile(step) if compiled else step
    batches = [t.full((3, 4), (i + 1) / 7) for i in range(7)]
    seen, before = [b.sum() for b in batches], [b.sum().item() for b in batches]
    for i in range(STEPS):
        loss = call(model, optimizer, batches[i % 7]).detach()
        if i % 3:
            seen.append(loss)
        if i % every == every - 1:
            loss.item()
        compiled_beside()
        if i == 45:
            optimizer.param_groups[0]["lr"] = 0.02
        if i == 50:
            seen.append(model[0].weight.sum())
            with t.no_grad():
                model[0].bias.add_(0.5)
        if i == 54:
            before.append(model[2].weight.detach().clone())
    seen += [*before[7:], *model.parameters(), *[p.grad for p in model.parameters() if p.grad is not None]]
    return [x.detach().tolist() for x in seen]


@pytest.mark.parametrize("compiled", [False, True], ids=["auto", "compile"])
@pytest.mark.parametrize("step", [zero_first, zero_between, zero_last], ids=lambda s: s.__name__)
@pytest.mark.parametrize("every, optimizer", [(1000, "SGD"), (6, "AdamW")])
def test_training(step, every, optimizer, compiled, runs):
    got = training(jtorch, step, every, optimizer, compiled)
    want = training(torch, step, every, optimizer)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-6)
    assert runs, "no steps were run together"


@pytest.mark.parametrize("compiled", [False, True], ids=["auto", "compile"])
@pytest.mark.parametrize("every, optimizer, unrolled", [(1000, "SGD", 0), (6, "AdamW", 0), (6, "AdamW", 200)])
def test_chains_that_make_all_their_runs(every, optimizer, unrolled, compiled, runs, monkeypatch):
    monkeypatch.setattr(chain, "asks_the_host", lambda device: True)
    monkeypatch.setattr(chain, "UNROLLED", unrolled)
    start_anew()  # with the chains of other tests
    test_training(zero_first, every, optimizer, compiled, runs)
    assert len(set(runs)) == 1 and runs[0] > 1
    start_anew()


@pytest.mark.parametrize(
    "runs, whole, part", [(2, 2, 2), (5, 5, 5), (9, 3, 5), (10, 5, 5), (19, 3, 5), (49, 4, 5), (99, 3, 5)]
)
def test_length(runs, whole, part, monkeypatch):
    assert chain.length_for(runs, jtorch.device("cpu")) == part
    monkeypatch.setattr(chain, "asks_the_host", lambda device: True)
    assert chain.length_for(runs, jtorch.device("cpu")) == whole


def dropping(mode, compiled):
    """Losses of a training with dropout."""
    with jtorch.execution_mode(mode):
        jtorch.manual_seed(0)
        model = jtorch.nn.Sequential(jtorch.nn.Linear(4, 8), jtorch.nn.Dropout(0.5), jtorch.nn.Linear(8, 2))
        optimizer = jtorch.optim.SGD(model.parameters(), lr=0.01)
        call = jtorch.compile(zero_first) if compiled else zero_first
        x = jtorch.full((3, 4), 0.5)
        seen = []
        for _ in range(STEPS):
            seen.append(call(model, optimizer, x).detach())
            compiled_beside()
        return jtorch.stack(seen).tolist()


@pytest.mark.parametrize("compiled", [False, True], ids=["auto", "compile"])
def test_each_run_of_a_chain_draws_its_own_numbers(compiled, runs):
    got = dropping("auto", compiled)
    assert runs, "no steps were run together"
    assert got == pytest.approx(dropping("eager", False), rel=1e-5)
    assert len(set(got)) > STEPS / 2


def test_one_look_at_each_step_makes_no_chain(runs):
    training(jtorch, zero_first, 1, "SGD")
    assert not runs


def test_gathered_steps_run_when_the_thread_flushes(runs):
    model = jtorch.nn.Linear(4, 2)
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.1)
    x = jtorch.ones(3, 4)
    x.sum().item()
    for _ in range(20):
        zero_first(model, optimizer, x)
    jtorch.synchronize()
    assert record.tls.me.queue is None
    weight = model.weight._storage.value
    assert weight.value is not None if type(weight) is record.Pending else True


def test_as_many_as_a_chain_takes_are_started_at_once(runs):
    """Not when the next comes: the device has something to do while that is recorded. What the last hands on can still be read."""
    model = jtorch.nn.Linear(4, 2)
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = jtorch.ones(3, 4)
    while not runs or runs[-1] != chain.LONGEST:
        zero_first(model, optimizer, x)
        compiled_beside()
    queue = record.tls.me.queue
    assert queue.calls == [] and queue.handed is not None
    state = model.weight.detach().clone(), optimizer.state[model.weight]["momentum_buffer"].clone()
    assert all(not v.isnan().any() for v in state)
    assert record.tls.me.queue is not queue


@pytest.mark.parametrize("at", range(5))
def test_weights_that_change_places_between_gathered_steps(at, runs):
    """What the steps before hand on goes elsewhere, also where the chain has run already."""

    def train(t):
        t.manual_seed(0)
        model = t.nn.Sequential(t.nn.Linear(3, 3), t.nn.Linear(3, 3))
        optimizer = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        first, second = model[0].weight, model[1].weight
        x = t.arange(6.0).reshape(2, 3)
        x.sum().item()
        for i in range(50 + at):
            zero_first(model, optimizer, x)
            if i in (40 + at, 44 + at):
                first.data, second.data = second.data, first.data
            compiled_beside()
        return [p.tolist() for p in model.parameters()]

    for a, b in zip(train(jtorch), train(torch)):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-6)
    assert runs


def test_constants_that_change_make_a_chain_without_constants(runs):
    def train(t):
        t.manual_seed(0)
        model = t.nn.Linear(4, 2)
        optimizer = t.optim.SGD(model.parameters(), lr=0.01)
        batches = [t.full((3, 4), (i + 1) / 7) for i in range(3)]
        [b.sum().item() for b in batches]
        for i in range(90):
            x = batches[min(i // 30, 2)]  # the same for a long time, then another
            zero_first(model, optimizer, x)
            for thread in threading.enumerate():
                if thread.name == THREAD:
                    thread.join()
        return model.weight.tolist()

    torch.testing.assert_close(torch.tensor(train(jtorch)), torch.tensor(train(torch)), rtol=1e-4, atol=1e-6)
    assert runs


@pytest.mark.parametrize("every", [1000, 6])
def test_results_are_committed_to_no_device(every, runs):
    """One kind of array, whoever made it: a program is compiled once more for arguments of the other kind."""
    model = jtorch.nn.Linear(4, 2)
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = jtorch.ones(3, 4)
    found = set()
    for i in range(60):
        loss = zero_first(model, optimizer, x)
        if i % every == every - 1:
            loss.item()
            found.update(p.__jax_array__().committed for p in model.parameters())
        compiled_beside()
    found.update(v.__jax_array__().committed for v in (*model.parameters(), loss.detach()))
    assert found == {False}
    assert runs


def test_who_times_a_loop_can_wait_for_its_programs():
    started = threading.Event()
    beside(started.wait, 0.2)
    jtorch.compile.wait()
    assert not any(thread.name == THREAD for thread in threading.enumerate())
