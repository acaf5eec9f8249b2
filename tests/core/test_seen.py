"""core/seen.py: an operation that comes with other sizes each time is not compiled for each of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.core import costs, device, dtype, hasty, nodewise, program
from jtorch.core.seen import Seen, seen
from jtorch.core.spec import Spec

pytestmark = pytest.mark.usefixtures("own_programs")
X = np.linspace(0.1, 2, 40, dtype=np.float32)


@functools.cache
def _compiles():
    """What XLA has been asked for since the first call; jax 0.7 lets no listener go."""
    events = []

    def note(event, _, **about):
        if "backend_compile" in event:
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(note)
    return events


@pytest.fixture
def compiled():
    """What XLA is asked for in a test."""
    events = _compiles()
    events.clear()
    return events


def test_counts_that_follow_from_values(compiled):
    """Few operations on what a mask has picked, whose number is another one each time; with a gradient."""
    for n in range(20, 26):
        if n == 23:
            compiled.clear()
        x = jtorch.tensor(X[:n], requires_grad=True)
        y = x[x > 0.5]
        picked = X[:n][X[:n] > 0.5]
        np.testing.assert_allclose(y.exp().log1p().std().item(), np.log1p(np.exp(picked)).std(ddof=1), rtol=1e-5)
        (y.square().square()).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.where(X[:n] > 0.5, 4 * X[:n] ** 3, 0), rtol=1e-5)
    assert not compiled


CHOSEN = {
    "nonzero": lambda x: x.nonzero(),
    "nonzero of each dimension": lambda x: x.nonzero(as_tuple=True)[0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(return_inverse=True)[1],
    "unique_consecutive": lambda x: x.unique_consecutive(return_counts=True)[1],
    "bincount": lambda x: x.bincount(),
    "one_hot": lambda x: jtorch.nn.functional.one_hot(x),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_what_values_choose_by_itself(name, compiled):
    """It is numpy's, and stays so until something takes it."""
    for n in (701, 702):
        x = jtorch.from_numpy(np.arange(n) % 97)
        compiled.clear()
        CHOSEN[name](x).numpy()
    assert not compiled


@pytest.mark.parametrize("large", [False, True])
def test_one_that_comes_often_is_compiled(compiled, large, monkeypatch):
    monkeypatch.setattr(hasty, "SMALL_BY_OP", 1 << 18 if not large else 1)
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 5)
    for n, first in ((20, 0), (30, 5), (40, 5)):
        spec = Spec.dense((n,), dtype.float32, device.cpu)
        plan = program.Plan(None, "tangent", lambda x: jnp.tanh(x), (spec,), specs=(spec,))
        for k in range(first + 1):
            compiled.clear()
            [found] = nodewise.executed(plan, [X[:n]], ())
            np.testing.assert_allclose(found, np.tanh(X[:n]), rtol=1e-6)
            assert bool(compiled) == (k == first)


def test_values_that_numpy_converts_otherwise():
    """What one run leaves to the compiler is numpy's again with other values."""
    for n in (3, 4, 5):
        x = jtorch.full((n,), float("nan"))
        assert jtorch.isnan(x.int().float()).sum() == 0
        assert (x * 0 + 7).nan_to_num(7.0).int().tolist() == [7] * n


def test_deterministic_algorithms_are_the_compilers(compiled):
    jtorch.use_deterministic_algorithms(True)
    try:
        for n in (20, 30):
            compiled.clear()
            jtorch.tensor(X[:n]).atan().numpy()
            assert compiled
    finally:
        jtorch.use_deterministic_algorithms(False)


def test_other_dtypes_and_dimensions_are_other_kinds():
    x = jtorch.ones(3)
    for other in (x, x.double(), x[None], jtorch.ones(4)):
        other.sinh().sum().item()
    kinds = [kind for kind in seen.sizes if kind[0] == "sinh"]
    assert len(kinds) == 3


def test_what_was_seen_is_bounded(monkeypatch):
    monkeypatch.setattr(jtorch.core.seen, "_MANY", 2)
    seen = Seen()
    for k in range(9):
        seen.add((f"op{k}",))
    assert len(seen.kinds) <= 3
