"""dispatch/joined.py: many small tensors at hand are joined without a program, and give the same."""

import pytest

import jtorch
from jtorch.core import ledger
from jtorch.dispatch import joined
from tests.oracle import torch

KINDS = {
    "rows": lambda t: [t.tensor([float(i), 2.0]).unsqueeze(0) for i in range(9)],
    "views": lambda t: list(t.arange(24.0).view(4, 6).T.unbind(0)) * 2,
    "bool": lambda t: [t.tensor([i % 2 == 0]) for i in range(8)],
    "bfloat16": lambda t: [t.ones(2, dtype=t.bfloat16)] * 8,
    "mixed": lambda t: [t.ones(1), t.ones(1, dtype=t.int64)] * 4,
    "one that needs a gradient": lambda t: [t.ones(1)] * 8 + [t.ones(1, requires_grad=True)],
    "computed": lambda t: [t.ones(2) * i for i in range(10)],
}


@pytest.mark.parametrize("name", ["cat", "stack"])
@pytest.mark.parametrize("kind", KINDS)
def test_as_pytorch(kind, name):
    for dim in (0, -1):
        ours, theirs = (getattr(t, name)(KINDS[kind](t), dim) for t in (jtorch, torch))
        assert ours.tolist() == theirs.tolist() and str(ours.dtype) == str(theirs.dtype)
        assert ours.requires_grad == theirs.requires_grad and ours.stride() == theirs.stride()


def test_which_tensors_are_the_same_makes_no_other_program(monkeypatch):
    """Batches of a replay buffer."""
    rows = [jtorch.tensor([float(i), 1.0]) for i in range(12)]

    def loss(picked):
        return (jtorch.stack([rows[i] for i in picked]).square().sum() + 1).item()

    assert loss(range(8)) == 149 and loss([3] * 8) == 81
    monkeypatch.setattr(ledger, "entries", [])
    for k in range(6):
        assert loss([k, k + 1, k, 3, 4, 5, 6, k]) > 0
    assert len(ledger.entries) <= 1


def test_written_to_afterwards():
    parts = [jtorch.zeros(1) for _ in range(joined.MANY)]
    whole = jtorch.cat(parts)
    parts[0].add_(1)
    whole[1] = 5
    assert whole.tolist() == [0, 5] + [0] * 6 and parts[1].item() == 0


def test_inference_and_regions():
    with jtorch.inference_mode():
        assert jtorch.cat([jtorch.ones(1)] * 8).is_inference()

    @jtorch.compile
    def together(*parts):
        return jtorch.cat(parts) * 2

    for k in range(4):
        assert together(*(jtorch.tensor([float(k + i)]) for i in range(8))).tolist() == [
            2.0 * (k + i) for i in range(8)
        ]
