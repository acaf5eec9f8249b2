"""Loading data is tested with PyTorch's tensors in the place of ours: what differs is then the loader's."""

import numpy as np
import pytest

from jtorch.core import rng
from jtorch.data import collate, tensors

torch = pytest.importorskip("torch")


def _tensor(data, dtype=None):
    return torch.tensor(data, dtype=None if dtype is None else getattr(torch, dtype.name))


@pytest.fixture(autouse=True)
def torch_tensors(monkeypatch):
    monkeypatch.setattr(tensors, "Tensor", torch.Tensor)
    for name in ("as_tensor", "from_numpy", "stack"):  # setattr would look up what is there, and import it
        monkeypatch.setitem(vars(tensors), name, getattr(torch, name))
    monkeypatch.setitem(vars(tensors), "tensor", _tensor)
    monkeypatch.setitem(collate.default_collate_fn_map, torch.Tensor, collate.collate_tensor_fn)


@pytest.fixture
def seeded():
    """Seed both libraries' default generators; on leaving, they must stand at the same place."""

    def seed(n):
        torch.manual_seed(n)
        rng.default_generator.manual_seed(n)

    seed(0)
    yield seed
    np.testing.assert_array_equal(torch.get_rng_state().numpy(), rng.default_generator.get_state())


def same(a, b):
    """The same values in the same containers."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


@pytest.fixture(name="same")
def same_fixture():
    return same


@pytest.fixture
def same_error():
    """Both calls raise the same class with the same first line."""

    def check(theirs, ours):
        with pytest.raises(Exception) as a:
            theirs()
        with pytest.raises(type(a.value)) as b:
            ours()
        assert str(b.value).splitlines()[0] == str(a.value).splitlines()[0]

    return check
