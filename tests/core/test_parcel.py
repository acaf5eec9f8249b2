"""Little values that chains hand on as one array: the numbers are PyTorch's, whatever is looked at, and whenever."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.core import chain, parcel
from jtorch.core.beside import compiled_beside
from jtorch.core.parcel import Packer, Parcel, packer_of
from jtorch.core.pending import Pending
from tests.core.test_random_loops import played
from tests.memory import start_anew
from tests.oracle import torch

SHAPES = [(2, 3), (), (4,), (0,), (100, 100), (5,), (1, 1)]
DTYPES = [jnp.float32, jnp.float32, jnp.int32, jnp.float32, jnp.float32, jnp.int32, jnp.float32]


@pytest.fixture
def two(monkeypatch):
    """Two values travel together."""
    monkeypatch.setattr(parcel, "FEW", 2)


def some_values():
    made = [jnp.asarray(np.arange(np.prod(s)).reshape(s) + k, d) for k, (s, d) in enumerate(zip(SHAPES, DTYPES))]
    return made, [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in made]


def test_values_come_out_as_they_went_in(two):
    values, shapes = some_values()
    packer = packer_of(shapes)
    assert packer.alone == [4] and packer.groups == [[0, 1, 3, 6], [2, 5]]
    parts = packer.join(values)
    assert [p.shape for p in parts] == [p.shape for p in packer.parts()] == [(100, 100), (8,), (9,)]
    for part, given in zip(parts[1:], packer.given(values)):
        np.testing.assert_array_equal(part, given)
    for got in (packer.part(parts), Parcel(packer, parts).open()):
        assert [v.dtype for v in got] == [v.dtype for v in values]
        for a, b in zip(got, values):
            np.testing.assert_array_equal(a, b)


def test_one_way_to_travel_for_what_is_alike(two):
    values, shapes = some_values()
    known = packer_of(shapes)
    assert packer_of(shapes, known) is known
    assert packer_of(shapes[1:], known) is not known
    assert packer_of(shapes[4:5]) is None


def test_what_is_weak_or_placed_travels_alone(two):
    weak = jax.ShapeDtypeStruct((), jnp.float32, weak_type=True)
    plain = jax.ShapeDtypeStruct((), jnp.float32)
    placed = jax.ShapeDtypeStruct((), jnp.float32, sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    assert Packer([weak, plain, placed, plain]).groups == [[1, 3]]


def test_a_pending_value_takes_its_own(two):
    values, shapes = some_values()
    packer = packer_of(shapes)
    made = Parcel(packer, packer.join(values))
    pendings = [Pending(None, -1) for _ in values]
    parcel.hand_over(made, pendings)
    assert made.holds(pendings) and pendings[4].value is not None
    np.testing.assert_array_equal(pendings[5].get(), values[5])
    assert not made.holds(pendings) and made.values[5] is None and packer.opened == 1
    np.testing.assert_array_equal(pendings[0].get(), values[0])
    assert packer.opened == 1


def test_a_program_opens_what_is_opened_often(two):
    values, shapes = some_values()
    packer = packer_of(shapes)
    for k in range(parcel.OFTEN + 1):
        assert (packer.split is None) is (k < parcel.OFTEN)
        for a, b in zip(Parcel(packer, packer.join(values)).open(), values):
            np.testing.assert_array_equal(a, b)
        compiled_beside()


def deep(t):
    """A model of many small parameters, of which two are larger."""
    layers = [layer for _ in range(5) for layer in (t.nn.Linear(4, 4), t.nn.Tanh())]
    return t.nn.Sequential(t.nn.Linear(4, 8), t.nn.Linear(8, 4), *layers, t.nn.Linear(4, 2))


def training(t, every, compiled, look):
    t.manual_seed(3)
    model = deep(t)
    optimizer = t.optim.Adam(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    call = t.compile(step) if compiled else step
    batches = [t.full((3, 4), (i + 1) / 7) for i in range(7)]
    for x in batches:
        x.sum().item()
    seen = []
    for i in range(150):
        loss = call(batches[i % 7])
        if i % every == every - 1:
            seen.append(loss.item())
        look(i, model, optimizer, seen)
        compiled_beside()
    return seen + [x for p in model.parameters() for x in (p.sum().item(), p.grad.sum().item())]


@functools.cache
def in_torch(every, look):
    return training(torch, every, False, look)


def nothing(i, model, optimizer, seen):
    pass


def gradients(i, model, optimizer, seen):
    if i % 36 == 35:
        seen.append(sum(p.grad.abs().sum() for p in model.parameters()).item())


def weights(i, model, optimizer, seen):
    if i % 25 == 24:
        seen.append(model[2].weight.sum().item())


def kept(i, model, optimizer, seen):
    if i == 119:
        optimizer.kept = [model[2].weight.detach().clone(), model[2].weight.grad]
    if i == 125:
        seen += [x.sum().item() for x in optimizer.kept]


def evaluated(i, model, optimizer, seen):
    if i % 30 == 29:
        seen.append(model(model[0].weight.detach()).sum().item())


def changed(i, model, optimizer, seen):
    if i == 110:
        optimizer.param_groups[0]["lr"] /= 2
    if i == 118:
        model[0].bias.data.mul_(0.5)
    if i == 121:
        model.load_state_dict({k: v * 0.9 for k, v in model.state_dict().items()})


@pytest.mark.parametrize("compiled", [False, True], ids=["auto", "compile"])
@pytest.mark.parametrize("look", [nothing, gradients, weights, kept, evaluated, changed], ids=lambda f: f.__name__)
@pytest.mark.parametrize("every", [6, 11])
def test_training(every, look, compiled, runs, monkeypatch):
    monkeypatch.setattr(parcel, "LITTLE", 100)
    got = training(jtorch, every, compiled, look)
    assert got == pytest.approx(in_torch(every, look), rel=1e-4, abs=1e-6)
    assert runs, "no steps were run together"


@pytest.mark.parametrize("compiled", [False, True], ids=["auto", "compile"])
def test_a_loss_that_is_read_opens_nothing(compiled, runs, monkeypatch):
    """Nor does it end the chain: the step whose gradients could be seen is its last."""
    opened, closed = [], []
    monkeypatch.setattr(Parcel, "open", lambda self, real=Parcel.open: opened.append(1) or real(self))
    monkeypatch.setattr(
        chain.Chain,
        "close",
        lambda self, *args, real=chain.Chain.close: closed.append(len(opened)) or real(self, *args),
    )
    training(jtorch, 6, compiled, nothing)
    assert len(closed) > 5
    assert closed[-1] == closed[1]


def test_a_compiled_step_that_drops_its_gradients_opens_nothing(runs, monkeypatch):
    """Another batch's size finds what lies in parcels, and is replayed too."""
    start_anew()
    model = deep(jtorch)
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @jtorch.compile
    def step(x):
        loss = (model(x) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    opened = []
    monkeypatch.setattr(Parcel, "open", lambda self, real=Parcel.open: opened.append(1) or real(self))
    x, other = jtorch.ones(3, 4), jtorch.ones(2, 4)
    for k in range(80):
        loss = step(x)
        if k % 6 == 5:
            loss.item()
        compiled_beside()
    loss.item()
    assert runs and not opened
    assert type(model[0].weight._storage.value.graph) is Parcel
    monkeypatch.undo()  # or the region calls what is not the library's
    step(other).item()
    assert len(step._region.replays) == 2, step._region.why


def test_parcels_that_are_always_opened_are_given_up(runs, monkeypatch):
    """They cost more than they save then."""

    def look(i, model, optimizer, seen):
        if i % 6 == 5:
            seen.append(model[2].weight.sum().item())

    made = []
    monkeypatch.setattr(
        chain.Gathering, "ran", lambda self, one, real=chain.Gathering.ran: made.append(self) or real(self, one)
    )
    start_anew()  # with what other tests have opened
    training(jtorch, 6, False, look)
    assert made[-1].packer is chain.ALONE


@pytest.mark.parametrize("seed", range(4))
def test_random_loops(seed, runs, two):
    draw = random.Random(seed)
    usual, looks = (
        draw.choice(["step_usual", "step_compiled"]),
        ["look_item", "look_item", "look_gradient", "look_weight"],
    )
    rare = draw.sample(
        ["look_copy", "look_file", "look_write_weight", "look_take_view", "look_load", "look_average"], 2
    )
    every, calls = draw.choice([5, 6, 7, 10]), []
    for k in range(90):
        calls.append(usual)
        if k % every == every - 1:
            calls.append(draw.choice(looks))
        if draw.random() < 0.03:
            calls.append(draw.choice(rare))
    args = draw.choice(["mlp", "norm"]), draw.choice(["momentum", "Adam"]), seed
    assert played(jtorch, calls, *args) == pytest.approx(played(torch, calls, *args), rel=1e-6, abs=1e-8, nan_ok=True)
