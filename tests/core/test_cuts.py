"""Long chains of elementwise work: XLA does not compute what they share once for each reader."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

import jtorch
import jtorch.nn.functional as F
from jtorch.core import cuts


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.bool_, np.int32, np.uint8])
def test_what_is_stored_keeps_its_bits(dtype):
    values = [0, 1, 1, 0] if dtype is np.bool_ else [3, 0, 1, 7]
    if np.issubdtype(dtype, np.floating):
        values = [-0.0, 1.5, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny]
    x = np.array(values, dtype)
    made = np.asarray(jax.jit(cuts._stored)(x))
    assert made.dtype == x.dtype and made.tobytes() == x.tobytes()


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
    jitted = jax.jit(function)
    assert cuts._weight(jitted, [np.zeros((3, 3), np.float32)]) == weight


def _chain(monkeypatch, length, reads_all):
    """How many values of a chain of operations of weight 2 are stored."""
    stored = []
    monkeypatch.setattr(cuts, "_stored", lambda x: stored.append(x) or x)
    run = jax.jit(lambda x: x * 2 + 1)
    plan = SimpleNamespace(weight=None, n_out=1)
    nodes = [SimpleNamespace(plan=plan, ids=(k - 1,), first=k, count=k + 1) for k in range(length)]
    held = cuts.Cuts(nodes if reads_all else nodes[:1])
    for node in nodes:
        held.made(node, run, [np.zeros(3, np.float32)], "result")
    assert plan.weight == 2
    return len(stored)


def test_a_long_chain_is_cut_where_too_much_comes_before(monkeypatch):
    each = cuts.MOST // 2 + 1
    assert _chain(monkeypatch, each - 1, True) == 0
    assert _chain(monkeypatch, 10 * each + 1, True) == 10


def test_what_nobody_reads_is_not_stored(monkeypatch):
    assert _chain(monkeypatch, 10 * cuts.MOST, False) == 0


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
