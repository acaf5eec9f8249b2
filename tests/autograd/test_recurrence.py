"""Backward passes that come again record what they have recorded before, and only then."""

import numpy as np
import pytest

import jtorch
from jtorch import config
from jtorch.autograd import engine, recurrence
from jtorch.core import paths
from tests.oracle import torch

STEPS = 8


@pytest.fixture
def followed(monkeypatch):
    """Whether each backward pass was recorded at once."""
    calls = []

    def again(*args, plain=engine.again):
        calls.append(plain(*args))
        return calls[-1]

    monkeypatch.setattr(engine, "again", again)
    return calls


def leaves(t):
    w = t.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    b = t.linspace(0, 1, 4).requires_grad_()
    x = t.linspace(-2, 2, 6).reshape(2, 3)
    return w, b, x


PROGRAMS = {
    "linear": lambda t, w, b, x, k: t.relu(x @ w + b).sum(),
    "a leaf used twice": lambda t, w, b, x, k: ((x @ w) * (x @ w + b)).sum(),
    "a result used twice": lambda t, w, b, x, k: (lambda y: (y * y.sin() + y).sum())(x @ w + b),
    "views": lambda t, w, b, x, k: (w.t()[1:] * b[1:, None]).reshape(-1).prod(),
    "several results": lambda t, w, b, x, k: (lambda p, q: (p * q + b[:2]).sum())(*(x @ w).split(2, 1)),
    "one of several results": lambda t, w, b, x, k: (x @ w).topk(2).values.sum() + b.max(),
    "numbers": lambda t, w, b, x, k: ((x @ w) * (k + 1.5) + b / (k + 2)).pow(2).mean(),
    "number zero": lambda t, w, b, x, k: ((x @ w) * (0.0, -0.0)[k % 2] + b).sum(),
    "cut off": lambda t, w, b, x, k: ((x @ w).detach() * b + w.sum()).sum(),
    "in place": lambda t, w, b, x, k: (x @ w).add_(b).mul_(2).tanh().sum(),
    "in a view": lambda t, w, b, x, k: (lambda y: (y[:, 1:].mul_(b[1:]), y.sum())[1])((x @ w).clone()),
    "norm": lambda t, w, b, x, k: t.nn.functional.layer_norm(x @ w, (4,), b, b).square().sum(),
    "classes": lambda t, w, b, x, k: t.nn.functional.cross_entropy(x @ w + b, t.tensor([k % 4, 1])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name, followed):
    def run(t):
        w, b, x = leaves(t)
        seen = []
        for k in range(STEPS):
            w.grad = b.grad = None
            PROGRAMS[name](t, w, b, x, k).backward()
            with t.no_grad():
                for p in (w, b):
                    if p.grad is not None:
                        p -= 0.02 * p.grad
            seen += [None if p.grad is None else p.grad.tolist() for p in (w, b)]
        return seen

    got, want = run(jtorch), run(torch)
    assert [g is None for g in got] == [g is None for g in want]
    for a, b in zip(got, want):
        if a is not None:
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-5)
    assert len(followed) == STEPS
    assert any(followed[2:]) or name == "number zero"


def with_hook(t, w, b, x):
    w.register_hook(lambda g: g * 3)
    return (x @ w + b).sum()


def with_hook_on_a_result(t, w, b, x):
    y = x @ w
    y.register_hook(lambda g: g * 3)
    return (y + b).sum()


def double(p):
    p.grad.mul_(2)


def with_hook_after_accumulation(t, w, b, x):
    w.register_post_accumulate_grad_hook(double)
    return (x @ w + b).sum()


def with_hook_that_returns_something(t, w, b, x):
    w.register_post_accumulate_grad_hook(lambda p: p.grad)
    return (x @ w + b).sum()


def with_gradient_there(t, w, b, x):
    b.grad = t.ones(4)
    return (x @ w + b).sum()


def with_frozen_leaf(t, w, b, x):
    loss = (x @ w + b).sum()
    w.requires_grad_(False)
    return loss


