"""Factorisations of matrices: Cholesky, QR, singular values, eigenvalues, LU and LDL."""

import builtins
import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import deprecations
from ..core import dtype as dt
from .arguments import scalar_name, size_of
from .backend import conjugate, on_cpu
from .conversion import clone
from .matrices import (
    NOT_FINITE,
    NOT_POSITIVE,
    ZERO_PIVOT,
    columns,
    demand,
    from_triangle,
    matrices,
    mh,
    real_dtype,
    square,
    squares,
    supported,
)  # fmt: skip
from .products import mt
from .reduce import general_cast
from .registry import UNKNOWN, Array, Unwritten, composite, op

RETURN_FIELDS = {
    "cholesky_ex": ("L", "info"),
    "linalg_qr": ("Q", "R"),
    "qr": ("Q", "R"),
    "geqrf": ("a", "tau"),
    "linalg_svd": ("U", "S", "Vh"),
    "svd": ("U", "S", "V"),
    "eigh": ("eigenvalues", "eigenvectors"),
    "eig": ("eigenvalues", "eigenvectors"),
    "linalg_lu": ("P", "L", "U"),
    "lu_factor": ("LU", "pivots"),
    "lu_factor_ex": ("LU", "pivots", "info"),
    "lu_unpack": ("P", "L", "U"),
    "ldl_factor": ("LD", "pivots"),
    "ldl_factor_ex": ("LD", "pivots", "info"),
}


@functools.cache
def lapack_module():
    """scipy.linalg takes a fifth of a second to import, and few programs need it."""
    return importlib.import_module("scipy.linalg")


def lapack(names, arrays):
    return lapack_module().get_lapack_funcs(names, arrays)


def zero_pivot(lu):
    """The 1-based place of the first zero on the diagonal of U, or 0."""
    zero = jnp.diagonal(lu, 0, -2, -1) == 0
    if not zero.shape[-1]:
        return jnp.zeros(zero.shape[:-1], jnp.int32)
    first = jnp.argmax(zero, -1).astype(jnp.int32) + 1
    return jnp.where(zero.any(-1), first, jnp.zeros((), jnp.int32))


def lu_info(A):
    return zero_pivot(lax.linalg.lu(lax.stop_gradient(A))[0])


# ---------------------------------------------------------------- Cholesky


def _cholesky(whole, upper):
    L = lax.linalg.cholesky(whole, symmetrize_input=False)
    return mh(L) if upper else L


@op(where="", grad_name="LinalgCholeskyExBackward0", strides=columns(0))
def cholesky_and_info(A: Array, upper: bool, partly: bool = False) -> tuple[Array, Array]:
    """The triangular factor, and 0 or the order of the first leading minor that is not positive.

    Where there is one the factor is nan, or, if `partly`, what LAPACK leaves: columns up to that order, the matrix's own after it.
    """
    squares(A, "linalg.cholesky", "cholesky_cpu")
    whole = from_triangle(A, not upper)
    L = _cholesky(whole, upper)
    info = _bad_minor(lax.stop_gradient(whole), lax.stop_gradient(L))
    return _partial(whole, L, info, upper) if partly and A.shape[-1] else L, info


