"""data/datapipes: the steps, errors and decorators of PyTorch's data pipes."""

import importlib
import pickle

import pytest

import jtorch

torch = pytest.importorskip("torch")
LIBS = (torch, jtorch)


@pytest.fixture(autouse=True)
def torch_tensors():
    """Here the tensors are jtorch's own: a worker that is told of PyTorch's imports PyTorch."""


def pipes(lib):
    """(iterable wrapper, sequence wrapper) of a library."""
    steps = [importlib.import_module(f"{lib.__name__}.utils.data.datapipes.{kind}") for kind in ("iter", "map")]
    return steps[0].IterableWrapper, steps[1].SequenceWrapper


def plus(x):
    return x + 1


def even(x):
    return x % 2 == 0


CASES = {
    "map": lambda i, m: i(range(5)).map(plus),
    "filter": lambda i, m: i(range(5)).filter(even),
    "batch": lambda i, m: i(range(5)).batch(2),
    "batch drop_last": lambda i, m: i(range(5)).batch(2, drop_last=True),
    "unbatch": lambda i, m: i([[1, [2, 3]], [4]]).unbatch(),
    "unbatch all": lambda i, m: i([[1, [2, 3]], [4]]).unbatch(unbatch_level=-1),
    "unbatch too deep": lambda i, m: i([[1], 2]).unbatch(unbatch_level=1),
    "unbatch wrong": lambda i, m: i([1]).unbatch(unbatch_level=-2),
    "concat": lambda i, m: i(range(3)).concat(i("ab"), i([5])),
    "zip": lambda i, m: i(range(3)).zip(i("abcd")),
    "collate": lambda i, m: i([[1, 2], [3]]).collate(len),
    "sharding_filter": lambda i, m: i(range(5)).sharding_filter(),
    "chain": lambda i, m: i(range(9)).map(plus).filter(even).batch(2),
    "sum": lambda i, m: i(range(2)) + i(range(3)),
    "no such step": lambda i, m: i(range(2)).nope(),
    "nothing": lambda i, m: type(i([1]).concat())(),
    "map of keys": lambda i, m: m([1, 2, 3]).map(plus),
    "batch of keys": lambda i, m: m([1, 2, 3]).batch(2),
    "concat of keys": lambda i, m: m([1, 2, 3]).concat(m([4])),
    "zip of keys": lambda i, m: m([1, 2, 3]).zip(m([4, 5])),
    "no such step of keys": lambda i, m: m([1]).nope(),
}


def outcome(make, lib):
    """What a pipe gives, twice, and its length; or class and first words of an error."""
    try:
        pipe = make(*pipes(lib))
        values = list(pipe), list(pipe)
    except Exception as error:
        return type(error), str(error).splitlines()[0][:60]
    try:
        length = len(pipe)
    except TypeError:
        length = None
    return values, length


@pytest.mark.parametrize("name", CASES)
def test_steps(name):
    theirs, ours = (outcome(CASES[name], lib) for lib in LIBS)
    assert ours == theirs


def test_a_subclass_goes_on_with_what_its_base_gives():
    class Base(jtorch.utils.data.IterDataPipe):
        def __iter__(self):
            yield from "ab"

    class Longer(Base):
        def __iter__(self):
            yield 0
            yield from super().__iter__()

    assert list(Longer()) == [0, "a", "b"]


def test_steps_that_are_not_here_say_what_is():
    with pytest.raises(NotImplementedError, match="data pipe step routed_decode\n  use map"):
        pipes(jtorch)[0]([1]).routed_decode()


def test_only_the_latest_iterator_is_valid():
    for lib in LIBS:
        pipe = pipes(lib)[0](range(3)).map(plus)
        first = iter(pipe)
        assert next(first) == 1
        second = iter(pipe)
        assert next(second) == 1
        with pytest.raises(RuntimeError, match="This iterator has been invalidated because another iterator"):
            next(first)
        assert list(second) == [2, 3]


def test_pipes_are_pickled_without_their_iterators():
    pipe = pipes(jtorch)[0](range(3)).map(plus)
    next(iter(pipe))
    assert list(pickle.loads(pickle.dumps(pipe))) == [1, 2, 3]


@pytest.mark.parametrize("lib", LIBS, ids=lambda lib: lib.__name__)
def test_pipes_that_go_to_workers_as_bytes(lib):
    own = importlib.import_module(f"{lib.__name__}.utils.data.datapipes.datapipe")
    iterable, sequence = (make([5, 6]) for make in pipes(lib))
    by_step = pickle.loads(pickle.dumps(own._IterDataPipeSerializationWrapper(iterable)))
    by_key = pickle.loads(pickle.dumps(own._MapDataPipeSerializationWrapper(sequence)))
    assert list(by_step) == list(by_step) == [5, 6] and len(by_step) == len(by_key) == 2 and by_key[1] == 6
    assert isinstance(by_step, own.IterDataPipe) and isinstance(by_key, own.MapDataPipe)
    with pytest.raises(TypeError, match="_MapDataPipeSerializationWrapper instance doesn't have valid length"):
        len(own._MapDataPipeSerializationWrapper(iter(())))


@pytest.mark.parametrize("lib", LIBS, ids=lambda lib: lib.__name__)
def test_a_registered_class_is_a_method(lib):
    d = lib.utils.data
    name = f"twice_of_{lib.__name__}"

    @d.functional_datapipe(name)
    class Twice(d.IterDataPipe):
        def __init__(self, source, times=2):
            self.source, self.times = source, times

        def __iter__(self):
            for x in self.source:
                yield from [x] * self.times

    pipe = pipes(lib)[0]("ab")
    assert list(getattr(pipe, name)(times=3)) == list("aaabbb") and name in dir(pipe)
    assert isinstance(getattr(pipe, name)(), d.IterableDataset) and str(Twice(pipe)).endswith("Twice")
    with pytest.raises(Exception, match=f"Unable to add DataPipe function name {name} as it is already taken"):
        d.functional_datapipe(name)(Twice)
    with pytest.raises(TypeError, match="is non-deterministic, but you set 'guaranteed_datapipes_determinism'"):
        random = d.non_deterministic(Twice)
        with d.guaranteed_datapipes_determinism():
            random("ab")
    assert list(random("a")) == ["a", "a"]
    with pytest.raises(TypeError, match="3 can not be decorated by non_deterministic"):
        d.non_deterministic(3)


@pytest.mark.parametrize("lib", LIBS, ids=lambda lib: lib.__name__)
def test_chunks_and_validation(lib):
    d = lib.utils.data
    chunk = d.DataChunk([1, "a"])
    assert chunk == [1, "a"] and chunk.as_str(" ") == " [1, a]" and list(chunk.raw_iterator()) == [1, "a"]
    assert d.argument_validation(plus)(1) == 2 and issubclass(d.DFIterDataPipe, d.IterDataPipe)
    with d.runtime_validation_disabled():
        assert list(pipes(lib)[0]([1])) == [1]


def test_workers_take_their_share():
    pipe = pipes(jtorch)[0](list(range(7))).sharding_filter().batch(2)
    assert [list(b) for b in jtorch.utils.data.DataLoader(pipe, batch_size=None, num_workers=2)] == [
        [0, 2], [1, 3], [4, 6], [5],
    ]  # fmt: skip
