"""Quotients are rounded once, as PyTorch rounds them, by whatever is divided: XLA's CPU compiler would multiply by reciprocals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.ops import angles, arithmetic, quotients
from tests.oracle import torch

DRAW = np.random.default_rng(0)


def draw(*shape, dtype=np.float32):
    return DRAW.standard_normal(shape).astype(dtype)


DIVISORS = {
    "a number": (draw(40, 50), 3.0),
    "an int": (draw(40, 50), 7),
    "a power of two": (draw(40, 50), 8.0),
    "minus zero": (draw(40, 50), -0.0),
    "infinite": (draw(40, 50), float("inf")),
    "as large as can be": (np.float32(1e6) * draw(40, 50), 2.0**127),
    "0-d": (draw(40, 50), draw()),
    "a row": (draw(40, 50), draw(50)),
    "a column": (draw(40, 50), draw(40, 1)),
    "channels": (draw(2, 5, 6, 7), draw(5, 1, 1)),
    "alike": (draw(40, 50), draw(40, 50)),
    "float64": (draw(40, 50, dtype=np.float64), 3.3),
    "one element": (draw(1), 3.3),
    "by nothing": (draw(), 3.3),
    "no element": (draw(0, 3), 3.3),
    "wider": (draw(50), draw(40, 1)),
}


def same(got, want):
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def tensors(lib, *values):
    return [lib.tensor(v) if isinstance(v, np.ndarray | np.generic) else v for v in values]


@pytest.mark.parametrize("how", ["recorded", "compiled"])
@pytest.mark.parametrize("name", DIVISORS)
def test_rounded_once(name, how):
    def of(x, y):
        return (x * 1.5) / y

    def run(lib, of):
        x, y = tensors(lib, *DIVISORS[name])
        x.requires_grad_()
        out = of(x, y)
        out.backward(lib.full_like(out, 1.7e6))
        return out.detach().numpy(), x.grad.numpy()

    ours = of
    if how == "compiled":
        y = DIVISORS[name][1]
        whole = jtorch.compile(of if isinstance(y, np.ndarray | np.generic) else lambda x: of(x, y))
        ours = whole if isinstance(y, np.ndarray | np.generic) else lambda x, y: whole(x)
    out, grad = run(torch, of)
    for _ in range(3):
        got, by_input = run(jtorch, ours)
        same(got, out)
        if x_is_wide(name):  # else the gradient is a sum, in each one's order
            same(by_input, grad)


def x_is_wide(name):
    x, y = map(np.shape, DIVISORS[name])
    return np.broadcast_shapes(x, y) == x


@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_whole_quotients_by_numbers(mode):
    """49 times the reciprocal of 49 is less than 1."""
    numbers = np.arange(1, 200, dtype=np.float64)
    for n in (3.0, 49.0, 107.0, 161.0, 187.0):
        fn = jax.jit(lambda x, n=n: arithmetic.div.fn(x, np.float64(n), rounding_mode=mode))
        want = torch.div(torch.tensor(numbers * n), n, rounding_mode=mode)
        same(np.asarray(fn(jnp.asarray(numbers * n))), want.numpy())


@pytest.mark.parametrize("number", [49.0, 107.0, 3.3])
def test_remainders_by_numbers(number):
    x = np.tile(np.arange(-50, 50, dtype=np.float32) * np.float32(number), 50)
    fn = jax.jit(lambda x: angles.rem(x, jnp.full_like(x, number)))
    same(np.asarray(fn(x)), torch.fmod(torch.tensor(x), number).numpy())


def test_means_are_divided():
    x = draw(300, 1)
    for n in (3, 7):
        one = np.concatenate([x, np.zeros((300, n - 1), np.float32)], 1)
        for _ in range(3):
            t = jtorch.tensor(one, requires_grad=True)
            mean = t.mean(1)
            mean.backward(jtorch.tensor(x[:, 0]))
            same(mean.detach().numpy(), one[:, 0] / np.float32(n))
            same(t.grad.numpy()[:, 0], one[:, 0] / np.float32(n))


def test_exact_reciprocals_stay_multiplications():
    for number, plain in {8.0: True, 0.25: True, 3.0: False, 0.0: False, 2.0**127: False, float("nan"): False}.items():
        text = str(jax.make_jaxpr(lambda x, n=number: quotients.quotient(x, np.float32(n)))(jnp.ones(3, jnp.float32)))
        assert ("iota" not in text) is plain, number


def test_derivatives():
    x, y = jnp.asarray(draw(4, 5)), jnp.asarray(draw(5))
    for k in range(2):
        got = jax.hessian(lambda *a: jnp.sum(quotients.quotient(*a) ** 2), k)(x, y)
        want = jax.hessian(lambda x, y: jnp.sum((x / y) ** 2), k)(x, y)
        np.testing.assert_allclose(got, want, rtol=1e-5)
