"""The recorder: keys, tiers, liveness, donation, run-time numbers, flushes, threads."""

import gc
import threading

import numpy as np
import pytest

import jtorch
from jtorch import config
from jtorch.core import by_numpy, costs, ledger, paths, program, record
from jtorch.core.storage import realise

COUNTED = ("flushes", "compiles", "reused", "by_op", "promotions")


class Counts:
    """What the ledger counted in the body of a `with`."""

    def __enter__(self):
        jtorch.synchronize()
        self.before = {k: getattr(ledger.counters, k) for k in COUNTED}
        return self

    def __exit__(self, *exc):
        for k in COUNTED:
            setattr(self, k, getattr(ledger.counters, k) - self.before[k])


pytestmark = pytest.mark.usefixtures("own_programs")


def training(shape=(5, 4)):
    """A small model, its optimizer and the step."""
    jtorch.manual_seed(0)
    w = jtorch.randn(4, 3, requires_grad=True)
    b = jtorch.zeros(3, requires_grad=True)
    opt = jtorch.optim.SGD([w, b], lr=0.1)

    def step(x):
        loss = (x @ w + b).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss

    return step, opt, (w, b)


def counted(fn, *args):
    with Counts() as c:
        fn(*args)
    return c


def test_same_structure_runs_the_same_program():
    step, *_ = training()
    x = jtorch.randn(5, 4)
    for _ in range(4):
        step(x)
    c = counted(lambda: [step(x) for _ in range(5)])
    assert (c.compiles, c.by_op, c.reused, c.flushes) == (0, 0, 5, 5)


def test_first_sight_runs_op_by_op_and_a_repeated_graph_is_fused():
    x = jtorch.randn(7, 3)

    def once():
        return (x.sin() + x.cos()).sum().item()

    seen = [counted(once) for _ in range(5)]
    assert [c.by_op for c in seen][0] == 1
    assert [c.compiles for c in seen].count(1) == 1
    assert seen[-1].reused == 1


def test_many_cold_ops_are_compiled_whole_at_first_sight_where_numpy_does_not_run_them(monkeypatch):
    monkeypatch.setattr(by_numpy, "FEW", -1)
    x = jtorch.randn(11, 2)

    def once():
        y = x.sin().cos().tanh().exp().abs().sqrt().neg().floor().ceil()
        return y.sum().item()

    assert config.cold_ops < 9
    c = counted(once)
    assert (c.compiles, c.by_op) == (1, 0)


def test_a_loop_whose_graph_is_always_another_one_stops_compiling():
    x = jtorch.randn(11, 3)

    def once(n):
        y = x
        for _ in range(n):
            y = y.sin().cos().tanh().exp().abs().sqrt().neg()
            y = y.sigmoid()
        return y.sum().item()

    c = counted(lambda: [once(n) for n in range(1, 12)])
    assert c.compiles < 6
    assert c.by_op > 4


def test_changed_learning_rate_compiles_nothing():
    step, opt, _ = training()
    x = jtorch.randn(5, 4)
    for _ in range(4):
        step(x)

    def another(lr):
        opt.param_groups[0]["lr"] = lr
        step(x)

    c = counted(lambda: [another(lr) for lr in (0.05, 0.01, 0.0, 1e-5)])
    assert (c.compiles, c.by_op) == (0, 0)


@pytest.mark.parametrize("every", [1, 3, 100])
@pytest.mark.parametrize(
    "optimizer", [lambda p: jtorch.optim.AdamW(p), lambda p: jtorch.optim.SGD(p, 0.1, 0.9)], ids=["AdamW", "SGD"]
)
def test_one_program_serves_the_first_steps(optimizer, every, monkeypatch):
    """The first step, which makes the optimizer's state; steps whose gradients die unseen, and steps that are looked at.

    Where none is looked at, the program of what is needed takes over when the one made in haste has had its runs.
    """
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 12)
    model = jtorch.nn.Sequential(jtorch.nn.Linear(4, every + 2), jtorch.nn.Tanh(), jtorch.nn.Linear(every + 2, 3))
    opt = optimizer(model.parameters())
    x = jtorch.randn(5, 4)
    jtorch.synchronize()

    def steps():
        for i in range(14):
            opt.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            opt.step()
            if i % every == every - 1:
                loss.item()
        loss.item()

    assert counted(steps).compiles == 1 + (every == 100)


