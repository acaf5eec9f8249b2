"""Linear systems: solvers by factorisation, triangular systems, least squares."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import deprecations, errors
from ..core import dtype as dtypes
from . import registry, small
from .arguments import scalar_name
from .factor import lapack, ldl_kind, lu_info, permutation, singular_values, zero_pivot
from .linalg import pseudo_inverse, tolerance
from .matrices import (
    DEFICIENT,
    SINGULAR,
    UNSOLVABLE,
    broadcast_batches,
    columns,
    demand,
    inexact,
    mh,
    real_dtype,
    square,
    squares,
    supported,
)
from .products import mt, product_of
from .registry import UNKNOWN, Array, composite, op
from .views import movedim, narrow, reshape

RETURN_FIELDS = {
    "solve_ex": ("result", "info"),
    "lstsq": ("solution", "residuals", "rank", "singular_values"),
    "triangular_solve": ("solution", "cloned_coefficient"),
}

# ---------------------------------------------------------------- linear systems


def _other_dtype(name, which, A, B):
    return RuntimeError(
        f"{name}: Expected {which} and B to have the same dtype, but found {which} of type {scalar_name(A)} "
        f"and B of type {scalar_name(B)} instead"
    )


def _other_shape(name, A, B, left):
    equation = "AX = B" if left else "XA = B"
    return RuntimeError(
        f"{name}: Incompatible shapes of A and B for the equation {equation} "
        f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
    )


def _system(A, B, left, name, kernel=None):
    """A and B as batches of matrices, and whether B was one of vectors."""
    squares(A, name, kernel)
    if A.dtype != B.dtype:
        raise _other_dtype(name, "A", A, B)
    if not B.ndim:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    if vector and not left:
        raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported for left=False.")
    matrix = B[..., None] if vector else B
    rows = matrix.shape[-2] if left else matrix.shape[-1]
    if rows != A.shape[-1]:
        raise _other_shape(name, A, matrix, left)
    A, matrix = broadcast_batches(A, matrix)
    return A, matrix, vector


def _solved(A, B, left):
    A, B, vector = _system(A, B, left, "linalg.solve", "lu_cpu")
    if small.fits(A) and B.shape[-1]:
        X, info = small.solved(A, B) if left else small.solved(mt(A), mt(B))
        X = X if left else mt(X)
    else:
        X, info = (jnp.linalg.solve(A, B) if left else mt(jnp.linalg.solve(mt(A), mt(B)))), None
    return (X[..., 0] if vector else X), info


def _solve_strides(outs, A, B, left):
    return ((columns(0)(outs)[0] if left else None), None)


@op(where="", grad_name="LinalgSolveExBackward0", strides=_solve_strides)
def solve_and_info(A: Array, B: Array, left: bool) -> tuple[Array, Array]:
    """The solution, and 0 or the place of the first zero pivot."""
    X, info = _solved(A, B, left)
    if info is None or info.shape != A.shape[:-2] or not left:  # of A as it was given, not of its transpose
        info = lu_info(A)
    return X, info


solve_and_info.guards(B=False, out0=True)
solve_and_info.vjp_together("A B", lambda g, A, out0, left: solve_grad(g[0], A, out0, left))


@op(where="")
def solve_grad(g: Array, A: Array, X: Array, left: bool) -> tuple[Array, Array]:
    """The gradients of A and B in `A @ X = B`, or in `X @ A = B`, their batches not summed."""
    by_B = _solved(mh(A), g, left)[0]
    if X.ndim < A.ndim or X.ndim == 1:
        return -by_B[..., :, None] * jnp.conj(X)[..., None, :], by_B
    return -(product_of(by_B, mh(X)) if left else product_of(mh(X), by_B)), by_B


@composite(where="linalg", out="exact")
def solve(A: Array, B: Array, *, left: bool = True):
    """The X with `A @ X = B`, or `X @ A = B` when not `left`."""
    X, info = solve_and_info(A, B, left)
    demand("torch.linalg.solve", UNSOLVABLE, info)
    return X


@composite(where="linalg", out="exact")
def solve_ex(A: Array, B: Array, *, left: bool = True, check_errors: bool = False):
    """`solve`, and 0 or the place of the first zero pivot."""
    X, info = solve_and_info(A, B, left)
    if check_errors:
        demand("torch.linalg.solve_ex", UNSOLVABLE, info)
    return X, info


@op(
    where="linalg",
    grad_name="LinalgSolveTriangularBackward0",
    strides=columns(0),
    out="expected scalar type {want} but found {have}",
)
def solve_triangular(A: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    """The X with `A @ X = B`, or `X @ A = B`, for a triangular A; the other triangle is not read."""
    square(A, "linalg.solve_triangular")
    supported(A, "triangular_solve_cpu")
    if B.ndim < 2:
        raise RuntimeError("linalg.solve_triangular: The input tensor B must have at least 2 dimensions.")
    B = (B.real if B.dtype.kind == "c" and A.dtype.kind != "c" else B).astype(A.dtype)  # as PyTorch, without a word
    A, B, _ = _system(A, B, left, "linalg.solve_triangular")
    return lax.linalg.triangular_solve(A, B, left_side=left, lower=not upper, unit_diagonal=unitriangular)


solve_triangular.guards(A=True, B=False, out=True)


@op(where="torch Tensor", strides=columns(0, 1), out="exact")
def triangular_solve(
    b: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    """The X with `A @ X = b` for a triangular A, and a copy of A."""
    supported(A, "triangular_solve_cpu")
    wide, b = broadcast_batches(A, b)
    solution = lax.linalg.triangular_solve(
        wide, b, left_side=True, lower=not upper, transpose_a=transpose, unit_diagonal=unitriangular
    )
    return solution, wide


triangular_solve.guards(out0=True)


def _same_types(b, A, named=scalar_name):
    if A.dtype != b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {named(b)} and A of type {named(A)} instead."
        )


@triangular_solve.check
def _check_triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    deprecations.say("triangular_solve")
    _same_types(b, A, lambda spec: dtypes.scalar_name(spec.dtype))
    for name, x in (("b", b), ("A", A)):
        if x.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {x.ndim} dimensions instead"
            )
    rows, columns = A.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if rows != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {rows} by {rows} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )


def _lapack_only(A):
    if not jnp.issubdtype(A.dtype, jnp.inexact) or A.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double")


@op(where="", grad_name="LinalgLstsqBackward0", strides=columns(0), constant=(3,))
def least_squares(A: Array, B: Array, rcond: float | None, driver: str | None) -> tuple[Array, Array, Array, Array]:
    """`lstsq`, whatever the rank."""
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    if A.dtype != B.dtype:
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{scalar_name(A)} and other's dtype {scalar_name(B)}"
        )
    _lapack_only(A)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    B = B[..., None] if vector else B
    m, n = A.shape[-2:]
    if B.shape[-2] != m:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({-1 if vector else -2})")
    own, (A, B) = A, broadcast_batches(A, B)
    if not A.size:
        X = jnp.zeros((*A.shape[:-2], n, B.shape[-1]), A.dtype)
        nothing = jnp.zeros((0,), real_dtype(A.dtype))
        rank = jnp.zeros((0,) if driver == "gels" else own.shape[:-2], jnp.int64)
        residuals = nothing
        if m > n and driver in ("gels", "gelsd", "gelss"):
            residuals = (B.real**2 + B.imag**2 if jnp.iscomplexobj(B) else B**2).sum(-2)
        s = jnp.zeros((*own.shape[:-2], min(m, n)), nothing.dtype) if driver in ("gelsd", "gelss") else nothing
        return X[..., 0] if vector else X, residuals, rank, s
    if rcond is not None and driver in ("gelsd", "gelss") and (rcond < 0 or driver == "gelsd" and rcond >= 1):
        rcond = float(jnp.finfo(A.dtype).eps)  # as LAPACK takes what is no share
    X = pseudo_inverse(A, None, rcond, False) @ B
    empty = jnp.zeros((0,), real_dtype(A.dtype))
    s = singular_values(lax.stop_gradient(own))  # of A alone: B's batches are none of it
    rank = (s > tolerance(own, None, rcond, s.max(-1))[..., None]).sum(-1).astype(jnp.int64)
    residuals = empty
    if m > n and driver in ("gels", "gelsd", "gelss"):
        miss = A @ X - B
        residuals = (miss.real**2 + miss.imag**2).sum(-2) if jnp.iscomplexobj(miss) else (miss**2).sum(-2)
    return (
        X[..., 0] if vector else X,
        residuals,
        jnp.zeros((0,), jnp.int64) if driver == "gels" else rank,
        s if driver in ("gelsd", "gelss") else empty,
    )


least_squares.guards(out0=True)


@op(where="", differentiable=False)
def dependent_column(A: Array) -> Array:
    """The place of the first column (row, where those are fewer) that depends on those before it, or 0; 0 for a matrix of zeros."""
    if not A.size:
        return jnp.zeros(A.shape[:-2], jnp.int32)
    R = jnp.linalg.qr(A if A.shape[-2] >= A.shape[-1] else mh(A), mode="r")
    small = jnp.abs(R) <= jnp.finfo(A.dtype).eps * jnp.abs(R).max(-2, keepdims=True)  # 0 but for rounding
    return jnp.where((A == 0).all((-2, -1)), 0, zero_pivot(jnp.where(small, 0, R)))


@composite(where="linalg", out=True)
def lstsq(A: Array, B: Array, rcond: float | None = None, *, driver: str | None = None):
    """The X of least norm among those that bring `A @ X` nearest to B, with residuals, rank, singular values.

    Residuals are given for more rows than columns by every driver but "gelsy", the default; singular values
    by "gelsd" and "gelss". "gels" refuses what has not full rank, those two give no residuals then.
    """
    if rcond is not None and not isinstance(rcond, (int, float)):
        raise errors.argument("linalg_lstsq", "rcond", "float", rcond)
    X, residuals, rank, s = least_squares(A, B, rcond, driver)
    if driver == "gels":
        demand("torch.linalg.lstsq", DEFICIENT, dependent_column(A))
    elif math.prod(residuals.shape):
        ranks = registry.host_value(rank)
        if ranks is not None and (ranks < A.shape[-1]).any():
            residuals = narrow(reshape(residuals, -1), 0, 0, 0)
    return X, residuals, rank, s


@op(where="torch Tensor", strides=columns(0, of_fresh=True))
def cholesky_solve(B: Array, L: Array, upper: bool = False) -> Array:
    """The X with `A @ X = B`, for the A whose Cholesky factor is L."""
    if B.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {B.ndim} dimensions instead")
    if L.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {L.ndim} dimensions instead")
    supported(B, "cholesky_solve_cpu")
    _same_types(B, L)
    rows, wide = L.shape[-2:]
    if rows != wide:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {wide} matrices")
    if B.shape[-2] != rows:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {rows} by {rows} but each b matrix is "
            f"{B.shape[-2]} by {B.shape[-1]}"
        )
    L, B = broadcast_batches(L, B)
    L = mh(L) if upper else L
    Y = lax.linalg.triangular_solve(L, B, left_side=True, lower=True)
    return lax.linalg.triangular_solve(L, Y, left_side=True, lower=True, transpose_a=True, conjugate_a=True)


cholesky_solve.guards(B=True)


@op(where="", grad_name="CholeskyInverseBackward0", strides=columns(0))
def cholesky_inverse_of(L: Array, upper: bool) -> tuple[Array, Array]:
    """`cholesky_inverse`, and 0 or the place of the first zero on the diagonal."""
    if L.ndim < 2 or L.shape[-1] != L.shape[-2]:
        square(L, "cholesky_inverse")
    supported(L, "cholesky_inverse_out_cpu")
    eye = jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape)
    return cholesky_solve.fn(eye, L, upper), zero_pivot(lax.stop_gradient(L))


@composite(where="torch Tensor", out=True)
def cholesky_inverse(L: Array, upper: bool = False):
    """The inverse of the matrix whose Cholesky factor is L."""
    inverse, info = cholesky_inverse_of(L, upper)
    demand("cholesky_inverse", SINGULAR, info)
    return inverse


@op(where="")
def cholesky_factor_grad(S: Array, L: Array, upper: bool) -> Array:
    """The gradient of L where that of the product `L @ L.mH` (or `L.mH @ L`) is `-S`."""
    both = S + mh(S)
    return -(L @ both) if upper else -(both @ L)


@op(where="")
def times_adjoint(a: Array, b: Array) -> Array:
    """`a @ b.mH`."""
    return a @ mh(b)


@op(where="")
def sandwich(x: Array, g: Array) -> Array:
    """`x.mH @ g @ x.mH`."""
    return mh(x) @ g @ mh(x)


# torch takes both triangles of L for its own here, though one is not read: jax's rules would zero the other
cholesky_solve.vjp(
    B=lambda g, L, upper: cholesky_solve(g, L, upper),
    L=lambda g, L, upper, out: cholesky_factor_grad(times_adjoint(cholesky_solve(g, L, upper), out), L, upper),
)
cholesky_inverse_of.vjp(L=lambda g, L, upper, out0: cholesky_factor_grad(sandwich(out0, g[0]), L, upper))


def _lu_solved(LU, pivots, B, left, adjoint):
    inexact(LU, "torch.linalg.lu_solve", "linalg.lu_solve_cpu")
    if LU.dtype != B.dtype:
        raise _other_dtype("linalg.lu_solve", "LU", LU, B)
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if not pivots.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if B.ndim < 2:
        raise RuntimeError("linalg.lu_solve: The input tensor B must have at least 2 dimensions.")
    if LU.ndim < 2 or LU.shape[-1] != LU.shape[-2]:
        square(LU, "torch.linalg.lu_solve")
    if B.shape[-2 if left else -1] != LU.shape[-1]:
        raise _other_shape("linalg.lu_solve", LU, B, left)
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape != LU.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    LU, B = broadcast_batches(LU, B)
    pivots = jnp.broadcast_to(pivots, LU.shape[:-1])
    perm = lax.linalg.lu_pivots_to_permutation(pivots - 1, LU.shape[-1])
    P = permutation(perm, LU.dtype)
    if not left:  # X A = B is A.mH X.mH = B.mH
        return mh(_lu_solved(LU, pivots, mh(B), True, not adjoint))

    def tri(rhs, lower, unit, turned):
        return lax.linalg.triangular_solve(
            LU, rhs, left_side=True, lower=lower, unit_diagonal=unit, transpose_a=turned, conjugate_a=turned
        )

    if adjoint:
        return P @ tri(tri(B, False, False, True), True, True, True)
    return tri(tri(mt(P) @ B, True, True, False), False, False, False)


def _lu_solve_strides(outs, LU, pivots, B, *, left=True, adjoint=False):
    return (columns(0)(outs)[0] if left else None,)


@op(where="linalg.lu_solve", strides=_lu_solve_strides, out="exact")
def linalg_lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False) -> Array:
    """The X with `A @ X = B`, or `X @ A = B`, from A's `lu_factor`."""
    return _lu_solved(LU, pivots, B, left, adjoint)


