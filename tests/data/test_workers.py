"""data/pool.py, worker.py, iterators.py: with worker processes, PyTorch's batches, seeds, errors and ends."""

import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest

import jtorch
from jtorch import data
from jtorch.core import ledger
from jtorch.data import handover, pool
from jtorch.data.helper import helper
from tests.data import worker_sets as sets
from tests.data.worker_cases import FAULTS, SCENARIOS, outcomes, plain, play

torch = pytest.importorskip("torch")
theirs = torch.utils.data
pytestmark = [
    pytest.mark.skipif(not pathlib.Path("/proc/self").exists(), reason="looks at processes through /proc"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def torch_tensors():
    """Here the tensors are jtorch's own, unlike in the other tests of loading."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What PyTorch gives for all scenarios."""
    path = tmp_path_factory.mktemp("workers") / "torch"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.data.worker_cases", str(path)], cwd=ROOT, check=True, timeout=300
    )
    return pickle.loads(path.read_bytes())


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_as_torch(expected, name):
    theirs, ours = expected[name], play(jtorch, name)
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]


def test_persistent_workers_are_the_same_ones():
    loader = data.DataLoader(range(4), num_workers=2, persistent_workers=True)
    pids = [[w.pid for w in loader._iterator._workers] for _ in range(3) if list(loader)]
    assert pids[0] == pids[1] == pids[2]


def test_any_order_does_not_wait():
    class Slow(sets.Rows):
        def __getitem__(self, i):
            time.sleep(0.5 * (i == 0))
            return i

    for in_order, first in ((True, 0), (False, 1)):
        got = list(data.DataLoader(Slow(None, n=4), None, num_workers=2, in_order=in_order, prefetch_factor=1))
        assert got[0] == first and sorted(got) == [0, 1, 2, 3]


# --- errors ------------------------------------------------------------------------------------------------------------


def test_the_traceback_is_the_workers():
    with pytest.raises(KeyError, match="no such") as caught:
        list(data.DataLoader(sets.Faulty(FAULTS["key"]), num_workers=1))
    words = str(caught.value)
    assert "in DataLoader worker process 0" in words and "worker_sets.py" in words and "__getitem__" in words
    assert "\n" in words and "\\n  File" not in words


@pytest.mark.parametrize("what", ["kill", "exit"])
def test_a_worker_that_dies(what):
    found = outcomes(data.DataLoader(sets.Faulty({2: what}), num_workers=1), 5)
    words = ["DataLoader worker (pid(s) N) exited unexpectedly"]
    assert found[2:] == [("RuntimeError", words), ("StopIteration", []), ("StopIteration", [])]
    assert [f[2] for f in found[:2]] == [[0], [1]]
    with pytest.raises(RuntimeError) as caught:
        list(data.DataLoader(sets.Faulty({2: what}), num_workers=2))
    assert {"kill": "is killed by signal: Killed", "exit": "exit code 3"}[what] in str(caught.value.__cause__)


def test_a_persistent_loader_starts_again_after_a_death():
    loader = data.DataLoader(sets.Rows(None, "scalars"), num_workers=2, persistent_workers=True)
    whole = plain(list(loader))
    os.kill(loader._iterator._workers[0].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)
    assert plain(list(loader)) == whole


def test_timeout():
    batches = iter(data.DataLoader(sets.Faulty({1: "sleep"}), num_workers=1, timeout=0.3))
    assert next(batches).item() == 0
    for _ in range(2):
        with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
            next(batches)


def test_a_stopped_worker_times_out_and_ends():
    batches = iter(data.DataLoader(sets.Rows(None, "scalars", 50), num_workers=1, timeout=0.3))
    next(batches)
    pid = batches._workers[0].pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
        list(batches)
    del batches
    assert gone([pid])


def test_prefetch_factor_zero():
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(data.DataLoader([1], num_workers=1, prefetch_factor=0))


