"""A result that a derivative keeps is guarded against writes; the other results of its node are not."""

import pytest

import jtorch
from tests.oracle import torch


def test_write_after_batch_norm():
    """Its derivative keeps the input and two statistics, not what it returns."""
    norm = jtorch.nn.BatchNorm2d(3)
    x = jtorch.randn(2, 3, 4, 4, requires_grad=True)
    y = norm(x)
    kept = y.detach().clone()
    y.relu_()
    (y * 2).sum().backward()
    z = jtorch.nn.functional.batch_norm(x2 := x.detach().requires_grad_(), None, None, norm.weight, norm.bias, True)
    (z.relu() * 2).sum().backward()
    assert jtorch.allclose(z, kept) and jtorch.allclose(x.grad, x2.grad, atol=1e-6)


def test_write_to_a_kept_result():
    x = jtorch.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"which is output 0 of Exp\w*, is at version 1; expected version 0"):
        y.sum().backward()


@pytest.mark.parametrize(
    "name, args", [("topk", (2,)), ("sort", ()), ("max", (1,)), ("median", (1,)), ("cummax", (1,)), ("frexp", ())]
)
def test_write_to_a_result_that_is_not_kept(name, args):
    """The derivatives of these read the second result alone: packages divide the values of topk in place."""
    got = []
    for T in (jtorch, torch):
        x = T.tensor([[3.0, 1.0, 2.0], [5.0, 4.0, 7.0]], requires_grad=True)
        values = getattr(x * 1, name)(*args)[0]
        values /= 2.0
        (values * values).sum().backward()
        got.append(x.grad.tolist())
    assert got[0] == got[1]