def _cholesky_gradient(g, L, upper):
    """jax's own takes four times as long to trace, for each size: A as the mean of both triangles, and a solution for each tangent."""
    g, L = (mh(g), mh(L)) if upper else (g, L)
    lower = np.tri(L.shape[-1], dtype=real_dtype(L.dtype)) - np.eye(L.shape[-1], dtype=real_dtype(L.dtype)) / 2
    inner = lax.linalg.triangular_solve(
        L, jnp.matmul(mh(L), g) * lower, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    inner = lax.linalg.triangular_solve(L, inner, left_side=False, lower=True)
    return (inner + mh(inner)) / 2


cholesky_and_info.vjp(A=lambda g, upper, out0: _cholesky_gradient(g[0], out0, upper))
cholesky_and_info.guards(A=False, out0=True)


@composite(where="linalg.cholesky", out="exact")
def linalg_cholesky(A: Array, *, upper: bool = False):
    """The lower triangular L with `L @ L.mH = A`, or its adjoint when `upper`."""
    L, info = cholesky_and_info(A, upper)
    demand("linalg.cholesky", NOT_POSITIVE, info)
    return L


@composite(where="linalg", out="exact")
def cholesky_ex(A: Array, *, upper: bool = False, check_errors: bool = False):
    """`cholesky`, and 0 or the order of the first leading minor that is not positive."""
    L, info = cholesky_and_info(A, upper, True)
    if check_errors:
        demand("linalg.cholesky_ex", NOT_POSITIVE, info)
    return L, info


def _bad_minor(A, L):
    """The order of the first leading minor that is not positive, or 0: an elimination without pivots.

    Whether there is one is said by L. The elimination rounds in another way, and of a matrix that is singular but for rounding it may
    find all minors positive where the factorisation did not: the last one is named then. It may find one where L is right, too.
    """
    n = A.shape[-1]
    if not n:
        return jnp.zeros(A.shape[:-2], jnp.int32)

    def step(k, state):
        rest, info = state
        pivot = rest[..., k, k].real
        bad = ~(pivot > 0)
        info = jnp.where((info == 0) & bad, jnp.int32(k + 1), info)
        safe = jnp.where(bad, 1, pivot).astype(rest.dtype)
        column = rest[..., :, k]
        return rest - column[..., :, None] * jnp.conj(column)[..., None, :] / safe[..., None, None], info

    def search(_):
        start = jnp.zeros(A.shape[:-2], jnp.int32)
        return lax.fori_loop(0, n, step, (A, start))[1]

    failed = jnp.isnan(L.real).any((-2, -1))
    found = lax.cond(failed.any(), search, lambda _: jnp.zeros(A.shape[:-2], jnp.int32), None)
    return jnp.where(failed, jnp.where(found == 0, jnp.int32(n), found), 0)


def _partial(A, L, info, upper):
    """L, where info is not 0 as far as it goes: column by column, each from those before."""
    at = jnp.arange(A.shape[-1])

    def column(k, state):
        done = jnp.where(at < k, state, 0)  # what precedes, in all rows
        rest = state[..., :, k] - jnp.matvec(done, jnp.conj(done[..., k, :]))
        pivot = rest[..., k].real[..., None]
        good = (at > k) & (k + 1 != info[..., None])
        scaled = jnp.where(good, rest / jnp.sqrt(jnp.where(pivot > 0, pivot, 1)), state[..., :, k])
        new = jnp.where(at == k, jnp.where(k + 1 == info[..., None], pivot, jnp.sqrt(pivot)).astype(A.dtype), scaled)
        return state.at[..., :, k].set(jnp.where(k < info[..., None], new, state[..., :, k]))

    def found(_):
        factor = lax.fori_loop(0, A.shape[-1], column, jnp.tril(lax.stop_gradient(A)))
        return jnp.where((info > 0)[..., None, None], mh(factor) if upper else factor, L)

    return lax.cond((info > 0).any(), found, lambda _: L, None)


@op(where="", grad_name="CholeskyBackward0", strides=columns(0))
def cholesky_of(input: Array, upper: bool) -> tuple[Array, Array]:
    """`cholesky_and_info` under torch's older name."""
    square(input, "cholesky")
    supported(input, "cholesky_cpu")
    return cholesky_and_info.fn(input, upper)


cholesky_of.vjp(input=lambda g, upper, out0: _cholesky_gradient(g[0], out0, upper))
cholesky_of.guards(input=False, out=True)


@composite(where="torch Tensor", out=True, row_major=True)
def cholesky(input: Array, upper: bool = False):
    """The triangular factor of a positive definite matrix."""
    deprecations.say("cholesky")
    if 0 in input.shape:  # of any shape
        return clone(input)
    L, info = cholesky_of(input, upper)
    demand("cholesky", NOT_POSITIVE, info)
    return L


# ---------------------------------------------------------------- QR


def _qr(A, mode):
    m, n = A.shape[-2:]
    if m < n:
        # jax differentiates the factorisation of tall matrices: the columns past the square follow from Q
        Q, R = jnp.linalg.qr(A[..., :m], mode="reduced")
        return Q, jnp.concatenate([R, mh(Q) @ A[..., m:]], -1)
    return jnp.linalg.qr(A, mode="complete" if mode == "complete" and m != n else "reduced")


@op(where="linalg.qr", strides=columns(0, 1), out="exact")
def linalg_qr(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """An orthonormal Q and an upper triangular R with `Q @ R = A`."""
    matrices(A, "linalg.qr", "geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    Q, R = _qr(A, mode)
    return (jnp.zeros((0,), A.dtype) if mode == "r" else Q), R


def _qr_slope(g, A, mode):
    """PyTorch has the derivative of what is reduced, or square."""
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and A.shape[-2] > A.shape[-1]:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    slope = jax.vjp(lambda A: tuple(_qr(A, mode)), A)[1]
    return conjugate(slope(tuple(map(conjugate, g)))[0])


linalg_qr.vjp(A=_qr_slope)
linalg_qr.guards(A=False, out=True)


@op(where="torch Tensor", grad_name="LinalgQrBackward0", strides=columns(0, 1), out="exact")
def qr(input: Array, some: bool = True) -> tuple[Array, Array]:
    """`linalg.qr`, reduced or complete."""
    matrices(input, "linalg.qr", "geqrf_cpu")
    return tuple(_qr(input, "reduced" if some else "complete"))


qr.vjp(input=lambda g, input, some: _qr_slope(g, input, "reduced" if some else "complete"))
qr.guards(input=False, out=True)


@qr.check
def _say_qr(*args, **kw):
    deprecations.say("qr")


@op(where="torch Tensor", strides=columns(0))
def geqrf(input: Array) -> tuple[Array, Array]:
    """QR as Householder reflections: R and the vectors in one matrix, and their factors."""
    if input.ndim < 2:
        raise RuntimeError("geqrf: input must have at least 2 dimensions.")
    supported(input, "geqrf_cpu")
    h, tau = jnp.linalg.qr(input, mode="raw")
    return mt(h), tau


geqrf.vjp(input=Unwritten("geqrf"))


def _reflections(A, tau, full):
    """The product of the reflections as an orthonormal matrix, all of it or the columns that A has."""
    m, n = A.shape[-2:]
    k = tau.shape[-1]
    Q = jnp.broadcast_to(jnp.eye(m, m if full else n, dtype=A.dtype), (*A.shape[:-2], m, m if full else n))
    if k == 0:
        return Q
    V = jnp.tril(A[..., :k], -1) + jnp.eye(m, k, dtype=A.dtype)

    def step(Q, reflection):
        v, t = reflection
        return Q - (t[..., None] * v)[..., :, None] * (jnp.conj(v)[..., None, :] @ Q), None

    over = jnp.moveaxis(V, -1, 0), jnp.moveaxis(tau, -1, 0)
    return lax.scan(step, Q, over, reverse=True)[0]


@op(where="linalg torch.orgqr Tensor.orgqr", grad_name="LinalgHouseholderProductBackward0", strides=columns(0))
def householder_product(A: Array, tau: Array) -> Array:
    """The first columns of the product of the Householder reflections that A and tau hold."""
    supported(A, "orgqr_cpu")
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if tau.shape[:-1] != A.shape[:-2]:
        raise RuntimeError(
            "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau.shape[:-1])}"
        )
    return _reflections(A, tau, False)


householder_product.guards(out=True)


@householder_product.check
def _check_householder_product(A, tau):
    if A.ndim > 1 and tau.ndim != A.ndim - 1:
        raise RuntimeError(
            "torch.linalg.householder_product: Expected tau to have one dimension less than input, but got tau.ndim equal to "
            f"{tau.ndim} and input.ndim is equal to {A.ndim}"
        )
    if tau.dtype is not A.dtype:
        raise RuntimeError(
            f"torch.linalg.householder_product: tau dtype {dt.scalar_name(tau.dtype)} does not match input dtype "
            f"{dt.scalar_name(A.dtype)}"
        )


_ORMQR_OUT = "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{want} and result has dtype {have}"


@op(where="torch Tensor", strides=columns(0), out=_ORMQR_OUT)
def ormqr(input: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    """`other` multiplied by the product of Householder reflections, or by its adjoint."""
    for name, x in (("input", input), ("other", other)):
        if x.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    rows = -2 if left else -1
    size = builtins.min(other.shape[rows], input.shape[-1])
    if tau.ndim and tau.shape[-1] <= other.shape[rows] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{rows}] must be equal to input.shape[-2]")
    if tau.shape[-1:] != (size,):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{rows}], input.shape[-1])")
    batch = input.shape[:-2]
    for name, lead in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if lead != batch:
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got {list(lead)}"
            )
    supported(input, "ormqr_cpu")
    Q = _reflections(input, tau, True)
    Q = mh(Q) if transpose else Q
    return Q @ other if left else other @ Q


