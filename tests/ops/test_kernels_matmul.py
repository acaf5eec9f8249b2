"""Kernels of products, torch.linalg, torch.fft and windows: values, gradients, errors against PyTorch's."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.core import dtype as dt
from jtorch.ops import einsum, factor, fft, linalg, matmul, solve, vectors, windows
from jtorch.ops.registry import COMPOSITES, OPS
from tests.ops.kernel_checks import Row, check, check_error, rand, row_id, same, torch

T = torch
C = np.complex64
a, b = rand(3, 4), rand(4, 5)
u, w = rand(4), rand(4, seed=1)
S = rand(3, 3)
P = S @ S.T + np.eye(3, dtype=np.float32)
B = rand(2, 3, 3)
BP = B @ B.swapaxes(1, 2) + np.eye(3, dtype=np.float32)
Z = rand(3, 3, dtype=C)
HZ = Z @ Z.conj().T + np.eye(3, dtype=C)
TALL, WIDE = rand(4, 2), rand(2, 4)
LOW = np.tril(P) + np.eye(3, dtype=np.float32)


def absolute(*out):
    """What does not depend on the signs or phases of vectors."""
    return [abs(t) for t in out]


PRODUCTS = [
    Row("matmul", (u, w)),
    Row("matmul", (a, u)),
    Row("matmul", (u, b)),
    Row("matmul", (a, b)),
    Row("matmul", (rand(2, 3, 4), b)),
    Row("matmul", (rand(2, 3, 4), u)),
    Row("matmul", (rand(2, 3, 4), rand(2, 4, 5))),
    Row("matmul", (a, rand(2, 4, 5))),
    Row("matmul", (u, rand(2, 4, 5))),
    Row("matmul", (rand(2, 1, 3, 4), rand(5, 4, 2))),
    Row("matmul", (rand(3, 4, dtype=C), rand(4, 5, dtype=C))),
    Row("matmul", (rand(2, 3, 4, dtype=C), rand(4, dtype=C))),
    Row("matmul", (np.arange(6).reshape(2, 3), np.arange(3))),
    Row("matmul", (rand(0, 4), b)),
    Row("matmul", (rand(3, 0), rand(0, 2))),
    Row("mm", (a, b)),
    Row("mm", (rand(40, 24), rand(24, 8))),
    Row("mm", (np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(6, dtype=np.int32).reshape(3, 2))),
    Row("mm", (rand(3, 4, dtype=C), rand(4, 5, dtype=C))),
    Row("bmm", (rand(2, 3, 4), rand(2, 4, 5))),
    Row("bmm", (rand(2, 3, 4, dtype=C), rand(2, 4, 5, dtype=C))),
    Row("mv", (a, u)),
    Row("dot", (u, w)),
    Row("vdot", (rand(4, dtype=C), rand(4, seed=1, dtype=C))),
    Row("inner", (a, rand(2, 4))),
    Row("inner", (a, np.float32(2))),
    Row("outer", (u, rand(3))),
    Row("addmm", (rand(5), a, b), {"beta": 0.5, "alpha": 2.0}),
    Row("addmm", (rand(3, 5), a, b)),
    Row("addmm", (np.full((3, 5), np.nan, np.float32), a, b), {"beta": 0}),
    Row("addmv", (rand(3), a, u), {"beta": 2, "alpha": 0.5}),
    Row("addbmm", (rand(5), rand(2, 3, 4), rand(2, 4, 5)), {"beta": 2.0}),
    Row("baddbmm", (rand(3, 5), rand(2, 3, 4), rand(2, 4, 5)), {"alpha": 2.0}),
    Row("addr", (rand(3, 4), rand(3), u), {"alpha": 0.5}),
    Row("addr", (np.ones((2, 2), bool), np.array([True, False]), np.array([True, True]))),
    Row("multi_dot", ([u, b, rand(5, 2), rand(2)],)),
    Row("multi_dot", ([a, b, rand(5, 2)],)),
    Row("chain_matmul", (a, b, rand(5, 2))),
    *[Row("matrix_power", (P, n), tol=1e-4) for n in (-2, 0, 1, 5)],
    *[
        Row("einsum", args)
        for args in [
            ("ij,jk->ik", a, b),
            ("ij,jk", a, b),
            ("ij", a),
            ("ji", a),
            ("ii->i", S),
            ("ii", S),
            ("...ij,...jk->...ik", rand(2, 3, 4), rand(1, 4, 5)),
            ("b...,b->...", rand(3, 2, 2), rand(3)),
            ("i,j", u, rand(3)),
            ("i,j", np.arange(4), rand(3)),
            ("i,ij->j", np.ones(1), rand(1, 2)),
            ("i,j,j->ij", np.arange(2), rand(3), np.ones(3)),
            ("bhqd,bhkd->bhqk", rand(2, 1, 3, 4), rand(2, 2, 5, 4)),
            ("ij,kj,lj->ikl", a, rand(2, 4), rand(5, 4)),
            ("ij,j->i", rand(3, 1), u),
            (" i j , j -> i ", a, u),
            ("Ba,aC->CB", a, b),
            ("...,...", a, u),
            (a, [0, 1], b, [1, 2], [0, 2]),
            (a, [..., 1], b, [1, 2]),
        ]
    ],
    Row("tensordot", (rand(2, 3, 4), rand(3, 4, 5)), ref=T.tensordot),
    Row("tensordot", (a, b), {"dims": 1}, ref=T.tensordot),
    Row("tensordot", (rand(2, 3, 4), rand(4, 2), ((2, 0), (0, 1))), ref=T.tensordot),
    Row("kron", (a, rand(2))),
    Row("kron", (np.arange(3), rand(2, 2))),
    Row("linalg_cross", (rand(2, 3), rand(1, 3))),
    Row("cross", (rand(3, 4), rand(3, 4, seed=1), 0)),
    Row("vecdot", (rand(2, 3, dtype=C), rand(2, 3, seed=1, dtype=C))),
    *[Row("cdist", (rand(2, 3, 4), rand(2, 5, 4), p), tol=1e-4) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))],
    Row("cdist", (rand(30, 3), rand(4, 3)), tol=1e-4),
    Row("cdist", (S, S)),
]

INF = float("inf")
LINALG = [
    *[Row("vector_norm", (a, p, d, k)) for p, d, k in [(2, None, False), (1, 0, True), (INF, 1, False)]],
    *[Row("vector_norm", (a, p)) for p in (0, 3, -INF, 0.5, -1)],
    Row("vector_norm", (np.zeros(3, np.float32),)),
    Row("vector_norm", (rand(2, 3, dtype=C), 2, (0, 1))),
    *[Row("matrix_norm", (rand(2, 3, 4), p)) for p in ("fro", "nuc", 1, -1, 2, -2, INF, -INF)],
    Row("matrix_norm", (rand(2, 3, 4), 1, (0, 2), True)),
    *[Row("matrix_norm", (rand(0, 3, 4), p)) for p in (1, -1, 2, -2, -INF)],
    *[Row("linalg_norm", args) for args in [(a,), (a, 2), (a, "nuc"), (u, 1), (rand(2, 3, 4), 2, 1)]],
    *[Row("cond", (P, p), tol=1e-4, grad=p in (None, -2)) for p in (None, 1, "fro", -2)],
    Row("det", (BP,)),
    Row("det", (Z,)),
    Row("slogdet", (B,)),
    Row("linalg_slogdet", (Z,)),
    Row("logdet", (BP,)),
    Row("inv", (BP,)),
    Row("inv", (HZ,), tol=1e-4),
    Row("inv_ex", (P,)),
    Row("pinv", (TALL,)),
    Row("pinv", (WIDE,)),
    Row("pinv", (P,), {"hermitian": True}, tol=1e-4),
    Row("pinv", (rand(3, 2, dtype=C),), tol=1e-4),
    Row("pinverse", (TALL,)),
    Row("matrix_rank", (np.diag([1, 1e-3, 0]).astype(np.float32),)),
    Row("matrix_rank", (np.diag([1, 1e-3, 0]).astype(np.float32),), {"atol": 1e-2, "rtol": 0.0}),
    Row("matrix_rank", (np.diag([1, 1e-3, 0]).astype(np.float32),), {"hermitian": True}),
    Row("solve", (P, rand(3, 2))),
    Row("solve", (BP, rand(3, 2))),
    Row("solve", (BP, rand(2, 3))),
    Row("solve", (P, rand(2, 3)), {"left": False}),
    Row("solve_ex", (HZ, rand(3, 1, dtype=C)), tol=1e-4),
    Row("solve_triangular", (LOW, rand(3, 2)), {"upper": False}),
    Row("solve_triangular", (P, rand(2, 3)), {"upper": True, "left": False, "unitriangular": True}),
    Row("triangular_solve", (rand(3, 2), P), grad=False),
    Row("triangular_solve", (rand(3, 2), LOW, False, True), grad=False),
    Row("lstsq", (TALL, rand(4, 3)), pick=lambda x, r, k, s: [x]),
    Row("lstsq", (TALL, rand(4, 3)), grad=False),
    Row("lstsq", (WIDE, rand(2, 1)), {"driver": "gelsd"}, pick=lambda x, r, k, s: [x, k, s], grad=False),
    Row("linalg_cholesky", (BP,)),
    Row("linalg_cholesky", (HZ,), {"upper": True}, pick=absolute),
    Row("cholesky_ex", (P,)),
    Row("cholesky_ex", (np.diag([1, -1, 2]).astype(np.float32),), pick=lambda L, i: [i], grad=False),
    Row("cholesky", (P, True)),
    Row("cholesky_solve", (rand(3, 2), LOW), tol=1e-4),
    Row("cholesky_solve", (rand(3, 2), LOW.T.copy(), True), tol=1e-4),
    Row("cholesky_inverse", (LOW,), tol=1e-4, grad=False),
    Row("linalg_qr", (TALL,), pick=lambda *both: both),
    Row("linalg_qr", (WIDE,), pick=lambda *both: both),
    Row("linalg_qr", (TALL, "complete"), grad=False),
    Row("linalg_qr", (TALL, "r"), grad=False),
    Row("qr", (S,), pick=lambda *both: both),
    Row("geqrf", (TALL,), grad=False),
    Row("householder_product", (TALL, rand(2)), tol=1e-4),
    Row("ormqr", (TALL, rand(2), rand(4, 3)), tol=1e-4),
    Row("ormqr", (TALL, rand(2), rand(3, 4), False, True), tol=1e-4),
    Row("linalg_svd", (TALL,), pick=lambda U, s, V: [abs(U), s, abs(V)], grad=False),
    Row("linalg_svd", (TALL, False), pick=lambda U, s, V: [abs(U), s, abs(V)], tol=1e-4),
    Row("linalg_svd", (Z,), pick=lambda U, s, V: [abs(U), s, abs(V)], tol=1e-4),
    Row("svdvals", (B,)),
    Row("svd", (WIDE,), pick=lambda U, s, V: [abs(U), s, abs(V)], tol=1e-4),
    Row("eigh", (BP,), pick=absolute, tol=1e-4),
    Row("eigh", (HZ, "U"), pick=absolute, tol=1e-4),
    Row("eigvalsh", (P,)),
    Row("eig", (S,), pick=absolute, tol=1e-4),
    Row("eig", (Z,), pick=absolute, tol=1e-4),
    Row("eigvals", (P,), pick=absolute, tol=1e-4),
    Row("linalg_lu", (S,)),
    Row("linalg_lu", (TALL,)),
    Row("lu_factor", (B,)),
    Row("lu_factor_ex", (S,)),
    Row("lu", (S,), {"get_infos": True}),
    *[
        Row("linalg_lu_solve", (S, np.array([2, 3, 3], np.int32), rand(3, 2)), {"adjoint": h}, tol=1e-4)
        for h in (False, True)
    ],
    Row("linalg_lu_solve", (S, np.array([2, 3, 3], np.int32), rand(2, 3)), {"left": False}, tol=1e-4),
    Row("lu_solve", (rand(3, 2), S, np.array([2, 3, 3], np.int32)), tol=1e-4),
    Row("lu_unpack", (S, np.array([2, 3, 3], np.int32))),
    Row("ldl_factor", (P,), grad=False),
    Row("ldl_factor_ex", (BP,), grad=False),
    Row("ldl_solve", (LOW, np.array([1, 2, 3], np.int32), rand(3, 2)), grad=False, tol=1e-4),
    Row("matrix_exp", (B * np.float32([[[1]], [[9]]]),), tol=1e-3),
    Row("matrix_exp", (Z.astype(np.complex128),), tol=1e-10),
    Row("tensorinv", (rand(2, 2, 4),), tol=1e-4),
    Row("tensorsolve", (rand(2, 2, 4), rand(2, 2)), tol=1e-4),
    Row("linalg_vander", (u,), {"N": 3}),
    Row("linalg_diagonal", (B,)),
]

CX = rand(4, 5, 6, dtype=C)
RX = rand(4, 5, 6)
FFT = [
    *[Row(f"fft_{n}", (CX, k, -2, m)) for n in ("fft", "ifft") for k, m in [(None, None), (7, "ortho")]],
    *[Row(f"fft_{n}", (CX, k, 0, m)) for n in ("irfft", "hfft") for k, m in [(None, "forward"), (5, None)]],
    *[Row(f"fft_{n}", (RX, k, 1, m)) for n in ("rfft", "ihfft") for k, m in [(None, None), (6, "ortho")]],
    Row("fft_fft", (RX,)),
    *[Row(f"fft_{n}", (CX, s, d, m)) for n in ("fftn", "ifftn", "irfftn", "hfftn")
      for s, d, m in [(None, None, None), ((3, 4), (0, 2), "ortho")]],
    *[Row(f"fft_{n}", (RX, s, d, m)) for n in ("rfftn", "ihfftn")
      for s, d, m in [(None, None, None), ((3, -1), (0, 2), "forward")]],
    *[Row(f"fft_{n}2", (CX,)) for n in ("fft", "ifft", "irfft", "hfft")],
    *[Row(f"fft_{n}2", (RX, (4, 4))) for n in ("rfft", "ihfft")],
    Row("fftshift", (RX,)),
    Row("fftshift", (RX, (1,))),
    Row("ifftshift", (RX, 1)),
    Row("stft", (rand(2, 40), 8), {"return_complex": True, "window": abs(rand(8))}),
    Row("stft", (rand(40), 8, 3, 6), {"return_complex": False, "normalized": True, "center": False,
                                      "window": abs(rand(6))}, grad=False),
    Row("istft", (rand(5, 12, dtype=C), 8), {"window": abs(rand(8)) + 1}),
    Row("istft", (rand(5, 12, dtype=C), 8, 3), {"window": abs(rand(8)) + 1, "length": 30}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # torch's deprecations
@pytest.mark.parametrize("row", PRODUCTS + LINALG + FFT, ids=row_id)
def test_like_torch(row):
    check(row)


def ones(*shape):
    return np.ones(shape, np.float32)


D = np.float64
ERRORS = [
    ("mm", (ones(2, 3), ones(4, 5))),
    ("mm", (ones(2), ones(4, 5))),
    ("mm", (ones(2, 3), ones(3, 2).astype(D))),
    ("matmul", (ones(2, 3), ones(5))),
    ("matmul", (ones(3), ones(5))),
    ("matmul", (ones(3), ones(5, 2))),
    ("matmul", (ones(2, 2, 3), ones(4, 5))),
    ("matmul", (ones(2, 2, 3), ones(2, 4, 5))),
    ("matmul", (ones(2, 2, 3), ones(3, 3, 5))),
    ("matmul", (ones(2, 2, 3), ones(4))),
    ("matmul", (ones(), ones(3))),
    ("matmul", (ones(2, 3), ones(3, 2).astype(D))),
    ("matmul", (ones(2, 3), ones(3).astype(D))),
    ("matmul", (ones(2, 2, 3), ones(2, 3, 2).astype(D))),
    ("bmm", (ones(2, 2, 3), ones(2, 4, 5))),
    ("bmm", (ones(2, 3), ones(2, 4, 5))),
    ("bmm", (ones(2, 2, 3), ones(2, 3, 2).astype(D))),
    ("mv", (ones(2, 3), ones(4))),
    ("mv", (ones(2), ones(4))),
    ("dot", (ones(2), ones(4))),
    ("dot", (ones(2, 2), ones(4))),
    ("dot", (ones(2), ones(2).astype(D))),
    ("inner", (ones(2), ones(4))),
    ("outer", (ones(2, 2), ones(3))),
    ("addmm", (ones(2), ones(2, 3), ones(4, 5))),
    ("addmm", (ones(2), ones(2, 3), ones(3, 5))),
    ("addmm", (ones(5).astype(D), ones(2, 3), ones(3, 5))),
    ("addmm", (ones(5), ones(2, 3), ones(3, 5).astype(D))),
    ("addmm", (ones(5), ones(3), ones(3, 5))),
    ("addmv", (ones(5), ones(2, 3), ones(3))),
    ("addmv", (ones(2), ones(2, 3), ones(4))),
    ("addmv", (ones(2).astype(D), ones(2, 3), ones(3))),
    ("addbmm", (ones(5), ones(2, 2, 3), ones(2, 4, 5))),
    ("baddbmm", (ones(5), ones(2, 2, 3), ones(2, 4, 5))),
    ("baddbmm", (ones(4), ones(2, 2, 3), ones(2, 3, 5))),
    ("baddbmm", (ones(5).astype(D), ones(2, 2, 3), ones(2, 3, 5))),
    ("addr", (ones(4), ones(3), ones(5))),
    ("einsum", ("ij,jk->ik", ones(2, 3), ones(4, 5))),
    ("einsum", ("ij,jk->ik", ones(2, 3))),
    ("einsum", ("ij,jk->ik", np.arange(6).reshape(2, 3), ones(3, 2))),
    ("einsum", ("j,j", np.ones(3, bool), np.ones(3, bool))),
    ("einsum", ("ij->ii", ones(2, 3))),
    ("einsum", ("ij->k", ones(2, 3))),
    ("einsum", ("ijk->k", ones(2, 3))),
    ("einsum", ("i1->i", ones(2, 3))),
    ("cross", (ones(2, 4), ones(2, 4))),
    ("cdist", (ones(2, 3), ones(2, 4))),
    ("multi_dot", ([ones(2, 2)],)),
    ("multi_dot", ([ones(2, 2), ones(2, 2).astype("float64")],)),
    ("matrix_power", (ones(2, 3), 2)),
    ("inv", (ones(2, 3),)),
    ("inv", (ones(2),)),
    ("inv", (np.eye(2, dtype=np.int32),)),
    ("det", (ones(2, 3),)),
    ("solve", (np.eye(2, dtype=np.float32), ones(3))),
    ("solve", (ones(2, 3), ones(2))),
    ("linalg_qr", (ones(2, 2), "x")),
    ("eigh", (ones(2, 3),)),
    ("matrix_norm", (ones(2),)),
    ("matrix_norm", (ones(2, 2), 5)),
    ("vector_norm", (ones(2).astype(int),)),
    ("linalg_lu", (ones(2),)),
    ("cond", (ones(2),)),
    ("matrix_exp", (ones(2, 3),)),
    ("linalg_cholesky", (ones(2, 3),)),
    ("fft_fft", (ones(),)),
    ("fft_fft", (ones(2), 0)),
    ("fft_fft", (ones(2), None, -1, "x")),
    ("fft_rfft", (ones(2).astype(C),)),
    ("fft_fftn", (ones(2), (1, 2))),
    ("fft_fft2", (ones(2),)),
    ("fft_fftn", (ones(2, 2), None, (0, 0))),
    ("fft_fft", (ones(2).astype(np.float16),)),
    ("stft", (ones(10), 4)),
    (
        "stft",
        (ones(10), 40, 2, 4, None, False),
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name,args", ERRORS, ids=lambda a: a if isinstance(a, str) else "")
def test_error_like_torch(name, args):
    check_error(name, args)


@pytest.mark.parametrize("name", ["mm", "mm_nh", "mm_hn", "bmm", "bmm_nh", "bmm_hn"])
def test_products_are_closed_under_derivation(name):
    # each rule is written with the other products: compare it with jax's derivative of the kernel
    op = OPS[name]
    lead = (2,) if name.startswith("b") else ()
    shapes = {"mm": ((3, 4), (4, 5)), "nh": ((3, 4), (5, 4)), "hn": ((4, 3), (4, 5))}[name[-2:]]
    x, y = (jnp.asarray(rand(*lead, *s, dtype=C)) for s in shapes)
    out, pull = jax.vjp(op.fn, x, y)
    g = jnp.asarray(rand(*out.shape, dtype=C))
    names = list(op.signature.parameters)
    bound = {"g": g, names[0]: x, names[1]: y}
    for n, want in zip(names, pull(jnp.conj(g))):
        rule = op.rules[n]
        got = rule(*(bound[p] for p in inspect.signature(rule).parameters))
        np.testing.assert_allclose(got, jnp.conj(want), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", sorted(windows.WINDOWS))
def test_window(name, sym):
    extra = {"general_cosine": {"a": (0.5, 0.3, 0.2)}}.get(name, {})
    for M in (0, 1, 6, 7):
        want = getattr(T.signal.windows, name)(M, sym=sym, dtype=T.float64, **extra)
        got = windows.WINDOWS[name](M, sym=sym, dtype=dt.float64, **extra)
        np.testing.assert_allclose(np.asarray(got), want.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n,d", [(6, 1.0), (7, 0.5)])
def test_frequencies(n, d):
    same(fft.fft_fftfreq(n, d, dtype=dt.float32), T.fft.fftfreq(n, d), 1e-7)
    same(fft.fft_rfftfreq(n, d, dtype=dt.float32), T.fft.rfftfreq(n, d), 1e-7)


SINGULAR, INDEFINITE = np.zeros((2, 2)), np.stack([np.eye(2), np.diag([1.0, -1.0])])


@pytest.mark.parametrize(
    "name,bad",
    [
        ("inv", SINGULAR),
        ("cholesky", INDEFINITE),
        ("solve", SINGULAR),
        ("lu_factor", SINGULAR),
        ("svd", np.full((2, 2), np.nan)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_failures_speak_like_torch(name, bad):
    def call(module):
        A = module.tensor(bad)
        return getattr(module.linalg, name)(*(A, A) if name == "solve" else (A,))

    with pytest.raises(RuntimeError) as want:
        call(T)
    with pytest.raises(RuntimeError) as got:
        call(jtorch)
    assert str(got.value).split("\n")[0] == str(want.value).split("\n")[0]
    assert isinstance(want.value, T.linalg.LinAlgError) == isinstance(got.value, jtorch.linalg.LinAlgError)
    assert type(want.value).__name__ == type(got.value).__name__


IN_PLACE = [  # a sum that is smaller than the product grows to its size
    ("addbmm_", (rand(3, 5), rand(2, 3, 4), rand(2, 4, 5)), {"beta": 2.0}),
    ("addbmm_", (rand(5), rand(2, 3, 4), rand(2, 4, 5)), {"alpha": 0.5}),
]


@pytest.mark.filterwarnings("ignore")  # torch's deprecation of resizing
@pytest.mark.parametrize("name, arrays, options", IN_PLACE)
def test_in_place(name, arrays, options):
    def call(module):
        x, *others = map(module.tensor, arrays)
        assert getattr(x, name)(*others, **options) is x
        return x.numpy(), x.stride()

    (want, *rest), (got, *ours) = call(T), call(jtorch)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert ours == rest


def test_every_op_is_tested():
    tested = {r.name for r in PRODUCTS + LINALG + FFT} | {name for name, *_ in IN_PLACE}
    homes = [m.__name__ for m in (matmul, einsum, vectors, linalg, factor, solve, fft)]
    records = [*OPS.values(), *COMPOSITES.values()]
    assert {r.name for r in records if r.__module__ in homes and r.targets} <= tested


EINSUMS = [
    "bhqk,bkhd->bqhd", "bqhd,bkhd->bhqk", "ij,jk->ki", "ij,kj->ki", "bij,bjk->kib", "...ij,...jk->ik...", "zaxb,zcxd->acdbz",
    "axb,cxd->cdab", "axb,cxd->cabd", "axb,xd->bda", "ij->ji", "i,j->ji", "ij,ij->ji", "ab,c->cab", "bi,oij,bj->bo", "ij,jk->",
]  # fmt: skip


@pytest.mark.parametrize("equation", EINSUMS)
def test_an_einsum_lies_as_pytorchs(equation):
    sizes = dict(zip(sorted({*equation} - {*",.->"}), (2, 3, 4, 5, 6, 7)))
    terms = equation.partition("->")[0].split(",")
    shapes = [[5] * ("." in term) + [sizes[x] for x in term if x in sizes] for term in terms]
    found = [t.einsum(equation, *map(t.ones, shapes)) for t in (torch, jtorch)]
    assert found[0].shape == found[1].shape and found[0].stride() == found[1].stride()