def test_what_cannot_be_copied_is_named():
    with pytest.raises(TypeError, match="cannot pickle") as caught:
        iter(data.DataLoader([1], num_workers=1, collate_fn=partial(len, threading.Lock())))
    assert "a copy of collate_fn" in caught.value.__notes__[0]


def test_a_history_does_not_cross():
    x = jtorch.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        iter(data.DataLoader([x], num_workers=1))


# --- the end -----------------------------------------------------------------------------------------------------------


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids, seconds=8):
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(alive, pids))


@pytest.mark.parametrize("end", ["through", "break", "collected", "never asked"])
def test_no_worker_stays(end):
    loader = data.DataLoader(sets.Rows(None, "large", 200), num_workers=2)
    batches = iter(loader)
    pids = [w.pid for w in batches._workers]
    assert all(map(alive, pids))
    if end == "through":
        list(batches)
    elif end == "break":
        for _ in batches:
            break
    elif end == "collected":
        batches.cycle = batches
        next(batches)
    del batches
    gc.collect()
    assert gone(pids)


def test_breaking_off_does_not_wait_for_the_batch():
    class Slow(sets.Rows):
        def __getitem__(self, i):
            time.sleep(0.05)
            return i

    batches = iter(data.DataLoader(Slow(None, n=400), 100, num_workers=1))
    pids = [batches._workers[0].pid]
    start = time.monotonic()
    del batches
    assert time.monotonic() - start < 0.5
    assert gone(pids, 2)


def test_runs_cut_short_leave_nothing():
    done = subprocess.run(
        [sys.executable, "benchmarks/loader_kills.py", "--runs", "6", "--programs", "1", "--seed", "1"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "0 hangs, 0 processes left, 0 segments left" in done.stdout, done.stdout + done.stderr


def test_the_helper_may_die():
    assert len(list(data.DataLoader(range(4), num_workers=2))) == 4
    batches = iter(data.DataLoader(range(400), num_workers=2))
    pids = [w.pid for w in batches._workers]
    helper._process.kill()
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(batches)
    assert gone(pids)
    assert len(list(data.DataLoader(range(4), num_workers=2))) == 4


# --- memory ------------------------------------------------------------------------------------------------------------


def segments(pid="self"):
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in lines if "memfd:jtorch-data" in line]


def inside(address):
    """Whether an address lies in shared memory."""
    ranges = [line.split()[0].split("-") for line in segments()]
    return any(int(a, 16) <= address < int(b, 16) for a, b in ranges)


def test_batches_are_not_copied_and_stay_true():
    loader = data.DataLoader(sets.Rows(None, "large", 40), 2, num_workers=2)
    batches = iter(loader)
    kept = [next(batches)]
    assert inside(kept[0].data_ptr())
    most = 0
    for k, batch in enumerate(batches, 1):
        if k % 5 == 0:
            kept.append(batch)
        most = max(most, len(segments()))
        assert batch[:, 0, 0, 0].tolist() == [2 * k, 2 * k + 1]
    assert most < 16  # segments come back: 20 batches do not need 20 of them
    del batch
    for k, batch in zip((0, 5, 10, 15), kept):
        assert (batch == jtorch.tensor([2.0 * k, 2 * k + 1]).reshape(2, 1, 1, 1)).all()
    assert inside(kept[2].__jax_array__().unsafe_buffer_pointer())  # XLA reads it where the worker wrote it
    shared = kept[1].numpy()
    kept[1] += 1
    assert shared[0, 0, 0, 0] == 11
    del kept, batch, batches, shared
    gc.collect()
    jtorch.synchronize()
    assert not segments()


def test_batches_that_a_worker_keeps_are_not_written_over():
    kept = []

    def keep(batch):
        kept.append(data.default_collate(batch))
        return [x.clone() for x in kept]

    for k, batch in enumerate(data.DataLoader(sets.Rows(None, "large", 6), 1, num_workers=1, collate_fn=keep)):
        assert [x[0, 0, 0, 0].item() for x in batch] == list(range(k + 1))


def test_without_room_batches_travel_by_socket(monkeypatch):
    monkeypatch.setenv("JTORCH_SHARED_BYTES", "100000")
    pool._said.clear()
    loader = data.DataLoader(sets.Rows(None, "large"), 3, num_workers=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert [x[:, 1, 2, 3].tolist() for x in loader] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]]
    assert [str(w.message)[:52] for w in caught if "shared memory" in str(w.message)] == [
        "DataLoader: a worker found no room in shared memory,"
    ]


