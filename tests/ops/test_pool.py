"""Max pooling by windows that cover all of the space, or lie side by side: which of equals gets the gradient."""

import numpy as np
import pytest

import jtorch
from tests.oracle import both

torch = pytest.importorskip("torch")

DRAW = np.random.default_rng(0)

# size of the input, dimensions of space, results of the adaptive form
SPACES = [
    ((3, 8), 1, 1),
    ((2, 3, 4, 6), 2, 1),
    ((2, 3, 4, 6), 2, (2, 3)),
    ((3, 5, 6), 2, (2, 3)),  # windows of two sizes
    ((2, 3, 12, 14), 2, (2, 2)),  # 42 elements a window
    ((2, 2, 3, 4, 2), 3, 1),
]


def pooled(lib, name, x, window):
    x = lib.tensor(x, requires_grad=True)
    pool = getattr(lib.nn.functional, name)
    values, places = pool(x, window, return_indices=True)
    again = pool(x, window)
    weights = 1.5 + lib.arange(again.numel()).reshape(again.shape)
    grads = [lib.autograd.grad(out, x, weights)[0] for out in (values, again)]
    return [t.detach().numpy() for t in (values, places, again, *grads)]


@pytest.mark.parametrize("kind", ["all differ", "equals", "nans"])
@pytest.mark.parametrize("size, n, out", SPACES, ids=str)
def test_gradients(size, n, out, kind):
    x = DRAW.standard_normal(size).astype(np.float32)
    if kind != "all differ":
        x = np.round(x)
    if kind == "nans":
        x.flat[[1, 3, 5]] = np.nan
    for name, window in ((f"adaptive_max_pool{n}d", out), (f"max_pool{n}d", size[-n:])):
        for got, want in zip(*(pooled(lib, name, x, window) for lib in (jtorch, torch)), strict=True):
            np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("dilation, stride, kernel", [(1, 2, 3), (1, 1, 3), (2, 2, 3), (1, 2, 7)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_nothing_larger_than_the_padding(n, dilation, stride, kernel):
    def program(t):
        x = t.full((1, 2, *(9,) * n), -float("inf"))
        x[0, 1, 5:] = 1.0
        x.requires_grad_()
        pool = getattr(t.nn.functional, f"max_pool{n}d")
        found = [
            pool(x, kernel, stride, kernel // 2, dilation),
            pool(x, kernel, stride, kernel // 2, dilation, return_indices=True),
        ]
        outs = [found[0], found[1][0]]
        return found, [t.autograd.grad(o, x, 1 + t.arange(1.0 * o.numel()).reshape(o.shape)) for o in outs]

    both(program)


def test_tangent_is_of_the_first_of_equals():
    pool = lambda x: jtorch.nn.functional.max_pool1d(x, 3)
    x, t = jtorch.tensor([[[1.0, 1.0, 0.0]]]), jtorch.tensor([[[1.0, 2.0, 3.0]]])
    assert jtorch.func.jvp(pool, (x,), (t,))[1].item() == 1


@pytest.mark.parametrize("order", [float("inf"), float("-inf")])
@pytest.mark.parametrize("size, n, out", SPACES[1:2] + SPACES[-1:] + SPACES[:1], ids=str)
def test_norms_of_infinite_order(size, n, out, order):
    x = DRAW.standard_normal(size).astype(np.float32)

    def program(t):
        given = t.tensor(x, requires_grad=True)
        pool = getattr(t.nn.functional, f"lp_pool{n}d")
        found = [pool(given, order, 2), pool(given, order, 2, 1, True)]
        sum(f.sum() for f in found).backward()
        return [f.detach() for f in found], given.grad

    both(program)