def test_smaller_last_batch_compiles_at_most_once():
    step, *_ = training()
    big, small = jtorch.randn(5, 4), jtorch.randn(2, 4)
    jtorch.synchronize()
    for _ in range(4):
        step(big)
    c = counted(lambda: [step(x) for _ in range(5) for x in (small, big)])
    assert c.compiles <= 1


def test_changed_number_compiles_at_most_once_more():
    x = jtorch.randn(6)

    def once(k):
        return (x * k + 1.0).sum().item()

    for _ in range(4):
        once(0.5)
    c = counted(lambda: [once(0.5 + i) for i in range(1, 8)])
    assert c.compiles <= 1
    assert c.promotions == 1
    assert counted(once, 123.0).compiles == 0
    np.testing.assert_allclose(once(-2.5), float((np.asarray(x) * np.float32(-2.5) + 1).sum()), rtol=1e-5)


@pytest.mark.parametrize("warm", [False, True])
def test_numbers_that_are_equal_or_look_so_are_not_mixed_up(warm):
    x = jtorch.ones(3)
    numbers = [2, 2.0, True, 1, 1.0, -0.0, 0.0, 0, False, float("nan"), -float("nan"), float("inf"), 1e-30, 2**31]
    rounds = 3 if warm else 1
    for _ in range(rounds):
        for k in numbers:
            got = np.asarray(x * k)
            want = np.ones(3, np.float32) * np.float32(k)
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want) | np.isnan(want) & np.signbit(got))
    ints = jtorch.ones(3, dtype=jtorch.int32)
    assert [(ints * k).dtype for k in (2, 2.0, True)] == [jtorch.int32, jtorch.float32, jtorch.int32]
    bools = jtorch.tensor([True, False])
    assert [(bools * k).dtype for k in (True, 1, 1.0)] == [jtorch.bool, jtorch.int64, jtorch.float32]


@pytest.mark.parametrize("numbers", [(0.0, -0.0), (-0.0, 0.0), (1.0, 0.0, -0.0)])
def test_minus_zero_is_not_zero(numbers):
    one = jtorch.tensor([1.0])
    jtorch.synchronize()
    for k in numbers * 2:
        jtorch.synchronize()
        assert np.signbit(np.asarray(one * k))[0] == np.signbit(k), k


def test_dead_results_are_not_outputs(monkeypatch):
    outs = []
    real = program.Program.__init__

    def spy(self, *args):
        real(self, *args)
        outs.append((self.out, self.n_nodes))

    monkeypatch.setattr(program.Program, "__init__", spy)
    x = jtorch.randn(5)
    y = (x + 1).mul(2).sin()
    z = x.cos()
    del z
    jtorch.synchronize()
    (out, n_nodes) = outs[-1]
    assert len(out) == 1
    assert n_nodes == 3, "what nobody holds and nobody needs is not computed"
    del y


def test_only_the_held_part_of_a_chain_is_kept():
    x = jtorch.ones(4)
    y = x + 1
    z = y * 3
    del y
    assert z.tolist() == [6.0] * 4


def test_old_parameters_are_donated():
    step, _, (w, b) = training()
    x = jtorch.randn(5, 4)
    for _ in range(6):  # a few runs by op, where other tests have had its ops
        step(x)
    # The program of the steady state takes the memory of both parameters.
    used = [p for s in _states() if s.programs for p in s.programs.values() if p.runs and p.call is not None]
    assert max(len(p.donate) for p in used) >= 2


def test_held_arrays_are_never_donated():
    step, _, (w, b) = training()
    x = jtorch.randn(5, 4)
    for _ in range(3):
        step(x)
    held = w.detach().clone()
    view = w.detach()
    array = realise(w._storage.value)
    before = np.array(array)
    for _ in range(4):
        step(x)
    np.testing.assert_array_equal(np.asarray(array), before)
    np.testing.assert_array_equal(np.asarray(held), before)
    np.testing.assert_array_equal(np.asarray(view), np.asarray(w.detach()))
    assert not np.array_equal(np.asarray(w.detach()), before)


