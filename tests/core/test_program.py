"""Programs: what is needed of a graph, what is donated, how run-time numbers travel."""

import numpy as np

import jtorch
from jtorch.core import device, dtype, ledger, nodewise, paths, program
from jtorch.core.packing import RUNTIME
from jtorch.core.program import Plan
from jtorch.core.spec import Spec

F32 = Spec.dense((3,), dtype.float32, device.cpu)


def plan(fn, n_in=1, n_num=0, n_out=1):
    return Plan(None, fn.__name__, fn, (F32,) * n_in, (float,) * n_num, specs=(F32,) * n_out)


def double(x):
    return x * 2


def total(x, y):
    return x + y


def split(x):
    return x + 1, x - 1


def scaled(x, k):
    return x * k


DOUBLE, TOTAL, SPLIT, SCALED = plan(double), plan(total, 2), plan(split, n_out=2), plan(scaled, n_num=1)


def path(*steps):
    """A state after (plan, ids[, numbers]) steps."""
    state = paths.State(None, None, (), ())
    for made, ids, *numbers in steps:
        state = paths.State(state, made, ids, numbers[0] if numbers else ())
    return state


def test_only_what_the_results_need_is_run():
    state = path((DOUBLE, (-1,)), (DOUBLE, (-2,)), (TOTAL, (0, 0)))
    prog = program.Program(state.nodes(), (False, False, True), (False, False), device.cpu)
    assert [n.plan for n in prog.nodes] == [DOUBLE, TOTAL]
    assert prog.used == [0] and not prog.all_used


def test_one_of_several_results():
    state = path((SPLIT, (-1,)), (DOUBLE, (1,)))
    x = np.arange(3, dtype=np.float32)
    [got] = nodewise.run_nodes(state.nodes(), [x], [], (2,))
    np.testing.assert_array_equal(got, (x - 1) * 2)


def test_a_dead_input_of_the_right_shape_is_donated():
    state = path((DOUBLE, (-1,)), (TOTAL, (0, -2)))
    assert program.Program(state.nodes(), (False, True), (True, False), device.cpu).donate == (0,)
    assert program.Program(state.nodes(), (False, True), (True, True), device.cpu).donate == (1,), (
        "one result, one donation"
    )
    assert program.Program(state.nodes(), (False, True), (False, False), device.cpu).donate == ()


def test_a_new_value_takes_the_memory_of_the_old_one():
    # two parameters and their gradients, all of one shape, all among the results
    update = Plan(None, "update", lambda p, q, g, h: (p - g, q - h), (F32,) * 4, specs=(F32, F32))
    state = path((TOTAL, (-2, -3)), (DOUBLE, (-1,)), (update, (-2, -1, 0, 1)))
    prog = program.Program(state.nodes(), (True,) * 4, (True, True, False), device.cpu)
    assert (prog.donate, prog.out) == ((0, 1), (3, 2, 0, 1)), "the second operand, input 0, has the second result"


def test_training_keeps_parameters_in_place():
    layers = jtorch.nn.Sequential(jtorch.nn.Linear(64, 64), jtorch.nn.ReLU(), jtorch.nn.Linear(64, 64))
    params = list(layers.parameters())
    optimizer = jtorch.optim.SGD(params, lr=0.1, momentum=0.9)
    places = []
    for _ in range(6):
        optimizer.zero_grad()
        layers(jtorch.ones(4, 64)).square().mean().backward()
        optimizer.step()
        places.append([p.__jax_array__().unsafe_buffer_pointer() for p in params])
        assert all(p.grad is not None for p in params)
    assert places[-1] == places[-2] == places[-3]


def test_compiled_equals_run_by_op():
    state = path((SPLIT, (-1,)), (SCALED, (1,), RUNTIME), (TOTAL, (2, 0)), (SCALED, (3,), (0.5,)))
    prog = program.Program(state.nodes(), (True, False, False, False, True), (False,), device.cpu)
    x = np.arange(3, dtype=np.float32)
    by_op = nodewise.run_nodes(prog.nodes, [x], [(3.0,)], prog.out, prog)
    prog.compile()
    fused = prog.call(x, *prog.pack.pack([(3.0,)]))
    for a, b in zip(by_op, fused, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(fused[1], ((x - 1) * 3 + x + 1) * 0.5)


def test_a_program_with_more_results_runs_for_one_with_fewer(own_programs):
    """Steps whose loss nobody reads run the program of one whose loss was read, until that would be compiled once more."""

    def train(reads, steps):
        jtorch.manual_seed(0)
        net = jtorch.nn.Sequential(
            jtorch.nn.Linear(4, 8), jtorch.nn.LayerNorm(8), jtorch.nn.ReLU(), jtorch.nn.Linear(8, 3)
        )
        optimizer = jtorch.optim.Adam(net.parameters(), lr=0.01)
        x, y = jtorch.ones(5, 4), jtorch.arange(5) % 3
        jtorch.synchronize()
        before, losses = ledger.counters.compiles, {}
        for k in range(steps):
            loss = jtorch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if k in reads:
                losses[k] = loss.item()
        jtorch.synchronize()
        return ledger.counters.compiles - before, losses

    count, few = train({0}, 6)
    assert count == 1
    _, all_ = train(range(30), 30)
    more, some = train({0, 7, 29}, 30)
    assert more <= 2
    for losses in (few, some):
        np.testing.assert_allclose([losses[k] for k in losses], [all_[k] for k in losses], rtol=1e-5)
