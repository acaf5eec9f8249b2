"""Calls of compiled regions that wait for their gradients to die: whatever is looked at, and whenever, is PyTorch's."""

import collections
import copy
import functools

import pytest

import jtorch
from jtorch.compile.replay import Replay
from tests.oracle import torch


def network(t):
    t.manual_seed(0)
    return t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Linear(8, 2))


def accumulating(t, compiled):
    """Gradients of three batches are added up, only forward and backward are compiled."""
    model = network(t)
    optimizer = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def forward_backward(x):
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss.detach()

    call = t.compile(forward_backward) if compiled else forward_backward
    seen = []
    for i in range(9):
        if i % 3 == 0:
            optimizer.zero_grad()
        seen.append(call(t.full((3, 4), float(i + 1) / 4)))
        seen.append(model[0].weight.grad.sum())
        if i % 3 == 2:
            optimizer.step()
    return seen


def keep_gradient(t, model, optimizer, x, loss, seen):
    seen.append(model[0].weight.grad)


def keep_detached_gradient(t, model, optimizer, x, loss, seen):
    seen.append(model[0].weight.grad.detach())


def copy_model(t, model, optimizer, x, loss, seen):
    seen += copy.deepcopy(model).state_dict().values()


def scale_weight(t, model, optimizer, x, loss, seen):
    with t.no_grad():
        model[0].weight.mul_(0.5)


def overwrite_bias(t, model, optimizer, x, loss, seen):
    with t.no_grad():
        model[0].bias.copy_(t.ones(8))


def other_data(t, model, optimizer, x, loss, seen):
    model[2].weight.data = t.ones(2, 8) * 0.1


def zero_gradient(t, model, optimizer, x, loss, seen):
    model[0].weight.grad.zero_()


def turn_gradient(t, model, optimizer, x, loss, seen):
    model[0].weight.grad.t_()


def drop_gradients(t, model, optimizer, x, loss, seen):
    optimizer.zero_grad()


def learning_rate(t, model, optimizer, x, loss, seen):
    for group in optimizer.param_groups:
        group["lr"] = 0.01


def evaluate(t, model, optimizer, x, loss, seen):
    with t.no_grad():
        seen.append(model(x))


def keep_loss(t, model, optimizer, x, loss, seen):
    seen.append(loss)


def use_weight(t, model, optimizer, x, loss, seen):
    seen.append((model[0].weight * 2).sum())


def view_of_weight(t, model, optimizer, x, loss, seen):
    seen.append(model[0].weight.detach().view(-1))


def restore(t, model, optimizer, x, loss, seen):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def other_state(t, model, optimizer, x, loss, seen):
    state = optimizer.state[model[0].weight]
    state["exp_avg"] = t.zeros_like(state["exp_avg"])


def hook_gradient(t, model, optimizer, x, loss, seen):
    model[0].weight.register_hook(lambda g: g * 0.5)


def hook_after_gradient(t, model, optimizer, x, loss, seen):
    model[0].weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5) is None or None)


def freeze_weight(t, model, optimizer, x, loss, seen):
    model[0].weight.requires_grad = not model[0].weight.requires_grad


def freeze_module(t, model, optimizer, x, loss, seen):
    model[0].requires_grad_(not model[0].weight.requires_grad)


def hook_steps(t, model, optimizer, x, loss, seen):
    optimizer.register_step_pre_hook(lambda *args: model[0].weight.grad.mul_(0.5) is None or None)


def turn_round(t, model, optimizer, x, loss, seen):
    optimizer.param_groups[0]["maximize"] = not optimizer.param_groups[0]["maximize"]


def forget_state(t, model, optimizer, x, loss, seen):
    optimizer.state.pop(model[0].weight)


def state_anew(t, model, optimizer, x, loss, seen):
    optimizer.state[model[0].weight] = {}


def states_anew(t, model, optimizer, x, loss, seen):
    optimizer.state = collections.defaultdict(dict)


def step_otherwise(t, model, optimizer, x, loss, seen):
    optimizer.step = lambda: [p.grad.zero_() for p in model.parameters()] and None


EVENTS = [
    keep_gradient, keep_detached_gradient, copy_model, scale_weight, overwrite_bias, other_data, zero_gradient, drop_gradients,
    turn_gradient, learning_rate, evaluate, keep_loss, use_weight, view_of_weight, restore, other_state,
    hook_gradient, hook_after_gradient, freeze_weight, freeze_module, hook_steps, turn_round, forget_state, state_anew, states_anew,
    step_otherwise,
]  # fmt: skip