@op(where="torch Tensor", grad_name="LinalgLuSolveBackward0", strides=columns(0), out="exact")
def lu_solve(b: Array, LU_data: Array, LU_pivots: Array) -> Array:
    """The X with `A @ X = b`, from A's `lu_factor`."""
    return _lu_solved(LU_data, LU_pivots, b, True, False)


lu_solve.guards(b=False)


def _host_ldl_solve(LD, pivots, B, hermitian):
    LD, pivots, B = np.asarray(LD), np.asarray(pivots), np.asarray(B)
    name = ldl_kind(LD, hermitian)[:2] + "trs"
    (solver,) = lapack((name,), (LD, B))
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (LD, B)]
    out = np.empty_like(flat[1])
    for i, (a, p, b) in enumerate(zip(flat[0], pivots.reshape(-1, pivots.shape[-1]), flat[1])):
        out[i] = solver(a, p, b, lower=1)[0]
    return out.reshape(B.shape)


@op(where="linalg", strides=columns(0), out="exact")
def ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """The X with `A @ X = B`, from A's `ldl_factor`."""
    name = "torch.linalg.ldl_solve"
    squares(LD, name)
    if B.ndim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got -2)\n  of B in {name}")
    if B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} but each b matrix "
            f"is {B.shape[-2]} by {B.shape[-1]}"
        )
    _same_types(B, LD)
    if pivots.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots)}")
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    LD, B = broadcast_batches(LD, B)
    pivots = jnp.broadcast_to(pivots, LD.shape[:-1])
    out = jax.ShapeDtypeStruct(B.shape, B.dtype)
    fn = lambda a, p, b: _host_ldl_solve(a, p, b, hermitian)
    return jax.pure_callback(fn, out, LD, pivots, B, vmap_method="broadcast_all")


ldl_solve.vjp(LD=UNKNOWN, B=UNKNOWN)


@composite(where="linalg", out=True)
def tensorsolve(A: Array, B: Array, dims=None):
    """The X with `tensordot(A, X, X.ndim) = B`; `dims` of A are moved to its end first."""
    if dims is not None:
        A = movedim(A, tuple(dims), tuple(range(-len(dims), 0)))
    head, tail = tuple(A.shape[: B.ndim]), tuple(A.shape[B.ndim :])
    rows, size = math.prod(head), math.prod(tail)
    if size != rows:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {size} != {rows}"
        )
    return reshape(solve(reshape(A, (rows, size)), reshape(B, (-1,) if rows else (0,))), tail)
