"""data/buckets.py: few shapes, the least padding, the same order for a seed, programs used again."""

import itertools
import random

import numpy as np
import pytest

import jtorch
from jtorch import data, nn
from jtorch.data import LengthBucketSampler, PadToBucket, length_boundaries


@pytest.fixture(autouse=True)
def torch_tensors():
    """Here the tensors are jtorch's own."""


def padding(lengths, boundaries):
    return sum(min(b for b in boundaries if b >= n) - n for n in lengths)


@pytest.mark.parametrize("seed", range(8))
def test_no_choice_pads_less(seed):
    rng = random.Random(seed)
    lengths = [rng.randrange(0, 14) for _ in range(rng.randrange(1, 15))]
    values = sorted(set(lengths))
    for k in range(1, 5):
        found = length_boundaries(lengths, k)
        choices = [[*c, values[-1]] for n in range(min(k, len(values))) for c in itertools.combinations(values[:-1], n)]
        assert len(found) <= k and found == sorted(found) and found[-1] == values[-1]
        assert padding(lengths, found) == min(padding(lengths, c) for c in choices)


def test_multiples():
    lengths = [3, 9, 4, 20, 17, 5, 1]
    assert length_boundaries(lengths, 9, multiple=8) == [8, 16, 24]
    assert length_boundaries(lengths, 2, multiple=8) == [8, 24]
    assert length_boundaries([5] * 4, 3) == [5]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_of_one_bucket(shuffle, drop_last):
    lengths = [(7 * k) % 61 + 1 for k in range(100)]
    sampler = LengthBucketSampler(lengths, 8, [16, 32, 64], shuffle=shuffle, drop_last=drop_last)
    epochs = [list(sampler) for _ in range(2)]
    for batches in epochs:
        assert len(batches) == len(sampler)
        seen = sorted(itertools.chain(*batches))
        assert len(set(seen)) == len(seen)
        assert all(len(b) == 8 for b in batches) if drop_last else seen == list(range(100))
        assert all(len({np.searchsorted([16, 32, 64], lengths[i]) for i in b}) == 1 for b in batches)
    assert (epochs[0] != epochs[1]) == shuffle


def test_a_seed_gives_the_order():
    lengths = list(range(1, 60))
    orders = []
    for seed in (3, 3, 4):
        g = jtorch.Generator().manual_seed(seed)
        orders.append(list(LengthBucketSampler(lengths, 5, buckets=3, shuffle=True, generator=g)))
    jtorch.manual_seed(0)
    orders.append(list(LengthBucketSampler(lengths, 5, buckets=3, shuffle=True)))
    jtorch.manual_seed(0)
    assert orders[0] == orders[1] != orders[2]
    assert orders[3] == list(LengthBucketSampler(lengths, 5, buckets=3, shuffle=True))


WRONG = {
    "batch_size": (dict(lengths=[1], batch_size=0), "batch_size should be a positive integer value"),
    "descending": (dict(lengths=[1], batch_size=1, boundaries=[4, 2]), "boundaries should ascend"),
    "short": (dict(lengths=[9, 1], batch_size=1, boundaries=[4, 8]), "should hold the longest sequence \\(9\\)"),
    "nothing": (dict(lengths=[], batch_size=1), "length_boundaries needs lengths"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    arguments, words = WRONG[name]
    with pytest.raises(ValueError, match=words):
        LengthBucketSampler(**arguments)


def test_padding():
    pad = PadToBucket([4, 8], padding_value=-1)
    assert pad([[1, 2], [3, 4, 5]]).tolist() == [[1, 2, -1, -1], [3, 4, 5, -1]]
    x, y = pad([(jtorch.ones(2, 3), 7), (jtorch.zeros(5, 3), 8)])
    assert x.shape == (2, 8, 3) and x.dtype == jtorch.float32 and y.tolist() == [7, 8]
    assert x[0, :, 0].tolist() == [1, 1] + [-1] * 6
    made, lengths = PadToBucket([4], with_lengths=True)([{"x": np.arange(3), "y": 1}, {"x": np.arange(2), "y": 0}])
    assert made["x"].tolist() == [[0, 1, 2, 0], [0, 1, 0, 0]] and made["y"].tolist() == [1, 0]
    assert lengths.tolist() == [3, 2]
    a, b = PadToBucket([4, 8], fields=(0, 1))([([1], [2] * 5), ([1, 2], [3])])
    assert a.shape == (2, 4) and b.shape == (2, 8)
    with pytest.raises(ValueError, match="length 9 is longer than the last boundary, 8"):
        pad([[0] * 9])


def test_recorded_programs_are_used_again():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 9, n) for n in rng.integers(1, 40, 64)]
    sampler = LengthBucketSampler([len(s) for s in sequences], 4, buckets=3, drop_last=True, shuffle=True)
    loader = data.DataLoader(sequences, batch_sampler=sampler, collate_fn=PadToBucket(sampler.boundaries))
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 1))
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.1)
    shapes = set()
    before = jtorch.compile.report().compiles
    for _ in range(4):
        for batch in loader:
            shapes.add(tuple(batch.shape))
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
    assert len(shapes) == 3
    # of each shape one program, and later one without gradients among its results
    assert jtorch.compile.report().compiles - before <= 2 * len(shapes)


def test_in_workers():
    sequences = [[k] * (k % 5 + 1) for k in range(12)]
    sampler = LengthBucketSampler([len(s) for s in sequences], 3, buckets=2, multiple=1)
    pad = PadToBucket(sampler.boundaries)
    here, there = (
        [x.tolist() for x in data.DataLoader(sequences, batch_sampler=sampler, collate_fn=pad, num_workers=n)]
        for n in (0, 1)
    )
    assert here == there
