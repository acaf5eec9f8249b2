"""torch.__future__: what `Module.to` and `load_state_dict` do to parameters, in both packages."""

import copy
import weakref

import pytest

import jtorch
import jtorch.__future__
from tests.oracle import both, torch


def observed(t, setting, change):
    """Which objects stay, what they are and hold, after a change of a module under a setting."""
    future = t.__future__
    switch = getattr(future, f"set_{setting}_module_params_on_conversion")
    net = t.nn.Linear(2, 2, bias=False)
    net.weight.data = t.ones(2, 2)
    net.weight.requires_grad_(False) if change == "frozen" else net(t.ones(1, 2)).sum().backward()
    given = {"weight": t.full((2, 2), 3.0)}
    param, data, grad = net.weight, net.weight.data, net.weight.grad
    assert getattr(future, f"get_{setting}_module_params_on_conversion")() is False
    switch(True)
    try:
        if change == "load":
            net.load_state_dict(given)
        elif change == "assign":
            net.load_state_dict(given, assign=True)
        else:
            net.to(t.float64)
    finally:
        switch(False)
    now = net.weight
    return (
        now is param, type(now).__name__, str(now.dtype).rpartition(".")[2], now.tolist(), now.requires_grad, now.is_leaf,
        now.grad is None or str(now.grad.dtype).rpartition(".")[2], now.grad is grad, data.tolist(), given["weight"] is now,
        given["weight"].tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("setting", ["swap", "overwrite"])
@pytest.mark.parametrize("change", ["to", "frozen", "load", "assign"])
def test_as_pytorch(setting, change):
    assert observed(jtorch, setting, change) == observed(torch, setting, change)


def test_what_cannot_be_swapped():
    net = jtorch.nn.Linear(2, 2)
    ref = weakref.ref(net.weight)
    jtorch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
            net.double()
        with pytest.raises(RuntimeError, match="has weakref"):
            net.load_state_dict(copy.deepcopy(net.state_dict()))
    finally:
        jtorch.__future__.set_swap_module_params_on_conversion(False)
    assert ref() is net.weight and net.weight.dtype is jtorch.float32


TO = {
    "a flag in the place of a dtype": (("cpu", True), {}),
    "a flag after nothing": ((None, True), {}),
    "a device twice": (("cpu",), {"device": "cpu"}),
    "a dtype, then a device": ((), {}),
    "a list": (([],), {}),
    "a tensor that is second": (("cpu", [1]), {"non_blocking": True}),
    "a name that is none": ((), {"foo": 1}),
    "a format that is none": ((), {"memory_format": 5}),
    "a flag that is none": ((), {"non_blocking": None}),
    "no tensor": ((), {"tensor": None}),
    "five": (("cpu", None, True, True, 1), {}),
    "a copy": (("cpu", None, True, False), {}),
}


@pytest.mark.parametrize("name", TO)
def test_arguments_of_to(name):
    args, named = TO[name]
    both(lambda t: t.nn.Linear(1, 1).to(*args, **named).weight.shape)


@pytest.mark.parametrize(
    "args", [lambda t: (t.float16, "cpu"), lambda t: (t.ones(1), t.float16), lambda t: (t.float16, None)]
)
def test_to_of_two_kinds(args):
    assert both(lambda t: t.nn.Linear(1, 1).to(*args(t))).error is not None


def test_another_layout():
    """A tensor of another layout comes in the place of the parameter; it cannot be its data."""

    def program(t):
        layer = t.nn.Linear(4, 3)
        weight, layer.weight.grad = layer.weight, t.ones(3, 4)
        layer._apply(lambda x: x.to_sparse())
        seen = [layer.weight is weight, isinstance(layer.weight, t.nn.Parameter), weight.layout is t.strided]
        seen += [str(x.layout)[-10:] for x in (layer.weight, layer.weight.grad, layer.bias)]
        return seen, layer.weight.to_dense().shape, weight.data.shape

    both(program)


def test_data_of_another_layout():
    def program(t):
        t.ones(2, 2).data = t.ones(2, 2).to_sparse()

    assert both(program).error is not None
