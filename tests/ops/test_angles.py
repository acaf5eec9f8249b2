"""Inverse trigonometric functions and remainders at the edges, by PyTorch's numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.ops import angles
from tests.oracle import both, torch

DRAW = np.random.default_rng(0)
INF = float("inf")
EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1e-30, -1e-30, 3e38, -3e38, INF, -INF, float("nan"), 2, -3, 7.5])
Y, X = (a.ravel() for a in np.meshgrid(EDGES, EDGES))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", ["atan", "asin", "acos"])
def test_angles(name, dtype):
    x = np.concatenate([EDGES, DRAW.standard_normal(200), DRAW.uniform(-1, 1, 200)])
    both(lambda t: getattr(t, name)(t.tensor(x, dtype=getattr(t, dtype))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_angles_of_points(dtype):
    both(lambda t: t.atan2(*(t.tensor(a, dtype=getattr(t, dtype)) for a in (Y, X))))
    both(lambda t: t.complex(*(t.tensor(a, dtype=getattr(t, dtype)) for a in (X, Y))).angle())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_within_units_in_the_last_place(dtype):
    x, y = (DRAW.standard_normal(20000).astype(dtype) for _ in range(2))
    for name, args in {"arctan": (x * 9,), "arctan2": (y, x), "arcsin": (np.tanh(x),), "arccos": (np.tanh(x),)}.items():
        want = getattr(np, name)(*(a.astype(np.longdouble) for a in args))
        got = np.asarray(getattr(angles, name)(*map(jnp.asarray, args)))
        assert (np.abs(got - want) <= 4 * np.spacing(np.abs(want).astype(dtype))).all(), name


WITHIN = {("sin", "float32"): 0.51, ("cos", "float32"): 0.51, ("tan", "float32"): 0.51} | {
    ("sin", "float64"): 1.5, ("cos", "float64"): 1.5, ("tan", "float64"): 2.5
}  # fmt: skip


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3, 3e5])
@pytest.mark.parametrize("name, dtype", WITHIN)
def test_waves(name, dtype, scale):
    """Near their zeros too, with the sign of a zero; of angles that are too large, infinite or no numbers PyTorch's are compared."""
    x = np.clip(DRAW.standard_normal(20000) * scale, -9e5, 9e5).astype(dtype)
    near = (np.round(x / (np.pi / 2)) * (np.pi / 2)).astype(dtype)
    x = np.concatenate([x, near, EDGES[:2].astype(dtype)])
    want = getattr(np, name)(x.astype(np.longdouble))
    got = np.asarray(jax.jit(getattr(angles, name))(x))
    assert (np.abs(got - want) <= WITHIN[name, dtype] * np.spacing(np.abs(want).astype(dtype))).all()
    np.testing.assert_array_equal(np.signbit(got[-2:]), np.signbit(want[-2:]))
    both(lambda t: getattr(t, name)(t.tensor(np.concatenate([x, EDGES]), dtype=getattr(t, dtype))))


@pytest.mark.parametrize("dtype, count", [("float32", 5000), ("float32", 40000), ("float64", 40000)])
def test_derivatives_of_waves(dtype, count):
    def program(t):
        x = t.linspace(-9, 9, count, dtype=getattr(t, dtype), requires_grad=True)
        (by_x,) = t.autograd.grad(x.sin().sum() + (x.cos() ** 2).sum() + (x / 9).tan().sum(), x, create_graph=True)
        return [by_x, *t.autograd.grad((by_x * x).sum(), x)]

    both(program)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_remainders(name, far):
    """Of many floats, near multiples of the divisor too; with quotients that are no floats exactly."""

    def program(t):
        draw = np.random.default_rng(2)
        y = draw.standard_normal(6000).astype(np.float32)
        x = (draw.integers(-9, 9, 6000) * y + draw.integers(-1, 2, 6000) * np.spacing(y)).astype(np.float32)
        if far:
            edges = EDGES[np.abs(EDGES) < 1e37]  # beyond, floor_divide overflows in its own ways
            x[: edges.size**2], y[: edges.size**2] = (a.ravel() for a in np.meshgrid(edges, edges))
        fn = getattr(t, name)
        return [fn(t.tensor(x), t.tensor(y)), fn(t.tensor(x), 0.75), fn(t.tensor(x).bfloat16(), t.tensor(y).bfloat16())]

    if name == "floor_divide":
        both(lambda t: t.isnan(program(t)[0]))
    else:
        got = [[r.float().numpy() for r in program(lib)] for lib in (jtorch, torch)]
        for a, b in zip(*got, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(np.signbit(a)[a == a], np.signbit(b)[b == b])  # a nan has none


@pytest.mark.parametrize("name", ["fmod", "remainder"])
@pytest.mark.parametrize("scale", [0, 20, 900, -900])
@pytest.mark.parametrize("far", [False, True])
def test_remainders_of_float64(name, scale, far):
    """The C library's to the last bit, PyTorch's own being nan from large quotients on: near multiples, of divisors of all bits, tiny and
    huge ones, and such as are just below a power of two."""
    draw = np.random.default_rng(3)
    y = draw.standard_normal(9000) * 2.0 ** draw.integers(min(scale, 0), max(scale, 0) + 1, 9000)
    y[:2000] = np.nextafter(2.0 ** np.round(np.log2(np.abs(y[:2000]))), 0)
    times = draw.integers(-(2**25), 2**25, 9000) // 2 ** draw.integers(0, 26, 9000)
    x = times * y + draw.integers(-2, 3, 9000) * np.spacing(
        np.where((draw.random(9000) < 0.5) | (times == 0), y, times * y)
    )
    if far:
        edges = np.append(EDGES, [1.7e308, 1e-300, 1e300])
        x[: edges.size**2], y[: edges.size**2] = (a.ravel() for a in np.meshgrid(edges, edges))
    got = getattr(jtorch, name)(jtorch.tensor(x), jtorch.tensor(y)).numpy()
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
        if name == "remainder":
            want = np.where((want != 0) & ((want < 0) != (y < 0)), want + y, want)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[got == got]), np.signbit(want[want == want]))


def test_derivatives():
    def program(t):
        x, y = (t.tensor(a, requires_grad=True) for a in (np.linspace(-0.9, 0.9, 7), np.linspace(2.0, 3.0, 7)))
        out = t.atan2(x, y) + x.asin() * y.atan() + x.acos() + t.fmod(y, x) + t.remainder(x, y)
        first = t.autograd.grad(out.square().sum(), (x, y), create_graph=True)
        return [*first, *t.autograd.grad(sum(g.square().sum() for g in first), (x, y))]

    both(program)
    x = jtorch.tensor([0.3, 2.0])
    moved = jtorch.func.jvp(lambda v: jtorch.atan2(v, v * v + 1), (x,), (jtorch.ones(2),))[1]
    want = [(1 - v * v) / (v * v + (v * v + 1) ** 2) for v in (0.3, 2.0)]
    np.testing.assert_allclose(moved.numpy(), want, rtol=1e-5)
