"""Distances between rows and their derivatives: equal rows, equal elements, ties, batches that broadcast, nothing at all."""

import pytest

from tests.oracle import both

INF = float("inf")
ORDERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF]
EXACT = "donot_use_mm_for_euclid_dist"


def _rows(t, *shape, dtype="float64", start=0):
    x = (start + t.arange(t.Size(shape).numel(), dtype=t.float64) * 1.7).sin().reshape(shape)
    return x.to(getattr(t, dtype)).requires_grad_()


@pytest.mark.parametrize(
    "p, dtype", [*((p, "float64") for p in ORDERS), (1.0, "float32"), (2.0, "float32"), (INF, "float32")]
)
def test_gradients_between_two_sets(p, dtype):
    def program(t):
        found = []
        for a, b in (
            ((5, 3), (4, 3)),
            ((30, 6), (4, 6)),
            ((2, 1, 5, 3), (3, 4, 3)),
            ((0, 3), (4, 3)),
            ((5, 0), (4, 0)),
        ):
            x, y = _rows(t, *a, dtype=dtype), _rows(t, *b, dtype=dtype)
            d = t.cdist(x, y, p=p, compute_mode=EXACT)
            found += [d, *t.autograd.grad((d * d.detach().cos()).sum(), (x, y))]
        return found

    both(program)


@pytest.mark.parametrize("p", ORDERS)
def test_gradients_of_equal_rows_and_ties(p):
    def program(t):
        x = t.tensor(
            [[1.0, 2.0, 2.0], [1.0, 2.0, 2.0], [0.0, 3.0, 2.0], [4.0, -1.0, 5.0]], dtype=t.float64
        ).requires_grad_()
        y = x.detach().clone().requires_grad_()
        d = t.cdist(x, y, p=p, compute_mode=EXACT)
        pairs = t.nn.functional.pdist(x, p=p)
        weight = t.arange(1.0, 7.0, dtype=t.float64)
        return [
            *t.autograd.grad((d * t.arange(16.0).reshape(4, 4)).sum(), (x, y)),
            *t.autograd.grad((pairs * weight).sum(), x),
        ]

    both(program)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("rows, width", [(2, 3), (40, 5)])
def test_gradients_of_pairs(p, rows, width):
    """Of fewer rows, or of rows without elements, PyTorch 2.13 ends the process."""

    def program(t):
        x = _rows(t, rows, width)
        d = t.nn.functional.pdist(x, p=p)
        return [d, *t.autograd.grad((d * d.detach().cos()).sum(), x)]

    both(program)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_second_derivatives(p):
    """PyTorch has none of these: those of the plain formula."""

    def program(t, by_hand):
        x, y = _rows(t, 6, 3), _rows(t, 5, 3, start=0.5)
        d = ((x[:, None] - y).abs() ** p).sum(-1) ** (1 / p) if by_hand else t.cdist(x, y, p=p, compute_mode=EXACT)
        grads = t.autograd.grad((d**2).sum(), (x, y), create_graph=True)
        return [*grads, *t.autograd.grad(sum((g**2).sum() for g in grads), (x, y))]

    both(lambda t: program(t, t.__name__ == "torch"))
