"""Python ints past int64, as operands, fills, elements and bounds: PyTorch's values and errors, at the first call and after it."""

import pytest

import jtorch
from jtorch.core import wide
from tests.oracle import both

BIG, BIGGER, LOW = 2**63, 2**64, -(2**63) - 1


def test_bits():
    assert [wide.is_wide(x) for x in (BIG - 1, BIG, LOW + 1, LOW, 1e30, float("inf"), float("nan"), 2j)] == [
        *(False, True, False, True, True, False, False, False)
    ]
    assert wide.wrapped(BIG) == LOW + 1 and wide.wrapped(BIGGER - 1) == -1
    with pytest.raises(OverflowError, match="int too big to convert"):
        wide.check(BIGGER)
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        wide.check(LOW)


CALLS = {
    "literals": [
        lambda t: t.tensor(BIG),
        lambda t: t.tensor([BIG], dtype=t.uint64),
        lambda t: t.tensor([BIG, -1], dtype=t.float32),
        lambda t: t.tensor(BIGGER, dtype=t.float64),
        lambda t: t.tensor([BIG], dtype=t.int32),
        lambda t: t.as_tensor([BIG], dtype=t.float64),
        lambda t: t.scalar_tensor(BIG),
    ],
    "fills": [
        lambda t: t.full((2,), BIG),
        lambda t: t.full((2,), BIG, dtype=t.uint64),
        lambda t: t.full((2,), BIG, dtype=t.float32),
        lambda t: t.full((2,), BIGGER, dtype=t.float32),
        lambda t: t.full((2,), LOW),
        lambda t: t.ones(2).fill_(BIG),
        lambda t: t.arange(3).fill_(BIG),
        lambda t: t.linspace(0, BIG, 3),
        lambda t: t.arange(BIG, BIG + 2),
    ],
    "operands": [
        lambda t: t.arange(3) + BIG,
        lambda t: t.arange(3) * BIG,
        lambda t: t.arange(3) + BIGGER,
        lambda t: t.arange(3) + LOW,
        lambda t: t.arange(3) / BIG,
        lambda t: t.arange(3) < BIG,
        lambda t: t.ones(2) * BIG,
        lambda t: t.ones(2) < BIGGER,
        lambda t: BIG - t.ones(2),
        lambda t: t.arange(3).add_(BIG),
        lambda t: t.ones(2).mul_(BIGGER),
        lambda t: t.add(t.ones(2), t.ones(2), alpha=BIG),
        lambda t: t.where(t.arange(3) > 1, t.arange(3), BIG),
        lambda t: t.ones(2).masked_fill(t.ones(2) > 0, BIG),
        lambda t: t.clamp(t.ones(2), max=BIG),
        lambda t: t.addcmul(t.ones(2), t.ones(2), t.ones(2), value=BIG),
    ],
    "assignment": [
        lambda t: t.zeros(2).__setitem__(0, BIG),
        lambda t: t.zeros(2, dtype=t.uint64).__setitem__(0, BIG),
        lambda t: t.arange(2).__setitem__(slice(None), BIG),
        lambda t: t.zeros(2).__setitem__([0, 1], BIGGER),
        lambda t: t.zeros(2).__setitem__(t.zeros(2) == 0, BIG),
    ],
}


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("kind", CALLS)
def test_as_in_torch(kind, again):
    for call in CALLS[kind]:
        if again:
            try:
                call(jtorch)
            except (RuntimeError, ValueError, OverflowError):
                pass
        both(call)


def test_a_plan_made_for_small_ints_sees_large_ones():
    both(lambda t: [t.arange(3) + n for n in (1, BIG, 2)])
    both(lambda t: [t.ones(2).mul(n) for n in (1, BIGGER - 1, 2)])
