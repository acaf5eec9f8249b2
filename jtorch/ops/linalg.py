"""torch.linalg: norms, factorisations, solvers and inverses, batched over the leading dimensions.

A matrix that cannot be factored yields NaN or infinity and a nonzero `info`: whether it can is known only
when the program runs, so nothing is raised from here.
"""

import builtins
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.linalg import get_lapack_funcs

from ..core import dtype as dt
from ..core.dtype import dtype as DType
from .backend import accumulator, on_cpu
from .indexing import axes, axis, scalar_name, size_of
from .matmul import _batch_shape, _root, _square
from .registry import Array, composite, op
from .views import diagonal

RETURN_FIELDS = {
    "slogdet": ("sign", "logabsdet"),
    "inv_ex": ("inverse", "info"),
    "solve_ex": ("result", "info"),
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
    "lstsq": ("solution", "residuals", "rank", "singular_values"),
    "triangular_solve": ("solution", "cloned_coefficient"),
}

RAISES = {  # what torch's checked form says of the first matrix whose `info` is not 0; see `failure`
    "inv": "The diagonal element {info} is zero, the inversion could not be completed because the input "
    "matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {info} is not positive-definite).",
}


def failure(name: str, info: np.ndarray) -> str | None:
    """The first line of torch's LinAlgError for these `info` values, None when all is well."""
    bad = np.flatnonzero(np.asarray(info))
    if not bad.size:
        return None
    if name == "solve":
        return "torch.linalg.solve: The solver failed because the input matrix is singular."
    where = f"(Batch element {bad[0]}): " if np.ndim(info) else ""
    return f"linalg.{name}: {where}" + RAISES[name].format(info=np.asarray(info).flat[bad[0]])


def _inexact(A, name):
    if not jnp.issubdtype(A.dtype, jnp.inexact):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(A)}"
        )
    if A.dtype.itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(A)}")


def _squares(A, name):
    _square(A, name)
    _inexact(A, name)


def _matrices(A, name):
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    _inexact(A, name)


def _mh(x):
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _mt(x):
    return jnp.swapaxes(x, -1, -2)


def _real(dtype):
    return jnp.finfo(dtype).dtype


def _hermitian(A, lower=True):
    """The matrix that one triangle of A stands for; its derivative is that of the mean of both."""
    half = jnp.tril(A, -1) if lower else jnp.triu(A, 1)
    own = jnp.diagonal(A, 0, -2, -1).real.astype(A.dtype)
    whole = half + _mh(half) + own[..., None] * jnp.eye(A.shape[-1], dtype=A.dtype)
    mean = (A + _mh(A)) / 2
    return jnp.where(jnp.isfinite(mean), lax.stop_gradient(whole - mean) + mean, whole)


# ---------------------------------------------------------------- norms


def _cast(x, dtype, name):
    if dtype is not None:
        return x.astype(dtype.np)
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(x)}"
        )
    return x


def _norm(x, ord, dims, keepdim):
    """The vector norm over `dims`, summed in at least single precision."""
    kind = _real(x.dtype)
    wide = accumulator(kind)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        squares = x.real**2 + x.imag**2
        size = None if ord == 2 else _root(squares)
    else:
        x = x.astype(wide)
        squares, size = x * x, jnp.abs(x)
    empty = builtins.any(x.shape[d] == 0 for d in dims)
    if ord == 2:
        out = _root(squares.sum(dims, keepdims=keepdim))
    elif ord == 0:
        out = (size != 0).sum(dims, keepdims=keepdim).astype(wide)
    elif ord == 1:
        out = size.sum(dims, keepdims=keepdim)
    elif math.isinf(ord) and ord > 0:
        out = size.max(dims, keepdims=keepdim, initial=0) if empty else size.max(dims, keepdims=keepdim)
    elif math.isinf(ord):
        out = size.min(dims, keepdims=keepdim)
    else:
        if ord > 0:
            size = jnp.where(size == 0, 1, size) ** ord * (size != 0)
            out = _root(size.sum(dims, keepdims=keepdim), 1 / ord)
        else:
            out = (size**ord).sum(dims, keepdims=keepdim) ** (1 / ord)
    return out.astype(kind)


