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
    assert_close(higher_order.map(lambda x: (x * 2, None), X), (X * 2, None))
    assert_close(higher_order.foreach_map(jtorch.add, [X, X + 1], 2.0, alpha=3), [X + 6, X + 7])
    assert higher_order.scan(lambda c, x: (c, x), 1, []) == (1, [])


@pytest.mark.parametrize(
    "wrong, kind",
    [
        (lambda: higher_order.scan(3, X, X), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), 3, X), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), X, X, reverse=1), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), X, X, dim=7), IndexError),
        (lambda: higher_order.associative_scan(jtorch.add, X, 0, combine_mode="nope"), ValueError),
        (lambda: higher_order.map(jtorch.neg, (X, X[:2])), RuntimeError),
        (lambda: higher_order.foreach_map(jtorch.add, [X], [X, X]), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), X, X, dim=1.0), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), [], X), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x.add_(1)), X[0], X.clone()), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x[0]), X[0], (X, X[:2])), RuntimeError),
        (lambda: higher_order.scan(lambda c, x: (c, x), X, X[0, 0]), RuntimeError),
        (lambda: higher_order.map(lambda x: x.add_(1), X.clone()), RuntimeError),
        (lambda: higher_order.map(jtorch.neg, 3), RuntimeError),
        (lambda: higher_order.map(jtorch.neg, X[:0]), RuntimeError),
        (lambda: higher_order.associative_scan(jtorch.add, X, 1.0, combine_mode="generic"), ValueError),
        (lambda: higher_order.associative_scan(jtorch.add, X, 0, 1, "generic"), RuntimeError),
        (lambda: higher_order.associative_scan(jtorch.add, X[:0], 0, False, "generic"), ValueError),
        (lambda: higher_order.associative_scan(jtorch.add, [], 0, False, "generic"), ValueError),
        (lambda: higher_order.associative_scan(lambda a, b: (a, b), X, 0, False, "generic"), AssertionError),
    ],
)
def test_errors(wrong, kind):
    with pytest.raises(kind):
        wrong()


ROW = X[0]
COUNT = jtorch.tensor(0)


def counted(body, *carried):
    return higher_order.while_loop(lambda i, *x: i < 3, lambda i, *x: (i + 1, *body(*x)), (COUNT, *carried))


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: higher_order.scan(lambda c, x: (jtorch.cat([c, x]), x), ROW, X),
         "Expected init and carry to have same metadata but found:\npair[0] differ in 'shape: torch.Size([4]) vs torch.Size([8])', "
         "where lhs is FakeTensor(..., size=(4,)) and rhs is FakeTensor(..., size=(8,))"),
        (lambda: higher_order.scan(lambda c, x: ((c + x).double(), x), ROW, X), "'dtype: torch.float32 vs torch.float64'"),
        (lambda: higher_order.scan(lambda c, x: (3, x), ROW, X), "pair[0] differ in type: tensor vs 3"),
        (lambda: higher_order.scan(lambda c, x: (c[:1], x), (ROW, ROW), X), "Expected init and carry to have same number of outputs"),
        (lambda: higher_order.scan(jtorch.add, ROW, X), "torch.scan: improper combine_fn number of returns"),
        (lambda: higher_order.scan(lambda c, x: (c.add_(x), x), ROW.clone(), X), "Encountered input mutation"),
        (lambda: higher_order.scan(lambda c, x: (c, x), ROW, X[:0]), "scan dimension > 0"),
        (lambda: counted(lambda x: (jtorch.cat([x, x]),), ROW),
         "Expected body_fn_output and carried_inputs to have same metadata but found:\npair[1] differ in 'shape: torch.Size([8]) vs"),
        (lambda: counted(lambda x: (x.double(),), ROW), "pair[1] differ in 'dtype: torch.float64 vs torch.float32'"),
        (lambda: counted(lambda x: (), ROW),
         "Expected body_fn_output and carried_inputs to have same number of outputs but got lhs:[FakeTensor(..., size=(), "
         "dtype=torch.int64)] and rhs:[FakeTensor(..., size=(), dtype=torch.int64), FakeTensor(..., size=(4,))]"),
        (lambda: counted(lambda x: (x.mul_(2),), ROW.clone()), "Encountered input mutation"),
        (lambda: higher_order.while_loop(lambda x: x < 3, lambda x: (x,), (ROW,)), "but got torch.Size([4])"),
        (lambda: higher_order.while_loop(lambda x: x, lambda x: (x,), (COUNT,)), "Expected cond_fn to return a scalar tensor or a bool"),
        (lambda: higher_order.while_loop(3, lambda x: (x,), (COUNT,)), "Expect cond_fn and body_fn to be callable."),
    ],
)  # fmt: skip
def test_carries_that_change(wrong, words):
    with pytest.raises(RuntimeError) as raised:
        wrong()
    assert words in str(raised.value)


def test_carries():
    with pytest.raises(AssertionError, match="can only be of"):
        counted(lambda x: (x,), "a")
    assert higher_order.while_loop(lambda i: i < 3, lambda i: (i + 1,), (0,)) == (3,)
    # as PyTorch: in the form of the result
    carry, _ = higher_order.scan(lambda c, x: ([c + x], c * 1), jtorch.zeros(4), X)
    assert_close(carry, [X.sum(0)])
    with pytest.raises(RuntimeError, match="pair.1. differ in 'shape"):
        jtorch.vmap(lambda x: counted(lambda x: (jtorch.cat([x, x]),), x)[1])(X)


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
