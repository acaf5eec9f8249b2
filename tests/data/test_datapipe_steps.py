"""data/datapipes/steps and graph: what steps with a state of their own give, in a DataLoader too, as in PyTorch."""

import importlib
import io
import pickle
import warnings

import pytest

import jtorch

torch = pytest.importorskip("torch")
LIBS = (torch, jtorch)


@pytest.fixture(autouse=True)
def torch_tensors():
    """Here the tensors are jtorch's own: a worker that is told of PyTorch's imports PyTorch."""


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.utils.data.{name}")


def wrappers(lib):
    return module(lib, "datapipes.iter").IterableWrapper, module(lib, "datapipes.map").SequenceWrapper


def plus(x):
    return x + 1


def add(a, b):
    return a + b


def even(x):
    return x % 2 == 0


def parity(x):
    return x % 2


def parity_or_none(x):
    return None if x == 0 else x % 2


def one(x):
    return 1


def fail_at_two(x):
    if x == 2:
        raise ValueError("two")
    return x


def interleaved(pipes):
    its = [iter(p) for p in pipes]
    return [next(it) for _ in range(2) for it in its]


def later_pass(pipe):
    first, second = iter(pipe), iter(pipe)
    return [next(first), next(second), next(first)]


def partly_read(pipes):
    next(iter(pipes[0]))
    return [list(p) for p in pipes] + [list(pipes[0])]


CASES = {
    "map column": lambda i, m: i([(1, 2), (3, 4)]).map(plus, input_col=1),
    "map columns": lambda i, m: i([(1, 2, 5), (3, 4, 6)]).map(add, input_col=(0, 2)),
    "map columns to": lambda i, m: i([[1, 2], [3, 4]]).map(add, input_col=[0, 1], output_col=-1),
    "map keys": lambda i, m: i([{"a": 1, "b": 2}]).map(add, input_col=["a", "b"], output_col="c"),
    "map no column": lambda i, m: i([1]).map(plus, output_col=1),
    "map two columns to": lambda i, m: i([(1, 2)]).map(plus, input_col=0, output_col=[0, 1]),
    "map too many": lambda i, m: i([(1, 2, 3)]).map(add, input_col=(0, 1, 2)),
    "map too few": lambda i, m: i([(1, 2)]).map(add, input_col=0),
    "map no function": lambda i, m: i([1]).map(3),
    "map lambda": lambda i, m: i([1]).map(lambda x: x),
    "map raises": lambda i, m: i(range(5)).map(fail_at_two),
    "map raises in a batch": lambda i, m: i(range(5)).map(fail_at_two).batch(2),
    "filter column": lambda i, m: i([(1, 2), (3, 3)]).filter(even, input_col=1),
    "filter no bool": lambda i, m: i(range(3)).filter(plus),
    "groupby": lambda i, m: i(range(7)).groupby(parity),
    "groupby size": lambda i, m: i(range(7)).groupby(parity, group_size=2, keep_key=True),
    "groupby buffer": lambda i, m: i(range(9)).groupby(parity, buffer_size=3, group_size=3, guaranteed_group_size=2),
    "groupby keys of a buffer": lambda i, m: i([1, 3, 4, 6, 8]).groupby(parity, buffer_size=3, keep_key=True),
    "groupby fails": lambda i, m: i([0, 1, 2, 3]).groupby(str, buffer_size=3, group_size=3, guaranteed_group_size=2),
    "groupby drops": lambda i, m: i(range(5)).groupby(str, buffer_size=3, group_size=3, drop_remaining=True),
    "groupby wrong size": lambda i, m: i(range(5)).groupby(str, buffer_size=3, group_size=4),
    "groupby wrong guarantee": lambda i, m: i(range(5)).groupby(str, guaranteed_group_size=4),
    "mux": lambda i, m: i(range(3)).mux(i(range(10, 15)), i("abcd")),
    "fork": lambda i, m: [list(p) for p in i(range(4)).fork(2)],
    "fork length": lambda i, m: i(range(4)).fork(2)[1],
    "fork of one": lambda i, m: i(range(4)).fork(1),
    "fork of none": lambda i, m: i(range(4)).fork(0),
    "fork in turn": lambda i, m: interleaved(i(range(4)).fork(3)),
    "fork overflow": lambda i, m: [list(p) for p in i(range(4)).fork(2, buffer_size=3)],
    "fork unlimited": lambda i, m: [list(p) for p in i(range(4)).fork(2, buffer_size=-1)],
    "fork copy": lambda i, m: [list(p) for p in i([[1], [2]]).fork(2, copy="deep")],
    "fork wrong copy": lambda i, m: i(range(4)).fork(2, copy="medium"),
    "fork partly read": lambda i, m: partly_read(i(range(4)).fork(2)),
    "demux": lambda i, m: [list(p) for p in i(range(5)).demux(2, parity)],
    "demux in turn": lambda i, m: interleaved(i(range(9)).demux(2, parity)),
    "demux none": lambda i, m: [list(p) for p in i(range(5)).demux(2, parity_or_none)],
    "demux drops none": lambda i, m: [list(p) for p in i(range(5)).demux(2, parity_or_none, drop_none=True)],
    "demux out of range": lambda i, m: [list(p) for p in i(range(5)).demux(1, parity)],
    "demux overflow": lambda i, m: [list(p) for p in i(range(9)).demux(2, parity, buffer_size=2)],
    "demux length": lambda i, m: i(range(5)).demux(2, one)[1],
    "demux of none": lambda i, m: i(range(5)).demux(0, one),
    "demux partly read": lambda i, m: partly_read(i(range(8)).demux(2, parity)),
    "shuffle": lambda i, m: i(range(20)).shuffle().set_seed(3),
    "shuffle buffer": lambda i, m: i(range(20)).shuffle(buffer_size=4),
    "shuffle unbatches": lambda i, m: i(range(20)).batch(3).shuffle(unbatch_level=1),
    "shuffle off": lambda i, m: i(range(9)).shuffle().set_shuffle(False),
    "shuffle no buffer": lambda i, m: i(range(9)).shuffle(buffer_size=0),
    "shuffle of keys": lambda i, m: m(list(range(9))).shuffle(),
    "shuffle of some keys": lambda i, m: m({"a": 1, "b": 2, "c": 3}).shuffle(indices=["a", "c"]).set_seed(1),
    "wrong pipes": lambda i, m: i(range(2)).zip([1]),
    "wrong pipes to concat": lambda i, m: i(range(2)).concat([1]),
    "wrong pipes of keys": lambda i, m: m([1]).zip(i([1])),
    "zip of keys out of range": lambda i, m: m([1]).zip(m([1]))[3],
    "batch of keys out of range": lambda i, m: m([1, 2]).batch(2)[1],
    "default fn": lambda i, m: m([1, 2]).map(),
    "later pass": lambda i, m: later_pass(i(range(3)).map(plus)),
    "no length": lambda i, m: len(i(iter([1])).batch(2)),
    "streams": lambda i, m: i([("a", io.StringIO("abcde"))], deepcopy=False).read_from_stream(2),
    "wrong mode": lambda i, m: i(["a"]).open_files("w"),
    "encoding of bytes": lambda i, m: i(["a"]).open_files("b", encoding="utf8"),
    "no path": lambda i, m: i([3]).open_files(),
}