@op(where="linalg")
def vector_norm(
    x: Array,
    ord: float = 2,
    dim: int | tuple | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """The `ord`-norm of all elements, or along `dim`."""
    x = _cast(x, dtype, "linalg.vector_norm")
    if isinstance(dim, int):
        dim = (dim,)
    dims = tuple(range(x.ndim)) if dim is None or dim == () else axes(dim, x.ndim)
    if x.ndim == 0:
        return _norm(x[None], ord, (0,), False)
    return _norm(x, ord, dims, keepdim)


vector_norm.grad_name = "LinalgVectorNormBackward0"

_NORM_NAMES = {
    "fro": "LinalgVectorNormBackward0",
    "nuc": "SumBackward1",
    -1: "AminBackward0",
    -2: "AminBackward0",
}


def _matrix_norm_name(args) -> str:
    ord = args["ord"]
    return "AminBackward0" if not isinstance(ord, str) and ord < 0 else _NORM_NAMES.get(ord, "AmaxBackward0")


@op(where="linalg", grad_name=_matrix_norm_name)
def matrix_norm(
    A: Array,
    ord: float | str = "fro",
    dim: tuple = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """A norm of matrices: "fro", "nuc", or the operator norms of order 1, 2, inf and their negatives."""
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    A = _cast(A, dtype, "linalg.matrix_norm")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    row, col = axis(dim[0], A.ndim), axis(dim[1], A.ndim)
    if row == col:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return _norm(A, 2, (row, col), keepdim)
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord in ("nuc", 2, -2):
        s = _singular_values(jnp.moveaxis(A, (row, col), (-2, -1)))
        out = s.sum(-1) if ord == "nuc" else s.max(-1) if ord == 2 else s.min(-1)
    else:
        inner, outer = (row, col) if builtins.abs(ord) == 1 else (col, row)
        sums = _norm(A, 1, (inner,), True)
        out = (sums.max if ord > 0 else sums.min)((inner, outer))
    return jnp.expand_dims(out, (row, col)) if keepdim else out


@composite(where="linalg.norm")
def linalg_norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """A vector or matrix norm, as `dim` and `ord` say."""
    dims = (dim,) if isinstance(dim, int) else dim
    keep = {} if out is None else {"out": out}
    if ord is not None and (dims is not None and len(dims) == 2 or dims is None and A.ndim == 2):
        return matrix_norm(A, ord, (0, 1) if dims is None else tuple(dims), keepdim, dtype=dtype, **keep)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: The input tensor A must have 2 dimensions for the order {ord}")
    if ord is not None and dims is None and A.ndim != 1:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype, **keep)


@op(where="linalg", grad_name="SqueezeBackward1")
def cond(A: Array, p: float | str | None = None) -> Array:
    """The condition number: the norm of A times the norm of its inverse."""
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    _inexact(A, "linalg.cond")
    if p in (None, 2, -2):
        s = _singular_values(A)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    _square(A, "linalg.cond")
    return matrix_norm.fn(A, p) * matrix_norm.fn(jnp.linalg.inv(A), p)


# ---------------------------------------------------------------- determinants and inverses


@op(where="linalg torch Tensor", grad_name="LinalgDetBackward0")
def det(A: Array) -> Array:
    """The determinant."""
    _squares(A, "linalg.det")
    return jnp.linalg.det(A)


@op(where="linalg torch Tensor", grad_name="LinalgSlogdetBackward0")
def slogdet(A: Array) -> tuple[Array, Array]:
    """The sign of the determinant and the logarithm of its absolute value."""
    _squares(A, "linalg.slogdet")
    sign, log = jnp.linalg.slogdet(A)
    return sign, log


@op(grad_name="WhereBackward0")
def logdet(input: Array) -> Array:
    """The logarithm of the determinant; NaN where it is negative."""
    _squares(input, "logdet")
    sign, log = jnp.linalg.slogdet(input)
    if jnp.issubdtype(input.dtype, jnp.complexfloating):
        return log + jnp.log(sign)
    return jnp.where(sign == -1, jnp.asarray(jnp.nan, log.dtype), log)


def _zero_pivot(lu):
    """The 1-based place of the first zero on the diagonal of U, or 0."""
    zero = jnp.diagonal(lu, 0, -2, -1) == 0
    if not zero.shape[-1]:
        return jnp.zeros(zero.shape[:-1], jnp.int32)
    first = jnp.argmax(zero, -1).astype(jnp.int32) + 1
    return jnp.where(zero.any(-1), first, jnp.zeros((), jnp.int32))


def _lu_info(A):
    return _zero_pivot(lax.linalg.lu(lax.stop_gradient(A))[0])


@op(where="linalg torch.inverse Tensor.inverse", grad_name="LinalgInvExBackward0")
def inv(A: Array) -> Array:
    """The inverse."""
    _squares(A, "linalg.inv")
    return jnp.linalg.inv(A)


@op(where="linalg", grad_name="LinalgInvExBackward0")
def inv_ex(A: Array, *, check_errors: bool = False) -> tuple[Array, Array]:
    """The inverse, and 0 or the place of the first zero pivot."""
    _squares(A, "linalg.inv")
    return jnp.linalg.inv(A), _lu_info(A)


def _tolerance(A, atol, rtol, largest):
    kind = largest.dtype
    default = float(jnp.finfo(kind).eps) * builtins.max(A.shape[-2:])
    if rtol is None:  # a positive atol replaces the relative default
        rtol = default if atol is None else jnp.where(jnp.asarray(atol) > 0, 0.0, default)
    atol = jnp.asarray(0.0 if atol is None else atol, kind)
    return jnp.maximum(atol, jnp.asarray(rtol, kind) * largest)


@jax.custom_jvp
def _pinv(A, inverse):
    return inverse


@_pinv.defjvp
def _pinv_jvp(primals, tangents):
    # the derivative at constant rank: differences of singular values do not enter
    A, P = primals
    dA = tangents[0]
    P = _pinv(A, P)
    left = jnp.eye(A.shape[-2], dtype=A.dtype) - A @ P
    right = jnp.eye(A.shape[-1], dtype=A.dtype) - P @ A
    dAh = _mh(dA)
    return P, -P @ dA @ P + P @ (_mh(P) @ dAh @ left) + (right @ dAh @ _mh(P)) @ P


def _pseudo_inverse(A, atol, rtol, hermitian):
    fixed = lax.stop_gradient(A)
    if hermitian:
        w, v = jnp.linalg.eigh(_hermitian(fixed), symmetrize_input=False)
        size = jnp.abs(w)
        u, s, vh = v, w, _mh(v)
    else:
        u, s, vh = jnp.linalg.svd(fixed, full_matrices=False)
        size = s
    if size.shape[-1] == 0:
        return jnp.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    cut = _tolerance(A, atol, rtol, size.max(-1))[..., None]
    keep = size > cut
    inverse = jnp.where(keep, 1 / jnp.where(keep, s, 1), 0).astype(A.dtype)
    return _pinv(A, _mh(vh) @ (inverse[..., None] * _mh(u)))


@op(where="linalg", grad_name="LinalgPinvBackward0")
def pinv(
    A: Array,
    rcond: float | None = None,
    hermitian: bool = False,
    *,
    atol: float | None = None,
    rtol: float | None = None,
) -> Array:
    """The Moore-Penrose pseudo-inverse; singular values up to max(atol, rtol * largest) count as zero."""
    _matrices(A, "linalg.pinv")
    return _pseudo_inverse(A, atol, rcond if rtol is None else rtol, hermitian)


@composite(where="torch Tensor")
def pinverse(input, rcond=1e-15):
    """The Moore-Penrose pseudo-inverse."""
    return pinv(input, rtol=rcond)


@op(where="linalg", differentiable=False)
def matrix_rank(
    A: Array,
    tol: float | None = None,
    hermitian: bool = False,
    *,
    atol: float | None = None,
    rtol: float | None = None,
) -> Array:
    """The number of singular values above max(atol, rtol * largest)."""
    _matrices(A, "linalg.matrix_rank")
    if tol is not None:
        atol, rtol = tol, 0.0
    s = jnp.abs(jnp.linalg.eigvalsh(_hermitian(A))) if hermitian else _singular_values(A)
    if s.shape[-1] == 0:
        return jnp.zeros(s.shape[:-1], jnp.int64)
    return (s > _tolerance(A, atol, rtol, s.max(-1))[..., None]).sum(-1).astype(jnp.int64)


# ---------------------------------------------------------------- linear systems


def _broadcast_batches(*matrices):
    lead = ()
    for m in matrices:
        lead = _batch_shape(lead, m.shape[:-2])
    return tuple(jnp.broadcast_to(m, (*lead, *m.shape[-2:])) for m in matrices)


def _system(A, B, left, name):
    """A and B as batches of matrices, and whether B was one of vectors."""
    _squares(A, name)
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {scalar_name(A)} "
            f"and B of type {scalar_name(B)} instead"
        )
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False."
        )
    matrix = B[..., None] if vector else B
    rows = matrix.shape[-2] if left else matrix.shape[-1]
    if rows != A.shape[-1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({A.shape[-2]}x{A.shape[-1]} and {matrix.shape[-2]}x{matrix.shape[-1]})"
        )
    A, matrix = _broadcast_batches(A, matrix)
    return A, matrix, vector