def test_the_dataset_is_a_copy(tmp_path):
    array, tensor = np.zeros((4, 2000)), jtorch.arange(8.0).reshape(2, 4).T
    got = [plain(x) for x in data.DataLoader(sets.Held(array, tensor), None, num_workers=1)]
    assert [g[0][2][0] for g in got] == [100.0] * 4 and not array.any()
    assert [g[1][2] for g in got] == tensor.tolist()
    whole = np.memmap(tmp_path / "m", np.float64, "w+", shape=(6, 3000))
    whole[:] = np.arange(6)[:, None]
    whole.flush()
    mapped = np.memmap(tmp_path / "m", np.float64, "c", shape=(6, 3000))[2:]
    got = [plain(x) for x in data.DataLoader(sets.Held(mapped, tensor), None, num_workers=1)]
    assert [(g[0][2][0], g[2]) for g in got] == [(102.0 + i, "memmap") for i in range(4)]
    assert len(handover.dumps(mapped, [])) < 1000  # the file's name, not its contents


# --- processes ---------------------------------------------------------------------------------------------------------


def test_workers_are_not_forked_from_here(monkeypatch, tmp_path):
    assert len(list(data.DataLoader([1], num_workers=1))) == 1
    monkeypatch.setenv("MADE_LATER", "yes")
    monkeypatch.chdir(tmp_path)
    (pid, platforms, later, folder, parent), _ = data.DataLoader(sets.Process(None, n=2), None, num_workers=1)
    assert pid != os.getpid() and parent == helper._process.pid != os.getpid()
    assert (platforms, later, folder) == ("cpu", "yes", str(tmp_path))
    assert len(list(pathlib.Path(f"/proc/{parent}/task").iterdir())) == 1


