"""Running sums and products that the CPU adds up one by one: PyTorch's numbers, also where they are differentiated and batched."""

import jax
import numpy as np
import pytest

from jtorch.ops import scans
from tests.oracle import both

X = np.random.default_rng(0).standard_normal((3, 4, 5))


@pytest.fixture(autouse=True)
def all_are_long(monkeypatch):
    monkeypatch.setattr(scans, "LONG", 1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_derivatives(name):
    def program(t):
        x = t.tensor(X[:, :3], requires_grad=True)
        out = getattr(t, name)(x, 1)
        (first,) = t.autograd.grad((out * out.detach()).sum(), x, create_graph=True)
        return [out, first, *t.autograd.grad(first.square().sum(), x)]

    both(program)


def test_kinds():
    """Of integers, bytes, halves, one element, none; in the other direction, with a tangent and in a batch."""

    def program(t):
        x = t.tensor(X)
        fn = lambda x: t.cumsum(x, 0)
        return [
            t.cumsum((x * 9).to(t.int8), 2),
            t.cumprod((x * 2).to(t.int32), 0),
            t.cumsum(x > 0, 1),
            t.cumsum(x[:, :1], 1),
            t.cumsum(x[:, :0], 1),
            t.cumsum(x.half(), -1),
            t.func.jvp(fn, (x,), (x + 1,))[1],
            t.vmap(fn)(x),
            t.cummax(x, 2),
            t.cummin(t.where(x > 1, float("nan"), x), 0),
        ]

    both(program)


def test_one_loop_in_place():
    """No tree of sums, and no result put together from parts."""
    text = str(jax.make_jaxpr(lambda x: scans.cumsum.fn(x, 1))(X))
    assert "cumsum" not in text.replace("cumsum.fn", "") and "concatenate" not in text


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_doubles_of_tpus(monkeypatch, name, dim, reverse):
    """Their compiler takes minutes for what `lax.cumsum` makes of them."""
    scan = {"cumsum": scans._cumulative_sum, "cumprod": scans._cumulative_product}[name]
    monkeypatch.setattr(scans, "on_tpu", lambda: True)
    made = jax.make_jaxpr(lambda x: scan(x, dim, reverse))(X)
    assert not any(name in str(eqn.primitive) for eqn in made.eqns)
    flipped = np.flip(X, dim) if reverse else X
    want = getattr(np, name)(flipped, dim)
    np.testing.assert_allclose(scan(X, dim, reverse), np.flip(want, dim) if reverse else want, rtol=1e-12)
