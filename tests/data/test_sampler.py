"""data/sampler.py and data/distributed.py: the order of PyTorch's samplers for the same seed."""

import numpy as np
import pytest

from jtorch.core import rng
from jtorch.data import distributed, sampler

torch = pytest.importorskip("torch")
theirs = torch.utils.data
theirs_distributed = torch.utils.data.distributed


def both(seed=None):
    if seed is None:
        return None, None
    return torch.Generator().manual_seed(seed), rng.Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("num_samples", [None, 1, 10, 31, 32, 33, 100])
def test_random(seeded, seed, replacement, num_samples):
    g, h = both(seed)
    a = theirs.RandomSampler(range(10), replacement, num_samples, g)
    b = sampler.RandomSampler(range(10), replacement, num_samples, h)
    assert len(a) == len(b)
    for _ in range(3):
        assert list(a) == list(b)
    if seed is not None:
        np.testing.assert_array_equal(g.get_state().numpy(), h.get_state())


def test_random_draws_when_asked():
    g, h = both(1)
    a = iter(theirs.RandomSampler(range(50), True, 100, g))
    b = iter(sampler.RandomSampler(range(50), True, 100, h))
    for _ in range(40):
        assert next(a) == next(b)
    np.testing.assert_array_equal(g.get_state().numpy(), h.get_state())


@pytest.mark.parametrize("seed", [None, 3])
def test_subset(seeded, seed):
    g, h = both(seed)
    picked = [5, 3, 9, 9, 0]
    a, b = theirs.SubsetRandomSampler(picked, g), sampler.SubsetRandomSampler(picked, h)
    assert list(a) == list(b) and list(a) == list(b) and len(a) == len(b)


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("replacement", [False, True])
def test_weighted(seeded, seed, replacement):
    if not own_streams() and not replacement:
        pytest.skip("PyTorch draws the exponential from MKL on Intel's processors")
    g, h = both(seed)
    for weights in ([0.1, 0.9, 0.4, 0.7, 3.0, 0.6], np.arange(1, 60), torch.arange(1.0, 9.0)):
        a = theirs.WeightedRandomSampler(weights, 5, replacement, g)
        b = sampler.WeightedRandomSampler(weights, 5, replacement, h)
        assert list(a) == list(b) and list(a) == list(b) and len(a) == len(b)
        assert torch.equal(a.weights, b.weights)


def own_streams():
    g = torch.Generator().manual_seed(0)
    torch.empty(20).exponential_(generator=g)
    return int(g.get_state()[16:24].view(torch.int64)) == 40


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [0, 1, 6, 7])
def test_batches(n, drop_last):
    a = theirs.BatchSampler(theirs.SequentialSampler(range(n)), 3, drop_last)
    b = sampler.BatchSampler(sampler.SequentialSampler(range(n)), 3, drop_last)
    assert list(a) == list(b) and len(a) == len(b)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n, replicas", [(10, 2), (11, 3), (2, 5), (7, 7), (1, 8)])
def test_distributed(n, replicas, drop_last, shuffle):
    for rank in range(replicas):
        args = {"num_replicas": replicas, "rank": rank, "shuffle": shuffle, "seed": 4, "drop_last": drop_last}
        a = theirs_distributed.DistributedSampler(range(n), **args)
        b = distributed.DistributedSampler(range(n), **args)
        for epoch in range(2):
            a.set_epoch(epoch)
            b.set_epoch(epoch)
            assert list(a) == list(b) and len(a) == len(b)


ERRORS = {
    "RandomSampler": [(range(0),), (range(3), "yes"), (range(3), True, 0), (range(3), True, 1.5)],
    "WeightedRandomSampler": [([1.0], 0), ([1.0], True), ([1.0], 1, "no"), ([[1.0]], 1)],
    "BatchSampler": [(range(3), 0, False), (range(3), True, False), (range(3), 2.0, False), (range(3), 2, 1)],
}


@pytest.mark.parametrize("name, args", [(name, args) for name, rows in ERRORS.items() for args in rows])
def test_errors(name, args, same_error):
    same_error(lambda: getattr(theirs, name)(*args), lambda: getattr(sampler, name)(*args))


@pytest.mark.parametrize(
    "weights, n, replacement",
    [([0.1, -1.0], 1, True), ([0.0, 0.0], 1, True), ([0.1, 0.2], 3, False), ([float("nan")], 1, True)],
)
def test_weights_that_are_none(weights, n, replacement, same_error):
    same_error(
        lambda: list(theirs.WeightedRandomSampler(weights, n, replacement)),
        lambda: list(sampler.WeightedRandomSampler(weights, n, replacement)),
    )


def test_distributed_errors(same_error):
    same_error(
        lambda: theirs_distributed.DistributedSampler(range(3), 2, 2),
        lambda: distributed.DistributedSampler(range(3), 2, 2),
    )
