"""What reads a parameter comes before what takes its memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.core import ties
from tests.oracle import torch


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_tied_keeps_its_bits(dtype):
    x = np.array([-0.0, 1.5, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    values = [
        np.full((2, 3), np.nan, np.float32),
        np.array([-0.0], np.float64),
        np.zeros((0,), np.float32),
        np.arange(3),
    ]
    made = np.asarray(jax.jit(ties._tied)(x, values))
    assert made.dtype == x.dtype and made.tobytes() == x.tobytes()


def test_results_depend_on_operands():
    def function(x, y, z):
        made = jax.jit(lambda a, b: (a @ b, b + 1))(x, y)
        return (*made, jnp.zeros(()), jax.lax.fori_loop(0, 2, lambda _, c: c + z, x))

    jaxpr = jax.jit(function).trace(*[np.zeros((4, 4), np.float32)] * 3).jaxpr.jaxpr
    found = ties._walk(jaxpr, {v: frozenset((k,)) for k, v in enumerate(jaxpr.invars)})
    assert list(map(set, found)) == [{0, 1}, {1}, set(), {0, 2}]


def _train(torch):
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(32, 40), nn.Tanh(), nn.Linear(40, 36), nn.Tanh(), nn.Linear(36, 33))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(4, 32)

    def step():
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    if torch is jtorch:
        step = jtorch.compile(step)
    for _ in range(4):
        step()
    return [p.detach().numpy() for p in model.parameters()]


def test_weights_wait_for_the_gradients_of_what_comes_before(monkeypatch):
    found = []
    monkeypatch.setattr(ties, "LARGE", 1)
    look = ties.Ties.__init__

    def looked(self, nodes, takers):
        look(self, nodes, takers)
        found.append((nodes, takers, self.waits))

    monkeypatch.setattr(ties.Ties, "__init__", looked)
    for ours, theirs in zip(_train(jtorch), _train(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)
    nodes, takers, waits = max(found, key=lambda of: len(of[1]))
    shapes = []
    for node, operands in waits.items():
        for k, late in operands.items():
            spec = node.plan.operands[k]
            assert ~node.ids[k] in takers
            for r in late:
                made_by = next(n for n in nodes if n.first <= r < n.count)
                assert nodes.index(made_by) < nodes.index(node)
            shapes.append(tuple(spec.shape))
    assert (40, 32) not in shapes and {(36, 40), (33, 36)} <= set(shapes)  # nothing is before the first layer
