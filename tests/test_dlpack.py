"""Arrays of other libraries as tensors and back."""

import numpy as np
import pytest

import jtorch
from tests.oracle import both, torch

PASSED = {
    "a tensor shares": lambda t: [(t.from_dlpack(x).add_(1), x) for x in [t.arange(3.0)]],
    "an array": lambda t: t.from_dlpack(np.arange(3.0)),
    "a capsule": lambda t: t.utils.dlpack.from_dlpack(t.utils.dlpack.to_dlpack(t.arange(6.0).view(2, 3).t())),
    "a capsule shares": lambda t: [
        (t.utils.dlpack.from_dlpack(t.utils.dlpack.to_dlpack(x)).add_(1), x) for x in [t.arange(3.0)]
    ],
    "a copy": lambda t: [(t.from_dlpack(x, copy=True).add_(1), x) for x in [t.arange(3.0)]],
    "a leaf": lambda t: t.from_dlpack(t.ones(2, requires_grad=True)),
    "a leaf as a capsule": lambda t: t.from_dlpack(t.utils.dlpack.to_dlpack(t.ones(2, requires_grad=True))),
    "a sparse tensor": lambda t: t.from_dlpack(t.ones(2).to_sparse()),
    "a number": lambda t: t.from_dlpack(5),
    "a capsule twice": lambda t: [(t.from_dlpack(c), t.from_dlpack(c)) for c in [t.utils.dlpack.to_dlpack(t.ones(2))]],
    "a stream by name": lambda t: t.ones(2).__dlpack__(stream="a"),
    "a stream on the host": lambda t: t.ones(2).__dlpack__(stream=1),
}


@pytest.mark.parametrize("name", PASSED)
def test_passed(name):
    both(PASSED[name])


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.add(jtorch.ones(2), 1),
        lambda: torch.nn.functional.relu(jtorch.ones(2)),
        lambda: torch.stack([jtorch.ones(2)]),
        lambda: jtorch.add(torch.ones(2), 1),
        lambda: jtorch.nn.functional.relu(torch.ones(2)),
        lambda: jtorch.ones(2) @ torch.ones(2),
    ],
)
def test_tensors_of_one_library_in_functions_of_the_other(call):
    with pytest.raises(TypeError, match=r"was given a tensor of|unsupported operand"):
        call()
