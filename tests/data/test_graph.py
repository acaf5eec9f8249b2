"""data/datapipes/graph.py and the parts of a loader that packages build loaders of their own from, against PyTorch's."""

import importlib
import warnings

import pytest

import jtorch
from jtorch.swap import facade, table

torch = pytest.importorskip("torch")
LIBS = (torch, jtorch)


@pytest.fixture(autouse=True)
def torch_tensors():
    """Here the tensors are jtorch's own: a worker that is told of PyTorch's imports PyTorch."""


def part(lib, name):
    """torch.utils.data.<name>; jtorch's as programs see it under torch's name."""
    if lib is torch:
        return importlib.import_module(f"torch.utils.data.{name}")
    return facade.Union(name, [importlib.import_module(f"jtorch.{s}") for s in table.sources(f"utils.data.{name}")])


class Says:
    """A pipe that notes what it was told. PyTorch finds pipes by pickling, so the classes have names."""

    def __init__(self, source):
        self.source = source
        self.said = []

    def __iter__(self):
        return iter(self.source)

    def set_seed(self, seed):
        self.said.append(seed)

    def set_shuffle(self, shuffle):
        self.said.append(shuffle)


class Theirs(Says, torch.utils.data.IterDataPipe):
    pass


class Ours(Says, jtorch.utils.data.IterDataPipe):
    pass


def pipes(lib):
    """Two branches of one source, and what joins them."""
    wrapper = importlib.import_module(f"{lib.__name__}.utils.data.datapipes.iter").IterableWrapper
    kind, source = Theirs if lib is torch else Ours, wrapper(range(6))
    left, right = kind(source.sharding_filter()), kind(source)
    return left, right, left.concat(right)


def name(pipe):
    return "says" if isinstance(pipe, Says) else type(pipe).__name__.split("Iter")[0]


def names(graph):
    return [(name(pipe), names(below)) for pipe, below in graph.values()]


def test_the_graph_of_a_pipe():
    seen = []
    for lib in LIBS:
        graph = part(lib, "graph").traverse_dps(pipes(lib)[-1])
        listed = part(lib, "graph_settings").get_all_graph_pipes(graph)
        seen.append((names(graph), [name(p) for p in listed]))
    assert seen[0] == seen[1]


def test_a_pipe_is_told_its_share_its_order_and_its_seed():
    seen = []
    for lib in LIBS:
        left, right, joined = pipes(lib)
        settings = part(lib, "graph_settings")
        assert settings.apply_sharding(joined, 2, 1) is joined
        assert settings.apply_shuffle_settings(joined, False) is joined
        settings.apply_random_seed(joined, lib.Generator().manual_seed(3))
        seen.append((list(joined), left.said, right.said))
    assert seen[0] == seen[1] and seen[1][0] == [1, 3, 5, 0, 1, 2, 3, 4, 5]


