"""Normal numbers made by numpy, by XLA, and by both: the same bits, PyTorch's."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch.core import box_muller
from tests.oracle import torch

SIZES = (4 * box_muller.LITTLE, 2 * box_muller.MUCH + 2 * box_muller.LITTLE + 1003, 4 * box_muller.MUCH + 16)


@pytest.fixture
def many(monkeypatch):
    """As if the process had drawn many numbers already; how many rows XLA has made."""
    rows = []
    compiled = box_muller._compiled()

    def counted(unit):
        rows.append(len(unit))
        return compiled(unit)

    monkeypatch.setattr(box_muller, "drawn", [2 * box_muller.WORTH])
    monkeypatch.setattr(box_muller, "_compiled", lambda: counted)
    return rows


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_numbers(n, dtype, many):
    for t in (jtorch, torch):
        t.manual_seed(n)
    draw = lambda t: [
        t.randn(n, dtype=getattr(t, dtype)).float(),
        t.empty(n, dtype=getattr(t, dtype)).normal_(2, 0.3).float(),
    ]
    for got, want in zip(draw(jtorch), draw(torch)):
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    assert many


def test_numpy_makes_them_while_xla_is_at_work(many, monkeypatch):
    class Later:
        def is_ready(self):
            return False

    monkeypatch.setattr(box_muller, "_compiled", lambda: lambda unit: Later())
    jtorch.manual_seed(1)
    torch.manual_seed(1)
    np.testing.assert_array_equal(jtorch.randn(SIZES[1]).numpy(), torch.randn(SIZES[1]).numpy())


def test_within_a_trace(many):
    n = SIZES[0]
    jtorch.manual_seed(1)
    torch.manual_seed(1)
    got = jax.jit(lambda x: (jtorch.from_jax(x) + jtorch.randn(n)).__jax_array__())(np.zeros(n, np.float32))
    np.testing.assert_array_equal(np.asarray(got), torch.randn(n).numpy())
    assert many


@pytest.fixture
def filled(monkeypatch):
    """How many numbers each pass has made."""
    made, fill = [], box_muller._fill
    monkeypatch.setattr(box_muller, "_fill", lambda unit, *rest: made.append(unit.size) or fill(unit, *rest))
    return made


def test_ahead(filled):
    """Small draws, some made ahead of their time: the same numbers whatever is drawn between them, and from whichever state."""

    def draws(t):
        t.manual_seed(3)
        own = t.Generator().manual_seed(5)
        yield from (t.randn(16 * (1 + k % 5)) for k in range(60))
        yield from (t.randn(4, 16, generator=own) for _ in range(20))
        state = own.get_state()
        for k in range(40):
            yield t.randn(32)
            yield t.rand(1 + k % 3)
            yield t.empty(2, 32).normal_(1.5, 0.25)
            if k % 7 == 0:
                own.set_state(state)
            yield t.normal(0.0, 2.0, (64,), generator=own)
            yield t.randn(17 + k)
            yield t.randn(3)

    for got, want in zip(draws(jtorch), draws(torch), strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    assert sum(filled.count(size + box_muller.AHEAD) for size in (16, 32, 48)) > 1


def test_ahead_of_broken_blocks(filled):
    """Draws of 17 to 255 numbers that are no whole blocks make the last block together with the others, and ahead of their time."""

    def draws(t):
        t.manual_seed(7)
        yield from (t.randn(4, 6) for _ in range(60))
        yield from (t.normal(t.full((25,), 2.0), 0.5) for _ in range(20))
        for k in range(12):
            yield t.randn(255 + k)
            yield t.randn(31 - k, dtype=t.float64)
            yield t.randn(30, dtype=t.float16)
            yield t.randn(24)

    for got, want in zip(draws(jtorch), draws(torch), strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    filled.clear()
    gen = jtorch.Generator().manual_seed(3)
    for _ in range(60):
        jtorch.randn(4, 6, generator=gen)
    assert len(filled) < 12


def test_ahead_in_vain():
    """Where other draws lie between, numbers are made ahead more and more seldom."""
    gen = jtorch.Generator()
    for _ in range(200):
        jtorch.randn(16, generator=gen)
        jtorch.rand(1, generator=gen)
    assert gen.ahead.pause > 16