def test_closures_and_lambdas():
    offset = 10

    class Local(data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return i + offset

    loader = data.DataLoader(Local(), 2, num_workers=2, collate_fn=lambda b: [x * 2 for x in b])
    assert list(loader) == [[20, 22], [24]]


SCRIPT = """
    import collections
    import jtorch
    print("script runs")
    Point = collections.namedtuple("Point", "x y")
    class Data:
        def __len__(self): return 4
        def __getitem__(self, i): return Point(i, scale(i))
    def scale(i): return 2.0 * i
    def join(batch): return jtorch.utils.data.default_collate(batch)
    for batch in jtorch.utils.data.DataLoader(Data(), 2, num_workers=2, collate_fn=join):
        print(type(batch) is Point, batch.y.tolist())
"""


def run_script(tmp_path, text, **env):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    environ = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run([sys.executable, path], env=environ, capture_output=True, text=True, timeout=120)


def test_scripts_need_no_guard(tmp_path):
    done = run_script(tmp_path, SCRIPT)
    assert done.stdout.split("\n") == ["script runs", "True [0.0, 2.0]", "True [4.0, 6.0]", ""], done.stderr
    assert done.stderr == ""


def test_without_cloudpickle(tmp_path):
    block = "import sys; sys.modules['cloudpickle'] = None\n"
    done = run_script(tmp_path, block + textwrap.dedent(SCRIPT))
    assert "need the package cloudpickle to be given Data" in done.stderr and "jtorch-xla[data]" in done.stderr
    plain_set = """
        import sys; sys.modules['cloudpickle'] = None
        import jtorch
        from tests.data import worker_sets
        print([b.tolist() for b in jtorch.utils.data.DataLoader(worker_sets.Faulty({}), 6, num_workers=1)])
    """
    assert run_script(tmp_path, plain_set).stdout == "[[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]\n"


# --- around it ---------------------------------------------------------------------------------------------------------


def test_pinned_without_accelerator(monkeypatch):
    monkeypatch.setattr("jtorch.core.device.accelerator", lambda: None)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"):
        got = list(data.DataLoader(range(3), num_workers=1, pin_memory=True))
    assert [x.item() for x in got] == [0, 1, 2] and not got[0].is_pinned()


PINNED = """
    import jax, numpy as np
    import jtorch
    from jtorch.core import device as devices
    from jtorch.core.device import Device

    second = jax.devices("cpu")[1]  # stands for an accelerator
    devices.accelerator = lambda: "cuda"
    usual = devices._find
    devices._find = lambda d: second if d.type == "cuda" else usual(d)
    devices._of_jax.__wrapped__
    moved = []
    put = jax.device_put
    jax.device_put = lambda x, *a, **k: moved.append(np.shape(x)) or put(x, *a, **k)

    class Data:
        def __len__(self): return 6
        def __getitem__(self, i): return np.full((40, 40), i, np.float32), {"y": np.arange(3) + i}

    for k, (x, d) in enumerate(jtorch.utils.data.DataLoader(Data(), 2, num_workers=1, pin_memory=True)):
        assert x.is_pinned() and d["y"].is_pinned() and x.device.type == "cpu"
        n = len(moved)
        if k == 1:
            x.numpy()[0] = 9  # what was sent is not true any more
        y = x.to("cuda", non_blocking=True)
        assert (len(moved) > n) == (k == 1)
        assert y._storage.value.devices() == {second}
        assert np.asarray(y._storage.value)[0, 0, 0] == (9 if k == 1 else 2 * k)
        assert not y.is_pinned()
    print("fine")
"""


def test_pinned_batches_are_on_their_way(tmp_path):
    done = run_script(tmp_path, PINNED, XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_PLATFORMS="cpu")
    assert done.stdout == "fine\n", done.stderr[-2000:]


def test_the_ledger_knows_who_waited():
    class Slow(sets.Rows):
        def __getitem__(self, i):
            time.sleep(0.05)
            return i

    jtorch.compile.report(clear=True)
    list(data.DataLoader(Slow(None, n=6), num_workers=1))
    waiting = jtorch.compile.report(clear=True)
    assert waiting.data_wait_fraction > 0.9 and "waiting for data" in str(waiting)
    for _ in data.DataLoader(range(6), num_workers=1, prefetch_factor=6):
        time.sleep(0.05)
    busy = jtorch.compile.report(clear=True)
    assert busy.data_wait_fraction < 0.5 and 0.25 < busy.data_loop < 5
    assert ledger.counters.data_loop == 0


def test_lengths_are_known():
    loader = data.DataLoader(range(10), 3, num_workers=2)
    assert len(loader) == len(iter(loader)) == 4


def test_more_workers_than_cores_warn():
    n = (os.cpu_count() or 1) + 1
    with pytest.warns(UserWarning, match=f"This DataLoader will create {n} worker processes in total"):
        data.DataLoader([1], num_workers=n)


def test_names_of_the_iterators():
    batches = iter(data.DataLoader([1], num_workers=1))
    assert type(batches).__name__ == theirs.dataloader._MultiProcessingDataLoaderIter.__name__
    assert isinstance(batches, jtorch.utils.data.dataloader._BaseDataLoaderIter)
    info = data.worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=[4])
    assert repr(info) == repr(theirs._utils.worker.WorkerInfo(id=1, num_workers=2, seed=3, dataset=[4]))
