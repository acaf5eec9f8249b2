"""The calls of a profile: their names and shapes against PyTorch's profiler, how they nest, and what they leave behind."""

import json

import pytest

import jtorch
from jtorch.dispatch import override
from tests.oracle import torch


def program(t):
    """One call of each kind: operators, methods, functions of each namespace, factories, indexing, writes."""
    F = t.nn.functional
    x, w, b = t.ones(4, 8), t.ones(3, 8), t.ones(3)
    y = F.relu(F.linear(x, w, b))
    y = F.softmax(y, -1).add(1).mul_(2)
    y = (2 * y - 1) / 3
    y += 1
    y[0] = 0
    y == y  # noqa: B015
    t.linalg.vector_norm(y)
    t.fft.fft(y)
    t.special.i0e(y)
    t.cat([y, y]).view(-1).float()
    F.cross_entropy(y, t.zeros(4, dtype=t.long))
    F.conv2d(t.ones(1, 1, 4, 4), t.ones(1, 1, 2, 2))
    y[0], y[:1], y[t.zeros(1, dtype=t.long)]
    return y.sum().item()


def top(prof):
    return [
        e
        for e in prof.events()
        if e.name.startswith("aten::") and (e.cpu_parent is None or "aten" not in e.cpu_parent.name)
    ]


def calls(t):
    with t.profiler.profile(activities=[t.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        program(t)
    return [(e.name, e.input_shapes) for e in top(prof)]


def test_names_and_shapes():
    mine, its = calls(jtorch), calls(torch)
    # Writing to y[0] is one call here, and a view before it there; indexing with a tensor moves the index to a list there.
    views = (
        "aten::select",
        "aten::slice",
        "aten::lift_fresh",
        "aten::detach_",
        "aten::index",
        "aten::copy_",
        "aten::fill_",
        "aten::to",
    )
    names = lambda found: [n for n, _ in found if n not in views]
    assert names(mine) == names(its)
    assert {"aten::select", "aten::slice", "aten::index", "aten::to"} <= {n for n, _ in mine}
    same = (
        "aten::linear",
        "aten::add_",
        "aten::softmax",
        "aten::cat",
        "aten::conv2d",
        "aten::relu",
        "aten::eq",
        "aten::sub",
    )
    for name in same:
        assert [s for n, s in mine if n == name] == [s for n, s in its if n == name], name


@pytest.fixture(scope="module")
def step():
    """The profile of a training step."""
    model = jtorch.nn.Linear(8, 3)
    opt = jtorch.optim.SGD(model.parameters(), lr=0.1)
    loader = jtorch.utils.data.DataLoader(jtorch.ones(4, 8), batch_size=4)

    def once():
        for x in loader:
            jtorch.relu(model(x)).sum().backward()
        opt.step()
        opt.zero_grad()

    for _ in range(3):  # then it is XLA's
        once()
        jtorch.synchronize()
    with jtorch.profiler.profile(record_shapes=True, with_stack=True) as prof:
        once()
    return prof


def test_a_step(step):
    found = {e.key: e for e in step.key_averages()}
    for name in ("aten::linear", "aten::relu", "ReluBackward0", "autograd::engine::evaluate_function: AddmmBackward0",
                 "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad", "jtorch::flush"):  # fmt: skip
        assert found[name].count == 1 and found[name].cpu_time_total >= found[name].self_cpu_time_total > 0, name
    assert found["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"].count == 2
    node = next(e for e in step.events() if e.name == "ReluBackward0")
    assert (
        node.cpu_parent.name == "autograd::engine::evaluate_function: ReluBackward0"
        and node in node.cpu_parent.cpu_children
    )
    # a difference of times since the start
    assert node.time_range.elapsed_us() == pytest.approx(node.cpu_time_total, abs=1e-3)
    assert found["aten::relu"].cpu_time_total_str.endswith(("us", "ms")) and found["aten::relu"].device_time_total == 0


def test_groups_and_order(step):
    by_shape = step.key_averages(group_by_input_shape=True)
    assert [[4, 8], [3, 8], [3]] in [e.input_shapes for e in by_shape if e.key == "aten::linear"]
    for key in ("cpu_time_total", "self_cpu_time_total", "cpu_time", "count", "self_cuda_time_total"):
        assert "aten::linear" in by_shape.table(sort_by=key)
    with pytest.raises(AttributeError):
        by_shape.table(sort_by="name_of_nothing")
    assert "Input Shapes" in by_shape.table() and "[[4, 8], [3, 8], [3]]" in by_shape.table()
    by_stack = step.key_averages(group_by_stack_n=1)
    assert "Source Location" in by_stack.table(max_src_column_width=300) and "test_calls.py" in by_stack.table(
        max_src_column_width=300
    )


def test_traces(step, tmp_path):
    step.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    [relu] = [e for e in events if e.get("name") == "aten::relu"]
    assert (
        relu["cat"] == "cpu_op"
        and relu["args"]["Input Dims"] == [[4, 3]]
        and "test_calls.py" in relu["args"]["Call stack"]
    )
    kernels = [e for e in events if "hlo_op" in e.get("args", {})]
    assert any(0 <= e["ts"] - relu["ts"] < 60e6 for e in kernels), "calls and kernels are not on one clock"
    step.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert "test_calls.py" in (tmp_path / "stacks").read_text()
    with pytest.raises(ValueError, match="metric should be one of"):
        step.export_stacks(str(tmp_path / "stacks"), "name")


def test_eager_mode_times_the_run():
    x = jtorch.ones(700, 700)
    with jtorch.execution_mode("eager"):
        x @ x
        with jtorch.autograd.profiler.profile(record_shapes=True) as prof:
            x @ x
    with jtorch.autograd.profiler.profile() as recorded:
        x @ x
    ran, noted = (next(e for e in p.function_events if e.name == "aten::matmul") for p in (prof, recorded))
    assert ran.cpu_time_total > 3 * noted.cpu_time_total and ran.input_shapes == [[700, 700], [700, 700]]


def test_nothing_is_left_behind():
    before = jtorch.nn.functional.relu.__code__
    with jtorch.profiler.profile():
        assert jtorch.nn.functional.relu.__code__ is not before
    assert jtorch.nn.functional.relu.__code__ is before and not override.WATCH and not override.STATE.modes
    assert "profile" not in jtorch.core.record.tls.me.extra