ormqr.guards(out=True)


@ormqr.check
def _check_ormqr(input, tau, other, left=True, transpose=False):
    if input.ndim < 2 or other.ndim < 2:
        return
    size = f"input.ndim is equal to {input.ndim}"
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and {size}"
        )
    if other.ndim != input.ndim:
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{other.ndim} and {size}"
        )
    for name, x in (("tau", tau), ("other", other)):
        if x.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype"
                f"{dt.scalar_name(input.dtype)} and {name} has dtype {dt.scalar_name(x.dtype)}"
            )


# ---------------------------------------------------------------- singular values


def _svd(A, full):
    m, n = A.shape[-2:]
    return _full_svd(A) if full and m != n else jnp.linalg.svd(A, full_matrices=False)


@jax.custom_jvp
def _full_svd(A):
    return tuple(jnp.linalg.svd(A, full_matrices=True))


@_full_svd.defjvp
def _full_svd_jvp(primals, tangents):
    # jax has the derivative of the reduced form alone. The vectors past the singular values are taken for fixed, as
    # torch takes them: no function that torch differentiates depends on their choice.
    (A,), (dA,) = primals, tangents
    U, S, Vh = _full_svd(A)
    k = S.shape[-1]
    u, v, s = U[..., :k], mh(Vh[..., :k, :]), S[..., None, :].astype(A.dtype)
    own = jnp.eye(k, dtype=bool)
    gaps = jnp.where(own, 1, s * s - mt(s * s))
    inner = mh(u) @ dA @ v
    inverse = jnp.where(s == 0, 0, 1 / jnp.where(s == 0, 1, s))
    left, right = inner * s, mt(s) * inner
    du = u @ (jnp.where(own, 0, (left + mh(left)) / gaps) + jnp.where(own, (inner - mh(inner)) / 2 * inverse, 0))
    dv = v @ jnp.where(own, 0, (right + mh(right)) / gaps)
    du = du + (dA @ v - u @ inner) * inverse
    dv = dv + (mh(dA) @ u - v @ mh(inner)) * inverse
    dS = jnp.diagonal(inner, 0, -2, -1).real
    dU = jnp.concatenate([du, jnp.zeros_like(U[..., k:])], -1)
    dV = jnp.concatenate([mh(dv), jnp.zeros_like(Vh[..., k:, :])], -2)
    return (U, S, Vh), (dU, dS, dV)


