"""core/gpu.py: which programs take the kernels that the libraries choose, and which have them tried out."""

import pytest

import jtorch
import jtorch.nn.functional as F
from jtorch import config
from jtorch.core import gpu

FIRST = gpu._OF_LIBRARY | gpu._FIRST_CHOICE


def embedding(rows, width):
    """The gradient of an embedding: as many rows are added up as have been looked up."""
    weight = jtorch.ones(50, width, requires_grad=True)
    F.embedding(jtorch.zeros(rows, dtype=jtorch.int64), weight).sum().backward()
    return weight.grad


def convolution(*_):
    x = jtorch.ones(2, 3, 8, 8, requires_grad=True)
    F.conv2d(x, jtorch.ones(4, 3, 3, 3)).sum().backward()
    return x.grad


def both(rows, width):
    return embedding(rows, width).sum() + convolution().sum()


SMALL, LARGE = (8, 4), (1 << 15, 64)
ROWS = {
    "products": (lambda *_: jtorch.ones(3, 4) @ jtorch.ones(4, 3), SMALL, True),
    "convolutions": (convolution, SMALL, True),
    "a small sum": (embedding, SMALL, True),
    "a large sum": (embedding, LARGE, False),
    "a large sum, and convolutions, which take far longer to try out": (both, LARGE, True),
}


def plans(f, size):
    jtorch.synchronize()
    graph = f(*size)._storage.value.graph
    return {node.plan for node in graph.state.nodes()}


@pytest.mark.parametrize("name", ROWS)
def test_which_programs_try_out_kernels(name, monkeypatch):
    f, size, at_once = ROWS[name]
    found = plans(f, size)
    assert gpu.options(found) == (FIRST if at_once else gpu._OF_LIBRARY)
    monkeypatch.setattr(config, "tries_kernels", True)
    assert gpu.options(found) == gpu._OF_LIBRARY
    monkeypatch.setattr(config, "deterministic", True)
    assert gpu.options(found) == FIRST
