"""torch.__future__: what `Module.to` and `load_state_dict` do to parameters, in both packages."""

import copy
import weakref

import pytest

import jtorch
import jtorch.__future__
from tests.oracle import torch


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