def singular_values(A):
    return jnp.linalg.svd(A, compute_uv=False)


def _unfinished(S):
    """1 for each matrix whose singular values are not all numbers."""
    return (~jnp.isfinite(lax.stop_gradient(S)).all(-1)).astype(jnp.int32)


@op(where="", grad_name="LinalgSvdBackward0", strides=columns(0, 2))
def svd_and_info(A: Array, full_matrices: bool) -> tuple[Array, Array, Array, Array]:
    """The singular value decomposition, and 1 where the matrix held what is no number."""
    matrices(A, "linalg.svd", "linalg_svd_cpu")
    U, S, Vh = _svd(A, full_matrices)
    return U, S, Vh, _unfinished(S)


svd_and_info.guards(A=False, out0=True, out1=True, out2=True)


@composite(where="linalg.svd", out="exact")
def linalg_svd(A: Array, full_matrices: bool = True, *, driver: str | None = None):
    """U, the singular values from the largest, and V's adjoint: `U @ diag(S) @ Vh = A`."""
    _no_driver(driver)
    U, S, Vh, info = svd_and_info(A, full_matrices)
    demand("linalg.svd", NOT_FINITE, info)
    return U, S, Vh


def _no_driver(driver):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@op(where="", grad_name="LinalgSvdBackward0")
def svdvals_and_info(A: Array) -> tuple[Array, Array]:
    """The singular values, and 1 where the matrix held what is no number."""
    matrices(A, "linalg.svd", "linalg_svd_cpu")
    S = singular_values(A)
    return S, _unfinished(S)


