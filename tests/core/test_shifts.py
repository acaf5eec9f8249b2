"""core/shifts.py: a write of what has been read elsewhere in the same memory is PyTorch's, and one in its own place stays in place."""

import pytest

import jtorch
from jtorch.core import shifts
from tests.oracle import torch

DTYPES = ("float64", "float32", "float16", "int64", "uint8", "bool", "complex64")


def with_diagonal(x):
    x = x.clone()
    x.fill_diagonal_(1)
    return x


# Tables that are made in the program; compilers see that they are made as rows, and reshaped.
TABLES = {
    "sorted": lambda x: x.reshape(-1).sort()[0].view(4, 4),
    "with a diagonal": with_diagonal,
    "one of two": lambda x: (x @ x).expand(2, 4, 4).clone()[1].tanh().clamp(-1, 1),
}
# Each writes to a table made in the program.
WRITES = {
    "down": lambda t, a: a[1:].copy_(a[:-1].clone()),
    "down by setting": lambda t, a: a.__setitem__(slice(1, None), a[:-1].clone()),
    "up": lambda t, a: a[:-1].copy_(a[1:].clone()),
    "computed": lambda t, a: a[1:].copy_(a[:-1] * 2),
    "added": lambda t, a: a[1:].add_(a[:-1].clone()),
    "turned": lambda t, a: a[1:].copy_(a[1:].flip(0)),
    "to the side": lambda t, a: a[:, 1:].copy_(a[:, :-1] + a[:, 1:]),
    "transposed": lambda t, a: a.copy_(a.t().clone()),
    "a row to all": lambda t, a: a[1:].copy_(a[2].clone()),
    "twice": lambda t, a: (a[1:].copy_(a[:-1].clone()), a[:, 1:].copy_(a[:, :-1].clone())),
    "flat": lambda t, a: a.view(-1)[1:].copy_(a.view(-1)[:-1].clone()),
}


@pytest.fixture(autouse=True)
def compiled_at_once():
    """Nothing is left to numpy."""
    jtorch.use_deterministic_algorithms(True)
    yield
    jtorch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("table", TABLES)
def test_as_pytorch(table, name):
    seen = []
    for t in (torch, jtorch):
        x = (t.arange(16.0) * 7 % 16).reshape(4, 4).clone()
        a = TABLES[table](x)
        WRITES[name](t, a)
        seen.append(a.flatten().tolist())
    assert seen[0] == pytest.approx(seen[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    seen = []
    for t in (torch, jtorch):
        x = (t.arange(16.0) * 7 % 16).reshape(4, 4).to(getattr(t, dtype))
        a = x.reshape(-1).flip(0).clone()
        a[::5] = 1
        a = a.view(4, 4)
        a[1:] = a[:-1].clone()
        seen.append(a.tolist())
    assert seen[0] == seen[1]


def test_what_stays_in_place(monkeypatch):
    """A table that comes from outside, or whose elements are each computed from themselves, is not made anew."""
    found = []
    usual = shifts.unsafe
    monkeypatch.setattr(shifts, "unsafe", lambda nodes: found.append(usual(nodes)) or found[-1])
    table = jtorch.arange(16.0).view(4, 4).clone()
    table.sum().item()
    a = table.reshape(-1).sort()[0].view(4, 4)
    a[1:] += 1
    a[:, 2].mul_(2)
    table[1:] = table[:-1].clone()
    assert (a.sum() + table.sum()).item()
    assert found and not any(found)
