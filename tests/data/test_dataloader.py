"""data/dataloader.py: the batches, their order, the draws and the errors of PyTorch's DataLoader."""

import warnings
from functools import partial

import numpy as np
import pytest

import jtorch
from jtorch import data
from jtorch.core import rng

torch = pytest.importorskip("torch")
theirs = torch.utils.data


def make(lib, n=11):
    return lib.TensorDataset(torch.arange(n), torch.arange(2.0 * n).reshape(n, 2))


class Squares:
    def __len__(self):
        return 11

    def __getitem__(self, i):
        if i >= 11:
            raise IndexError(i)
        return {"x": i, "square": np.float32(i * i), "name": str(i)}


DATASETS = {
    "tensors": make,
    "subset": lambda lib: lib.Subset(make(lib), [3, 1, 7, 10, 0]),
    "subset of subset": lambda lib: lib.Subset(lib.Subset(make(lib), [3, 1, 7, 10, 0]), torch.tensor([4, 2])),
    "concat": lambda lib: make(lib) + make(lib),
    "dicts": lambda lib: Squares(),
    "list": lambda lib: [1.5, 2.5, 3.5],
    "stack": lambda lib: lib.StackDataset(a=make(lib), b=range(11)),
    "split": lambda lib: lib.Subset(make(lib), range(2, 9)),
}
SETTINGS = [
    {},
    {"batch_size": 4},
    {"batch_size": 4, "drop_last": True},
    {"batch_size": 4, "shuffle": True},
    {"batch_size": None},
    {"batch_size": None, "shuffle": True},
    {"batch_size": 3, "collate_fn": len},
    {"batch_size": 3, "sampler": [1, 0, 1]},
    {"batch_sampler": [[0, 1], [1]]},
    {"batch_sampler": [[0, -1], [1]]},
]  # fmt: skip


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_batches(seeded, same, name, settings):
    a = theirs.DataLoader(DATASETS[name](theirs), **settings)
    b = data.DataLoader(DATASETS[name](data), **settings)
    assert len(a) == len(b)
    for _ in range(2):
        same(list(a), list(b))


def test_generator(seeded, same):
    g, h = torch.Generator().manual_seed(5), rng.Generator().manual_seed(5)
    a = theirs.DataLoader(make(theirs), 4, shuffle=True, generator=g)
    b = data.DataLoader(make(data), 4, shuffle=True, generator=h)
    for _ in range(3):
        same(list(a), list(b))
        np.testing.assert_array_equal(g.get_state().numpy(), h.get_state())


def test_draws_happen_at_the_same_moments(seeded):
    a, b = theirs.DataLoader(make(theirs), 4, shuffle=True), data.DataLoader(make(data), 4, shuffle=True)
    x, y = iter(a), iter(b)
    np.testing.assert_array_equal(torch.get_rng_state().numpy(), rng.default_generator.get_state())
    next(x), next(y)
    np.testing.assert_array_equal(torch.get_rng_state().numpy(), rng.default_generator.get_state())


def stream(lib, n, reported=None):
    class Stream(lib.IterableDataset):
        def __iter__(self):
            return iter(range(n))

        def __len__(self):
            if reported is None:
                raise TypeError("no length")
            return reported

        def __repr__(self):
            return "Stream"

    return Stream()


@pytest.mark.parametrize("n", [0, 1, 6, 7])
@pytest.mark.parametrize(
    "settings", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}], ids=str
)
def test_iterable(seeded, same, n, settings):
    a = theirs.DataLoader(stream(theirs, n), **settings)
    b = data.DataLoader(stream(data, n), **settings)
    for _ in range(2):
        same(list(a), list(b))
    a = theirs.DataLoader(stream(theirs, n, n), **settings)
    b = data.DataLoader(stream(data, n, n), **settings)
    assert len(a) == len(b)


def test_an_iterator_that_begins_again_when_asked_for_one(seeded, same):
    def restarting(lib):
        class Restarting(lib.IterableDataset):
            def __iter__(self):
                self.left = iter(range(5))
                return self

            def __next__(self):
                return next(self.left)

        return Restarting()

    for size in (None, 2):
        loader = data.DataLoader(restarting(data), size)
        same(list(theirs.DataLoader(restarting(theirs), size)), [batch for batch, _ in zip(loader, range(9))])


