"""Factorisations and systems of matrices that have no solution, or no whole one: what PyTorch gives or refuses."""

import jax
import jax.numpy as jnp
import pytest

import jtorch
from tests.oracle import both

# the second, the first and the third leading minor is not positive; a nan on the diagonal
HALF_POSITIVE = {
    "second": [[4.0, 2.0, 1.0], [2.0, 1.0, 3.0], [1.0, 3.0, 9.0]],
    "first": [[-1.0, 5.0, 0.0], [5.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "third": [[2.0, 0.3, 0.0, 0.7], [0.3, 2.0, 0.9, 0.25], [0.0, 0.9, -1.0, 0.1], [0.7, 0.25, 0.1, 4.0]],
    "nan": [[1.0, 0.0, 0.0], [0.0, float("nan"), 0.0], [0.0, 0.0, 1.0]],
    "none": [[2.0, 1.0], [1.0, 2.0]],
}


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("kind", ["float32", "complex128"])
@pytest.mark.parametrize("name", HALF_POSITIVE)
def test_a_cholesky_factor_as_far_as_it_goes(name, kind, upper):
    def program(t):
        A = t.tensor(HALF_POSITIVE[name], dtype=getattr(t, kind))
        return list(t.linalg.cholesky_ex(A, upper=upper)), list(
            t.linalg.cholesky_ex(t.stack([A, 9 * t.eye(len(A), dtype=A.dtype)]))
        )

    both(program)


def test_a_factor_that_is_compiled_without_a_check_is_nan():
    def factor(a):
        return jtorch.linalg.cholesky(jtorch.from_jax(a)).__jax_array__()

    assert jnp.isnan(jax.jit(factor)(jnp.asarray(HALF_POSITIVE["second"]))).any()


DEPENDENT = {
    "columns": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]],
    "rows": [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    "none": [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]],
}


@pytest.mark.parametrize("driver", ["gels", "gelsd"])
@pytest.mark.parametrize("name", DEPENDENT)
def test_least_squares_of_less_than_full_rank(name, driver):
    def program(t):
        A = t.tensor(DEPENDENT[name])
        b = t.tensor([[1.0], [2.0], [3.0]])[: len(A)]
        return list(t.linalg.lstsq(A, b, driver=driver))

    both(program, layout=False)
    both(
        lambda t: list(
            t.linalg.lstsq(t.tensor([DEPENDENT[name]] * 2), t.ones(2, len(DEPENDENT[name]), 1), driver=driver)
        ),
        layout=False,
    )


