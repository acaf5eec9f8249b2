"""core/pending.py: little arrays stay numpy's until a program takes them."""

import threading

import jax
import numpy as np
import pytest

import jtorch
from jtorch.core.pending import LITTLE, TAKEN, Small
from jtorch.core.record import Pending

WEIGHTS = jtorch.arange(9.0).reshape(3, 3)


def is_small(t):
    value = t._storage.value
    return type(value) is Pending and type(value.graph) is Small


def new():
    return jtorch.tensor([1.0, 2.0, 3.0])


WAYS = {  # how a new tensor of three numbers is used -> what comes of it
    "once": lambda t: (WEIGHTS @ t).tolist(),
    "twice in one program": lambda t: (WEIGHTS @ t + t).tolist(),
    "in two programs": lambda t: [(WEIGHTS @ t).sum().item(), (t * 2).tolist()],
    "in two programs at once": lambda t: [v.tolist() for v in (t + 1, t[1:] * 2)],
    "a view": lambda t: t[1:].tolist() + [t[0].item()],
    "written to": lambda t: (t.add_(1), t.tolist())[1],
    "written to by a view": lambda t: (t[1:].mul_(3), t.tolist())[1],
    "written to after a use": lambda t: (w := WEIGHTS @ t, t.zero_(), w.tolist(), t.tolist())[2:],
    "as numpy, written to": lambda t: (t.numpy().__setitem__(0, 7.0), (t * 2).tolist())[1],
    "a copy": lambda t: (c := t.clone(), t.zero_(), c.tolist())[2],
    "its numbers": lambda t: [t.sum().item(), t.tolist(), float(t[2]), bool((t > 0).all())],
    "with a gradient": lambda t: (t.requires_grad_(), (WEIGHTS @ t).square().sum().backward(), t.grad.tolist())[2],
    "deep copied": lambda t: __import__("copy").deepcopy(t).add(1).tolist(),
    "eagerly": lambda t: eagerly(lambda: (WEIGHTS @ t).tolist()),
    "in another thread": lambda t: in_thread(lambda: (WEIGHTS @ t).tolist()),
    "within jax's jit": lambda t: np.asarray(jax.jit(lambda x: (jtorch.from_jax(x) @ t).__jax_array__())(np.eye(3, dtype="f"))).tolist(),
    "as an array of jax": lambda t: np.asarray(jax.numpy.asarray(t)).tolist(),
    "in a compiled region": lambda t: [jtorch.compile(lambda x: x @ WEIGHTS + t)(v).tolist() for v in (new(), new() * 2)],
}  # fmt: skip


def eagerly(fn):
    with jtorch.execution_mode("eager"):
        return fn()


def in_thread(fn):
    made = []
    thread = threading.Thread(target=lambda: made.append(fn()))
    thread.start()
    thread.join()
    return made[0]


@pytest.mark.parametrize("way", WAYS)
def test_uses(way):
    small, large = new(), jtorch.cat([new(), jtorch.zeros(LITTLE)])[:3].clone()
    large.__jax_array__()
    assert is_small(small) and not is_small(large)
    for _ in range(2):
        got = WAYS[way](new())
    assert got == WAYS[way](small) == WAYS[way](large)


def test_a_program_takes_it_as_it_is():
    """The first programs have the array; later ones the device's, so that what is used often is not sent each time."""
    t = new()
    for _ in range(TAKEN):
        assert (WEIGHTS @ t).sum().item() == pytest.approx(78.0)
        assert is_small(t)
    assert (WEIGHTS @ t).sum().item() == pytest.approx(78.0)
    assert not is_small(t)


def test_its_numbers_are_its_own():
    array = np.array([1.0, 2.0], dtype="f")
    t = jtorch.tensor(array)
    array[0] = 9
    assert t.tolist() == [1.0, 2.0]
    read = np.asarray(t)
    read[0] = 5
    assert t.tolist() == [5.0, 2.0]


def test_steps_of_new_batches():
    """A training loop whose batches are new each time gathers, and gives the numbers of batches made before."""

    def losses(before):
        jtorch.manual_seed(0)
        net = jtorch.nn.Linear(3, 2)
        opt = jtorch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        make = lambda: (jtorch.randn(4, 3), jtorch.randint(0, 2, (4,)))
        batches = [make() for _ in range(120)]
        made = []
        for x, y in batches:
            if before:
                x, y = x + 0, y + 0
                jtorch.synchronize()
            loss = jtorch.nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            made.append(loss.detach())
        return [v.item() for v in made]

    np.testing.assert_allclose(losses(False), losses(True), rtol=1e-5)
