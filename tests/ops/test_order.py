"""Sorting with indices as the CPU wants it: the same values and indices as PyTorch's stable sort, for every kind of number."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.ops import order
from tests.oracle import both, torch

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
ODD = [3.0, float("nan"), -0.0, 0.0, float("inf"), -1.0, float("-inf"), 3.0, 0.0, -0.0, 1e-40, -1.0, float("nan")]
WIDE = [5, -(2**63), 2**63 - 1, 2**32, 2**32 + 1, -1, 5, 0, 2**31, -(2**31), 2**40, -(2**40), 2**63 - 1]


# As programs, which is what the op table makes of it.
sorted_with_index = functools.partial(jax.jit, static_argnums=(1, 2, 3))(order.sorted_with_index)


def numbers(t, dtype):
    kind = getattr(t, dtype)
    if kind.is_floating_point:
        flat = t.tensor(ODD, dtype=kind)
    elif dtype == "int64":
        flat = t.tensor(WIDE)
    else:
        flat = t.tensor([5, 0, 100, 0, 7, 1, 5, 2, 0, 1, 99, 100, 3]).to(kind)
    return t.stack([flat, flat.flip(0), flat.roll(3)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1])
def test_stable_sort(dtype, dim):
    both(
        lambda t: [
            (s.values, s.indices, t.signbit(s.values.float()) if "float" in dtype else 0)
            for down in (False, True)
            for s in [t.sort(numbers(t, dtype), dim=dim, descending=down, stable=True)]
        ]
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_picks(dtype):
    def program(t):
        x = numbers(t, dtype)
        small = t.topk(x, 4, largest=False)
        return (
            small.values,
            t.topk(x, 4).values,
            t.kthvalue(x, 3).values,
            x.median(1).values,
            x[:, ::2].argsort(stable=True, dim=1),
        )

    both(program)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES[:2], *DTYPES[4:]])
def test_the_first_few_are_those_of_the_whole_order(dtype, down, monkeypatch):
    """By passes, ties in their order, of the least and the largest numbers too; of none, and along each dimension."""
    draw = np.random.default_rng(0)
    few = np.array(ODD if "float" in dtype else WIDE if dtype == "int64" else [0, 1, 1, 0]).astype(dtype)
    x = draw.choice(few, (5, 40, 3))
    assert order.are_few(x, 1, 3) and not order.are_few(x, 1, 20)
    monkeypatch.setattr(order, "are_few", lambda x, dim, count: True)
    monkeypatch.setattr(order, "_PART", 1000)
    for dim in range(3):
        whole = order.sorted_with_index(x, dim, down)
        for count in (1, 3):
            for found, every in zip(order.sorted_with_index(x, dim, down, count), whole, strict=True):
                np.testing.assert_array_equal(found, np.take(every, range(count), dim), strict=True)
    empty = order.sorted_with_index(x[:0], 1, down, 2)
    assert [v.shape for v in empty] == [(0, 2, 3)] * 2


ALIKE = [2.0**24, 2.0**24 + 1, 2.0**24 + 2, 1.0, 1 + 2.0**-40, 1e300, 1e299, -1e300, 1e-300, -0.0]


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("what", ["odd", "alike", "apart", "far apart"])
def test_the_largest_by_floats_are_those_of_the_whole_order(what, dtype, down):
    """Ties of the numbers in their order, and numbers that are equal as float32 alone in theirs."""
    draw = np.random.default_rng(1)
    kind = jnp.dtype(dtype)
    odd = np.array(ODD if "float" in dtype else WIDE if dtype == "int64" else [0, 1, 1, 0])
    alike = np.array(ALIKE if "float" in dtype else [1 << 30, (1 << 30) + 1, (1 << 30) - 1, -5, 7])
    x = {
        "odd": lambda: draw.choice(odd, (80, 80)),
        "alike": lambda: draw.choice(alike, (80, 80)),
        "apart": lambda: draw.standard_normal((80, 80)) * 30,
        "far apart": lambda: draw.standard_normal((80, 80)) * (1 << 29),
    }[what]()
    x = jnp.asarray(x).astype(kind)
    for dim in (0, 1):
        whole = sorted_with_index(x, dim, down)
        for count in (1, 4, 10):
            for found, every in zip(sorted_with_index(x, dim, down, count), whole, strict=True):
                found, every = (v.astype(jnp.float32) if v.dtype == jnp.bfloat16 else v for v in (found, every))
                np.testing.assert_array_equal(found, np.take(every, range(count), dim), strict=True)
            if what == "apart" and dtype == "float64":
                both(lambda t, k=count, d=dim: list(t.tensor(np.asarray(x)).topk(k, d, down)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64", "uint8"])
def test_topk_by_floats(dtype):
    draw = np.random.default_rng(2)
    x = np.stack([draw.permutation(100) for _ in range(6)]).astype(np.float32)

    def program(t):
        made = t.tensor(x).to(getattr(t, dtype)).requires_grad_("float" in dtype)
        found = made.topk(5), made.topk(3, largest=False), made.kthvalue(9)
        if "float" in dtype:
            (found[0].values.sum() + 2 * found[2].values.sum()).backward()
        return [list(f) for f in found], made.grad

    both(program)


def test_quantile_and_sort_have_gradients():
    def program(t):
        x = t.tensor([[3.0, 1.0, 2.0, 5.0], [0.5, -1.0, 4.0, 4.5]], requires_grad=True)
        (
            t.quantile(x, 0.3, dim=1).sum()
            + (x.sort(1).values * t.arange(4.0)).sum()
            + 2 * x.topk(2, largest=False).values.sum()
        ).backward()
        return x.grad

    both(program)


def test_by_comparison_says_the_same(monkeypatch):
    x = np.array([ODD, ODD[::-1]], np.float32)
    x[abs(x) == np.float32(1e-40)] = 1  # which XLA compares as 0
    for down in (False, True):
        ours = order.sorted_with_index(x, 1, down, 7)
        monkeypatch.setattr(order, "on_cpu", lambda: False)
        theirs = order.sorted_with_index(x, 1, down, 7)
        monkeypatch.undo()
        for a, b in zip(ours, theirs):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    def program(t):
        x = numbers(t, dtype)
        x = t.where(x == x, x, 1)  # the places of nans among each other are nobody's business
        slices = t.stack([x[0], x[1], x[0]], 1)[:, :2]
        return [
            t.unique(x, return_inverse=True, return_counts=True),
            t.unique(numbers(t, dtype)[0]),
            t.unique(x, dim=0, return_inverse=True),
            t.unique(slices, dim=1, return_counts=True),
            t.unique(x[:, :0]),
        ]

    both(program)


@pytest.mark.parametrize("high", [9, 1 << 31, (1 << 31) + 1, 1 << 60])
def test_integers_of_every_width(high):
    x = np.random.default_rng(0).integers(-high, high, (7, 900))
    x[0, :2] = -high, high - 1
    for dim in (0, 1):
        both(lambda t, dim=dim: list(t.sort(t.tensor(x), dim=dim, stable=True)))
        both(lambda t, dim=dim: t.argsort(t.tensor(x), dim=dim, descending=True, stable=True))
    both(lambda t: t.tensor(x[:0]).argsort(0))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_membership_of_many(dtype):
    draw = np.random.default_rng(0)
    x, tests = draw.integers(0, 200, (40, 300)).astype(dtype), draw.integers(0, 100, (10, 30)).astype(dtype)
    if dtype == "float32":
        x[0, :4], tests[0, :2] = [np.nan, -0.0, 0.0, np.inf], [np.nan, 0.0]
        tests[tests == 0] = -0.0
    for invert in (False, True):
        both(lambda t, invert=invert: t.isin(t.tensor(x), t.tensor(tests), invert=invert))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "uint8", "float64", "int64"])
@pytest.mark.parametrize("dim", [0, 1])
def test_ranked_without_sorting(dtype, dim):
    """What stands at a place of the order, and where it was, as a stable sort says: among many that are alike, zeros of both signs, nans."""
    x = (np.random.default_rng(3).standard_normal((150, 170)) * 5).astype(dtype)
    if x.dtype.kind == "f":
        x[3, 5], x[4], x[5, :90], x[6, 7], x[7, :60] = np.nan, np.nan, -0.0, np.inf, -np.inf
    if dtype == "int64":
        x[3, :5], x[4] = [-(2**63), 2**63 - 1, 2**40, 2**40 + 1, -(2**32)], 2**63 - 1
    for k in (0, 70, 149):
        rank = jnp.full([1 if d == dim else n for d, n in enumerate(x.shape)], k)
        got = jax.jit(lambda x, r: order.ranked(x, dim, r))(x, rank)
        want = [jnp.take_along_axis(v, rank, dim) for v in order.sorted_with_index(jnp.asarray(x), dim)]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


def test_medians_of_many():
    def program(t):
        x = t.tensor(np.random.default_rng(0).standard_normal((90, 101)).astype(np.float32), requires_grad=True)
        middle, least = x.median(1), x.kthvalue(7, 0)
        middle.values.sum().backward()
        return [middle.values, middle.indices, least.values, least.indices, x.median(), x.grad]

    both(program)


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("shape, dim", [((3, 97), 1), ((64, 5), 0), ((2, 70, 3), 1), ((300,), 0), ((0, 80), 1)])
def test_booleans_go_behind_their_equals(shape, dim, down):
    def program(t):
        x = (t.arange(int(np.prod(shape))) * 7 % 5 > 2).reshape(shape)
        sorts = [t.sort(y, dim=dim, descending=down, stable=True) for y in (x, x & False, x | True)]
        found = [v for s in sorts for v in (s.values, s.indices)]
        return found + ([x.mode(dim).values, x.argsort(dim=dim, descending=down, stable=True)] if x.numel() else [])

    both(program)


def test_the_last_of_the_largest_does_not_take_a_whole_sort():
    """`x.topk(k).values[..., -1]`, below which samplers cut off: XLA makes a slice of what finds the largest a slice of a sort."""
    x = jnp.zeros((2, 3000), jnp.float32)
    text = jax.jit(lambda x: order.largest_of(x, 5)[0][..., -1:]).lower(x).compile().as_text()
    assert "TopK" in text and "sort(" not in text


@pytest.mark.parametrize("count", [2, 7, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [8, 200])
def test_the_smallest_beside_nans(size, dtype, count):
    """The program that XLA compiles, which may turn a nan's sign, finds what the first calls do."""
    values = np.arange(float(size))[::-1].copy()
    values[[1, 4]] = np.nan, -np.inf
    x = jtorch.tensor(values).to(getattr(jtorch, dtype))
    expected = torch.tensor(values).to(getattr(torch, dtype)).topk(count, largest=False)
    for _ in range(40):
        found = x.topk(count, largest=False)
        assert found.indices.tolist() == expected.indices.tolist()
        kth = x.kthvalue(count)
        assert kth.values.item() == expected.values[-1].item() or count == 8 == size