INF, NAN = float("inf"), float("nan")
EMPTY = [
    ((2, 2, 0, 0), (2, 2, 0, 0)),
    ((0, 0, 3, 3), (0, 0, 3, 2)),
    ((2, 2, 3, 0), (2, 2, 3, 2)),
    ((2, 0, 3), (2, 0, 1)),
]
CALLS = {
    "least squares of nothing": lambda t: [
        [x.shape for x in t.linalg.lstsq(t.ones(a), t.ones(b), driver=driver)]
        for a, b in EMPTY
        for driver in (None, "gels", "gelsy", "gelsd", "gelss")
    ],
    "shares of the largest singular value that are none": lambda t: [
        t.linalg.lstsq(t.arange(10.0).view(5, 2) ** 2, t.ones(5, 1), rcond=rcond, driver=driver)[2:]
        for rcond in (-1.0, 1.0, 2.0, 0.5)
        for driver in ("gelsd", "gelss")
    ],
    "a share in words": lambda t: t.linalg.lstsq(t.ones(2, 2), t.ones(2, 1), rcond="a"),
    "conditions of nothing": lambda t: [
        t.linalg.cond(t.ones(shape), p)
        for shape in ((0, 3, 3), (0, 0), (2, 0, 0))
        for p in (1, -1, 2, -2, INF, -INF, "fro", "nuc", None)
    ],
    "a condition of what is empty and not square": lambda t: t.linalg.cond(t.ones(0, 4), 1),
    "a condition of what is not square": lambda t: t.linalg.cond(t.ones(2, 4), -INF),
    "a condition by no norm": lambda t: t.linalg.cond(t.ones(2, 2), 5),
    "signs of determinants that are nan": lambda t: [
        t.linalg.slogdet(t.tensor([[NAN, 1.0], [0.0, 1.0]])).sign,
        t.slogdet(t.tensor([[[NAN]], [[-2.0]]])).sign,
    ],
    "norms of complex infinities": lambda t: (
        [
            t.linalg.vector_norm(t.complex(t.tensor(real), t.tensor(real[::-1])), ord)
            for real in ([INF, NAN], [-INF, NAN], [INF, 1.0], [1.0, NAN])
            for ord in (0, 1, 2, 3, INF, -1, -INF, 0.5)
        ]
        + [t.linalg.vector_norm(t.complex(t.tensor([INF]), t.tensor([NAN])))]
    ),
    "singular values of halves in another dtype": lambda t: t.linalg.matrix_norm(
        t.ones(2, 2).half(), 2, dtype=t.float32
    ),
    "a product added to what is turned": lambda t: [
        t.addr(t.ones(rows).t(), t.ones(3), t.ones(4)) for rows in ((4, 3), (1, 3), (4, 1))
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    both(CALLS[name])


def filled(t, *shape):
    return t.arange(1.0, 1.0 + t.Size(shape).numel()).reshape(shape)


REFUSED = {
    "an inverse from a factor with a zero": lambda t: t.cholesky_inverse(t.tensor([[1.0, 0.0], [2.0, 0.0]])),
    "the same in a batch": lambda t: t.cholesky_inverse(t.stack([t.eye(2), t.zeros(2, 2)])),
    "a factor of another size": lambda t: t.cholesky_solve(t.ones(4, 2), t.ones(3, 3)),
    "a factor that is not square": lambda t: t.cholesky_solve(t.ones(3, 2), t.ones(3, 4)),
    "a factor of one dimension": lambda t: t.cholesky_solve(t.ones(3, 2), t.ones(3)),
    "a side of another size": lambda t: t.linalg.lu_solve(t.ones(3, 3), t.ones(3).int(), t.ones(4, 2)),
    "a side of another size from the left": lambda t: t.linalg.lu_solve(
        t.ones(3, 3), t.ones(3).int(), t.ones(2, 4), left=False
    ),
    "LU that is not square": lambda t: t.linalg.lu_solve(t.ones(3, 4), t.ones(3).int(), t.ones(3, 2)),
    "too few pivots": lambda t: t.linalg.lu_solve(t.ones(3, 3), t.ones(2).int(), t.ones(3, 2)),
    "pivots of fewer matrices": lambda t: t.linalg.lu_solve(t.ones(2, 3, 3), t.ones(3).int(), t.ones(3, 2)),
    "reflections of other rows": lambda t: t.ormqr(t.ones(4, 3), t.ones(3), t.ones(3, 4)),
    "reflections of other columns": lambda t: t.ormqr(t.ones(4, 3), t.ones(3), t.ones(4, 3), left=False),
    "reflections of more rows": lambda t: t.ormqr(t.ones(6, 6), t.ones(5), t.ones(5, 5)),
    "factors of another batch": lambda t: t.ormqr(t.ones(1, 2, 2), t.ones(2, 2), t.ones(1, 2, 2)),
    "matrices of another batch": lambda t: t.ormqr(t.ones(1, 2, 2), t.ones(1, 2), t.ones(2, 2, 2)),
    "a product with factors of another batch": lambda t: t.linalg.householder_product(t.ones(2, 5, 3), t.ones(3, 3)),
    "a product of one dimension": lambda t: t.linalg.householder_product(t.ones(5), t.ones(3)),
    "a complex tolerance of an inverse": lambda t: t.linalg.pinv(t.ones(2, 2), rtol=t.tensor(1j)),
    "a complex tolerance of a rank": lambda t: t.linalg.matrix_rank(t.ones(2, 2), tol=t.tensor(1j)),
    "a gradient of R without Q": lambda t: t.linalg.qr(filled(t, 3, 4).requires_grad_(), mode="r").R.sum().backward(),
    "a gradient of all of Q": lambda t: (
        t.linalg.qr(filled(t, 4, 3).requires_grad_(), mode="complete").R.sum().backward()
    ),
    "a gradient of all of the older Q": lambda t: t.qr(filled(t, 4, 3).requires_grad_(), some=False).R.sum().backward(),
}


@pytest.mark.filterwarnings("ignore:torch.qr is deprecated")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    both(REFUSED[name])
