"""Stores of keys and values against PyTorch's: the same calls give the same answers, and errors of the same class."""

import datetime
import subprocess
import sys
import threading

import pytest

import jtorch
from tests.oracle import torch

SHORT = datetime.timedelta(milliseconds=20)
BOTH = pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])
MAKERS = {
    "hash": lambda d, folder: d.HashStore(),
    "file": lambda d, folder: d.FileStore(str(folder / d.__name__), 1),
    "tcp": lambda d, folder: d.TCPStore("127.0.0.1", 0, is_master=True),
    "tcp of one": lambda d, folder: d.TCPStore("127.0.0.1", 0, 1, True),
    "prefix": lambda d, folder: d.PrefixStore("x", d.PrefixStore("y", d.HashStore())),
}


def told(call, *args, **kwargs):
    try:
        return call(*args, **kwargs)
    except Exception as error:
        return [c.__name__ for c in type(error).__mro__]


def program(store):
    found = [
        told(store.set, "a", "1"), store.get("a"), store.add("n", 2), store.add("n", 3), store.get("n"), store.check(["a", "n"]),
        store.check(["a", "z"]), store.compare_set("c", "", "x"), store.compare_set("c", "y", "z"), store.compare_set("c", "x", "z"),
        store.compare_set("k", "y", "z"), store.check(["k"]), store.append("a", "23"), store.get("a"),
        store.multi_set(["p", "q"], ["5", b"\xff\x00"]), store.multi_get(["p", "q"]), store.num_keys(), store.delete_key("p"),
        store.num_keys(), store.has_extended_api(), store.timeout, store.set_timeout(SHORT), store.timeout, told(store.get, "never"),
        store.wait(["a"]), told(store.wait, ["never", "a"]), told(store.wait, ["never"], SHORT), told(store.multi_get, ["a", "never"]),
        told(store.queue_push, "Q", "v"), told(store.queue_push, "Q", "w"), told(store.queue_len, "Q"), told(store.queue_pop, "Q"),
        told(store.queue_pop, "Q", block=False), told(store.queue_pop, "Q", False), told(store.queue_pop, "Q"),
        sorted(k for k in store.list_keys() if "count" not in k), told(store.set, "i", 3), told(store.set, key="i", value="3"),
        store.clone().get("a"),
    ]  # fmt: skip
    if "TCP" not in type(store).__name__:  # there PyTorch's ends the connection
        found.append(told(lambda: store.set("w", "word") or store.add("w", 1)))
    return found


@pytest.mark.parametrize("name", list(MAKERS))
def test_stores(name, tmp_path):
    mine, its = (program(MAKERS[name](t.distributed, tmp_path)) for t in (jtorch, torch))
    assert mine == its


@BOTH
def test_one_store_for_several(t, tmp_path):
    d = t.distributed
    store = d.HashStore()
    threading.Timer(0.05, lambda: store.set("late", "x")).start()
    assert store.get("late") == b"x"
    assert d.PrefixStore("a", d.PrefixStore("b", store))._underlying_non_prefix_store.get("late") == b"x"
    inner = d.PrefixStore("b", store)
    inner.set("k", "1")
    assert (
        inner.underlying_store.check(["b/k"])
        and inner.list_keys() == ["k"]
        and sorted(store.list_keys()) == ["b/k", "late"]
    )

    first = d.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
    second = d.TCPStore(first.host, first.port, 2)
    second.set("x", "y")
    assert first.get("x") == b"y" and second.add("n", 1) == 1 and first.add("n", 1) == 2
    with pytest.raises(d.DistStoreError, match="1/2 clients joined"):
        d.TCPStore("127.0.0.1", 0, 2, True, SHORT)
    files = [d.FileStore(str(tmp_path / "file"), 2) for _ in range(2)]
    files[0].set("x", "y")
    assert files[1].get("x") == b"y" and files[0].path == str(tmp_path / "file")
    with pytest.raises(d.DistNetworkError, match="timed out after 20ms while trying to connect"):
        d.TCPStore("127.0.0.1", 1, timeout=SHORT)


COUNT = "import sys, jtorch.distributed as d; s = d.FileStore(sys.argv[1]); [s.add('n', 1) for _ in range(100)]"


def test_processes_count_in_one_file(tmp_path):
    path = str(tmp_path / "file")
    started = [subprocess.Popen([sys.executable, "-c", COUNT, path]) for _ in range(2)]
    assert [process.wait() for process in started] == [0, 0]
    assert jtorch.distributed.FileStore(path).get("n") == b"200"


@BOTH
def test_a_group_from_a_store(t):
    d = t.distributed
    d.init_process_group("gloo", store=d.HashStore(), rank=0, world_size=1)
    assert d.get_world_size() == 1
    d.destroy_process_group()