def _solved(A, B, left):
    A, B, vector = _system(A, B, left, "linalg.solve")
    X = jnp.linalg.solve(A, B) if left else _mt(jnp.linalg.solve(_mt(A), _mt(B)))
    return X[..., 0] if vector else X


@op(where="linalg", grad_name="LinalgSolveExBackward0")
def solve(A: Array, B: Array, *, left: bool = True) -> Array:
    """The X with `A @ X = B`, or `X @ A = B` when not `left`."""
    return _solved(A, B, left)


@op(where="linalg", grad_name="LinalgSolveExBackward0")
def solve_ex(A: Array, B: Array, *, left: bool = True, check_errors: bool = False) -> tuple[Array, Array]:
    """`solve`, and 0 or the place of the first zero pivot."""
    return _solved(A, B, left), _lu_info(A)


@op(where="linalg", grad_name="LinalgSolveTriangularBackward0")
def solve_triangular(
    A: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """The X with `A @ X = B`, or `X @ A = B`, for a triangular A; the other triangle is not read."""
    A, B, vector = _system(A, B if B.ndim > 1 else B[:, None], left, "linalg.solve_triangular")
    return lax.linalg.triangular_solve(A, B, left_side=left, lower=not upper, unit_diagonal=unitriangular)


@op(where="torch Tensor")
def triangular_solve(
    b: Array, A: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    """The X with `A @ X = b` for a triangular A, and a copy of A."""
    wide, b = _broadcast_batches(A, b)
    solution = lax.linalg.triangular_solve(
        wide, b, left_side=True, lower=not upper, transpose_a=transpose, unit_diagonal=unitriangular
    )
    return solution, wide


@op(where="linalg", grad_name="LinalgLstsqBackward0")
def lstsq(
    A: Array, B: Array, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Array, Array, Array, Array]:
    """The X of least norm among those that bring `A @ X` nearest to B, with residuals, rank, singular values.

    Residuals are given for more rows than columns by every driver but "gelsy", the default; singular values
    by "gelsd" and "gelss".
    """
    _matrices(A, "torch.linalg.lstsq")
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    B = B[..., None] if vector else B
    A, B = _broadcast_batches(A, B)
    m, n = A.shape[-2:]
    X = _pseudo_inverse(A, None, rcond, False) @ B
    empty = jnp.zeros((0,), _real(A.dtype))
    s = _singular_values(lax.stop_gradient(A))
    rank = (s > _tolerance(A, None, rcond, s.max(-1))[..., None]).sum(-1).astype(jnp.int64)
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


# ---------------------------------------------------------------- Cholesky


def _cholesky(A, upper):
    L = lax.linalg.cholesky(_hermitian(A, not upper), symmetrize_input=False)
    return _mh(L) if upper else L


@op(where="linalg.cholesky", grad_name="LinalgCholeskyExBackward0")
def linalg_cholesky(A: Array, *, upper: bool = False) -> Array:
    """The lower triangular L with `L @ L.mH = A`, or its adjoint when `upper`."""
    _squares(A, "linalg.cholesky")
    return _cholesky(A, upper)


@op(where="linalg", grad_name="LinalgCholeskyExBackward0")
def cholesky_ex(A: Array, *, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    """`cholesky`, and 0 or the order of the first leading minor that is not positive."""
    _squares(A, "linalg.cholesky")
    L = _cholesky(A, upper)
    return L, _bad_minor(_hermitian(lax.stop_gradient(A), not upper), lax.stop_gradient(L))


def _bad_minor(A, L):
    """The order of the first leading minor that is not positive, or 0: an elimination without pivots."""
    n = A.shape[-1]

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

    failed = jnp.isnan(L.real).any() if A.size else jnp.asarray(False)
    return lax.cond(failed, search, lambda _: jnp.zeros(A.shape[:-2], jnp.int32), None)


@op(where="torch Tensor")
def cholesky(input: Array, upper: bool = False) -> Array:
    """The triangular factor of a positive definite matrix."""
    _squares(input, "cholesky")
    return _cholesky(input, upper)


@op(where="torch Tensor")
def cholesky_solve(B: Array, L: Array, upper: bool = False) -> Array:
    """The X with `A @ X = B`, for the A whose Cholesky factor is L."""
    if B.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {B.ndim} dimensions instead")
    L, B = _broadcast_batches(L, B)
    L = _mh(L) if upper else L
    Y = lax.linalg.triangular_solve(L, B, left_side=True, lower=True)
    return lax.linalg.triangular_solve(L, Y, left_side=True, lower=True, transpose_a=True, conjugate_a=True)


@op(where="torch Tensor")
def cholesky_inverse(L: Array, upper: bool = False) -> Array:
    """The inverse of the matrix whose Cholesky factor is L."""
    if L.ndim < 2 or L.shape[-1] != L.shape[-2]:
        _square(L, "cholesky_inverse")
    eye = jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape)
    return cholesky_solve.fn(eye, L, upper)


@op(where="")
def cholesky_factor_grad(S: Array, L: Array, upper: bool) -> Array:
    """The gradient of L where that of the product `L @ L.mH` (or `L.mH @ L`) is `-S`."""
    both = S + _mh(S)
    return -(L @ both) if upper else -(both @ L)


@op(where="")
def times_adjoint(a: Array, b: Array) -> Array:
    """`a @ b.mH`."""
    return a @ _mh(b)


@op(where="")
def sandwich(x: Array, g: Array) -> Array:
    """`x.mH @ g @ x.mH`."""
    return _mh(x) @ g @ _mh(x)


# torch takes both triangles of L for its own here, though one is not read: jax's rules would zero the other
cholesky_solve.vjp(
    B=lambda g, L, upper: cholesky_solve(g, L, upper),
    L=lambda g, L, upper, out: cholesky_factor_grad(
        times_adjoint(cholesky_solve(g, L, upper), out), L, upper
    ),
)
cholesky_inverse.vjp(L=lambda g, L, upper, out: cholesky_factor_grad(sandwich(out, g), L, upper))


# ---------------------------------------------------------------- QR


def _qr(A, mode):
    m, n = A.shape[-2:]
    if m < n:
        # jax differentiates the factorisation of tall matrices: the columns past the square follow from Q
        Q, R = jnp.linalg.qr(A[..., :m], mode="reduced")
        return Q, jnp.concatenate([R, _mh(Q) @ A[..., m:]], -1)
    return jnp.linalg.qr(A, mode="complete" if mode == "complete" and m != n else "reduced")


@op(where="linalg.qr")
def linalg_qr(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """An orthonormal Q and an upper triangular R with `Q @ R = A`."""
    _matrices(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    Q, R = _qr(A, mode)
    return (jnp.zeros((0,), A.dtype) if mode == "r" else Q), R


@op(where="torch Tensor", grad_name="LinalgQrBackward0")
def qr(input: Array, some: bool = True) -> tuple[Array, Array]:
    """`linalg.qr`, reduced or complete."""
    _matrices(input, "linalg.qr")
    return tuple(_qr(input, "reduced" if some else "complete"))


@op(where="torch Tensor", differentiable=False)
def geqrf(input: Array) -> tuple[Array, Array]:
    """QR as Householder reflections: R and the vectors in one matrix, and their factors."""
    _matrices(input, "geqrf")
    h, tau = jnp.linalg.qr(input, mode="raw")
    return _mt(h), tau


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


@op(where="linalg torch.orgqr Tensor.orgqr", grad_name="LinalgHouseholderProductBackward0")
def householder_product(A: Array, tau: Array) -> Array:
    """The first columns of the product of the Householder reflections that A and tau hold."""
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
            "input.shape[-1]"
        )
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    return _reflections(A, tau, False)


@op(where="torch Tensor")
def ormqr(input: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False) -> Array:
    """`other` multiplied by the product of Householder reflections, or by its adjoint."""
    Q = _reflections(input, tau, True)
    Q = _mh(Q) if transpose else Q
    return Q @ other if left else other @ Q


# ---------------------------------------------------------------- singular values


def _svd(A, full):
    m, n = A.shape[-2:]
    return jnp.linalg.svd(A, full_matrices=full and m != n)


def _singular_values(A):
    return jnp.linalg.svd(A, compute_uv=False)


@op(where="linalg.svd")
def linalg_svd(
    A: Array, full_matrices: bool = True, *, driver: str | None = None
) -> tuple[Array, Array, Array]:
    """U, the singular values from the largest, and V's adjoint: `U @ diag(S) @ Vh = A`."""
    _matrices(A, "linalg.svd")
    return tuple(_svd(A, full_matrices))


@op(where="linalg", grad_name="LinalgSvdBackward0")
def svdvals(A: Array, *, driver: str | None = None) -> Array:
    """The singular values, from the largest."""
    _matrices(A, "linalg.svd")
    return _singular_values(A)


@op(where="torch Tensor", grad_name="LinalgSvdBackward0")
def svd(input: Array, some: bool = True, compute_uv: bool = True) -> tuple[Array, Array, Array]:
    """U, the singular values and V: `U @ diag(S) @ V.mH = input`."""
    _matrices(input, "linalg.svd")
    m, n = input.shape[-2:]
    if not compute_uv:
        zeros = [jnp.zeros((*input.shape[:-2], k, k), input.dtype) for k in (m, n)]
        return zeros[0], _singular_values(input), zeros[1]
    U, S, Vh = _svd(input, not some)
    return U, S, _mh(Vh)


# ---------------------------------------------------------------- eigenvalues


def _triangle(UPLO):
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO in "Ll"


@op(where="linalg")
def eigh(A: Array, UPLO: str = "L") -> tuple[Array, Array]:
    """The eigenvalues of a Hermitian matrix, rising, and its eigenvectors."""
    _squares(A, "linalg.eigh")
    w, v = jnp.linalg.eigh(_hermitian(A, _triangle(UPLO)), symmetrize_input=False)
    return w, v


eigh.grad_name = "LinalgEighBackward0"


@op(where="linalg", grad_name="LinalgEighBackward0")
def eigvalsh(A: Array, UPLO: str = "L") -> Array:
    """The eigenvalues of a Hermitian matrix, rising."""
    _squares(A, "linalg.eigvalsh")
    return jnp.linalg.eigh(_hermitian(A, _triangle(UPLO)), symmetrize_input=False)[0]


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


@op(where="linalg")
def eig(A: Array) -> tuple[Array, Array]:
    """The eigenvalues and eigenvectors of a square matrix, both complex. Off the CPU, a call to the host."""
    _squares(A, "linalg.eig")
    return _eig(A)


eig.grad_name = "LinalgEigBackward0"


@op(where="linalg", grad_name="LinalgEigBackward0")
def eigvals(A: Array) -> Array:
    """The eigenvalues of a square matrix, complex."""
    _squares(A, "linalg.eigvals")
    return _eig(A)[0]


# ---------------------------------------------------------------- LU and LDL


def _lu_parts(lu):
    m, n = lu.shape[-2:]
    k = builtins.min(m, n)
    L = jnp.tril(lu[..., :k], -1) + jnp.eye(m, k, dtype=lu.dtype)
    return L, jnp.triu(lu[..., :k, :])


def _permutation(perm, dtype):
    """The matrix P with P @ (rows in pivoted order) = the rows as they were."""
    m = perm.shape[-1]
    return (jnp.arange(m, dtype=perm.dtype)[:, None] == perm[..., None, :]).astype(dtype)


def _lu(A, pivot, name):
    if A.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {size_of(A.shape)} instead"
        )
    _inexact(A, name)
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")
    return lax.linalg.lu(A)


@op(where="linalg.lu", grad_name="LinalgLuBackward0")
def linalg_lu(A: Array, *, pivot: bool = True) -> tuple[Array, Array, Array]:
    """A permutation, a unit lower and an upper triangular matrix whose product is A."""
    lu, _, perm = _lu(A, pivot, "linalg.lu")
    L, U = _lu_parts(lu)
    return _permutation(perm, A.dtype), L, U


@op(where="linalg", grad_name="LinalgLuFactorExBackward0")
def lu_factor(A: Array, *, pivot: bool = True) -> tuple[Array, Array]:
    """L and U in one matrix, and the row exchanges, counted from 1."""
    lu, pivots, _ = _lu(A, pivot, "linalg.lu_factor")
    return lu, pivots + 1


@op(where="linalg")
def lu_factor_ex(A: Array, *, pivot: bool = True, check_errors: bool = False) -> tuple[Array, Array, Array]:
    """`lu_factor`, and 0 or the place of the first zero pivot."""
    lu, pivots, _ = _lu(A, pivot, "linalg.lu_factor")
    return lu, pivots + 1, _zero_pivot(lax.stop_gradient(lu))


lu_factor_ex.grad_name = "LinalgLuFactorExBackward0"


@composite(where="torch Tensor")
def lu(A, pivot=True, get_infos=False):
    """`linalg.lu_factor`, with the infos when asked for."""
    return lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot=pivot)


def _lu_solved(LU, pivots, B, left, adjoint):
    LU, B = _broadcast_batches(LU, B)
    pivots = jnp.broadcast_to(pivots, LU.shape[:-1])
    perm = lax.linalg.lu_pivots_to_permutation(pivots - 1, LU.shape[-1])
    P = _permutation(perm, LU.dtype)
    if not left:  # X A = B is A.mH X.mH = B.mH
        return _mh(_lu_solved(LU, pivots, _mh(B), True, not adjoint))

    def tri(rhs, lower, unit, turned):
        return lax.linalg.triangular_solve(
            LU, rhs, left_side=True, lower=lower, unit_diagonal=unit, transpose_a=turned, conjugate_a=turned
        )

    if adjoint:
        return P @ tri(tri(B, False, False, True), True, True, True)
    return tri(tri(_mt(P) @ B, True, True, False), False, False, False)


@op(where="linalg.lu_solve")
def linalg_lu_solve(LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False) -> Array:
    """The X with `A @ X = B`, or `X @ A = B`, from A's `lu_factor`."""
    return _lu_solved(LU, pivots, B, left, adjoint)


@op(where="torch Tensor", grad_name="LinalgLuSolveBackward0")
def lu_solve(b: Array, LU_data: Array, LU_pivots: Array) -> Array:
    """The X with `A @ X = b`, from A's `lu_factor`."""
    return _lu_solved(LU_data, LU_pivots, b, True, False)


@op(where="torch")
def lu_unpack(
    LU_data: Array, LU_pivots: Array, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Array, Array, Array]:
    """The permutation, L and U that a `lu_factor` holds; what is not wanted comes empty."""
    empty = jnp.zeros((0,), LU_data.dtype)
    L, U = _lu_parts(LU_data) if unpack_data else (empty, empty)
    if not unpack_pivots:
        return empty, L, U
    perm = lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, LU_data.shape[-2])
    return _permutation(perm, LU_data.dtype), L, U


