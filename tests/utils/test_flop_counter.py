"""Flop counts: PyTorch's own, forward and backward, by op and by module."""

import importlib

import pytest

import jtorch
from jtorch.func import by_lanes
from tests.oracle import torch


def r(lib, *shape, grad=True):
    return lib.ones(shape, requires_grad=grad)


def nested(lib):
    nn = lib.nn
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1, bias=False))
    return nn.Sequential(nn.Linear(3, 4), inner)(lib.ones(5, 3)).sum()


F = lambda lib: lib.nn.functional
CASES = {
    "linear": lambda m: F(m).linear(r(m, 4, 5, 3), r(m, 7, 3), r(m, 7)),
    "linear without bias": lambda m: F(m).linear(r(m, 4, 5, 3), r(m, 7, 3)),
    "linear of data": lambda m: F(m).linear(m.ones(5, 3), r(m, 7, 3), r(m, 7)),
    "vector": lambda m: r(m, 4, 3) @ r(m, 3),
    "mm": lambda m: m.mm(r(m, 4, 3), r(m, 3, 2, grad=False)),
    "addmm": lambda m: m.addmm(r(m, 2), r(m, 4, 3, grad=False), r(m, 3, 2)),
    "matmul": lambda m: r(m, 2, 4, 3) @ r(m, 2, 3, 5),
    "matmul of rows": lambda m: r(m, 2, 4, 3) @ r(m, 3, 5),
    "matmul of columns": lambda m: r(m, 4, 3) @ r(m, 2, 3, 5),
    "matmul broadcast": lambda m: r(m, 2, 1, 4, 3) @ r(m, 3, 3, 5, grad=False),
    "bmm": lambda m: m.bmm(r(m, 2, 4, 3), r(m, 2, 3, 5)),
    "baddbmm": lambda m: m.baddbmm(r(m, 2, 3, 5), r(m, 2, 3, 4), r(m, 2, 4, 5)),
    "addbmm": lambda m: m.addbmm(r(m, 3, 5), r(m, 2, 3, 4), r(m, 2, 4, 5)),
    "conv1d": lambda m: F(m).conv1d(r(m, 2, 4, 8), r(m, 6, 4, 3), r(m, 6)),
    "conv2d in groups": lambda m: F(m).conv2d(r(m, 2, 4, 8, 8), r(m, 6, 2, 3, 3), groups=2, stride=2, padding=1),
    "conv2d of data": lambda m: F(m).conv2d(m.ones(2, 4, 8, 8), r(m, 6, 4, 3, 3), r(m, 6)),
    "conv_transpose2d": lambda m: F(m).conv_transpose2d(r(m, 2, 4, 5, 5), r(m, 4, 3, 3, 3), groups=2, stride=2),
    "attention": lambda m: F(m).scaled_dot_product_attention(r(m, 4, 8, 6), r(m, 4, 7, 6), r(m, 4, 7, 5)),
    "attention dropout": lambda m: F(m).scaled_dot_product_attention(
        *[r(m, 2, 4, 8, 6)] * 2, r(m, 2, 4, 8, 6, grad=False), dropout_p=0.1
    ),
    "einsum": lambda m: m.einsum("bij,bjk->bik", r(m, 2, 3, 4), r(m, 2, 4, 5)),
    "einsum of three": lambda m: m.einsum("bij,bjk,kl->bil", r(m, 2, 3, 4), r(m, 2, 4, 5), r(m, 5, 6, grad=False)),
    "einsum over the batch": lambda m: m.einsum("...ij,...jk", r(m, 2, 3, 4), r(m, 2, 4, 5)),
    "einsum outer": lambda m: m.einsum("i,j->ij", r(m, 2), r(m, 3)),
    "tensordot": lambda m: m.tensordot(r(m, 2, 3, 4), r(m, 4, 3, 5), ([1, 2], [1, 0])),
    "multi_dot": lambda m: m.linalg.multi_dot([r(m, 3, 4), r(m, 4, 5), r(m, 5, 6)]),
    "gru": lambda m: m.nn.GRU(3, 4)(r(m, 2, 1, 3))[0],
    "rnn": lambda m: m.nn.RNN(3, 4)(m.ones(2, 1, 3))[0],
    "lstm cell": lambda m: m.nn.LSTMCell(3, 4)(r(m, 2, 3))[0],
    "gru cell": lambda m: m.nn.GRUCell(3, 4)(r(m, 2, 3)),
    "modules": nested,
}


def module(lib):
    return importlib.import_module(f"{lib.__name__}.utils.flop_counter")


def counts(lib, case):
    """{module: {operator: flops}} of the forward pass, then of the backward pass."""
    counter = module(lib).FlopCounterMode(display=False)
    found = []
    with counter:
        out = case(lib)
    found.append(counter.get_flop_counts())
    with counter:
        out.sum().backward()
    found.append(counter.get_flop_counts())
    return [{name: {str(op): n for op, n in ops.items()} for name, ops in one.items()} for one in found]


@pytest.mark.parametrize("name", CASES)
def test_counts_are_torchs(name):
    assert counts(jtorch, CASES[name]) == counts(torch, CASES[name])


