"""assert_close: accepts and refuses what PyTorch's does, in its words."""

import pytest

import jtorch
from tests.oracle import run, torch

CASES = [
    "torch.ones(3), torch.ones(3) + 1e-7",
    "torch.ones(3), torch.tensor([1.0, 1.0, 2.0])",
    "1.0, 2.0",
    "1, 1.0",
    "[1, 2], [1, 3]",
    "[1], [1, 2]",
    "{'a': torch.ones(2)}, {'a': torch.zeros(2)}",
    "{'a': 1}, {'b': 1}",
    "torch.ones(2), torch.ones(2).double()",
    "torch.ones(2), torch.ones(3)",
    "torch.arange(3), torch.tensor([0, 1, 5])",
    "torch.tensor([1.0, float('nan')]), torch.tensor([1.0, 2.0])",
    "torch.tensor(1.0), torch.tensor(0.0)",
    "torch.tensor([True, False]), torch.tensor([True, True])",
    "None, 1",
    "True, False",
    "torch.ones(2), torch.ones(2), 0.1",
    "torch.full((2,), 1.05), torch.ones(2), 0.1, 0.0",
    "torch.ones(2, 3).t(), torch.ones(3, 2)",
    "torch.tensor([2j]), torch.tensor([1j])",
]


@pytest.mark.parametrize("case", CASES)
def test_assert_close(case):
    def attempt(module):
        a, b, *tolerances = eval(f"({case})", {"torch": module})
        return module.testing.assert_close(a, b, **dict(zip(("rtol", "atol"), tolerances)))

    expected, got = run(attempt, torch), run(attempt, jtorch)
    assert type(got.error) is type(expected.error), got.error
    assert str(got.error) == str(expected.error)


def test_words():
    with pytest.raises(AssertionError, match="^mine$"):
        jtorch.testing.assert_close(jtorch.ones(1), jtorch.zeros(1), msg="mine")
    with pytest.raises(AssertionError, match="^before Tensor-likes are not close!"):
        jtorch.testing.assert_close(jtorch.ones(1), jtorch.zeros(1), msg=lambda words: f"before {words}")


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float64", "int64", "uint8", "bool", "complex64"])
def test_make_tensor(name):
    made = jtorch.testing.make_tensor(4, 5, dtype=getattr(jtorch, name), device="cpu", noncontiguous=True)
    like = torch.testing.make_tensor(4, 5, dtype=getattr(torch, name), device="cpu", noncontiguous=True)
    assert made.dtype is getattr(jtorch, name) and made.stride() == like.stride() and made.shape == (4, 5)
    if name not in ("bool", "complex64"):
        low = jtorch.testing.make_tensor(100, dtype=getattr(jtorch, name), device="cpu", low=2, high=4)
        assert 2 <= low.min().item() and low.max().item() <= 4