def _ldl_kind(A, hermitian):
    return "hetrf" if hermitian and np.iscomplexobj(A) else "sytrf"


def _host_ldl(A, hermitian):
    A = np.asarray(A)
    (factor,) = get_lapack_funcs((_ldl_kind(A, hermitian),), (A,))
    flat = A.reshape(-1, *A.shape[-2:])
    LD, pivots, info = np.empty_like(flat), np.empty(flat.shape[:-1], np.int32), np.empty(len(flat), np.int32)
    for i, a in enumerate(flat):
        LD[i], pivots[i], info[i] = factor(a, lower=1)
    # scipy counts pivots from 0 and keeps the sign of the 2 by 2 blocks
    lead = A.shape[:-2]
    return np.tril(LD).reshape(A.shape), pivots.reshape(A.shape[:-1]), info.reshape(lead)


def _ldl(A, hermitian):
    _squares(A, "torch.linalg.ldl_factor_ex")
    out = (
        jax.ShapeDtypeStruct(A.shape, A.dtype),
        jax.ShapeDtypeStruct(A.shape[:-1], np.int32),
        jax.ShapeDtypeStruct(A.shape[:-2], np.int32),
    )
    return jax.pure_callback(lambda a: _host_ldl(a, hermitian), out, A, vmap_method="expand_dims")


