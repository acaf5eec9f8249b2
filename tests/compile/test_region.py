"""torch.compile: the same numbers as without, replays where proven, records where not."""

import gc
import weakref

import numpy as np
import pytest

import jtorch
import jtorch.nn.functional as F
from jtorch import nn
from jtorch.compile import failures
from jtorch.compile import region as regions
from jtorch.core import ledger
from tests.oracle import both


def model(seed=0, optimizer="Adam", **options):
    jtorch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    return net, getattr(jtorch.optim, optimizer)(net.parameters(), lr=0.05, **options)


def batches(n=6, size=4):
    rng = np.random.default_rng(0)
    return [
        (jtorch.tensor(rng.normal(size=(size, 5)).astype(np.float32)), jtorch.tensor(rng.integers(0, 3, size)))
        for _ in range(n)
    ]


def make_step(net, opt):
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    return step


def region(compiled):
    return compiled._region


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"weight_decay": 0.1}), ("RMSprop", {})],
)
def test_a_whole_step_gives_the_plain_loop_s_numbers_and_is_replayed(name, options):
    plain = make_step(*model(optimizer=name, **options))
    expected = [plain(x, y).item() for x, y in batches()]
    net, opt = model(optimizer=name, **options)
    step = jtorch.compile(make_step(net, opt))
    got = [step(x, y).item() for x, y in batches()]
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert region(step).replays, region(step).why


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_the_program_of_the_recorded_step_is_the_one_that_is_replayed(name, own_programs):
    """One compile at the start: parameters that the first step has from numpy are no reason for another program."""
    # shapes of its own: others' operations may have executables
    net = nn.Sequential(nn.Linear(5, 17), nn.Tanh(), nn.Linear(17, 3))
    step = jtorch.compile(make_step(net, getattr(jtorch.optim, name)(net.parameters(), lr=0.05)))
    for x, y in batches(4):
        step(x, y).item()
    replay = region(step).replays[-1]
    assert replay.program.runs  # as a recorded graph


def test_a_changed_learning_rate_is_followed_without_a_compile():
    net, opt = model()
    step = jtorch.compile(make_step(net, opt))
    data = batches()
    for x, y in data:
        step(x, y)
    jtorch.synchronize()
    before = net[0].weight.detach().clone()
    compiles = ledger.counters.compiles
    opt.param_groups[0]["lr"] = 0.0
    step(*data[0])
    assert jtorch.equal(net[0].weight.detach(), before)
    assert ledger.counters.compiles == compiles


def test_gradients_and_state_are_there_after_a_replay():
    net, opt = model()
    step = jtorch.compile(make_step(net, opt))
    for x, y in batches():
        step(x, y)
    assert net[0].weight.grad.shape == net[0].weight.shape
    assert net[0].weight.grad.abs().sum().item() > 0
    held = net[0].weight.grad
    copy = held.clone()
    step(*batches()[0])
    assert jtorch.equal(held, copy), "a gradient that the user holds must not change under them"
    assert opt.state[net[0].weight]["step"].item() == 7


def test_values_that_someone_holds_are_not_taken():
    net, opt = model()
    step = jtorch.compile(make_step(net, opt))
    for x, y in batches():
        step(x, y)
    held = net[0].weight.detach().clone()
    view = net[0].weight.detach()
    step(*batches()[0])
    assert not jtorch.equal(held, net[0].weight.detach())
    assert jtorch.equal(view, net[0].weight.detach())


def test_train_and_eval_are_different_entries():
    jtorch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    @jtorch.compile
    def run(x):
        with jtorch.no_grad():
            return net(x)

    x = jtorch.randn(6, 4)
    for _ in range(3):
        run(x)
    net.eval()
    expected = net(x).detach()
    np.testing.assert_allclose(run(x).tolist(), expected.tolist(), rtol=1e-5)
    np.testing.assert_allclose(run(x).tolist(), expected.tolist(), rtol=1e-5)


def test_python_side_effects_happen_at_every_call():
    seen = []

    @jtorch.compile
    def run(x):
        seen.append(len(seen))
        return x * 2

    for _ in range(7):
        run(jtorch.ones(3))
    assert seen == list(range(7))


scale = 2.0


def test_globals_are_guarded():
    global scale

    @jtorch.compile
    def run(x):
        return x * scale

    x = jtorch.ones(3)
    assert [run(x).tolist() for _ in range(3)] == [[2.0] * 3] * 3
    scale = 5.0
    try:
        assert run(x).tolist() == [5.0] * 3
    finally:
        scale = 2.0


def test_closures_and_arguments_are_guarded():
    factor = 3

    @jtorch.compile
    def run(x, flag, k=1.0):
        return x * factor if flag else x + k

    x = jtorch.ones(2)
    for _ in range(2):
        assert run(x, True).tolist() == [3.0, 3.0]
        assert run(x, False).tolist() == [2.0, 2.0]
        assert run(x, False, k=4.0).tolist() == [5.0, 5.0]
    factor = 10
    assert run(x, True).tolist() == [10.0, 10.0]