def test_wrong_length_warns(seeded):
    found = []
    for lib in (theirs, data):
        loader = lib.DataLoader(stream(lib, 5, 3))
        list(loader)  # nobody has asked for the length: silence
        assert len(loader) == 3
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            list(loader)
        found.append([str(w.message) for w in caught])
    assert found[0] == found[1] and len(found[0]) == 2


def test_one_op_a_tensor(monkeypatch):
    class Counting(torch.Tensor):
        pass

    calls = []
    real = torch.Tensor.__getitem__
    monkeypatch.setattr(torch.Tensor, "__getitem__", lambda self, i: calls.append(i) or real(self, i))
    list(data.DataLoader(make(data), 4))
    assert len(calls) == 2 * 3
    calls.clear()
    subclassed = data.TensorDataset(torch.arange(4).as_subclass(Counting))
    list(data.DataLoader(subclassed, 2))
    assert calls and all(type(i) is int for i in calls)  # a subclass may do more with an index


def test_an_overridden_getitem_is_used():
    class Doubled(data.TensorDataset):
        def __getitem__(self, i):
            return super().__getitem__(i)[0] * 2

    assert torch.equal(next(iter(data.DataLoader(Doubled(torch.arange(3)), 3))), torch.tensor([0, 2, 4]))


ERRORS = [
    {"num_workers": -1},
    {"timeout": -1},
    {"prefetch_factor": 2},
    {"num_workers": 1, "prefetch_factor": -1},
    {"persistent_workers": True},
    {"sampler": [0], "shuffle": True},
    {"batch_sampler": [[0]], "shuffle": True},
    {"batch_sampler": [[0]], "batch_size": 2},
    {"batch_sampler": [[0]], "sampler": [0]},
    {"batch_sampler": [[0]], "drop_last": True},
    {"batch_size": None, "drop_last": True},
    {"batch_size": 0},
    {"batch_size": 2.5},
    {"multiprocessing_context": "spawn"},
    {"num_workers": 1, "multiprocessing_context": "teleport"},
    {"num_workers": 1, "multiprocessing_context": 3},
]
STREAM_ERRORS = [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}]


@pytest.mark.parametrize("settings", ERRORS, ids=str)
def test_errors(settings, same_error):
    same_error(lambda: theirs.DataLoader([1], **settings), lambda: data.DataLoader([1], **settings))


def test_a_timeout_without_workers(same_error):
    for t in (torch, jtorch):
        t.manual_seed(3)
    same_error(lambda: iter(theirs.DataLoader([1], timeout=5)), lambda: iter(data.DataLoader([1], timeout=5)))
    assert jtorch.rand(1).item() == torch.rand(1).item(), "the pass has drawn its seed"


@pytest.mark.parametrize("settings", STREAM_ERRORS, ids=str)
def test_iterable_errors(settings, same_error):
    a, b = stream(theirs, 3), stream(data, 3)
    same_error(lambda: theirs.DataLoader(a, **settings), lambda: data.DataLoader(b, **settings))


def test_fixed_attributes(same_error):
    a, b = theirs.DataLoader([1]), data.DataLoader([1])
    for name in ("batch_size", "sampler", "dataset", "drop_last"):
        same_error(partial(setattr, a, name, 2), partial(setattr, b, name, 2))
    b.collate_fn = len
    assert list(b) == [1]
    assert data.get_worker_info() is None


def test_names():
    import_module = __import__("importlib").import_module
    utils = import_module("jtorch.utils.data")
    assert utils.DataLoader is data.DataLoader and utils._DatasetKind is data._DatasetKind
    for name in ("dataset", "sampler", "dataloader", "distributed"):
        assert import_module(f"jtorch.utils.data.{name}") is import_module(f"jtorch.data.{name}")
    assert import_module("jtorch.utils.data._utils.collate") is import_module("jtorch.data.collate")
    assert set(data.__all__) - {"LengthBucketSampler", "PadToBucket", "length_boundaries"} == set(theirs.__all__)
