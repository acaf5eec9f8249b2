"""torch.masked.MaskedTensor against PyTorch's: what each function shows, its masks, gradients and refusals."""

import pytest

import jtorch
from tests import oracle

torch = oracle.torch
pytestmark = pytest.mark.filterwarnings(
    "ignore:The PyTorch API of MaskedTensors", "ignore:It is not recommended", "ignore:.*is not implemented"
)

ELEMENTWISE = [
    "x + 1", "1 + x", "x * 2.5", "x / y", "x - y", "x ** 2", "-x", "abs(x - 3)", "x.exp()", "t.sin(x)", "x.clamp(1, 3)", "x < 3", "x >= y", "x == y",
    "t.maximum(x, y)", "t.atan2(x, y)", "x.sqrt().log1p()", "x.round(decimals=0) if False else t.round(x)", "t.where(x.get_data() > 2, x, y)",
    "x + d", "x.to(t.float64)", "x.clone()", "x.detach()", "(x < 3).bitwise_not()", "t.softmax(x, 1)", "t.ones_like(x)",
]  # fmt: skip
SHAPES = [
    "x[0]", "x[:, 1:]", "x.t()", "x.transpose(0, 1)", "x.view(3, 2)", "x.unsqueeze(0)", "t.cat([x, y], 1)", "t.stack([x, y])", "x.select(1, 2)",
    "x[None].expand(2, 2, 3)", "x.split(1)", "x.contiguous()",
]  # fmt: skip
REDUCTIONS = [f"x.{n}({a})" for n in ("sum", "mean", "amin", "amax", "prod", "argmin", "argmax") for a in ("", "1", "0, True")] + [
    "x.var(1)", "t.std(x, 0)", "(x < 3).all()", "(x < 3).all(1)", "t.sum(x, dim=1, keepdim=True)", "x.sum(dim=(0, 1))",
]  # fmt: skip
FACTS = [
    "x.shape, x.dtype, x.dim(), x.size(1), x.numel(), x.requires_grad, x.is_leaf, x.is_contiguous(), x.is_sparse, x.is_sparse_coo()",
    "x.to_tensor(-1).tolist(), x.get_data().tolist(), x.get_mask().tolist(), t.masked.is_masked_tensor(x), t.masked.is_masked_tensor(d)",
    "x._masked_data.tolist(), x._masked_mask.tolist(), x._masked_data[1, 2].item()",
    "x.sum().item(), x[0, 0].item()", "type(x).__name__, isinstance(x, t.Tensor), isinstance(x + 1, t.masked.MaskedTensor)",
]  # fmt: skip
REFUSED = [
    "x + t.masked.masked_tensor(d, ~m)", "x @ y.t()", "t.masked.masked_tensor(d, d)", "t.masked.masked_tensor(d, m[0])",
    "t.masked.masked_tensor(x, m)", "t.masked.masked_tensor(3, m)", "x[1, 1].item()", "t.masked.masked_tensor(d.to(t.complex64), m)", "x.cumsum(0)",
]  # fmt: skip


def scope(t):
    d = t.tensor([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]])
    m = t.tensor([[True, False, True], [False, False, False]])
    return {"t": t, "d": d, "m": m, "x": t.masked.masked_tensor(d, m), "y": t.masked.masked_tensor(d + 1, m)}


@pytest.mark.parametrize("call", ELEMENTWISE + SHAPES + REDUCTIONS + FACTS)
def test_as_pytorch(call):
    assert str(eval(call, scope(jtorch))).replace("jtorch", "torch") == str(eval(call, scope(torch)))


@pytest.mark.parametrize("call", REFUSED)
def test_refused(call):
    with pytest.raises((TypeError, ValueError)) as its:
        eval(call, scope(torch))
    with pytest.raises(its.type) as mine:
        eval(call, scope(jtorch))
    if "Multiple dispatch" not in str(its.value):  # that says which of PyTorch's internal operators it was
        assert str(mine.value) == str(its.value)


@pytest.mark.parametrize(
    "call", ["(x * x).sum()", "x.exp().mean(1)[:1].sum()", "(x / 2).prod()", "x.amax(1)[0]", "x.sqrt().amin()"]
)
def test_gradients(call):
    """Gradients are masked as the data are; to a plain tensor they come as zeros there."""
    shown = []
    for t in (jtorch, torch):
        names = scope(t)
        names["x"] = t.masked.masked_tensor(names["d"], names["m"], requires_grad=True)
        eval(call, names).backward()
        shown.append(str(names["x"].grad))
    assert shown[0] == shown[1]
    names = scope(jtorch)
    names["d"].requires_grad_()
    names["x"] = jtorch.masked.as_masked_tensor(names["d"], names["m"])
    eval(call, names).backward()
    assert (
        not names["d"].grad.masked_select(~names["m"]).any()
        and str(jtorch.masked.masked_tensor(names["d"].grad, names["m"])) == shown[0]
    )


def test_in_place():
    for t in (jtorch, torch):
        x = scope(t)["x"]
        before = x.get_mask()
        assert (
            x.add_(1) is x
            and x.mul_(2).to_tensor(0).tolist() == [[3.0, 0.0, 6.0], [0.0] * 3]
            and x.get_mask() is before
        )


def test_copies_and_warnings():
    names = scope(jtorch)
    names["d"].zero_()
    names["m"].zero_()
    assert names["x"].to_tensor(0).sum() == 2.5
    with pytest.warns(UserWarning, match="prototype stage"):
        jtorch.masked.masked_tensor(names["d"], names["m"])
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        jtorch.masked.masked_tensor(names["d"].requires_grad_(), names["m"])