def training(t, compiled, event):
    """A whole step is compiled; in between something is done or looked at."""
    model = network(t)
    optimizer = t.optim.AdamW(model.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    call = t.compile(step) if compiled else step
    seen = []
    for i in range(14):
        x = t.full((3, 4), float(i % 5 + 1) / 5)
        loss = call(x)
        if i in (5, 8, 9):
            event(t, model, optimizer, x, loss, seen)
    seen += [*model.parameters(), *[p.grad for p in model.parameters() if p.grad is not None]]
    return seen


def same(got, expected):
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        torch.testing.assert_close(torch.tensor(a.tolist()), b.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["auto", "compile"])
def test_gradients_add_up_over_calls(compiled):
    same(accumulating(jtorch, compiled), accumulating(torch, False))


@pytest.mark.parametrize("compiled", [False, True], ids=["auto", "compile"])
@pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.__name__)
def test_looking_in_between_changes_nothing(event, compiled):
    same(training(jtorch, compiled, event), training(torch, False, event))


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in")
def test_hooks_of_saved_tensors_and_anomalies():
    def program(t, compiled):
        model = network(t)

        def gradient(x):
            model.zero_grad()
            model(x).pow(2).mean().backward()
            return model[0].weight.grad.clone()

        call = t.compile(gradient) if compiled else gradient
        seen = [call(t.ones(3, 4)) for _ in range(6)]
        packed = []
        for _ in range(2):
            with t.autograd.graph.saved_tensors_hooks(lambda x: packed.append(1) or x * 0.5, lambda x: x):
                seen.append(call(t.ones(3, 4)))
            seen.append(call(t.ones(3, 4)))
        assert packed
        with t.autograd.detect_anomaly(check_nan=True), pytest.raises(RuntimeError, match="nan"):
            call(t.full((3, 4), float("nan")))
        return seen

    same(program(jtorch, True), program(torch, False))


def test_unseen_gradients_are_no_results_of_the_program():
    model = network(jtorch)
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    compiled = jtorch.compile(step)
    for _ in range(8):
        compiled(jtorch.ones(3, 4))
    [replay] = compiled._region.replays or [compiled._region.why]
    assert isinstance(replay, Replay)
    assert len(replay.program.out) - len(replay.bare.out) == 4


def test_a_finished_step_waits_until_its_gradients_are_dropped():
    model = network(jtorch)
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.1)
    jtorch.synchronize()
    model(jtorch.ones(3, 4)).sum().backward()
    optimizer.step()
    waiting = jtorch.core.record.tls.me.deferred
    assert waiting is not None and not waiting.done
    gradients = [p.grad._storage.value for p in model.parameters()]
    optimizer.zero_grad()
    assert waiting.done and jtorch.core.record.tls.me.deferred is None
    assert all(type(p._storage.value.value) is not type(None) for p in model.parameters())
    assert len(gradients) == 4


def adds_to_what_is_there(t, model, optimizer, x):
    """One step that clears the gradients at its end, so that it adds to what others have left there."""
    model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def zeroes_in_place(t, model, optimizer, x):
    optimizer.zero_grad(set_to_none=False)
    model(x).pow(2).mean().backward()
    optimizer.step()


def sets_one(t, model, x):
    model[0].bias.grad = t.ones(8)


def goes_backward(t, model, x):
    model(x).sum().backward()


def drops_them(t, model, x):
    model.zero_grad()


@pytest.mark.parametrize("between", [sets_one, goes_backward, drops_them])
@pytest.mark.parametrize("step", [adds_to_what_is_there, zeroes_in_place])
def test_gradients_that_come_or_go_between_the_calls(step, between):
    found = []
    for t in (torch, jtorch):
        model = network(t)
        optimizer = t.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        call = functools.partial(step, t, model, optimizer)
        call = t.compile(call) if t is jtorch else call
        for i in range(12):
            call(t.full((3, 4), float(i + 1) / 12))
            if i in (5, 8):
                between(t, model, t.full((3, 4), 0.5))
        found.append([p.detach().numpy() for p in model.parameters()])
    assert call._region.replays, call._region.why
    for got, expected in zip(found[1], found[0]):
        assert got == pytest.approx(expected, abs=1e-5)
