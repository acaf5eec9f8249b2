"""data/varying.py: samples that are recorded in another way each time are made on the host, and stay PyTorch's."""

import numpy as np
import pytest

import jtorch
from jtorch import data
from jtorch.core import ledger
from jtorch.core.storage import on_host
from jtorch.data.varying import varying_of

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def torch_tensors():
    """Samples are jtorch's here."""


@pytest.fixture(autouse=True)
def nothing_stays_switched(own_programs):
    yield
    assert on_host.always is False


def words(lib):
    class Words:
        """A word's letters, padded: as many slices and writes as PyTorch users make."""

        def __len__(self):
            return 24

        def __getitem__(self, i):
            n = i * 5 % 7 + 1
            letters = lib.tensor([(i * k) % 9 for k in range(n)])
            x, y = lib.zeros(9, dtype=lib.long), lib.zeros(9, dtype=lib.long)
            x[1 : 1 + n] = letters
            y[:n] = letters
            y[n + 1 :] = -1
            return x, y

    return Words()


def test_a_step_over_samples_that_differ_is_one_program():
    loader = data.DataLoader(words(jtorch), batch_size=4)
    weight = jtorch.zeros(9, requires_grad=True)
    optimizer = jtorch.optim.SGD([weight], 0.1)

    def epoch():
        for x, y in loader:
            loss = ((x.float() * weight - y.float()) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    for _ in range(4):  # by then the step of an epoch's end, which another's program made at first, has its own
        epoch()
    jtorch.synchronize()
    before = ledger.counters.compiles, ledger.counters.by_op
    epoch()
    jtorch.synchronize()
    assert (ledger.counters.compiles, ledger.counters.by_op) == before


@pytest.mark.parametrize("mode", ["auto", "eager"])
def test_every_epoch_has_the_batches_of_pytorch(mode):
    wanted = [[t.tolist() for t in batch] for batch in torch.utils.data.DataLoader(words(torch), batch_size=5)]
    ours = words(jtorch)
    with jtorch.execution_mode(mode):
        for _ in range(3):
            assert [[t.tolist() for t in batch] for batch in data.DataLoader(ours, batch_size=5)] == wanted
    there = mode == "auto"  # in eager mode nothing is recorded that could differ
    assert varying_of(ours).on_host is there
    assert varying_of(data.Subset(ours, [1, 2])).on_host is there


def test_samples_that_are_recorded_alike_stay_with_the_step():
    class Alike:
        def __len__(self):
            return 8

        def __getitem__(self, i):
            x = jtorch.zeros(4)
            x[1:3] = float(i + 1)
            return x * 2

    dataset = Alike()
    loader = data.DataLoader(dataset, batch_size=4)
    for _ in range(3):
        for x in loader:
            x.sum().item()
    assert not varying_of(dataset).on_host


def test_an_error_leaves_nothing_switched():
    class Faulty(type(words(jtorch))):
        def __getitem__(self, i):
            if i == 20:
                raise KeyError(i)
            return super().__getitem__(i)

    for _ in range(2):
        with pytest.raises(KeyError):
            list(data.DataLoader(Faulty(), batch_size=4))


# What a program may do to a tensor while its memory is numpy's: (name, of the library)
ON_HOST = {
    "fill of a slice": lambda lib: lib.zeros(5)[2:].fill_(-1),
    "fill of a whole": lambda lib: lib.ones(5).fill_(2),
    "zero of a view": lambda lib: lib.ones(2, 3)[:, 1].zero_(),
    "slice and number": lambda lib: _written(lib.zeros(5, dtype=lib.long), slice(1, 3), 7),
    "slice and tensor": lambda lib: _written(lib.zeros(5), slice(1, 3), lib.tensor([1.0, 2.0])),
    "mask and number": lambda lib: _written(lib.arange(5), lib.arange(5) > 2, 9),
    "indices": lambda lib: lib.arange(6).reshape(2, 3)[:, lib.tensor([2, 0])],
    "arithmetic": lambda lib: (lib.arange(6.0).reshape(2, 3).T * 2 - 1).contiguous(),
    "in place": lambda lib: lib.ones(3).mul_(3).add_(lib.arange(3.0)),
    "stack and cat": lambda lib: lib.cat(
        [lib.stack([lib.arange(3), lib.arange(3) + 1]), lib.zeros(1, 3, dtype=lib.long)]
    ),
    "pad_sequence": lambda lib: lib.nn.utils.rnn.pad_sequence([lib.ones(2), lib.ones(3)], True, -1.0),
    "like a transpose": lambda lib: lib.full_like(lib.ones(2, 3).T, 4.0),
    "one hot": lambda lib: lib.nn.functional.one_hot(lib.tensor([0, 2]), 3),
    "flip and clone": lambda lib: lib.arange(4).flip(0).clone(),
    "a gradient": lambda lib: _gradient(lib),
    "draws": lambda lib: lib.rand_like(lib.empty(2, 3).T),
}


def _written(t, at, value):
    t[at] = value
    return t


def _gradient(lib):
    x = lib.arange(3.0, requires_grad=True)
    (x * x).sum().backward()
    return x.grad


@pytest.mark.parametrize("name", ON_HOST)
def test_on_the_host(name):
    torch.manual_seed(1)
    jtorch.manual_seed(1)
    wanted = ON_HOST[name](torch)
    on_host.always = True
    try:
        got = ON_HOST[name](jtorch)
    finally:
        on_host.always = on_host.at_home
    assert got.stride() == wanted.stride()
    assert str(got.dtype).rpartition(".")[2] == str(wanted.dtype).rpartition(".")[2]
    np.testing.assert_array_equal(got.numpy(), wanted.numpy())