def with_two_leaves_of_one_storage(t, w, b, x):
    return (x @ w + b.detach().requires_grad_()).sum()


def with_exchanged_data(t, w, b, x):
    y, z = x @ w, x @ w + b
    y.data = z.data
    return y.sum()


def with_retained(t, w, b, x):
    y = x @ w
    y.retain_grad()
    loss = (y + b).sum()
    loss.backward(retain_graph=True)
    b.grad = y.grad.sum(0) * 2
    return loss


def with_saved_modified(t, w, b, x):
    y = (x @ w).exp()
    loss = (y + b).sum()
    y.add_(1)
    return loss


def with_graph_freed(t, w, b, x):
    loss = (x @ w + b).exp().sum()
    loss.backward()
    return loss


CHANGES = {name.removeprefix("with_"): f for name, f in globals().items() if name.startswith("with_")}


def agree(got, want):
    """Whether gradients are the same but for the rounding of an exponential."""
    return all(
        (g is None) == (w is None) and (w is None or np.allclose(g, w, rtol=1e-5))
        for g, w in zip(got, want, strict=True)
    )


@pytest.mark.parametrize("name", CHANGES)
def test_what_differs_is_run(name, followed):
    def run(t):
        w, b, x = leaves(t)
        for change in (None, None, None, None, CHANGES[name], None):
            w.grad = b.grad = None
            try:
                (change(t, w, b, x) if change else (x @ w + b).sum()).backward()
            except RuntimeError as e:
                yield str(e)
            yield [None if p.grad is None else p.grad.tolist() for p in (w, b)]

    for got, want in zip(run(jtorch), run(torch), strict=True):
        assert got == want if isinstance(want, str) else agree(got, want)
    assert followed[3]


def test_two_leaves_are_not_taken_for_one(followed):
    """The recorder sees the same values, the tape two leaves or one."""

    def run(t):
        w = t.ones(3, requires_grad=True)
        v = w.detach().requires_grad_()
        for one, two in [(w, v)] * 4 + [(w, w), (v, v), (v, w)]:
            w.grad = v.grad = None
            (one * two.sin()).sum().backward()
            yield [None if p.grad is None else p.grad.tolist() for p in (w, v)]

    for got, want in zip(run(jtorch), run(torch), strict=True):
        assert [g is None for g in got] == [g is None for g in want]
        for a, b in zip(got, want):
            assert a is None or a == pytest.approx(b)
    assert followed[3:] == [True, False, True, True]


def test_a_gradient_of_ones_own(followed):
    w = jtorch.ones(3, requires_grad=True)
    for k in range(STEPS):
        w.grad = None
        (w * 2).backward(jtorch.full((3,), float(k)))
        assert w.grad.tolist() == [2.0 * k] * 3
    assert followed[-1]


def test_the_other_result_of_a_node(followed):
    """Each result of a node that has several starts another pass."""

    def run(t):
        w = t.tensor([3.0, 1.0, 2.0], requires_grad=True)
        for k in (0, 0, 0, 0, 1, 1):
            w.grad = None
            t.unbind(w * w)[k].backward()
            yield w.grad.tolist()

    assert list(run(jtorch)) == list(run(torch))


def test_what_cannot_be_noted_is_not_tried_for_ever(monkeypatch):
    """A graph that is run in between, since it is full, is watched a few times and no more."""
    watched = []
    monkeypatch.setattr(
        recurrence.Observer,
        "__init__",
        lambda self, *a, plain=recurrence.Observer.__init__: (watched.append(1), plain(self, *a))[1],
    )
    monkeypatch.setattr(config, "max_nodes", 30)
    paths.forget()
    x = jtorch.ones(2).requires_grad_()
    for _ in range(12):
        x.grad = None
        y = x
        for _ in range(20):
            y = y * 1.5
        y.backward(jtorch.ones(2))
        assert x.grad.tolist() == pytest.approx([1.5**20] * 2)
    paths.forget()
    assert len(watched) <= recurrence.MOST
