"""data/dataset.py against PyTorch's datasets."""

from functools import partial

import pytest

from jtorch import data
from jtorch.core import rng

torch = pytest.importorskip("torch")
theirs = torch.utils.data


def tensor_dataset(lib, n=6):
    return lib.TensorDataset(torch.arange(n), torch.arange(2 * n).reshape(n, 2))


def test_tensor_dataset(same, same_error):
    a, b = tensor_dataset(theirs), tensor_dataset(data)
    assert len(a) == len(b)
    for index in (0, -1, slice(1, 3), torch.tensor([1, 2]), [0, 4]):
        same(a[index], b[index])
    bad = torch.ones(2), torch.ones(3)
    same_error(lambda: theirs.TensorDataset(*bad), lambda: data.TensorDataset(*bad))


def test_concat(same, same_error):
    a = tensor_dataset(theirs) + tensor_dataset(theirs, 3) + tensor_dataset(theirs)
    b = tensor_dataset(data) + tensor_dataset(data, 3) + tensor_dataset(data)
    assert isinstance(b, data.ConcatDataset) and len(a) == len(b)
    assert b.cumulative_sizes == a.cumulative_sizes
    for i in range(-len(a), len(a)):
        same(a[i], b[i])
    same_error(lambda: a[-16], lambda: b[-16])
    with pytest.warns(FutureWarning, match="is renamed to `cumulative_sizes`"):
        assert b.cummulative_sizes == a.cumulative_sizes
    same_error(lambda: theirs.ConcatDataset([]), lambda: data.ConcatDataset([]))


def counters(lib):
    class Count(lib.IterableDataset):
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return iter(range(self.n))

        def __len__(self):
            return self.n

    return Count


def test_chain(same_error):
    a, b = counters(theirs), counters(data)
    x, y = a(3) + a(2), b(3) + b(2)
    assert list(x) == list(y) == [0, 1, 2, 0, 1] and len(x) == len(y) == 5
    same_error(lambda: list(theirs.ChainDataset([[1]])), lambda: list(data.ChainDataset([[1]])))
    same_error(lambda: theirs.ConcatDataset([a(1)]), lambda: data.ConcatDataset([b(1)]))


@pytest.mark.parametrize("named", [False, True])
def test_stack(named, same, same_error):
    def make(lib):
        parts = [list(range(6)), tensor_dataset(lib), lib.Subset(range(20), range(3, 9))]
        return lib.StackDataset(**dict(zip("abc", parts))) if named else lib.StackDataset(*parts)

    a, b = make(theirs), make(data)
    assert len(a) == len(b)
    same(a[2], b[2])
    same(a.__getitems__([0, 3]), b.__getitems__([0, 3]))
    for args, kwargs in ((), {}), (([1],), {"a": [1]}), (([1], [1, 2]), {}):
        same_error(partial(theirs.StackDataset, *args, **kwargs), partial(data.StackDataset, *args, **kwargs))


def test_subset(same, same_error):
    a, b = theirs.Subset(range(10, 20), [1, 5, 5]), data.Subset(range(10, 20), [1, 5, 5])
    assert [a[i] for i in range(3)] == [b[i] for i in range(3)] and len(a) == len(b)
    assert a.__getitems__([0, 2]) == b.__getitems__([0, 2])
    a, b = theirs.Subset(tensor_dataset(theirs), [4, 2]), data.Subset(tensor_dataset(data), [4, 2])
    same(a[[1, 0]], b[[1, 0]])

    def half(lib):
        class Half(lib.Subset):
            def __getitem__(self, i):
                return 0

        return Half([1], [0])

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not __getitems__"):
        half(data)
    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not __getitems__"):
        half(theirs)


@pytest.mark.parametrize("lengths", [[3, 7], [10], [0.3, 0.7], [0.33, 0.33, 0.34], [0.25] * 4])
def test_random_split(seeded, lengths):
    for g, h in ((None, None), (torch.Generator().manual_seed(2), rng.Generator().manual_seed(2))):
        a = theirs.random_split(range(10), lengths, **({} if g is None else {"generator": g}))
        b = data.random_split(range(10), lengths, **({} if g is None else {"generator": h}))
        assert [x.indices for x in a] == [y.indices for y in b]


def test_random_split_errors(same_error):
    for lengths in ([3, 4], [1.5, -0.5], [0.1, 0.1]):
        same_error(partial(theirs.random_split, range(10), lengths), partial(data.random_split, range(10), lengths))
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(1), [0.5, 0.5])


def test_base(same_error):
    same_error(lambda: theirs.Dataset()[0], lambda: data.Dataset()[0])
    assert data.Dataset[int] and issubclass(data.IterableDataset[int].__origin__, data.Dataset)
