"""Many small matrices on the CPU: products and systems without the library have PyTorch's numbers at every order."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch.ops import linalg, matmul, small

torch = pytest.importorskip("torch")

DRAW = np.random.default_rng(0)
LEAD = 33  # matrices: more than `small.MANY`


def real(*shape):
    return DRAW.standard_normal(shape)


def system(n, *lead):
    return real(*lead, n, n) + 3 * np.eye(n)


PROGRAMS = {
    "bmm": (lambda t, a, b: t.bmm(a, b), real(LEAD, 4, 5), real(LEAD, 5, 3)),
    "matmul broadcast": (lambda t, a, b: a @ b, real(5, 1, 4, 4), real(9, 4, 4)),
    "chain": (lambda t, a: a @ a.mT @ a, real(LEAD, 3, 4)),
    "einsum": (lambda t, a, b: t.einsum("bij,bkj->bik", a, b), real(LEAD, 4, 6), real(LEAD, 5, 6)),
    "einsum of three": (
        lambda t, a, b, c: t.einsum("ijb,jkb,kb->bi", a, b, c), real(4, 4, LEAD), real(4, 4, LEAD), real(4, LEAD)
    ),
    "inv": (lambda t, a: t.linalg.inv(a), system(3, 3, 11)),
    "inv of numbers": (lambda t, a: t.linalg.inv(a), system(1, LEAD)),
    "solve a vector": (lambda t, a, b: t.linalg.solve(a, b), system(2, LEAD), real(LEAD, 2)),
    "solve on the right": (lambda t, a, b: t.linalg.solve(a, b, left=False), system(2, LEAD), real(LEAD, 3, 2)),
    "solve one right side": (lambda t, a, b: t.linalg.solve(a, b), system(2, LEAD), real(2, 3)),
}  # fmt: skip


def gradients(lib, program, arrays):
    xs = [lib.tensor(x, requires_grad=True) for x in arrays]
    out = program(lib, *xs)
    first = lib.autograd.grad((out * out.detach()).sum(), xs, create_graph=True)
    second = lib.autograd.grad(sum((g * g).sum() for g in first), xs)
    return [t.detach().numpy() for t in (out, *first, *second)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    program, *arrays = PROGRAMS[name]
    got, want = (gradients(lib, program, arrays) for lib in (jtorch, torch))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7 * max(1, abs(b).max()))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*")
def test_transformed():
    program, *arrays = PROGRAMS["solve a vector"]

    def run(lib):
        xs = [lib.tensor(x) for x in arrays]
        fn = lambda *xs: program(lib, *xs)
        _, tangent = lib.func.jvp(fn, tuple(xs), tuple(lib.ones_like(x) for x in xs))
        return [t.numpy() for t in (tangent, lib.vmap(fn)(*(x[:2] for x in xs)))]

    for a, b in zip(run(jtorch), run(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_singular_and_pivots():
    a = system(3, LEAD)
    a[3, 1], a[5, 0], a[7, :, 2], a[8, 0, 0], a[9] = 0, a[5, 2], 0, 0, np.nan
    for lib in (jtorch, torch):
        with pytest.raises(RuntimeError, match=r"linalg.inv: \(Batch element 3\): The diagonal element 3 is zero"):
            lib.linalg.inv(lib.tensor(a))
    found = [lib.linalg.inv_ex(lib.tensor(a)).info.numpy() for lib in (jtorch, torch)]
    np.testing.assert_array_equal(*found)
    ones = np.ones((LEAD, 3))
    np.testing.assert_array_equal(
        *(lib.linalg.solve_ex(lib.tensor(a), lib.tensor(ones)).info for lib in (jtorch, torch))
    )
    a[[3, 5, 7]] = np.eye(3)
    got, want = (lib.linalg.inv(lib.tensor(a)).numpy() for lib in (jtorch, torch))
    np.testing.assert_allclose(np.delete(got, 9, 0), np.delete(want, 9, 0), rtol=1e-9, atol=1e-9)
    assert np.isnan(got[9]).all()


def test_no_library_is_called():
    x = np.zeros((small.MANY, 4, 4), np.float32)
    for fn in (linalg.inv_and_info.fn, lambda x: matmul.bmm.fn(x, x)):
        text = str(jax.make_jaxpr(fn)(x))
        assert "dot_general" not in text and "triangular_solve" not in text
