"""Long chains of elementwise work: XLA does not compute what they share once for each reader."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

import jtorch
import jtorch.nn.functional as F
from jtorch.core import cuts
from tests.memory import forget_programs


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.bool_, np.int32, np.uint8])
def test_what_is_stored_keeps_its_bits(dtype):
    values = [0, 1, 1, 0] if dtype is np.bool_ else [3, 0, 1, 7]
    if np.issubdtype(dtype, np.floating):
        values = [-0.0, 1.5, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny]
    x = np.array(values, dtype)
    made = np.asarray(jax.jit(cuts.stored)(x))
    assert made.dtype == x.dtype and made.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int32, np.int8, np.uint8])
def test_what_is_stored_is_computed_once(dtype):
    def read_twice(x, y):
        dear = (x.astype(np.int32) ^ 12345).astype(dtype)
        dear = cuts.stored(dear)
        out = jax.numpy.where(dear, y, 0) @ y
        return jax.numpy.where(dear, out, 1)

    x = np.ones((64, 64), np.float32)
    text = jax.jit(read_twice).lower(x, x).compile().as_text()
    assert text.count(" xor(") == 1


def _look(function, operands):
    return cuts.Look(jax.jit(function).trace(*[np.zeros((8, 8), np.float32)] * operands).jaxpr.jaxpr)


@pytest.mark.parametrize(
    ("function", "weight"),
    [
        (lambda x: x + 1, 1),
        (lambda x: jax.numpy.maximum(x * 2 - 1, 0), 3),
        (lambda x: x @ x, 0),
        (lambda x: jax.jit(lambda y: y.sum())(x) + 1, 0),
        (lambda x: x, 1),
    ],
)
def test_weight_of_an_operation(function, weight):
    assert _look(function, 1).weight == weight


def _layer(g, x):
    """As a norm's gradient: what it adds up is in memory, what follows is not."""
    return g * x - (g * x).mean(1, keepdims=True), g.sum(0)


@pytest.mark.parametrize(
    ("function", "operands", "outs", "uses"),
    [
        (lambda x, y: x * 2 + y, 2, [({0, 1}, [])], [1, 1]),
        (lambda x, y: x @ y, 2, [None], [1, 1]),
        (lambda x, y, z: x @ y + z, 3, [({2}, [256])], [1, 1, 1]),
        (lambda x, y: jax.numpy.exp(x) * jax.numpy.exp(y), 2, [(set(), [256, 256])], [1, 1]),
        (_layer, 2, [({0, 1}, [32]), None], [3, 2]),
        (lambda x: jax.jit(lambda y: y.T + 1)(x), 1, [({0}, [])], [1]),
    ],
)
def test_what_is_read_for_a_result(function, operands, outs, uses):
    look = _look(function, operands)
    assert [out and (set(out[0]), sorted(out[1])) for out in look.outs] == outs
    assert look.uses == uses


def _run(monkeypatch, nodes, readers=()):
    """Indices of the values that are stored where these nodes are traced."""
    stored = []
    monkeypatch.setattr(cuts, "stored", lambda x: stored.append(x) or x)
    held = cuts.Cuts([*nodes, *readers])
    values = {}
    for node in nodes:
        args = [values.get(i, np.zeros((64, 64), np.float32)) for i in node.ids]
        values[node.first] = held.made(node, args, np.full((64, 64), node.first, np.float32))
    return [int(x[0, 0]) for x in stored]


def _nodes(function, ids):
    plan = SimpleNamespace(look=_look(function, len(ids[0])), n_out=1)
    return [SimpleNamespace(plan=plan, ids=i, first=k) for k, i in enumerate(ids)]


def test_a_long_chain_is_cut_where_too_much_comes_before(monkeypatch):
    each = cuts.MOST // 2 + 1  # operations of weight 2
    nodes = _nodes(lambda x: x * 2 + 1, [(k - 1,) for k in range(10 * each + 1)])
    assert _run(monkeypatch, nodes[: each - 1]) == []
    assert len(_run(monkeypatch, nodes, _nodes(jax.numpy.negative, [(nodes[-1].first,)]))) == 10
    assert _run(monkeypatch, nodes[:each]) == [], "nobody reads the last one"


