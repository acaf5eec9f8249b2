"""Ctrl-C, or another signal, in the middle of a step: what had been computed is still there, and what is done afterwards is right."""

import functools
import signal
import sys
import threading

import pytest

import jtorch
from jtorch import nn
from jtorch.compile import waiting
from jtorch.core import chain, interrupts, program, record
from jtorch.core.beside import compiled_beside
from jtorch.core.pending import Pending
from tests.memory import start_anew

MODULES = (program, waiting, chain)


@pytest.fixture
def press(monkeypatch):
    """Has Ctrl-C, or another signal, come right after the next program that is started."""
    concretely = chain.concretely
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

    def pressed(number, call, args):
        for module in MODULES:
            monkeypatch.setattr(module, "concretely", concretely)
        outs = concretely(call, args)
        signal.raise_signal(number)
        return outs

    def arrange(number=signal.SIGINT):
        for module in MODULES:
            monkeypatch.setattr(module, "concretely", functools.partial(pressed, number))

    yield arrange
    signal.signal(signal.SIGINT, before)


def training(compiled):
    jtorch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    optimizer = jtorch.optim.AdamW(net.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return net, jtorch.compile(step) if compiled else step


def finish(step, n, done):
    """Make the steps that are missing."""
    while len(done) < n:
        done.append(step(jtorch.full((4, 4), 1.0 + len(done) % 3)))
    return [loss.item() for loss in done]


@pytest.mark.parametrize("looking", [False, True])
@pytest.mark.parametrize("at", [25, 43])
def test_an_interrupt_when_a_program_has_taken_its_arguments(runs, press, looking, at):
    start_anew()
    want = finish(training(False)[1], 60, [])
    _, step = training(False)
    done, heard = [], 0
    finish(step, at, done)
    compiled_beside()
    press()
    while len(done) < 60:
        loss = None
        try:
            # Where it is heard, a step before has been run and this one not begun.
            loss = step(jtorch.full((4, 4), 1.0 + len(done) % 3))
            if looking:
                loss.item()
        except KeyboardInterrupt:
            heard += 1
        if loss is not None:
            done.append(loss)
    assert heard == 1 and [loss.item() for loss in done] == pytest.approx(want, rel=1e-3, abs=1e-8)


@pytest.mark.parametrize("at", [25, 43])
def test_an_interrupt_in_a_replay(runs, press, at):
    net, step = training(True)
    finish(step, at, [])
    compiled_beside()
    press()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(5):
            step(jtorch.full((4, 4), 1.0)).item()
    assert all(p.isfinite().all() for p in net.parameters()) and step(jtorch.ones(4, 4)).isfinite()


@pytest.mark.parametrize("at", range(6))
def test_an_interrupt_while_a_node_is_recorded(at):
    """Python hears it when a function returns: here, at each in turn that recording calls."""
    x, y = jtorch.full((3,), 2.0), jtorch.full((5,), 3.0)
    want = [(x * x + k).tolist() for k in range(4)], (y * 2).tolist()
    jtorch.synchronize()
    seen = 0

    def profile(frame, kind, arg):
        nonlocal seen
        caller = frame if kind == "c_return" else frame.f_back
        if kind in ("return", "c_return") and caller.f_code.co_filename.startswith(("<jtorch rec", record.__file__)):
            seen += 1
            if seen == at + 1:
                sys.setprofile(None)
                raise KeyboardInterrupt

    first = x * x
    try:
        sys.setprofile(profile)
        first + 0.5
        y[1:4] * 2.5
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    assert ([(x * x + k).tolist() for k in range(4)], (y * 2).tolist()) == want and first.tolist() == [4.0] * 3


def raised():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def handler():
    """Python's own handler of the signal is there at first, and whatever was there at the end."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_holding(handler):
    assert interrupts.hold() and not interrupts.hold()  # the outer one releases
    raised()
    with pytest.raises(KeyboardInterrupt):  # the second is heard at once
        raised()
    interrupts.release()
    assert interrupts.hold()
    raised()
    with pytest.raises(KeyboardInterrupt):
        interrupts.release()
    with pytest.raises(KeyboardInterrupt):
        raised()
    assert interrupts.hold()
    interrupts.release()


def test_handlers_of_a_program_s_own(handler):
    heard = []
    assert interrupts.hold()
    interrupts.release()
    ours = signal.signal(signal.SIGINT, lambda number, frame: heard.append("program's"))
    assert interrupts.hold()
    raised()
    assert not heard
    interrupts.release()
    assert heard == ["program's"]
    signal.signal(signal.SIGINT, ours)
    with pytest.raises(KeyboardInterrupt):
        raised()
    assert heard == ["program's"]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert not interrupts.hold() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN


class OutOfTime(Exception):
    pass


ENDING = [getattr(signal, name) for name in ("SIGALRM", "SIGTERM", "SIGUSR1") if hasattr(signal, name)]


@pytest.fixture(params=ENDING)
def ending(request):
    """A signal whose handler raises, as that of a time limit does."""

    def end(number, frame):
        raise OutOfTime(number)

    before = signal.signal(request.param, end)
    yield request.param
    signal.signal(request.param, before)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_handler_of_another_signal_that_raises(runs, press, ending, compiled):
    net, step = training(compiled)
    finish(step, 43, [])
    compiled_beside()
    press(ending)
    with pytest.raises(OutOfTime):
        for _ in range(5):
            step(jtorch.full((4, 4), 1.0)).item()
    assert all(p.isfinite().all() for p in net.parameters()) and step(jtorch.ones(4, 4)).isfinite()


def test_two_signals_that_have_waited_are_both_heard(handler, ending):
    assert interrupts.hold()
    raised()
    signal.raise_signal(ending)
    with pytest.raises(KeyboardInterrupt) as last:
        interrupts.release()
    assert isinstance(last.value.__context__, OutOfTime) and not interrupts._state.asked


def test_other_threads_are_not_held():
    found = []
    thread = threading.Thread(target=lambda: found.append(interrupts.hold()))
    thread.start()
    thread.join()
    assert found == [False]


def test_another_thread_s_value_that_has_gone_to_a_queue():
    class Queue:
        def compute(self, pending):
            pending.value = 7.0

    other = []
    thread = threading.Thread(target=lambda: other.append(record.tls.me))
    thread.start()
    thread.join()
    graph = record.Graph(other[0], record.tls.me.graph.device)
    graph.state = None  # it has been flushed while this thread waited for it
    pending = Pending(Queue(), 0)
    graph.compute(pending)
    assert pending.value == 7.0