@op(where="linalg", differentiable=False)
def ldl_factor(A: Array, *, hermitian: bool = False) -> tuple[Array, Array]:
    """The Bunch-Kaufman factors of a symmetric or Hermitian matrix, computed on the host."""
    LD, pivots, _ = _ldl(A, hermitian)
    return LD, pivots


@op(where="linalg", differentiable=False)
def ldl_factor_ex(
    A: Array, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Array, Array, Array]:
    """`ldl_factor` and LAPACK's info."""
    return tuple(_ldl(A, hermitian))


def _host_ldl_solve(LD, pivots, B, hermitian):
    LD, pivots, B = np.asarray(LD), np.asarray(pivots), np.asarray(B)
    name = _ldl_kind(LD, hermitian)[:2] + "trs"
    (solver,) = get_lapack_funcs((name,), (LD, B))
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (LD, B)]
    out = np.empty_like(flat[1])
    for i, (a, p, b) in enumerate(zip(flat[0], pivots.reshape(-1, pivots.shape[-1]), flat[1])):
        out[i] = solver(a, p, b, lower=1)[0]
    return out.reshape(B.shape)


@op(where="linalg", differentiable=False)
def ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """The X with `A @ X = B`, from A's `ldl_factor`."""
    LD, B = _broadcast_batches(LD, B)
    pivots = jnp.broadcast_to(pivots, LD.shape[:-1])
    out = jax.ShapeDtypeStruct(B.shape, B.dtype)
    fn = lambda a, p, b: _host_ldl_solve(a, p, b, hermitian)
    return jax.pure_callback(fn, out, LD, pivots, B, vmap_method="expand_dims")