FORWARD = {
    **{f"matrix_power {n}": lambda m, n=n: m.matrix_power(m.eye(3), n) for n in (0, 1, 2, 3, 4, 5, 7, 8)},
    "batch of powers": lambda m: m.matrix_power(m.ones(2, 3, 3), 5),
    "vmap of mm": lambda m: m.vmap(m.mm)(m.ones(2, 3, 4), m.ones(2, 4, 5)),
    "vmap of vmap": lambda m: m.vmap(m.vmap(m.mm))(m.ones(6, 2, 3, 4), m.ones(6, 2, 4, 5)),
    "vmap of gradients": lambda m: m.vmap(m.func.grad(lambda a: (a @ a).sum()))(m.ones(2, 3, 3)),
    "vmap of a layer": lambda m: m.vmap(m.nn.Linear(3, 4))(m.ones(2, 5, 3)),
}


@pytest.mark.parametrize("name", FORWARD)
def test_totals_are_torchs(name):
    got = []
    for lib in (jtorch, torch):
        with module(lib).FlopCounterMode(display=False) as counter:
            FORWARD[name](lib)
        got.append(counter.get_total_flops())
    assert got[0] == got[1]


def test_totals_of_a_vmap_that_is_traced(monkeypatch):
    """As those of functions are that cannot go by lanes; its tensors have no hooks either."""
    grads = importlib.import_module("jtorch.func").grad(lambda x: x.square().sum())
    grads(jtorch.ones(2))  # what looks at hooks is loaded
    monkeypatch.setattr(by_lanes, "possible", lambda *_: False)
    test_totals_are_torchs("vmap of a layer")


def test_counts_of_one_pass_by_module():
    got = {}
    for lib in (jtorch, torch):
        with module(lib).FlopCounterMode(display=False) as counter:
            nested(lib).backward()
        got[lib] = {name: {str(op): n for op, n in ops.items()} for name, ops in counter.get_flop_counts().items()}
        total = counter.get_total_flops()
        assert total == sum(got[lib]["Global"].values())
    assert got[jtorch] == got[torch]


def test_fused_attention_counts_as_its_products():
    q = jtorch.ones(2, 4, 8, 16, requires_grad=True)
    with jtorch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        jtorch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    one = 2 * 2 * 4 * 8 * 8 * 16
    assert counter.get_flop_counts()["Global"] == {jtorch.ops.aten.bmm: 2 * one + 4 * one}


TABLE = """\
Module            FLOP    % Total
--------------  ------  ---------
Sequential         840    100.00%
 - aten.addmm      280     33.33%
 - aten.mm         560     66.67%
 Sequential.0      240     28.57%
  - aten.addmm     120     14.29%
  - aten.mm        120     14.29%
 Sequential.1      600     71.43%
  - aten.addmm     160     19.05%
  - aten.mm        440     52.38%"""


def test_table(capsys):
    with jtorch.utils.flop_counter.FlopCounterMode() as counter:
        nested(jtorch).backward()
    assert capsys.readouterr().out == TABLE + "\n"
    assert counter.get_table(depth=1).splitlines()[-1].startswith(" - aten.mm ")
    with jtorch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        pass
    assert counter.get_table().splitlines()[-1].split() == ["Global", "0", "0%"]


def test_formula_of_ones_own():
    flop_counter = jtorch.utils.flop_counter

    @jtorch.library.custom_op("flops_test::twice", mutates_args=())
    def twice(x: jtorch.Tensor) -> jtorch.Tensor:
        return x * 2

    packet = jtorch.ops.flops_test.twice
    try:
        flop_counter.register_flop_formula(packet)(lambda x, out_shape=None, **_: 7 * x[0] + out_shape[1])
        with flop_counter.FlopCounterMode(display=False) as counter:
            twice(jtorch.ones(2, 3))
        assert counter.get_flop_counts() == {"Global": {packet: 17}}
        with pytest.raises(RuntimeError, match="duplicate registrations for flops_test.twice"):
            flop_counter.register_flop_formula([packet])(lambda x: 1)
        with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
            flop_counter.register_flop_formula(jtorch.mm)(lambda x: 1)
    finally:
        flop_counter.flop_registry.pop(packet, None)
    mapping = {jtorch.ops.aten.mm: lambda *shapes, out_shape: 1000}
    with flop_counter.FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        jtorch.ones(2, 3) @ jtorch.ones(3, 4)
    assert counter.get_total_flops() == 1000


def test_module_tracker():
    tracker, seen = jtorch.utils.module_tracker.ModuleTracker(), []

    class Net(jtorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = jtorch.nn.Linear(2, 2)

        def forward(self, x):
            seen.append((set(tracker.parents), tracker.is_bw))
            out = self.layer(x).relu()
            out.register_hook(lambda g: seen.append((set(tracker.parents), tracker.is_bw)))
            return out * 2

    with tracker:
        Net()(jtorch.ones(1, 2)).sum().backward()
    assert seen == [({"Global", "Net"}, False), ({"Global", "Net"}, True)]
    assert tracker.parents == {"Global"} and not tracker.is_bw