svdvals_and_info.guards(A=False, out0=True)


@composite(where="linalg", out="exact")
def svdvals(A: Array, *, driver: str | None = None):
    """The singular values, from the largest."""
    _no_driver(driver)
    S, info = svdvals_and_info(A)
    demand("linalg.svd", NOT_FINITE, info)
    return S


@op(where="", grad_name="LinalgSvdBackward0", strides=columns(0))
def svd_with_v(input: Array, some: bool) -> tuple[Array, Array, Array, Array]:
    """`svd_and_info` with V in the place of its adjoint."""
    matrices(input, "linalg.svd", "linalg_svd_cpu")
    U, S, Vh = _svd(input, not some)
    return U, S, mh(Vh), _unfinished(S)


svd_with_v.guards(input=False, out=True)


@op(where="", grad_name="LinalgSvdBackward0", strides=columns(2), constant=(0, 2))
def svd_without_vectors(input: Array) -> tuple[Array, Array, Array, Array]:
    """The singular values between matrices of zeros."""
    matrices(input, "linalg.svd", "linalg_svd_cpu")
    zeros = [jnp.zeros((*input.shape[:-2], k, k), input.dtype) for k in input.shape[-2:]]
    S = singular_values(input)
    return zeros[0], S, zeros[1], _unfinished(S)


@composite(where="torch Tensor", out="exact")
def svd(input: Array, some: bool = True, compute_uv: bool = True):
    """U, the singular values and V: `U @ diag(S) @ V.mH = input`."""
    U, S, V, info = svd_with_v(input, some) if compute_uv else svd_without_vectors(input)
    demand("linalg.svd", NOT_FINITE, info)
    return U, S, V


# ---------------------------------------------------------------- eigenvalues


def _triangle(UPLO):
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO in "Ll"


@op(where="linalg", strides=columns(1), out="exact")
def eigh(A: Array, UPLO: str = "L") -> tuple[Array, Array]:
    """The eigenvalues of a Hermitian matrix, rising, and its eigenvectors."""
    square(A, "linalg.eigh")
    supported(A, "linalg_eigh_cpu")
    w, v = jnp.linalg.eigh(from_triangle(A, _triangle(UPLO)), symmetrize_input=False)
    return w, v


eigh.guards(A=False, out0=True, out1=True)


eigh.grad_name = "LinalgEighBackward0"


@op(where="linalg", grad_name="LinalgEighBackward0", out="exact")
def eigvalsh(A: Array, UPLO: str = "L") -> Array:
    """The eigenvalues of a Hermitian matrix, rising."""
    square(A, "linalg.eigvalsh")
    supported(A, "linalg_eigh_cpu")
    return jnp.linalg.eigh(from_triangle(A, _triangle(UPLO)), symmetrize_input=False)[0]


eigvalsh.guards(A=False, out=True)


def _host_eig(A):
    w, v = np.linalg.eig(np.asarray(A))
    return w.astype(_complex(A.dtype)), v.astype(_complex(A.dtype))


def _complex(dtype):
    return np.dtype(dt.of(dtype).to_complex().np)


@jax.custom_jvp
def _eig(A):
    if on_cpu():
        return tuple(jnp.linalg.eig(A))
    kind = _complex(A.dtype)
    shapes = jax.ShapeDtypeStruct(A.shape[:-1], kind), jax.ShapeDtypeStruct(A.shape, kind)
    return jax.pure_callback(_host_eig, shapes, A, vmap_method="expand_dims")  # XLA has eig on the CPU alone


