"""assert_close: accepts and refuses what PyTorch's does, in its words."""

import warnings

import numpy as np
import pytest

import jtorch
from tests.oracle import both, run, torch

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
    "torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1])",
    "torch.tensor([1.0]).half(), torch.tensor([1.01]).half()",
    "torch.tensor([1.0]).bfloat16(), torch.tensor([1.1]).bfloat16()",
    "torch.tensor([1 + 1j]), torch.tensor([1 + 2j])",
    "torch.tensor(1.0), 1.0",
    "np.ones(1), torch.ones(1)",
    "1.0, 'a'",
    "torch.ones(2, device='meta'), torch.zeros(2, device='meta')",
    "torch.nn.Parameter(torch.ones(1)), torch.ones(1)",
]


@pytest.mark.parametrize("case", CASES)
def test_assert_close(case):
    def attempt(module):
        a, b, *tolerances = eval(f"({case})", {"torch": module, "np": np})
        return module.testing.assert_close(a, b, **dict(zip(("rtol", "atol"), tolerances)))

    expected, got = run(attempt, torch), run(attempt, jtorch)
    assert type(got.error) is type(expected.error), got.error
    assert str(got.error).replace("jtorch.tensor.", "torch.") == str(expected.error)


def test_words():
    with pytest.raises(AssertionError, match="^mine$"):
        jtorch.testing.assert_close(jtorch.ones(1), jtorch.zeros(1), msg="mine")
    with pytest.raises(AssertionError, match="^before Tensor-likes are not close!"):
        jtorch.testing.assert_close(jtorch.ones(1), jtorch.zeros(1), msg=lambda words: f"before {words}")


SETTINGS = [
    {}, {"low": 0, "high": 5}, {"low": -2.5, "high": 2.5}, {"noncontiguous": True}, {"exclude_zero": True}, {"low": 3}, {"high": -20},
    {"low": 5, "high": 1}, {"low": 0, "high": 0}, {"low": float("nan")}, {"low": 1000, "high": 2000}, {"low": float("-inf")},
    {"low": float("-inf"), "high": float("inf")}, {"requires_grad": True}, {"noncontiguous": True, "memory_format": "channels_last"},
]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["float32", "float16", "bfloat16", "float64", "int64", "int8", "uint8", "bool", "complex64"],
)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_make_tensor(name, settings):
    def program(module):
        module.manual_seed(0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            t = module.testing.make_tensor(2, 3, dtype=getattr(module, name), device="cpu", **settings)
        words = [str(w.message) for w in said if w.category is FutureWarning]
        return t.detach().to(module.complex128), t.stride(), t.requires_grad, str(t.dtype), words

    both(program)


def test_what_make_tensor_does_not_make():
    both(lambda module: module.testing.make_tensor(2, dtype="a", device="cpu"))


def test_make_tensor_of_small_floats():
    def program(module):
        module.manual_seed(0)
        return module.testing.make_tensor((2, 3), dtype=module.float8_e4m3fn, device="cpu", requires_grad=True).float()

    both(program)