def test_saved_tensors_survive_donation():
    a = jtorch.randn(4, requires_grad=True)
    for _ in range(4):
        y = a * a
        out = (y * y).sum()
        with jtorch.no_grad():
            c = y.detach().clone()
            c.add_(1)
        out.backward()
        a.grad = None
    want = 4 * np.asarray(a.detach()) ** 3
    (g,) = jtorch.autograd.grad(((a * a) ** 2).sum(), a)
    np.testing.assert_allclose(np.asarray(g), want, rtol=1e-5)


def _states():
    found = list(paths.roots.by_device.values())
    for s in found:
        found.extend(s.next.values())
    return found


@pytest.mark.parametrize(
    "need",
    [
        lambda t: t.item(),
        lambda t: bool(t),
        lambda t: float(t),
        lambda t: int(t),
        lambda t: t.tolist(),
        lambda t: t.numpy(),
        lambda t: np.asarray(t),
        repr,
        lambda t: jtorch.synchronize(),
    ],
    ids=["item", "bool", "float", "int", "tolist", "numpy", "array", "repr", "synchronize"],
)
def test_a_needed_value_flushes(need):
    x = jtorch.ones(1)
    jtorch.synchronize()
    y = x + 1
    with_pending = y._storage.value
    assert type(with_pending) is record.Pending and with_pending.value is None
    before = ledger.counters.flushes
    need(y)
    assert ledger.counters.flushes == before + 1


def test_metadata_does_not_flush():
    x = jtorch.ones(3, 4, requires_grad=True)
    jtorch.synchronize()
    before = ledger.counters.flushes
    y = (x + 1).t()[1:]
    assert (y.shape, y.stride(), y.dtype, y.requires_grad) == ((3, 3), (1, 4), jtorch.float32, True)
    assert (y.is_contiguous(), y.storage_offset(), y.numel(), len(y), y.ndim) == (False, 1, 9, 3, 2)
    assert ledger.counters.flushes == before


def test_optimizer_step_flushes():
    step, *_ = training()
    assert counted(step, jtorch.randn(5, 4)).flushes == 1


def test_a_full_graph_is_flushed(monkeypatch):
    monkeypatch.setattr(config, "max_nodes", 16)
    x = jtorch.zeros(2)
    with Counts() as c:
        for _ in range(100):
            x = x + 1
    assert c.flushes >= 5
    assert x.tolist() == [100.0, 100.0]


def test_too_many_bytes_flush_a_graph(monkeypatch):
    monkeypatch.setattr(config, "max_bytes", 1 << 16)
    x = jtorch.zeros(1000)
    with Counts() as c:
        for _ in range(40):
            x = x + 1
    assert c.flushes >= 2
    assert x[0].item() == 40.0


def test_forgotten_paths_change_nothing(monkeypatch):
    monkeypatch.setattr(config, "max_states", 20)
    x = jtorch.zeros(2)
    for i in range(60):
        x = x + float(i)
        if i % 7 == 0:
            assert x[0].item() == i * (i + 1) / 2


