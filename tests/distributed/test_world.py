"""distributed/world.py, and what else scripts made for torchrun call in one process, against torch's gloo."""

import datetime
import importlib
import json
import sys

import pytest

import jtorch
from jtorch.core import ledger
from jtorch.distributed import world
from jtorch.distributed.elastic.multiprocessing import errors
from tests.oracle import both, torch


@pytest.fixture(autouse=True)
def _group(monkeypatch, unused_port):
    for name, value in {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(unused_port),
        "RANK": "0",
        "WORLD_SIZE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    yield
    for module in (torch, jtorch):
        if module.distributed.is_initialized():
            module.distributed.destroy_process_group()


@pytest.fixture
def unused_port():
    import socket  # noqa: PLC0415  only here

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def collectives(t):
    d = t.distributed
    d.init_process_group("gloo")
    x = t.arange(3.0)
    gathered, one, parts, back = [t.zeros(3)], t.zeros(3), t.zeros(3), [t.zeros(3)]
    d.all_reduce(x)
    d.all_gather(gathered, x)
    d.all_gather_into_tensor(one, x)
    d.reduce_scatter(parts, [x + 1])
    d.gather(x, back, 0)
    work = d.all_reduce(x, op=d.ReduceOp.MAX, async_op=True)
    objects, said = [None], [{"a": 1}]
    d.all_gather_object(objects, {"b": 2})
    d.broadcast_object_list(said, 0)
    group = d.new_group([0])
    d.barrier()
    return (
        x, gathered, one, parts, back, work.wait(), work.is_completed(), objects, said, d.get_backend(), d.get_rank(),
        d.get_world_size(group), d.get_process_group_ranks(group), d.is_initialized(), d.broadcast(x, 0), d.reduce(x, 0),
    )  # fmt: skip


def module(t):
    t.distributed.init_process_group("gloo")
    t.manual_seed(0)
    made = t.nn.parallel.DistributedDataParallel(t.nn.Linear(2, 1))
    with made.no_sync():
        made(t.ones(1, 2)).sum().backward()
    sampler = t.utils.data.distributed.DistributedSampler(range(5))
    return repr(made), made.state_dict(), made.module.weight.grad, made.require_backward_grad_sync, list(sampler)


def again(t):
    t.distributed.init_process_group("gloo")
    t.distributed.init_process_group("gloo")


def nothing_to_train(t):
    t.distributed.init_process_group("gloo")
    t.nn.parallel.DistributedDataParallel(t.nn.ReLU())


def to_itself(t):
    t.distributed.init_process_group("gloo")
    t.distributed.send(t.ones(1), 0)


def no_tensor(t):
    t.distributed.init_process_group("gloo")
    t.distributed.all_reduce([1])


PROGRAMS = {
    "collectives": collectives, "module": module, "again": again, "nothing to train": nothing_to_train, "to itself": to_itself,
    "no tensor": no_tensor,
    "no group, rank": lambda t: t.distributed.get_rank(),
    "no group, collective": lambda t: t.distributed.all_reduce(t.ones(1)),
    "no group, module": lambda t: t.nn.parallel.DistributedDataParallel(t.nn.Linear(1, 1)),
    "no group, end": lambda t: t.distributed.destroy_process_group(),
    "backend": lambda t: t.distributed.init_process_group("foo"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_process(name):
    both(PROGRAMS[name])


def test_collectives_of_one_process_read_nothing():
    """A step that averages its loss among processes stays one program where there is one."""
    d = jtorch.distributed
    d.init_process_group("gloo")
    x, out, one = jtorch.ones(3) * 2, [jtorch.zeros(3)], jtorch.zeros(3)
    before = ledger.counters.flushes
    d.all_reduce(x)
    d.broadcast(x, 0)
    d.all_gather(out, x)
    d.all_gather_single(one, x)
    d.reduce_scatter(one, [x])
    assert ledger.counters.flushes == before
    assert out[0].tolist() == one.tolist() == [2.0] * 3


def test_arguments_come_to_the_modules_device():
    jtorch.distributed.init_process_group("gloo")
    net = jtorch.nn.Linear(2, 1, device="meta")
    made = jtorch.nn.parallel.DistributedDataParallel(net, device_ids=[0])
    assert made(jtorch.ones(1, 2)).device.type == "meta"


ADDRESSES = {
    "no world size": ({"rank": 0, "init_method": "tcp://127.0.0.1:1"}, {}, ValueError, "world size parameter missing"),
    "no rank": ({"world_size": 2, "init_method": "tcp://127.0.0.1:1"}, {}, ValueError, "rank parameter missing"),
    "no port": ({"world_size": 2, "rank": 0, "init_method": "tcp://127.0.0.1"}, {}, ValueError, "port number missing"),
    "no address": (
        {"world_size": 2, "rank": 0},
        {"MASTER_ADDR": None},
        ValueError,
        "MASTER_ADDR expected, but not set",
    ),
    "other scheme": (
        {"world_size": 2, "rank": 0, "init_method": "ftp://x"},
        {},
        RuntimeError,
        "No rendezvous handler for ftp://",
    ),
    "seconds": ({"world_size": 2, "rank": 0, "timeout": 3}, {}, TypeError, "datetime.timedelta"),
    "store and address": ({"store": object(), "init_method": "env://"}, {}, AssertionError, "Cannot specify both"),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_how_processes_are_to_find_each_other(name, monkeypatch):
    options, env, kind, words = ADDRESSES[name]
    for key, value in env.items():
        monkeypatch.delenv(key) if value is None else monkeypatch.setenv(key, value)
    for module in (jtorch, torch):
        with pytest.raises(kind, match=words):
            module.distributed.init_process_group("gloo", **options)
        assert not module.distributed.is_initialized()


def test_rank_out_of_range():
    with pytest.raises(ValueError, match="rank 2 of 2 processes"):
        world.init_process_group("gloo", rank=2, world_size=2)


def test_others_that_do_not_come(unused_port):
    """The first process waits as long as it is told to, and names who is missing."""
    with pytest.raises(jtorch.distributed.DistStoreError, match="1/2 clients joined"):
        world.init_process_group(
            "gloo", f"tcp://127.0.0.1:{unused_port}", datetime.timedelta(seconds=0.2), world_size=2, rank=0
        )
    assert not world.is_initialized()


def test_recorded_errors(monkeypatch, tmp_path):
    """What the main function raises is written to the launcher's file, as torch writes it, and raised on."""
    its = importlib.import_module("torch.distributed.elastic.multiprocessing.errors")
    found = []
    for module in (errors, its):
        file = tmp_path / f"{module.__name__}.json"
        monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
        with pytest.raises(ValueError, match="boom"):
            module.record(_fails)("boom")
        with pytest.raises(SystemExit):
            module.record(sys.exit)(3)
        said = json.loads(file.read_text())["message"]
        failure = module.ProcessFailure(0, 1, 1, str(file))
        assert "boom" in said["extraInfo"].pop("py_callstack") and failure.timestamp == int(
            said["extraInfo"].pop("timestamp")
        )
        found.append((said, failure.message["message"], module.record(_fails).__name__))
    assert found[0] == found[1]
    assert errors.ChildFailedError("main", {0: failure}).get_first_failure() == (0, failure)


def _fails(words):
    raise ValueError(words)


def test_distributed_autograd_is_not_there():
    module = importlib.import_module("jtorch.distributed.autograd")
    assert not module.is_available()
    with pytest.raises(NotImplementedError, match="several machines"), module.context():
        pass


def test_levels_errors_and_backends(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "2")

    def said(d):
        errors = [
            getattr(d, n)
            for n in ("DistError", "DistBackendError", "DistNetworkError", "DistStoreError", "QueueEmptyError")
        ]
        return (
            [[c.__name__ for c in e.__mro__] for e in errors], str(d.default_pg_timeout), str(d.get_debug_level()), d.get_node_local_rank(5),
            [d.get_default_backend_for_device(x) for x in ("cpu", "cuda", "cuda:1")], d.Backend("GLOO"), d.Backend.GLOO,
            [d.supports_complex(op) for op in (d.ReduceOp.SUM, d.ReduceOp.MAX, d.ReduceOp.PRODUCT)],
        )  # fmt: skip

    assert said(jtorch.distributed) == said(torch.distributed)
    for d in (jtorch.distributed, torch.distributed):
        with pytest.raises(ValueError, match="Backend constructor parameter must be string-ish"):
            d.Backend(3)
        with pytest.raises(ValueError, match="Default backend not registered for device"):
            d.get_default_backend_for_device("meta")
    monkeypatch.delenv("LOCAL_RANK")
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        jtorch.distributed.get_node_local_rank()
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "info")
    jtorch.distributed.set_debug_level_from_env()
    assert jtorch.distributed.get_debug_level() is jtorch.distributed.DebugLevel.INFO
    jtorch.distributed.set_debug_level(jtorch.distributed.DebugLevel.OFF)
