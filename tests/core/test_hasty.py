"""core/hasty.py: what is compiled in haste first gives the same numbers, and only for so many runs."""

import types

import jax
import numpy as np
import pytest

import jtorch
from jtorch.core import by_numpy, costs, gpu, hasty, little, program, sight

LIMIT = costs.AT_MOST_OFTEN + 8  # more runs than a small program makes in haste
pytestmark = pytest.mark.usefixtures("own_programs")


@pytest.fixture
def made(monkeypatch):
    """The programs that were made in haste: those that numpy does not run."""
    monkeypatch.setattr(by_numpy, "FEW", -1)
    programs = []
    usual = hasty.of_program
    monkeypatch.setattr(hasty, "of_program", lambda prog: programs.append(prog) or usual(prog))
    return programs


def chain(x):
    for _ in range(3):
        x = (x.sin() + 1).softmax(-1).cumsum(0).exp().sqrt().tanh()
    return x


def test_the_same_numbers_then_everything_on(made, monkeypatch):
    monkeypatch.setattr(little, "ENOUGH", -1)
    x = jtorch.linspace(-2, 2, 12).reshape(3, 4)
    jtorch.synchronize()
    made.clear()
    found = [chain(x).numpy() for _ in range(LIMIT)]
    for value in found[1:]:
        np.testing.assert_allclose(found[0], value, rtol=2e-6)
    assert len(made) == 1
    assert made[0].settled


def test_runs_in_the_place_of_another_program_do_not_count_when_that_has_its_own(made, monkeypatch):
    """A loop's last step, whose gradients stay, is none of many: it is not compiled with everything on for one run."""
    full, usual = [], hasty.in_full
    monkeypatch.setattr(hasty, "in_full", lambda prog: full.append(prog) or usual(prog))
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 8)
    monkeypatch.setattr(program, "LATE", 1000)
    nn = jtorch.nn
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 3), nn.Sigmoid(), nn.Softmax(1))
    optimizer = jtorch.optim.Adam(model.parameters())
    inputs = jtorch.linspace(-1, 1, 24).view(4, 6)
    for _ in range(14):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
    loss.item()
    assert made and len(full) == 1


def test_how_many_runs_depends_on_the_bytes(made):
    runs = {}
    for n in (4, 1 << 18):
        x = jtorch.ones(n)
        for runs[n] in range(LIMIT):
            (x.sin().cos().tan().exp().sqrt().tanh().sigmoid() * 2).sum().item()
            if made and made[-1].settled:
                break
        made.clear()
    assert runs[1 << 18] < runs[4] < LIMIT


def test_large_programs_are_compiled_with_everything_on(made, monkeypatch):
    monkeypatch.setattr(hasty, "SMALL", 1)
    chain(jtorch.ones(1 << 20)[None]).numpy()
    assert not made
    chain(jtorch.ones(3, 4)).numpy()
    assert made, "what it computes is little beside what it is made of"


def test_regions_are_compiled_with_everything_on(made):
    x = jtorch.ones(3, 5)
    jtorch.synchronize()
    made.clear()
    compiled = jtorch.compile(chain)
    found = compiled(x).numpy()
    assert not made, compiled._region.why
    np.testing.assert_allclose(found, chain(x).numpy(), rtol=2e-6)


def test_inside_somebodys_jit():
    @jax.jit
    def f(a):
        constant = jtorch.arange(7) * 2  # nothing of it depends on `a`: run by itself while `f` is traced
        return a + constant.float().sum().numpy()

    assert f(1.0) == 43.0


def test_an_operation_by_itself_changes_its_executable_once():
    x = jtorch.linspace(0, 1, 5)
    with jtorch.execution_mode("auto"):
        for k in range(hasty.ENOUGH_BY_OP + 2):
            y = x.erfinv() if k % 2 else x.erfinv().neg()
            assert np.isfinite(y[:-1].numpy()).all()