def test_an_error_in_a_flush_can_be_tried_again(monkeypatch):
    x = jtorch.arange(4.0)
    y = x * 3
    real, calls = program.run, []

    def broken(*args):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(program, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        y.tolist()
    z = x + 1
    assert z.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert y.tolist() == [0.0, 3.0, 6.0, 9.0]
    assert (y + z).tolist() == [1.0, 5.0, 9.0, 13.0]


def test_an_error_at_the_call_leaves_the_graph_as_it_was():
    x = jtorch.ones(3)
    y = x + 1
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        y + jtorch.ones(4)
    assert y.tolist() == [2.0, 2.0, 2.0]


def test_the_ledger_knows_the_line_and_the_cause():
    x = jtorch.ones(13)
    (x * 2 + 1).sum().item()
    entry = ledger.entries[-1]
    assert "test_record.py:" in entry.line
    assert entry.cause == "value needed"
    assert entry.runs >= 1


def test_logs_print_as_it_happens(monkeypatch, capsys):
    monkeypatch.setattr(config, "logs", frozenset({"recompiles", "syncs"}))
    x = jtorch.ones(17)
    for k in (1.5, 1.5, 1.5, 1.5, 2.5):
        (x * k).sum().item()
    text = capsys.readouterr().err
    assert "[jtorch] sync at" in text
    assert "[jtorch] compile" in text
    assert "became a run-time input" in text


def test_eager_mode_records_nothing():
    with jtorch.execution_mode("eager"):
        x = jtorch.ones(3)
        y = x * 2
        assert not isinstance(y._storage.value, record.Pending)
        assert y.tolist() == [2.0] * 3
    assert jtorch.get_execution_mode() == "auto"


def test_mode_may_change_with_work_pending():
    x = jtorch.ones(3) + 1
    with jtorch.execution_mode("eager"):
        y = x * 2
    assert (x + y).tolist() == [6.0] * 3


def test_wrong_mode_is_refused():
    with pytest.raises(ValueError, match="'auto' or 'eager'"):
        jtorch.execution_mode("lazy")


def test_threads_record_and_read_each_other():
    shared, errors = {}, []
    barrier = threading.Barrier(3)

    def work(k):
        try:
            base = jtorch.full((4,), float(k))
            for r in range(6):
                mine = base
                for i in range(20):
                    mine = mine + i
                shared[k, r] = mine  # pending
                barrier.wait(60)
                for other in range(3):
                    got = (shared[other, r] * 2).tolist()
                    assert got == [2 * (other + 190.0)] * 4, (k, r, other, got)
                barrier.wait(60)
                assert mine.tolist() == [k + 190.0] * 4
        except BaseException as e:
            errors.append(e)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not errors, errors


def test_a_pending_tensor_outlives_its_thread():
    box = []
    t = threading.Thread(target=lambda: box.append(jtorch.ones(3) * 5))
    t.start()
    t.join()
    gc.collect()
    assert (box[0] + 1).tolist() == [6.0] * 3
    assert box[0].tolist() == [5.0] * 3


def test_backward_over_a_graph_recorded_in_another_thread():
    x = jtorch.ones(3, requires_grad=True)
    box = []
    t = threading.Thread(target=lambda: box.append((x * x).sum()))
    t.start()
    t.join()
    box[0].backward()
    assert x.grad.tolist() == [2.0] * 3


def test_many_numbers_that_vary_are_one_program(own_programs):
    """Letters of a word written one by one: each depth of the path must not double the programs."""

    def word(letters):
        t = jtorch.zeros(8, 5)
        for place, letter in enumerate(letters):
            t[place][letter] = 1
        return (t @ WEIGHTS).tanh().sum().item()

    WEIGHTS = jtorch.ones(5, 3)
    words = [[(k * place + k // 3) % 5 for place in range(8)] for k in range(40)]
    before = len(ledger.entries)
    got = [word(letters) for letters in words]
    assert got == pytest.approx([got[0]] * 40)
    assert len(ledger.entries) - before <= 12
    # what varied in one is taken to vary in a shorter one
    before = len(ledger.entries)
    assert [word(letters[:5]) for letters in words] == pytest.approx([word(words[0][:5])] * 40)
    assert len(ledger.entries) - before <= 5


def test_numbers_that_vary_together_are_one_program_more(own_programs):
    """A step written by hand with a learning rate that is another one each time: not a program for each parameter."""
    sizes = range(2, 12)
    weights = [jtorch.ones(n) for n in sizes]
    expected = [1.0] * len(weights)
    before = len(ledger.entries)
    for k in range(40):
        rate = 0.5 / (k + 1)
        for p, w in enumerate(weights):
            w.mul_(1 - rate / 8).add_(jtorch.ones(len(w)), alpha=-rate).mul_(1.5)
            expected[p] = (expected[p] * (1 - rate / 8) - rate) * 1.5
        assert [w[0].item() for w in weights] == pytest.approx(expected, rel=1e-4)
    assert len(ledger.entries) - before <= 4