# ---------------------------------------------------------------- functions of matrices, tensors as matrices


@op(where="linalg torch Tensor", grad_name="LinalgMatrixExpBackward0")
def matrix_exp(A: Array) -> Array:
    """The exponential of a square matrix."""
    _squares(A, "linalg.matrix_exp")
    return _expm(A) if A.size else A


# Pade numerators and the one-norms up to which they are exact to rounding (Higham, 2005)
_PADE_7 = (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)
_PADE_13 = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip


def _expm(A):
    """Scaling and squaring, as many squarings as the largest matrix of the batch needs."""
    kind = _real(A.dtype)
    c, reach = (_PADE_7, 3.925724783138660) if kind == np.float32 else (_PADE_13, 5.371920351148152)
    size = jnp.abs(A).sum(-2).max(-1)
    turns = jnp.ceil(jnp.log2(jnp.where(size > reach, size / reach, jnp.ones((), kind))))
    turns = jnp.where(jnp.isfinite(turns), turns, 0).astype(jnp.int32)
    A = A * jnp.exp2(-turns.astype(kind))[..., None, None].astype(A.dtype)
    eye = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    square, power, even, odd = A @ A, eye, jnp.zeros_like(A), jnp.zeros_like(A)
    for i in range(0, len(c), 2):
        even, odd = even + c[i] * power, odd + c[i + 1] * power
        power = power @ square
    odd = A @ odd
    out = jnp.linalg.solve(even - odd, even + odd)
    squared = lambda i, x: jnp.where((i < turns)[..., None, None], x @ x, x)
    return lax.fori_loop(0, turns.max(), squared, out)


