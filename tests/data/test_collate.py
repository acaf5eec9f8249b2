"""data/collate.py against PyTorch's default_collate and default_convert."""

import collections

import numpy as np
import pytest

import jtorch
from jtorch.data import collate as ours

torch = pytest.importorskip("torch")
theirs = torch.utils.data._utils.collate

Point = collections.namedtuple("Point", "x y")


class Tagged(dict):
    tag = "kept"


class Frozen(tuple):
    pass


BATCHES = {
    "int": [1, 2, 3],
    "bool": [True, False],
    "float": [1.5, 2.0],
    "str": ["a", "b"],
    "bytes": [b"a", b"b"],
    "tensor": [torch.ones(2), torch.zeros(2)],
    "0-d tensor": [torch.tensor(1), torch.tensor(2)],
    "array": [np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)],
    "0-d array": [np.array(1.0), np.array(2.0)],
    "float32": [np.float32(1), np.float32(2)],
    "float64": [np.float64(1), np.float64(2)],
    "int8": [np.int8(1), np.int8(2)],
    "bool_": [np.bool_(True), np.bool_(False)],
    "tuple": [(1, 2.0), (3, 4.0)],
    "list": [[1, 2], [3, 4]],
    "dict": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
    "nested": [{"a": (1, [torch.ones(2), "s"])}, {"a": (2, [torch.zeros(2), "t"])}],
    "namedtuple": [Point(1, 2.0), Point(3, 4.0)],
    "dict subclass": [Tagged(a=1), Tagged(a=2)],
    "default dict": [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)],
    "ordered dict": [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "range": [range(2), range(2)],
    "tuple subclass": [Frozen((1, 2)), Frozen((3, 4))],
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_collate(name, same):
    same(theirs.default_collate(BATCHES[name]), ours.default_collate(BATCHES[name]))


@pytest.mark.parametrize("name", BATCHES)
def test_convert(name, same):
    for data in (BATCHES[name], BATCHES[name][0], tuple(BATCHES[name])):
        same(theirs.default_convert(data), ours.default_convert(data))


def test_text_arrays(same, same_error):
    text = np.array(["a", "b"])
    same(theirs.default_convert(text), ours.default_convert(text))
    same_error(lambda: theirs.default_collate([text]), lambda: ours.default_collate([text]))


@pytest.mark.parametrize("batch", [[None, None], [object()], [[1], [1, 2]], [{1, 2}], []])
def test_errors(batch, same_error):
    if batch and type(batch[0]) is object:
        with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays.*found <class 'object'>"):
            ours.default_collate(batch)
        return
    same_error(lambda: theirs.default_collate(batch), lambda: ours.default_collate(batch))


def test_sparse_tensors_are_refused(same_error):
    sparse = torch.eye(2).to_sparse(), jtorch.eye(2).to_sparse()
    same_error(lambda: theirs.default_collate([sparse[0]] * 2), lambda: ours.default_collate([sparse[1]] * 2))


def test_own_map(same):
    class Special:
        pass

    def special(batch, *, collate_fn_map=None):
        return len(batch)

    for lib in (theirs, ours):
        fn_map = {Special: special, **lib.default_collate_fn_map}
        out = lib.collate([(Special(), 1), (Special(), 2)], collate_fn_map=fn_map)
        same(out, [2, torch.tensor([1, 2])])


def test_map_is_extensible(monkeypatch):
    class Special(int):
        pass

    monkeypatch.setitem(ours.default_collate_fn_map, Special, lambda batch, *, collate_fn_map=None: "special")
    assert ours.default_collate([Special(1), Special(2)]) == "special"