@_eig.defjvp
def _eig_jvp(primals, tangents):
    # vectors of length one whose phase stands still: any loss torch differentiates is blind to the phase
    (A,), (dA,) = primals, tangents
    w, V = _eig(A)
    M = jnp.linalg.solve(V, dA.astype(V.dtype) @ V)
    gaps = w[..., None, :] - w[..., :, None]
    own = jnp.eye(A.shape[-1], dtype=bool)
    dV = V @ jnp.where(own, 0, M / jnp.where(own, 1, gaps))
    dV = dV - V * (jnp.conj(V) * dV).sum(-2, keepdims=True)
    return (w, V), (jnp.diagonal(M, 0, -2, -1), dV)


def _complex_able(A, name):
    square(A, name)
    if not jnp.issubdtype(A.dtype, jnp.inexact):
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(A)}")
    supported(A, "linalg_eig_out_cpu")


_EIG_INPUT = "input tensor should not contain infs or NaNs."


_EIG_OUT = general_cast(
    "torch.linalg.eig: Expected eigenvalues to be safely castable from {want} dtype, but got eigenvalues with dtype {have}"
)
_EIGVALS_OUT = general_cast(
    "torch.linalg.eigvals: Expected eigenvalues to be safely castable from {want} dtype, but got eigenvalues with dtype {have}"
)


@op(where="", grad_name="LinalgEigBackward0", strides=columns(1))
def eig_and_info(A: Array) -> tuple[Array, Array, Array]:
    """Eigenvalues and eigenvectors, and whether all of A were numbers. Off the CPU, a call to the host."""
    _complex_able(A, "linalg.eig")
    return (*_eig(A), ~jnp.isfinite(A).all())


eig_and_info.guards(A=False, out0=True, out1=True)


@composite(where="linalg", out=_EIG_OUT)
def eig(A: Array):
    """The eigenvalues and eigenvectors of a square matrix, both complex."""
    values, vectors, info = eig_and_info(A)
    demand("torch.linalg.eig", _EIG_INPUT, info, RuntimeError)
    return values, vectors


@op(where="", grad_name="LinalgEigBackward0")
def eigvals_and_info(A: Array) -> tuple[Array, Array]:
    """Eigenvalues, and whether all of A were numbers."""
    _complex_able(A, "linalg.eigvals")
    return _eig(A)[0], ~jnp.isfinite(A).all()


eigvals_and_info.guards(A=False, out0=True)


@composite(where="linalg", out=_EIGVALS_OUT)
def eigvals(A: Array):
    """The eigenvalues of a square matrix, complex."""
    values, info = eigvals_and_info(A)
    demand("torch.linalg.eigvals", _EIG_INPUT, info, RuntimeError)
    return values


# ---------------------------------------------------------------- LU and LDL


def _lu_parts(lu):
    m, n = lu.shape[-2:]
    k = builtins.min(m, n)
    L = jnp.tril(lu[..., :k], -1) + jnp.eye(m, k, dtype=lu.dtype)
    return L, jnp.triu(lu[..., :k, :])


def permutation(perm, dtype):
    """The matrix P with P @ (rows in pivoted order) = the rows as they were."""
    m = perm.shape[-1]
    return (jnp.arange(m, dtype=perm.dtype)[:, None] == perm[..., None, :]).astype(dtype)


def _lu(A, pivot, name):
    if A.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {size_of(A.shape)} instead")
    supported(A, "lu_cpu")
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")
    return lax.linalg.lu(A)


@op(where="linalg.lu", grad_name="LinalgLuBackward0", constant=(0,), out="exact")
def linalg_lu(A: Array, *, pivot: bool = True) -> tuple[Array, Array, Array]:
    """A permutation, a unit lower and an upper triangular matrix whose product is A."""
    lu, _, perm = _lu(A, pivot, "linalg.lu")
    L, U = _lu_parts(lu)
    return permutation(perm, A.dtype), L, U


linalg_lu.guards(A=False, out0=True, out1=True)