def test_what_has_few_loops_of_a_kind_is_told_to_the_compiler(monkeypatch):
    """And a program that is made so runs inside somebody's jit too, where no options can be given."""
    monkeypatch.setattr(hasty, "MANY", 4)
    monkeypatch.setattr(hasty, "_EACH_LOOP", {"xla_backend_optimization_level": 1})  # its own is not in every XLA
    told = {}
    for name, f in {"unalike": lambda x: x.sin().cos().tan().sum(), "alike": chain}.items():
        x = jtorch.ones(3, 6)
        jtorch.synchronize()
        graph = f(x)._storage.value.graph
        state, dead = graph.state, (False,) * len(graph.inputs)
        prog = program.Program(state.nodes(), (False,) * (state.count - 1) + (True,), dead, graph.device)
        told[name] = hasty.options(prog)
        args = prog.arguments(graph.inputs, graph.numbers)
        inside = jax.jit(lambda *a, call=hasty.in_full(prog): call(*a))(*args)
        np.testing.assert_allclose(inside[0], f(x).numpy(), rtol=2e-6)
    each = hasty._EACH_LOOP.items()
    assert not each <= (told["alike"] or {}).items()
    assert each <= told["unalike"].items()


@pytest.mark.parametrize("name, told", [("cuda", gpu.options([])), ("tpu", None)])
def test_what_the_compilers_of_accelerators_are_told(name, told):
    assert hasty.options(types.SimpleNamespace(device=types.SimpleNamespace(type=name), nodes=[])) == told


@pytest.mark.parametrize("of_gpu", [True, False])
def test_an_operation_by_itself_is_told_the_same(of_gpu, monkeypatch):
    """On a GPU, when it has run some times too; within somebody's jit it is the usual one."""
    told = []
    monkeypatch.setattr(hasty, "SMALL_BY_OP", 0)  # the CPU's makes small ones in haste
    monkeypatch.setattr(hasty, "_of_accelerator", lambda *_: {"xla_cpu_enable_fast_math": False} if of_gpu else None)
    usual = hasty._under
    monkeypatch.setattr(hasty, "_under", lambda given, *a, **k: told.append(given) or usual(given, *a, **k))
    rows = 3 + of_gpu  # a plan of its own
    x = jtorch.ones(rows, 4)
    plan = (x @ x.T)._storage.value.graph.state.nodes()[-1].plan
    hasty.of_plan(plan)
    assert ({"xla_cpu_enable_fast_math": False} in told) == of_gpu == (plan.alone is not None)
    array = np.ones((rows, 4), np.float32)
    runs = plan.alone or plan.jit
    np.testing.assert_array_equal(runs(array, array.T), array @ array.T)
    np.testing.assert_array_equal(jax.jit(runs)(array, array.T), array @ array.T)


def test_options_that_xla_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"--{hasty._OF_LIBRARY}=LIBRARY_FUSION_TYPE_REDUCE")
    assert hasty.library() == {}, "the user has said it"
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(hasty, "_OF_LIBRARY", "xla_no_such_option")
    assert hasty.library() == {}
    assert hasty.known({"xla_backend_optimization_level": 0, "xla_no_such_option": True}) == {
        "xla_backend_optimization_level": 0
    }


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_each_operation_rounds(dtype, monkeypatch):
    """In the program that is made in haste, and in the one that stays; numpy's exponentials are others."""
    monkeypatch.setattr(sight, "numpys", lambda prog, cause: None)
    seen = set()
    for _ in range(LIMIT):
        x = jtorch.tensor([0.3, 0.7, -1.9], dtype=getattr(jtorch, dtype))
        y = (x.atan() * x + x.exp() * 0.7 - x.cos()).sigmoid() * x.tan() - x.sin() * x.tanh() / x.abs().sqrt()
        seen.add(tuple(y.float().tolist()))
    with jtorch.execution_mode("eager"):
        x = jtorch.tensor([0.3, 0.7, -1.9], dtype=getattr(jtorch, dtype))
        y = (x.atan() * x + x.exp() * 0.7 - x.cos()).sigmoid() * x.tan() - x.sin() * x.tanh() / x.abs().sqrt()
        seen.add(tuple(y.float().tolist()))
    assert len(seen) == 1
