"""torch._higher_order_ops: loops over slices, against the loops themselves and PyTorch's cumulative functions; in a program, with
other names that tutorials use."""

import pytest

import jtorch
from jtorch.swap.internal import higher_order, higher_order_package
from jtorch.testing import assert_close
from tests.swap import programs

X = jtorch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(dim, reverse):
    flipped = X.flip(dim) if reverse else X
    want = flipped.cumsum(dim).flip(dim) if reverse else flipped.cumsum(dim)
    start = jtorch.zeros_like(X.select(dim, 0))
    carry, made = higher_order.scan(lambda c, x: (c + x, c + x), start, X, dim=dim, reverse=reverse)
    assert_close(carry, X.sum(dim))
    assert_close(made, want)
    assert_close(higher_order.associative_scan(jtorch.add, X, dim, reverse, "generic"), want)


def test_trees_and_gradients():
    x = X.clone().requires_grad_()
    carry, (made,) = higher_order.scan(
        lambda c, x: ({"a": c["a"] + x[0]}, [c["a"] * x[1]]), {"a": jtorch.zeros(4)}, (x, x * 2)
    )
    assert_close(carry["a"], X.sum(0))
    assert_close(made, (X.cumsum(0) - X) * X * 2)
    (grad,) = jtorch.autograd.grad(made.sum(), x)
    assert_close(grad, jtorch.func.grad(lambda x: ((x.cumsum(0) - x) * x * 2).sum())(X))
    assert_close(higher_order.map(lambda x, y: x**y, X, jtorch.tensor(2.0)), X**2)
    assert_close(higher_order.foreach_map(jtorch.add, [X, X + 1], 2.0, alpha=3), [X + 6, X + 7])
    assert higher_order.scan(lambda c, x: (c, x), 1, []) == (1, [])


@pytest.mark.parametrize(
    "wrong, kind",
    [
        (lambda: higher_order.scan(3, X, X), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), 3, X), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), X, X, reverse=1), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), X, X, dim=7), IndexError),
        (lambda: higher_order.scan(lambda c, x: ([c], x), X, X), RuntimeError),
        (lambda: higher_order.associative_scan(jtorch.add, X, 0, combine_mode="nope"), ValueError),
        (lambda: higher_order.map(jtorch.neg, (X, X[:2])), RuntimeError),
        (lambda: higher_order.foreach_map(jtorch.add, [X], [X, X]), RuntimeError),
    ],
)
def test_errors(wrong, kind):
    with pytest.raises(kind):
        wrong()


def test_in_a_program(tmp_path):
    text = """
        import torch._higher_order_ops.map
        from torch._higher_order_ops.scan import scan
        from torch._higher_order_ops import map
        print(callable(map), callable(torch._higher_order_ops.map), callable(scan), torch._higher_order_ops.cond is torch.cond)
        import torch.utils.benchmark as benchmark
        torch._logging.set_logs(recompiles=True)
        print(str(benchmark.Timer("torch.ones(2)").timeit(3)).partition(" at ")[0], benchmark.Timer)
    """
    assert programs.run(text, tmp_path).stdout.splitlines() == [
        "True True True True",
        "<torch.utils.benchmark.utils.common.Measurement object <class 'torch.utils.benchmark.utils.timer.Timer'>",
    ]
    assert higher_order_package.map is higher_order.map