@op(where="", grad_name="LinalgLuFactorExBackward0", strides=columns(0))
def lu_and_info(A: Array, pivot: bool) -> tuple[Array, Array, Array]:
    """L and U in one matrix, the row exchanges, counted from 1, and 0 or the place of the first zero pivot."""
    lu, pivots, _ = _lu(A, pivot, "torch.linalg.lu_factor")
    return lu, pivots + 1, zero_pivot(lax.stop_gradient(lu))


lu_and_info.guards(A=False, out0=True, out1=True)


@composite(where="linalg", out="exact")
def lu_factor(A: Array, *, pivot: bool = True):
    """L and U in one matrix, and the row exchanges, counted from 1."""
    lu, pivots, info = lu_and_info(A, pivot)
    demand("torch.linalg.lu_factor", ZERO_PIVOT, info, RuntimeError)
    return lu, pivots


@composite(where="linalg", out="exact")
def lu_factor_ex(A: Array, *, pivot: bool = True, check_errors: bool = False):
    """`lu_factor`, and 0 or the place of the first zero pivot."""
    lu, pivots, info = lu_and_info(A, pivot)
    if check_errors:
        demand("torch.linalg.lu_factor_ex", ZERO_PIVOT, info, RuntimeError)
    return lu, pivots, info


@composite(where="torch Tensor", out=lambda want, have: None, row_major=True)
def lu(A: Array, pivot: bool = True, get_infos=False):
    """`linalg.lu_factor` of any matrix, with the infos when asked for."""
    deprecations.say("lu")
    made = lu_factor_ex(A, pivot=pivot)
    return made if get_infos else tuple(made)[:2]


@op(where="torch", constant=(0,), out="exact")
def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    """The permutation, L and U that a `lu_factor` holds; what is not wanted comes empty."""
    empty = jnp.zeros((0,), LU_data.dtype)
    L, U = _lu_parts(LU_data) if unpack_data else (empty, empty)
    if not unpack_pivots:
        return empty, L, U
    perm = lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, LU_data.shape[-2])
    return permutation(perm, LU_data.dtype), L, U


def ldl_kind(A, hermitian):
    return "hetrf" if hermitian and np.iscomplexobj(A) else "sytrf"


def _host_ldl(A, hermitian):
    A = np.asarray(A)
    if not A.size:
        return A, np.zeros(A.shape[:-1], np.int32), np.zeros(A.shape[:-2], np.int32)
    (factor,) = lapack((ldl_kind(A, hermitian),), (A,))
    flat = A.reshape(-1, *A.shape[-2:])
    LD, pivots, info = np.empty_like(flat), np.empty(flat.shape[:-1], np.int32), np.empty(len(flat), np.int32)
    for i, a in enumerate(flat):
        LD[i], pivots[i], info[i] = factor(a, lower=1)
    # scipy counts pivots from 0 and keeps the sign of the 2 by 2 blocks
    lead = A.shape[:-2]
    return np.tril(LD).reshape(A.shape), pivots.reshape(A.shape[:-1]), info.reshape(lead)


def _ldl(A, hermitian):
    squares(A, "torch.linalg.ldl_factor_ex")
    out = (
        jax.ShapeDtypeStruct(A.shape, A.dtype),
        jax.ShapeDtypeStruct(A.shape[:-1], np.int32),
        jax.ShapeDtypeStruct(A.shape[:-2], np.int32),
    )
    return jax.pure_callback(lambda a: _host_ldl(a, hermitian), out, A, vmap_method="expand_dims")


@op(where="linalg", strides=columns(0), out="exact")
def ldl_factor(A: Array, *, hermitian: bool = False) -> tuple[Array, Array]:
    """The Bunch-Kaufman factors of a symmetric or Hermitian matrix, computed on the host."""
    LD, pivots, _ = _ldl(A, hermitian)
    return LD, pivots


ldl_factor.vjp(A=UNKNOWN)


@op(where="linalg", strides=columns(0), out="exact")
def ldl_factor_ex(A: Array, *, hermitian: bool = False, check_errors: bool = False) -> tuple[Array, Array, Array]:
    """`ldl_factor` and LAPACK's info."""
    return tuple(_ldl(A, hermitian))


ldl_factor_ex.vjp(A=UNKNOWN)