def test_views_and_numpy_memory_as_arguments():
    @jtorch.compile
    def run(x):
        x.add_(1)
        return x.sum()

    memory = np.zeros((4, 3), np.float32)
    shared = jtorch.from_numpy(memory)
    for k in range(1, 5):
        assert run(shared).item() == 12.0 * k
        assert memory[0, 0] == k
    big = jtorch.zeros(6, 3)
    for k in range(1, 5):
        assert run(big[2:4]).item() == 6.0 * k
    assert big[:2].sum().item() == 0 and big[2:4].sum().item() == 24.0


def test_dropout_draws_anew_at_each_replay():
    @jtorch.compile
    def run(x):
        return F.dropout(x, 0.5)

    x = jtorch.ones(200)
    draws = {tuple(run(x).tolist()) for _ in range(5)}
    assert len(draws) == 5


def test_fullgraph_raises_at_the_break():
    @jtorch.compile(fullgraph=True)
    def run(x):
        if x.sum() > 0:
            return x + 1
        return x

    with pytest.raises(failures.Unsupported, match="fullgraph=True.*breaks at .*test_region.py"):
        run(jtorch.ones(2))
    with pytest.raises(failures.Unsupported):
        jtorch.compile(run._torchdynamo_orig_callable, fullgraph=True, backend="eager")(jtorch.ones(2))
    with pytest.raises(failures.InvalidBackend, match="Invalid backend: 'nope', see `torch._dynamo.list_backends"):
        jtorch.compile(run, backend="nope")
    assert isinstance(jtorch.compile(jtorch.nn.ReLU()), regions.optimized_class())


def test_a_break_splits_the_region():
    @jtorch.compile
    def run(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    assert run(jtorch.ones(2)).tolist() == [2.0, 2.0]
    assert run(-jtorch.ones(2)).tolist() == [-2.0, -2.0]
    assert "breaks" in region(run).why


def test_a_compiled_module_trains_and_keeps_its_names():
    net, opt = model()
    compiled = jtorch.compile(net)
    expected_net, expected_opt = model()
    for x, y in batches():
        for n, o in ((compiled, opt), (expected_net, expected_opt)):
            o.zero_grad()
            F.cross_entropy(n(x), y).backward()
            o.step()
    for a, b in zip(compiled.parameters(), expected_net.parameters()):
        np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-4, atol=1e-6)
    assert list(compiled.state_dict()) == ["_orig_mod." + k for k in net.state_dict()]
    assert compiled._torchdynamo_compiled


def test_the_attributes_of_a_compiled_module_are_the_module_s():
    def program(t):
        net = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Dropout())
        compiled = t.compile(net)
        net.eval()
        found = [compiled.training, len(compiled), "append" in dir(compiled)]
        compiled.train()
        compiled.scale = 3.0
        compiled.more = t.nn.Linear(2, 1)
        found += [
            net.training,
            net[1].training,
            net.scale,
            [n for n, _ in net.named_children()],
            list(compiled._modules),
        ]
        del compiled.more
        found += [hasattr(net, "more"), list(compiled.state_dict()), repr(compiled)]
        compiled._orig_mod = net[0]  # accelerate's unwrap_model
        return [*found, compiled._orig_mod is net[0], hasattr(net, "_orig_mod"), list(compiled.state_dict())]

    both(program)


def test_wrong_options_are_refused_in_torch_s_words():
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        jtorch.compile(lambda x: x, mode="fast")
    with pytest.raises(RuntimeError, match="Invalid backend"):
        jtorch.compile(lambda x: x, backend="nothing")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        jtorch.compile(lambda x: x, mode="default", options={"a": 1})


def test_report_lists_lines_and_causes():
    jtorch.compile.report(clear=True)
    x = jtorch.ones(3)
    for _ in range(3):
        (x * 3 + 1).sum().item()
    report = jtorch.compile.report()
    rows = [r for r in report.rows if "test_region.py" in r["line"]]
    assert rows and rows[-1]["cause"] == "value needed" and rows[-1]["runs"] >= 2
    assert "flushes" in str(report)


