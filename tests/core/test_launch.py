"""Steps that are started on a thread of their own: the numbers are PyTorch's, whatever is looked at, and nothing depends on the clock."""

import sys
import threading
import time

import pytest

import jtorch
from jtorch.core import chain, gather, launch, record
from jtorch.core.beside import compiled_beside
from tests.core.test_chain import dropping, training, zero_between, zero_first, zero_last
from tests.memory import start_anew
from tests.oracle import torch

NAME = "jtorch launch"


@pytest.fixture
def started(runs, monkeypatch):
    """Steps are started so on the CPU too; the threads that have started some."""
    monkeypatch.setattr(gather, "asks_the_host", lambda device: True)
    start_anew()
    threads = []
    start = launch.Run.start

    def counted(run):
        threads.append(threading.current_thread().name)
        start(run)

    monkeypatch.setattr(launch.Run, "start", counted)
    yield threads
    jtorch.synchronize()
    start_anew()


def assert_close(got, want):
    for a, b in zip(got, want, strict=True):
        torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("step", [zero_first, zero_between, zero_last], ids=lambda s: s.__name__)
@pytest.mark.parametrize("every, optimizer", [(1000, "SGD"), (6, "AdamW")])
def test_training(step, every, optimizer, started):
    got = training(jtorch, step, every, optimizer)
    want = training(torch, step, every, optimizer)
    assert_close(got, want)
    assert set(started) == {NAME}


def test_each_run_draws_its_own_numbers(started):
    assert dropping("auto", False) == pytest.approx(dropping("eager", False), rel=1e-5)
    assert set(started) == {NAME}


def loop(steps=60, each=lambda model, loss: None):
    """The weights after a training, whose losses are not looked at."""
    jtorch.manual_seed(0)
    model = jtorch.nn.Sequential(jtorch.nn.Linear(4, 8), jtorch.nn.ReLU(), jtorch.nn.Linear(8, 2))
    optimizer = jtorch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = jtorch.full((3, 4), 0.5)
    for _ in range(steps):
        each(model, zero_first(model, optimizer, x).detach())
        compiled_beside()
    return [p.tolist() for p in model.parameters()]


def test_programs_do_not_depend_on_how_far_the_thread_is(started, monkeypatch):
    """A sum of losses that stays on the device, and an average of the weights, which take what has only been asked for."""

    def compiles():
        total, mean = jtorch.zeros(()), []

        def each(model, loss):
            nonlocal total
            total = total + loss
            mean[:] = [m * 0.9 + p.detach() * 0.1 for m, p in zip(mean or model.parameters(), model.parameters())]

        start_anew()
        before = len(jtorch.compile.report().rows)
        weights = loop(each=each)
        return weights, total.item(), [m.tolist() for m in mean], len(jtorch.compile.report().rows) - before

    quick = compiles()
    start = launch.Run.start
    monkeypatch.setattr(launch.Run, "start", lambda run: (time.sleep(2e-3), start(run)))
    assert compiles() == quick


def test_an_error_arrives_where_a_value_is_needed_and_is_tried_again(started, monkeypatch):
    models = []

    def each(model, loss):
        models.append(model)
        if len(models) == 50:
            monkeypatch.setattr(launch, "concretely", lambda *args: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        loop(each=each)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            models[0][0].weight.tolist()
    monkeypatch.setattr(launch, "concretely", chain.concretely)
    assert len(models) >= 50
    assert_close([p.tolist() for p in models[0].parameters()], loop(len(models)))


def test_another_thread_can_read(started):
    seen = []

    def each(model, loss):
        reader = threading.Thread(target=lambda: seen.append((loss.item(), model[0].weight.sum().item())))
        reader.start()
        reader.join()

    assert_close(loop(20, each), loop(20))
    assert len(seen) == 20


def until_the_thread_ends():
    end = time.monotonic() + 60
    while launch.launcher.thread is not None and time.monotonic() < end:
        time.sleep(launch.IDLE)
    assert launch.launcher.thread is None


def test_the_thread_ends_and_leaves_the_interpreter_as_it_was(started):
    until_the_thread_ends()
    usual = sys.getswitchinterval()
    loop()
    assert started
    until_the_thread_ends()
    assert sys.getswitchinterval() == usual
    jtorch.synchronize()
    assert record.tls.me.queue is None


def test_an_interpreter_that_starts_no_threads_any_more(started, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    want = loop()
    until_the_thread_ends()
    started.clear()
    monkeypatch.setattr(launch.threading.Thread, "start", refuse)
    assert_close(loop(), want)
    assert set(started) == {"MainThread"}
