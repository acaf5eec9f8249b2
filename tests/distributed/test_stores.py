"""Stores of keys and bytes, each as PyTorch's, in one process."""

import datetime
import threading

import pytest

import jtorch
from tests.oracle import both

SOON = datetime.timedelta(milliseconds=50)
MAKERS = {
    "HashStore": lambda d, path: d.HashStore(),
    "TCPStore": lambda d, path: d.TCPStore("localhost", 0, 1, True),
    "FileStore": lambda d, path: d.FileStore(path, 1),
    "PrefixStore": lambda d, path: d.PrefixStore("p", d.HashStore()),
}


def operations(s):
    s.set_timeout(SOON)
    s.set("a", "b")
    s.set("bytes", b"\x00\xff")
    seen = [s.get("a"), s.get("bytes"), s.add("k", 2), s.add("k", 3), s.get("k"), s.check(["a"]), s.check(["a", "q"])]
    seen += [s.compare_set("q", *pair) for pair in (("x", "y"), ("", "y"), ("y", "z"), ("no", "w"))]
    seen += [s.delete_key("q"), s.multi_set(["u", "v"], ["1", "2"]), s.multi_get(["u", "v"]), s.wait(["u"])]
    s.append("u", "x")
    s.append("new", "x")
    return [*seen, s.get("u"), s.get("new"), s.has_extended_api(), s.timeout == SOON]


def in_store(kind, path, program):
    return lambda t: program(MAKERS[kind](t.distributed, f"{path}/{t.__name__}"))


def without(s):
    s.set_timeout(SOON)
    return s


@pytest.mark.parametrize("kind", MAKERS)
def test_operations(kind, tmp_path):
    both(in_store(kind, tmp_path, operations))


@pytest.mark.parametrize("kind", ["HashStore", "TCPStore", "PrefixStore"])
def test_queues_and_what_is_missing(kind, tmp_path):
    def queue(s):
        s.queue_push("q", "a")
        return s.queue_len("q"), s.queue_pop("q"), s.queue_len("q")

    both(in_store(kind, tmp_path, queue))
    both(in_store(kind, tmp_path, lambda s: s.queue_pop("q", False)))
    both(in_store(kind, tmp_path, lambda s: without(s).get("zz")))
    both(in_store(kind, tmp_path, lambda s: without(s).wait(["a", "b"], SOON)))


def test_clients_share_a_port():
    def program(t):
        master = t.distributed.TCPStore("localhost", 0, None, True)
        client = t.distributed.TCPStore("localhost", master.port, None, False)
        master.set("x", "1")
        prefixed = t.distributed.PrefixStore("one", client)
        prefixed.set("y", "2")
        return client.get("x"), master.get("one/y"), master.port == client.port, prefixed.underlying_store is client

    both(program)
    both(lambda t: t.distributed.TCPStore("localhost", 1, is_master=False, timeout=SOON))


def test_threads_wait_for_each_other():
    s, seen = jtorch.distributed.HashStore(), []
    thread = threading.Thread(target=lambda: seen.append(s.get("late")))
    thread.start()
    s.set("late", "1")
    thread.join(10)
    assert seen == [b"1"]
