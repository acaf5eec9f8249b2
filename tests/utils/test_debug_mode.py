"""utils/_debug_mode.py: what runs, line by line."""

import importlib

import pytest

import jtorch
from jtorch.utils._debug_mode import DebugMode, get_active_debug_mode
from jtorch.utils._debug_mode import _OpCall as OpCall

torch = pytest.importorskip("torch")


def steps(lib, x):
    y = (x * 2 + 1).relu()
    lib.cat([y, y], dim=1)
    return y.double().sum(0)


@pytest.mark.parametrize("options", [{}, {"record_output": False}, {"record_ids": True}], ids=str)
def test_lines_are_those_of_pytorch(options):
    def lines(lib, mode):
        x = lib.ones(2, 3)
        with mode(**options) as debug:
            steps(lib, x)
        # how a sum's dimension is passed on, and where an output of dtype is named, follow the op table here
        return [line for line in debug.debug_string().splitlines() if "sum" not in line]

    theirs = importlib.import_module("torch.utils._debug_mode").DebugMode
    assert lines(jtorch, DebugMode) == lines(torch, theirs)


def test_functions_modules_and_places():
    x = jtorch.ones(2, 3)
    net = jtorch.nn.Sequential(jtorch.nn.Linear(3, 3), jtorch.nn.ReLU())
    with DebugMode(record_nn_module=True, record_torchfunction=True, record_stack_trace=True) as debug:
        assert get_active_debug_mode() is debug
        net(x)
    assert get_active_debug_mode() is None
    kinds = [line.strip().partition("(")[0] for line in debug.debug_string(show_stack_trace=False).splitlines()]
    assert kinds == [
        "[nn.Mod] Sequential", "[nn.Mod] Sequential.0", "jtorch.linear", "aten::t", "aten::addmm",
        "[nn.Mod] Sequential.1", "jtorch.relu", "aten::relu",
    ]  # fmt: skip
    depths = [call.call_depth for call in debug.operators]
    assert depths == [1, 2, 3, 4, 4, 2, 3, 4]
    assert "test_debug_mode.py" in debug.debug_string() and "net(x)" in debug.debug_string()


def test_what_is_kept():
    x = jtorch.ones(2)
    with DebugMode(store_original_args=True, record_tensor_attributes=["requires_grad"]) as debug:
        with DebugMode.record_outputs(), DebugMode.log_tensor_hashes():
            y = x + 1
        y.add_(1)
    first, second = debug.operators
    assert isinstance(first, OpCall) and first.args[0] is x and list(first)[0] is first.op
    assert first.record["output"].tolist() == [2, 2] and first.record["hash"] == 4.0
    assert first.render().endswith("  # {'hash': 4.0}") and second.record is None
    assert "t: f32[2], requires_grad=False" in repr(second)
    debug.reset()
    assert debug.operators == [] and debug.debug_string() == ""
    with DebugMode(record_realtensor=False) as debug:
        x + 1
    assert debug.logs == []