def test_a_module_attribute_changed_between_calls_is_seen():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 2.0

        def forward(self, x):
            return x * self.k

    m = Scaled()
    run = jtorch.compile(lambda x: m(x))
    x = jtorch.ones(2)
    assert [run(x).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    m.k = 7.0
    assert run(x).tolist() == [7.0, 7.0]


TABLE = {}  # a global; it gets its tensors in the test, since what is there before all tests is not gone through (see the conftest)


def test_a_dict_of_tensors_is_guarded_by_what_they_are():
    TABLE.update(scale=jtorch.ones(3), shift=jtorch.ones(3))

    @jtorch.compile
    def line(x):
        return x * TABLE["scale"] + TABLE["shift"]

    x = jtorch.ones(3)
    for _ in range(4):
        assert line(x).tolist() == [2, 2, 2]
    assert len(line._region.replays) == 1  # the same tensors: replayed, not recorded again
    TABLE["scale"] = jtorch.full((3,), 5.0)
    assert line(x).tolist() == [6, 6, 6]


def test_a_module_compiled_in_place_gives_the_plain_numbers():
    net, _ = model()
    expected = [net(x).detach().numpy() for x, _ in batches(3)]
    net.compile(fullgraph=True)
    np.testing.assert_allclose([net(x).detach().numpy() for x, _ in batches(3)], expected, rtol=1e-5, atol=1e-6)
    assert region(net._compiled_call_impl).seen or region(net._compiled_call_impl).replays


@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_learning_rate_that_is_a_tensor_is_an_input_of_the_replay(name, another):
    def weights(compiled):
        net, opt = model(optimizer=name)
        lr = opt.param_groups[0]["lr"] = jtorch.tensor(0.05)
        step = jtorch.compile(make_step(net, opt)) if compiled else make_step(net, opt)
        seen = []
        for k, (x, y) in enumerate(batches(8)):
            step(x, y)
            seen.append(net[0].weight.sum().item())
            lr.mul_(0.5)
            if another and k == 3:
                lr = opt.param_groups[0]["lr"] = jtorch.tensor(0.5)
        return seen, step

    expected, _ = weights(False)
    got, step = weights(True)
    assert np.allclose(got, expected, rtol=1e-5)
    assert region(step).replays


def test_a_value_of_a_vmap_that_is_over_does_not_end_a_region():
    kept = []
    jtorch.func.vmap(lambda x: kept.append(x) or x + 1)(jtorch.ones(3, 2))
    double = jtorch.compile(lambda x: x * 2)
    for _ in range(3):
        assert double(jtorch.ones(2)).tolist() == [2.0, 2.0]
    assert kept


def test_hooks_of_a_compiled_module_are_called():
    model = jtorch.nn.Linear(3, 2)
    compiled, called = jtorch.compile(model), []
    model.register_forward_hook(lambda *_: called.append("inner"))
    handle = compiled.register_forward_hook(lambda module, args, out: out * 0)
    compiled.register_forward_pre_hook(lambda *_: called.append("before"))
    for _ in range(3):
        assert compiled(jtorch.ones(1, 3)).tolist() == [[0.0, 0.0]]
    handle.remove()
    assert compiled(jtorch.ones(1, 3)).tolist() == model(jtorch.ones(1, 3)).tolist()
    assert called == ["before", "inner"] * 4 + ["inner"]


def test_reset_is_for_modules_too():
    layer = jtorch.compile(jtorch.nn.Linear(2, 2))
    with jtorch.no_grad():
        layer(jtorch.ones(1, 2)).sum().item()
    assert layer._region.replays
    jtorch.compiler.reset()
    assert not layer._region.replays


@pytest.mark.parametrize("kind", ["step", "module", "backend"])
def test_what_was_compiled_is_freed_when_it_is_dropped(kind):
    def run():
        layer, x = jtorch.nn.Linear(2, 3), jtorch.ones(4, 2)
        optimizer = jtorch.optim.SGD(layer.parameters(), lr=0.1)
        model = jtorch.compile(layer) if kind == "module" else layer

        def step():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        if kind == "backend":
            function = jtorch.compile(lambda: layer(x).sum(), backend=lambda graph, inputs: graph.forward)
        else:
            function = jtorch.compile(step) if kind == "step" else step
        for _ in range(6):
            function().item()
        return [weakref.ref(kept) for kept in (layer, optimizer, x, step)]

    refs = run()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 4


@pytest.mark.parametrize("nothing", [(), [], {}], ids=repr)
def test_a_result_with_nothing_in_it_stays_one(nothing):
    @jtorch.compile
    def write(x, y):
        y.copy_(x * 2)
        return type(nothing)(nothing)

    y = jtorch.zeros(3)
    assert [write(jtorch.ones(3), y) for _ in range(3)] == [nothing] * 3
    assert region(write).used


def test_numbers_that_are_others_in_other_variants_are_those_of_the_variant():
    def scaled(x, k):
        return (x * k).sin() + k

    compiled = jtorch.compile(scaled)
    x = jtorch.tensor([0.5, -1.0])
    for k in (2, 3, 2, 3, 2.5, 2, 2.5, -0.0, 0.0, -0.0):
        np.testing.assert_allclose(compiled(x, k).numpy(), scaled(x, k).numpy(), rtol=1e-6)
    assert region(compiled).used >= 3


def test_of_many_variants_the_one_that_was_used_longest_ago_makes_room():
    compiled = jtorch.compile(lambda x: x.sin())
    for n in range(1, 30):
        for _ in range(3):
            assert compiled(jtorch.ones(n)).shape == (n,)
    assert len(region(compiled).replays) == 16
    assert region(compiled).used == 29


def test_variants_that_never_come_back_end_in_recording():
    compiled = jtorch.compile(lambda x: x.sin())
    for n in range(1, 30):
        compiled(jtorch.ones(n))
    assert region(compiled).made == 16
