"""Additions at an index that is the same for whole slices, and bags: the CPU's forms of them, as PyTorch's numbers."""

import numpy as np
import pytest

import jtorch
from jtorch.ops import linear, places
from tests.oracle import both

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((2, 6, 4))
INDEX = DRAW.integers(0, 5, (2, 6))


@pytest.fixture(autouse=True)
def all_are_many(monkeypatch):
    monkeypatch.setattr(places, "MANY_PLACES", 1)
    monkeypatch.setattr(linear, "MANY_NUMBERS", 1)


def gradients(t, out, *xs):
    first = t.autograd.grad((out * out.detach()).sum(), xs, create_graph=True)
    return [out, *first, *t.autograd.grad(sum(g.square().sum() for g in first), xs)]


@pytest.mark.parametrize("alike", [True, False])
def test_slices(alike):
    def program(t):
        index = t.tensor(INDEX)[:, :, None].expand(2, 6, 4)
        if not alike:
            index = index.clone()
            index[1, 2, 3] = 4 - index[1, 2, 3]
        x, to = t.tensor(X, requires_grad=True), t.ones(2, 5, 4, dtype=t.float64, requires_grad=True)
        return [
            gradients(t, to.scatter_add(1, index, x), to, x),
            gradients(t, x.gather(1, index), x),
            *(
                to.scatter_reduce(1, index, x, reduce, include_self=own)
                for reduce in ("sum", "mean")
                for own in (True, False)
            ),
            to.detach().int().scatter_add(1, index, (x * 9).int()),
            t.zeros(3, 5, 4).to(t.bfloat16).scatter_add(1, index, x.to(t.bfloat16)),
        ]

    both(program)


def test_mean_is_differentiated():
    def program(t):
        index = t.tensor(INDEX)[:, :, None].expand(2, 6, 4)
        x, to = t.tensor(X, requires_grad=True), t.ones(2, 5, 4, dtype=t.float64, requires_grad=True)
        return gradients(t, to.scatter_reduce(1, index, x, "mean", include_self=False), to, x)

    both(program)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("reduce", ["prod", "amax", "amin", "mean"])
def test_slices_reduced(reduce, dim, own):
    """Whole slices at once, with zeros and ties among them."""
    draw = np.random.default_rng(dim)
    shape = [4, 3, 5]
    x = draw.integers(-2, 3, shape).astype(float)
    source = draw.integers(-2, 3, shape[:dim] + [6] + shape[dim + 1 :]).astype(float)
    index = draw.integers(0, shape[dim], 6)

    def program(t):
        to, s = t.tensor(x, requires_grad=True), t.tensor(source, requires_grad=True)
        out = to.index_reduce(dim, t.tensor(index), s, reduce, include_self=own)
        whole = to.detach().int().index_reduce(dim, t.tensor(index), s.detach().int(), reduce, include_self=own)
        strange = to.detach().clone()
        strange[0, 0, 0] = np.nan
        short = strange.bfloat16().index_reduce(dim, t.tensor(index), s.detach().bfloat16(), reduce, include_self=own)
        none = to.index_reduce(dim, t.tensor(index[:0]), s.narrow(dim, 0, 0), reduce, include_self=own)
        return [out, *t.autograd.grad((out * out.detach()).sum(), (to, s)), whole, short, none]

    both(program)


@pytest.mark.filterwarnings("ignore:index_reduce")
def test_products_at_every_order():
    """At a zero, too, the other factors are what the derivative is made of."""
    x, s = np.array([2.0, 0.0, 3.0]), np.array([5.0, 0.0, 7.0, 11.0])
    where = [0, 0, 1, 2]

    def by_hand(t, x, s):
        return t.stack([x[0] * s[0] * s[1], x[1] * s[2], x[2] * s[3]])

    def derivatives(f):
        a, b = (jtorch.tensor(v, requires_grad=True) for v in (x, s))
        found, total = [], f(a, b).sum()
        for power in (2, 3):
            parts = jtorch.autograd.grad(total, (a, b), create_graph=True)
            found += parts
            total = sum((p**power * (1 + i)).sum() for i, p in enumerate(parts))
        return [*found, *jtorch.autograd.grad(total, (a, b))]

    expected = derivatives(lambda a, b: by_hand(jtorch, a, b))
    for f in (
        lambda a, b: a.index_reduce(0, jtorch.tensor(where), b, "prod"),
        lambda a, b: a.scatter_reduce(0, jtorch.tensor(where), b, "prod"),
    ):
        for e, g in zip(expected, derivatives(f), strict=True):
            np.testing.assert_allclose(g.detach().numpy(), e.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_one_length(mode):
    def program(t):
        w, factors = t.tensor(X[0], requires_grad=True), t.tensor(X[:, :, 0], requires_grad=True)
        rows = t.tensor(INDEX)
        bag = t.nn.functional.embedding_bag
        out = [gradients(t, bag(rows, w, mode=mode), w), bag(rows, w, mode=mode, padding_idx=INDEX[0, 0].item())]
        if mode == "sum":
            out.append(gradients(t, bag(rows, w, mode=mode, per_sample_weights=factors), w, factors))
        return out

    both(program)


@pytest.mark.parametrize("starts", [[0], [0, 3, 3, 20, 30, 30], [0, 0, 1, 2, 9, 17], list(range(30))])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_several_lengths(mode, starts):
    """Empty ones too, at the end and in the middle, and such as are longer than a piece."""
    draw = np.random.default_rng(1)
    table, index, by = draw.standard_normal((7, 4)), draw.integers(0, 7, 30), draw.standard_normal(30)

    def program(t):
        w, factors = t.tensor(table, requires_grad=True), t.tensor(by, requires_grad=True)
        rows, offsets = t.tensor(index), t.tensor(starts)
        bag = t.nn.functional.embedding_bag
        ended = t.cat([offsets, t.tensor([30])])
        out = [
            gradients(t, bag(rows, w, offsets, mode=mode), w),
            gradients(t, bag(rows, w, offsets, mode=mode, padding_idx=2), w),
            bag(rows.int(), w.float(), ended.int(), mode=mode, include_last_offset=True),
        ]
        if mode == "sum":
            out.append(gradients(t, bag(rows, w, offsets, mode=mode, per_sample_weights=factors), w, factors))
        return out

    both(program)
