"""Indices outside a tensor are refused as PyTorch refuses them, few of them (looked at one by one) and many."""

import pytest

from jtorch.ops import places
from tests.oracle import both

COUNTS = (1, places.FEW, places.FEW + 1)


def _indices(t, n, last):
    return t.tensor([*(k % 3 for k in range(n - 1)), last])


@pytest.mark.parametrize("last", [-6, -5, -1, 4, 5])
@pytest.mark.parametrize("n", COUNTS)
def test_picked_rows(n, last):
    both(lambda t: t.arange(15.0).reshape(5, 3)[_indices(t, n, last)])


@pytest.mark.parametrize("last", [-1, 4, 5])
@pytest.mark.parametrize("n", COUNTS)
def test_embedding(n, last):
    both(lambda t: t.nn.functional.embedding(_indices(t, n, last), t.arange(15.0).reshape(5, 3)))