def test_a_sum_of_many_arrays_is_cut_where_several_read_it(monkeypatch):
    """Each node adds an input to the one before it, as the gradient of a residual network does."""
    nodes = _nodes(lambda x, y: x + y, [(k - 1, ~(k + 1)) for k in range(12)])
    assert _run(monkeypatch, nodes) == [], "only the next one reads it"
    once = _nodes(jax.numpy.negative, [(k,) for k in range(12)])
    assert _run(monkeypatch, nodes, once) == [2, 5, 8], "each reads four arrays at most; one alone reads the last"
    twice = _nodes(lambda x: x - x.sum(), [(k,) for k in range(12)])
    assert _run(monkeypatch, nodes, twice) == [2, 5, 8, 11]
    monkeypatch.setattr(cuts, "SMALL", 1 << 20)
    assert _run(monkeypatch, nodes, twice) == []


def test_plans_are_looked_at_before_a_program_is_traced():
    """So that what is cut does not depend on which programs came before."""
    x = jtorch.ones(64, 64)
    jtorch.synchronize()
    graph = (x.exp() + x)._storage.value.graph
    nodes = graph.state.nodes()
    cuts.Cuts(nodes)
    assert all(isinstance(node.plan.look, cuts.Look) for node in nodes)


def test_a_plan_that_takes_no_arrays_has_its_results_in_memory():
    plan = SimpleNamespace(look=None, operands=(None, None), kinds=(), n_out=2)
    look = cuts.look_at(plan)
    assert (look.weight, look.outs, look.uses) == (0, [None, None], [1, 1])


def test_an_automaton_is_the_same_in_each_mode():
    results = []
    for mode in ("auto", "eager"):
        with jtorch.execution_mode(mode):
            jtorch.manual_seed(0)
            start, weight = jtorch.rand(1, 3, 8, 8), jtorch.rand(3, 1, 3, 3) / 9
            for _ in range(3 if mode == "auto" else 1):  # by numpy or by op, then compiled
                x = out = start.clone().requires_grad_()
                for _ in range(6):
                    alive = F.max_pool2d(out[:, :1], 3, stride=1, padding=1) > 0.1
                    out = (out + F.conv2d(out, weight, padding=1, groups=3) * 0.1) * alive.float()
                out.square().sum().backward()
                results.append(x.grad.numpy())
    for result in results[:-1]:
        np.testing.assert_allclose(result, results[-1], rtol=1e-5, atol=1e-6)


SAMPLED = {
    "long": lambda y: (y.long(), y - y.long()),
    "floor": lambda y: (y.floor().long(), y - y.floor()),
    "one floor": lambda y: (lambda low: (low.int(), y - low))(y.floor()),
    "within the image": lambda y: (y.floor().clamp(0, 5).long(), y - y.floor()),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_what_is_cut_to_whole_numbers_is_computed_once(name, monkeypatch):
    """Where something lies between pixels must be the same number for the pixel and for the distance from it."""
    stored, before = [], cuts.stored
    monkeypatch.setattr(cuts, "stored", lambda x: stored.append(x.dtype) or before(x))
    forget_programs()
    jtorch.use_deterministic_algorithms(True)  # nothing is left to numpy
    try:
        x = jtorch.linspace(0.1, 5.3, 9)
        pixel, part = SAMPLED[name](x * 1.37 - 0.2)
        assert (pixel * part).sum().isfinite()
    finally:
        jtorch.use_deterministic_algorithms(False)
    assert stored == [np.float32]


def test_what_is_cut_and_read_no_more_is_left_alone(monkeypatch):
    stored = []
    monkeypatch.setattr(cuts, "stored", lambda x: stored.append(x) or x)
    forget_programs()
    jtorch.use_deterministic_algorithms(True)
    try:
        assert (jtorch.rand(4, 4) * 255).floor().clamp(0, 255).to(jtorch.uint8).sum() >= 0
    finally:
        jtorch.use_deterministic_algorithms(False)
    assert not stored