@op(where="")
def with_corner(A: Array, corner: Array) -> Array:
    """The block matrix [[A.mH, corner], [0, A.mH]]."""
    A = _mh(A)
    return jnp.concatenate(
        [jnp.concatenate([A, corner], -1), jnp.concatenate([jnp.zeros_like(A), A], -1)], -2
    )


@op(where="")
def corner_of(A: Array) -> Array:
    """The upper right quarter of a matrix."""
    n = A.shape[-1] // 2
    return A[..., :n, n:]


# the loop has no reverse derivative; the exponential of a block matrix holds it, at every order
matrix_exp.vjp(A=lambda g, A: corner_of(matrix_exp(with_corner(A, g))))


@op(where="linalg", grad_name="ViewBackward0")
def tensorinv(A: Array, ind: int = 2) -> Array:
    """The inverse of A as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    head, tail = A.shape[:ind], A.shape[ind:]
    if math.prod(head) != math.prod(tail):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but "
            f"got {math.prod(tail)} != {math.prod(head)}"
        )
    return jnp.linalg.inv(A.reshape(math.prod(head), -1)).reshape(*tail, *head)


@op(where="linalg", grad_name="ViewBackward0")
def tensorsolve(A: Array, B: Array, dims: tuple | None = None) -> Array:
    """The X with `tensordot(A, X, X.ndim) = B`; `dims` of A are moved to its end first."""
    if dims is not None:
        A = jnp.moveaxis(A, dims, tuple(range(A.ndim - len(dims), A.ndim)))
    shape = A.shape[B.ndim :]
    if math.prod(shape) != B.size:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {math.prod(A.shape[: B.ndim])}"
        )
    return jnp.linalg.solve(A.reshape(B.size, B.size), B.reshape(-1, 1)).reshape(shape)


@op(where="linalg.vander", grad_name="CatBackward0")
def linalg_vander(x: Array, *, N: int | None = None) -> Array:
    """The rising powers of each element of the last dimension, from 0 to N - 1."""
    n = x.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = x.astype(jnp.int64) if jnp.issubdtype(x.dtype, jnp.integer) else x
    powers = [jnp.ones_like(x)]
    for _ in range(1, n):
        powers.append(powers[-1] * x)
    return jnp.stack(powers, -1)


@composite(where="linalg.diagonal")
def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonals of the matrices in A."""
    return diagonal(A, offset, dim1, dim2)