REFUSED = {
    "no pipe": lambda lib, p: part(lib, "graph").traverse_dps([p]),
    "twice": lambda lib, p: part(lib, "graph_settings").apply_sharding(p.sharding_filter().sharding_filter(), 2, 0),
    "too far": lambda lib, p: part(lib, "graph_settings").apply_sharding(p.sharding_filter(), 2, 2),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_the_graph_refuses(which):
    errors = []
    for lib in LIBS:
        with pytest.raises((RuntimeError, ValueError)) as error:
            REFUSED[which](lib, pipes(lib)[1])
        errors.append((type(error.value), str(error.value).split("applied to")[0]))
    assert errors[0] == errors[1]


def test_a_loader_seeds_and_shuffles_its_pipes():
    seen = []
    for lib in LIBS:
        lib.manual_seed(5)
        pipe = pipes(lib)[0]
        loader = lib.utils.data.DataLoader(pipe, batch_size=None, shuffle=True)
        seen.append((list(loader), list(loader), pipe.said, lib.rand(2).tolist()))
    assert seen[0] == seen[1]


def own_loader(lib, data, **options):
    """What a package does that keeps count of what its loader gave: both of PyTorch's classes, the second without its __init__."""
    loading = part(lib, "dataloader")

    class Iterator(loading._BaseDataLoaderIter):
        def __init__(self, loader):
            super().__init__(loader)
            self.fetcher = loading._DatasetKind.create_fetcher(
                self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
            )
            self.taken = []

        def _next_index(self):
            self.taken.append(super()._next_index())
            return self.taken[-1]

        def _next_data(self):
            return self.fetcher.fetch(self._next_index())

    class Loader(lib.utils.data.DataLoader):
        def __init__(self, dataset, sampler):
            self.dataset, self.num_workers, self.prefetch_factor, self.pin_memory = dataset, 0, None, False
            self.pin_memory_device, self.timeout, self.worker_init_fn, self.in_order = "", 0, None, True
            self.multiprocessing_context, self.persistent_workers = None, False
            self._dataset_kind = int(isinstance(dataset, lib.utils.data.IterableDataset))
            sampler = loading._InfiniteConstantSampler() if self._dataset_kind else sampler
            self.sampler, self.batch_size, self.drop_last = sampler, 2, False
            self.batch_sampler = lib.utils.data.BatchSampler(sampler, 2, False)
            self.collate_fn, self.generator = list, None
            self._IterableDataset_len_called = None
            self._DataLoader__initialized = True

        def _get_iterator(self):
            return Iterator(self)

    loader = Loader(data, lib.utils.data.SequentialSampler(data))
    iterator = iter(loader)
    batches = list(iterator)
    state = [iterator._num_yielded, iterator._base_seed, iterator._shared_seed, iterator._world_size, iterator._rank]
    fetcher = iterator.fetcher
    return (
        batches,
        iterator.taken,
        state,
        getattr(fetcher, "ended", None),
        type(fetcher).__name__,
        iterator._num_workers,
    )


@pytest.mark.parametrize("iterable", [False, True])
def test_a_package_builds_its_own_loader(iterable):
    seen = []
    for lib in LIBS:

        class Rows(lib.utils.data.IterableDataset):
            def __iter__(self):
                return iter("abcde")

        lib.manual_seed(1)
        seen.append(own_loader(lib, Rows() if iterable else "abcde"))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_package_lends_a_loader_to_the_iterators(workers):
    """fastai's loaders are of a class of their own, with the attributes that PyTorch's iterators read."""
    seen = []
    for lib in LIBS[workers:]:  # PyTorch would fork a process in which jax runs
        loading = part(lib, "dataloader")
        lent = Lent(workers)
        iterator = (loading._SingleProcessDataLoaderIter, loading._MultiProcessingDataLoaderIter)[workers](lent)
        seen.append([list(batch) for batch in iterator])
    assert seen == [[["a", "b"], ["c"]]] * len(LIBS[workers:])


class Lent:
    """A loader that is its own dataset, of whole batches."""

    _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
    _index_sampler, generator, prefetch_factor = range(1 << 30), None, 2
    _dataset_kind, pin_memory, timeout, persistent_workers, pin_memory_device = 1, False, 0, False, ""
    worker_init_fn = multiprocessing_context = None
    collate_fn = staticmethod(list)

    def __init__(self, workers):
        self.num_workers = workers

    @property
    def dataset(self):
        return self

    def __iter__(self):
        return iter(["ab", "c"])


def test_the_parts_of_a_worker():
    worker = part(jtorch, "_utils.worker")
    theirs = part(torch, "_utils.worker")
    assert worker._generate_state(7, 1) == theirs._generate_state(7, 1)
    assert worker._ResumeIteration() == worker._ResumeIteration(None) and worker.ManagerWatchdog().is_alive()
    worker._worker_info = info = worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=None)
    try:
        assert jtorch.utils.data.get_worker_info() is info  # a worker that a package starts says so
    finally:
        worker._worker_info = None
    assert jtorch.utils.data.get_worker_info() is None
    signals = part(jtorch, "_utils.signal_handling")
    signals._set_worker_pids(1, ())
    with pytest.raises(ValueError, match="should be called only once"):
        signals._set_worker_pids(1, ())
    signals._error_if_any_worker_fails()
    signals._remove_worker_pids(1)
    with pytest.raises(ValueError, match="Cannot find worker information"):
        signals._remove_worker_pids(1)
    utils = part(jtorch, "_utils")
    assert (utils.HAS_NUMPY, utils.MP_STATUS_CHECK_INTERVAL) == (True, torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL)


def test_set_vital_does_nothing():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert jtorch.set_vital("Dataloader", "enabled", "True") is None
    assert "deprecated" in str(said[0].message)