def outcome(make, lib):
    """What a pipe gives, three times, its length and count, with warnings; or class and words of an error."""
    lib.manual_seed(5)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            made = make(*wrappers(lib))
            values = [list(made) for _ in range(3)]
            count = getattr(made, "_number_of_samples_yielded", None)
            values = values, count, float(lib.rand(()))
        except Exception as error:
            values = type(error), str(error)
        else:
            try:
                values = *values, len(made)
            except TypeError as error:
                values = *values, str(error)
    return values, [(w.category, str(w.message)) for w in said]


@pytest.mark.parametrize("name", CASES)
def test_steps(name):
    theirs, ours = (outcome(CASES[name], lib) for lib in LIBS)
    assert ours == theirs


def test_files(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("b.txt", "a.txt", "c.bin", "in/d.txt"):
        (tmp_path / name).write_text(name)

    def listed(lib):
        lister = module(lib, "datapipes.iter").FileLister
        root = str(tmp_path)
        texts = lister(root, ["*.txt"], recursive=True)
        streams = list(texts.open_files())
        return [
            list(lister(root)), list(lister(root, "*.txt", abspath=True)), list(texts), list(lister([root, f"{root}/in"])),
            list(lister(f"{root}/a.txt")), len(lister(root, length=3)), list(texts.open_files("b").read_from_stream()),
            [type(s).__name__ for _, s in streams], [s.read() for _, s in streams], list(lister(root, length=7).map(len)),
        ]  # fmt: skip

    assert listed(jtorch) == listed(torch)


def test_streams_close():
    for lib in LIBS:
        wrapper = module(lib, "datapipes.utils.common").StreamWrapper
        parent = wrapper(io.StringIO("a"), name="p")
        child = wrapper(io.StringIO("b"), parent)
        assert (
            parent.child_counter == 1
            and repr(parent).startswith("StreamWrapper<p,<_io.StringIO")
            and list(child) == ["b"]
        )
        parent.autoclose()
        assert not parent.closed
        wrapper.close_streams([{"a": (child,)}])
        assert child.closed and parent.closed and parent.file_obj.closed
    with pytest.raises(RuntimeError, match="Parent stream should be StreamWrapper, <class 'int'> was given"):
        wrapper(1, 2)


LOADERS = {
    "plain": lambda p, d: d(p, batch_size=3),
    "shuffle": lambda p, d: d(p.shuffle(), batch_size=3, shuffle=True),
    "shuffle before": lambda p, d: d(p.shuffle().map(plus).sharding_filter(), batch_size=None),
    "shuffle off": lambda p, d: d(p.shuffle(), batch_size=3, shuffle=False),
    "shuffle added": lambda p, d: d(p.map(plus), batch_size=4, shuffle=True),
    "shards twice": lambda p, d: d(p.sharding_filter().sharding_filter()),
    "workers": lambda p, d: d(p.shuffle().sharding_filter(), batch_size=None, num_workers=2),
    "workers and batches": lambda p, d: d(p.shuffle().sharding_filter().batch(2), batch_size=2, num_workers=2, collate_fn=list),
    "workers that stay": lambda p, d: d(
        p.shuffle().sharding_filter(), batch_size=None, num_workers=2, persistent_workers=True
    ),
    "fork and zip": lambda p, d: d(zipped(*p.shuffle().fork(2)), batch_size=None, num_workers=2),
}  # fmt: skip


def zipped(first, second):
    return first.map(float).zip(second)  # a function of this module would have each worker import PyTorch


@pytest.mark.parametrize("name", LOADERS)
def test_loaders(name):
    def run(lib):
        lib.manual_seed(11)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                loader = LOADERS[name](wrappers(lib)[0](range(12)), lib.utils.data.DataLoader)
                made = [[b.tolist() if hasattr(b, "tolist") else b for b in loader] for _ in range(2)]
            except RuntimeError as error:
                return str(error)
        return made, float(lib.rand(())), [str(w.message) for w in said if "fork" not in str(w.message)]

    assert run(jtorch) == run(torch)


def shape(graph):
    """A graph, by the classes of its pipes."""
    return [(type(pipe).__name__, shape(below)) for pipe, below in graph.values()]


def test_graphs():
    def graphs(lib):
        i, m = wrappers(lib)
        one, two = i(range(5)).fork(2)
        ends = [
            i(range(3)).map(plus).batch(2), one.zip(two.map(plus)), i(range(2)).concat(i([1]), i([2]).shuffle()),
            m([1]).shuffle(), i([1]).demux(1, parity)[0].mux(i([2])), i([i([3])]),
        ]  # fmt: skip
        graph, settings = module(lib, "graph"), module(lib, "graph_settings")
        with pytest.warns(FutureWarning, match="`traverse` function is deprecated"):
            old = [shape(graph.traverse(p, only_datapipe=True)) for p in ends]
        with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`, but <class 'int'> is found"):
            graph.traverse_dps(3)
        made = [graph.traverse_dps(p) for p in ends]
        return [shape(g) for g in made], old, [[str(p) for p in settings.get_all_graph_pipes(g)] for g in made]

    assert graphs(jtorch) == graphs(torch)


def test_settings():
    def told(lib):
        i = wrappers(lib)[0]
        settings, sharding = module(lib, "graph_settings"), module(lib, "datapipes.iter.sharding")
        groups = sharding.SHARDING_PRIORITIES
        made = []
        shared = i(range(30)).sharding_filter().map(plus)
        for group, n, k in ((groups.DISTRIBUTED, 2, 1), (groups.MULTIPROCESSING, 3, 2), (groups.DEFAULT, 2, 0)):
            try:
                made.append(list(settings.apply_sharding(shared, n, k, group)))
            except RuntimeError as error:
                made.append(str(error))
        made += [len(shared), len(i(range(5)).sharding_filter())]
        try:
            settings.apply_sharding(shared, 2, 2)
        except ValueError as error:
            made.append(str(error))
        generator = lib.Generator().manual_seed(3)
        made.append(list(settings.apply_random_seed(i(range(9)).shuffle().map(plus).shuffle(), generator)))
        restored = pickle.loads(pickle.dumps(i(range(9)).shuffle().set_seed(4)))
        module(lib, "datapipes.utils.snapshot")._simple_graph_snapshot_restoration(
            restored, 4, lib.Generator().manual_seed(9)
        )
        return [*made, list(restored), restored._number_of_samples_yielded]

    assert told(jtorch) == told(torch)


def test_a_pipe_of_ones_own_is_reset_and_counts():
    def passes(lib):
        class Own(lib.utils.data.IterDataPipe):
            resets = 0

            def __iter__(self):
                self.left = 3
                return self

            def __next__(self):
                if not self.left:
                    raise StopIteration
                self.left -= 1
                return self.left

            def reset(self):
                self.resets += 1

        pipe = Own()
        made = [list(pipe), list(pipe), pipe.resets, pipe._number_of_samples_yielded]
        first, second = iter(pipe), iter(pipe)
        made.append(next(second))
        with pytest.raises(RuntimeError) as raised:
            next(first)
        return made, str(raised.value)

    assert passes(jtorch) == passes(torch)
