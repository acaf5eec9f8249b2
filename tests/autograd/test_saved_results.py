"""A result that a derivative keeps is guarded against writes; the other results of its node are not."""

import pytest

import jtorch


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
