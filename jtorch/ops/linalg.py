"""torch.linalg: norms, determinants, inverses and functions of matrices, batched over the leading dimensions."""

import builtins
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import errors
from ..core import dtype as dtypes
from ..core import shapes
from ..core.dtype import dtype as DType
from . import small
from .arguments import axes, axis, scalar_name
from .backend import accumulator, check_norm_dtype, extreme_over, magnitude
from .conversion import is_number, kind
from .factor import lu_info, singular_values
from .matmul import power_of
from .matrices import (
    SINGULAR,
    column_strides,
    columns,
    demand,
    from_triangle,
    inexact,
    matrices,
    mh,
    real_dtype,
    square,
    squares,
)
from .products import product_of
from .reduce import norm_slope
from .registry import Array, Scalar, composite, op
from .vectors import root
from .views import diagonal

RETURN_FIELDS = {
    "slogdet": ("sign", "logabsdet"),
    "linalg_slogdet": ("sign", "logabsdet"),
    "inv_ex": ("inverse", "info"),
}

# ---------------------------------------------------------------- norms


def _cast(x, dtype, name):
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(x)}")
    if dtype is None:
        return x
    check_norm_dtype(name, dtypes.of(x.dtype), dtype)
    return x.astype(dtype.np)


def _largest(size, dims, keepdim=False):
    """The maximum of what is not negative; 0 of nothing, which takes no share of the gradient from zeros."""
    if builtins.any(size.shape[d] == 0 for d in dims):
        return size.max(dims, keepdims=keepdim, initial=0)
    return extreme_over(size, dims, keepdim, True)


def _norm(x, ord, dims, keepdim):
    """The vector norm over `dims`, summed in at least single precision; of one element its size, which no power can overflow."""
    kind = real_dtype(x.dtype)
    is_complex = jnp.issubdtype(x.dtype, jnp.complexfloating)
    infinite = jnp.isinf(x.real) | jnp.isinf(x.imag) if is_complex else None  # beside a nan too
    if ord != 0 and builtins.all(x.shape[d] == 1 for d in dims):
        size = magnitude(x).astype(kind)
        size = size if infinite is None else jnp.where(infinite, jnp.inf, size)
        return size if keepdim else size.squeeze(dims)
    wide = accumulator(kind)
    if is_complex:
        squares = jnp.where(infinite, jnp.inf, x.real**2 + x.imag**2)
        size = None if ord == 2 else root(squares)
    else:
        x = x.astype(wide)
        squares, size = x * x, magnitude(x)
    if ord == 2:
        out = root(squares.sum(dims, keepdims=keepdim))
    elif ord == 0:
        out = (size != 0).sum(dims, keepdims=keepdim).astype(wide)
    elif ord == 1:
        out = size.sum(dims, keepdims=keepdim)
    elif math.isinf(ord) and ord > 0:
        out = _largest(size, dims, keepdim)
    elif math.isinf(ord):
        out = extreme_over(size, dims, keepdim, False)
    else:
        if ord > 0:
            size = jnp.where(size == 0, 1, size) ** ord * (size != 0)
            out = root(size.sum(dims, keepdims=keepdim), 1 / ord)
        else:
            out = (size**ord).sum(dims, keepdims=keepdim) ** (1 / ord)
    return out.astype(kind)


@op(where="linalg", out="exact")
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


@vector_norm.check
def _check_empty(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    if 0 <= ord < math.inf or x.numel:
        return
    if dim is None or dim == ():
        where = "an empty tensor"
    else:
        empty = [d for d in ((dim,) if isinstance(dim, int) else dim) if x.shape[axis(d, x.ndim)] == 0]
        if not empty:
            return
        where = f"the dimension {empty[0]}because this dimension is empty"
    why = "because the operation" if dim is None or dim == () else "and the operation"
    ord = f"{ord:g}"
    raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on {where} {why} does not have an identity")


vector_norm.guards(x=lambda call: True if call["ord"] == 0 else None)


vector_norm.grad_name = "LinalgVectorNormBackward0"


def _vector_norm_slope(g, x, out, ord, dim, keepdim, dtype):
    x = x if dtype is None else x.astype(dtype.np)
    return norm_slope(g, x, out, ord, None if dim == () else dim, keepdim)


# as that of norm: jax.vjp gives nan at 0, and no share to what is 0 where the norm is of order 1
vector_norm.vjp(x=_vector_norm_slope).transposed = True

_NORM_NAMES = {
    "fro": "LinalgVectorNormBackward0",
    "nuc": "SumBackward1",
    -1: "AminBackward0",
    -2: "AminBackward0",
}


def _matrix_norm_name(args) -> str:
    ord = args["ord"]
    return "AminBackward0" if not isinstance(ord, str) and ord < 0 else _NORM_NAMES.get(ord, "AmaxBackward0")


@op(
    where="linalg",
    grad_name=_matrix_norm_name,
    out="linalg.matrix_norm expected out tensor dtype {want} but got: {have}",
)
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
    own, A = A.dtype, _cast(A, dtype, "linalg.matrix_norm")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    row, col = axis(dim[0], A.ndim), axis(dim[1], A.ndim)
    if row == col:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return _norm(A, 2, (row, col), keepdim)
    if own.itemsize == 2 and ord in ("nuc", 2, -2):
        raise RuntimeError(
            f"linalg.matrix_norm: Low precision dtypes not supported. Got {dtypes.scalar_name(dtypes.of(own))}"
        )
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord in ("nuc", 2, -2):
        s = singular_values(jnp.moveaxis(A, (row, col), (-2, -1)))
        if not s.shape[-1] and ord == -2:
            raise IndexError("amin(): Expected reduction dim -1 to have non-zero size.")
        out = s.sum(-1) if ord == "nuc" else _largest(s, (-1,)) if ord == 2 else s.min(-1)
    else:
        inner, outer = (row, col) if builtins.abs(ord) == 1 else (col, row)
        sums = _norm(A, 1, (inner,), True)
        if ord < 0 and not A.shape[outer]:
            raise IndexError(f"amin(): Expected reduction dim {outer - (inner < outer)} to have non-zero size.")
        out = _largest(sums, (inner, outer)) if ord > 0 else extreme_over(sums, (inner, outer), False, False)
    return jnp.expand_dims(out, (row, col)) if keepdim else out


# Of singular values only these are kept; the nuclear norm is their sum, and keeps neither.
matrix_norm.guards(A=lambda call: call["ord"] not in ("nuc", 2, -2), out=lambda call: call["ord"] != "nuc")


@composite(where="linalg.norm")
def linalg_norm(A: Array, ord=None, dim=None, keepdim: bool = False, *, out=None, dtype=None):
    """A vector or matrix norm, as `dim` and `ord` say."""
    dims = (dim,) if isinstance(dim, int) else dim
    keep = {} if out is None else {"out": out}
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
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
    inexact(A, "linalg.cond")
    if p not in ("fro", "nuc", None, 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p in (None, 2, -2):
        s = singular_values(A)
        if not s.shape[-1]:
            return jnp.zeros(s.shape[:-1], s.dtype)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    if A.size or isinstance(p, str):
        square(A, f"linalg.cond(ord={p if isinstance(p, str) else format(p, 'g')})")
    if not A.size:
        return jnp.zeros(A.shape[:-2], real_dtype(A.dtype))
    pivots = jnp.diagonal(jax.scipy.linalg.lu_factor(A)[0], axis1=-2, axis2=-1)
    singular = jnp.any((pivots == 0) | jnp.isnan(pivots), axis=-1)
    norm, inverse = matrix_norm.fn(A, p), matrix_norm.fn(jnp.linalg.inv(A), p)
    infinite = jnp.asarray(jnp.inf, norm.dtype)
    if p == "nuc":
        return norm * jnp.where(singular, infinite, inverse)
    return jnp.where(singular, infinite, norm * inverse)


cond.guards(A=False)


# ---------------------------------------------------------------- determinants and inverses


@op(where="linalg torch Tensor", grad_name="LinalgDetBackward0", out="exact")
def det(A: Array) -> Array:
    """The determinant."""
    squares(A, "linalg.det", "lu_cpu")
    if not A.shape[-1]:  # jax has no derivative there
        return jnp.ones(A.shape[:-2], A.dtype)
    return jnp.linalg.det(A)


det.guards(A=True, out=True)


def _slogdet(A: Array) -> tuple[Array, Array]:
    """The sign of the determinant and the logarithm of its absolute value."""
    squares(A, "linalg.slogdet")
    sign, log = jnp.linalg.slogdet(A)
    nothing = jnp.isnan(sign) | jnp.isnan(log)
    return (sign if jnp.iscomplexobj(A) else jnp.where(nothing, 0, sign)), log


# Two ops, since the types of their results have their names.
linalg_slogdet = op(where="linalg.slogdet", grad_name="LinalgSlogdetBackward0", out="exact", name="linalg_slogdet")(
    _slogdet
)
slogdet = op(where="torch Tensor", grad_name="LinalgSlogdetBackward0", out="exact", name="slogdet")(_slogdet)
linalg_slogdet.guards(out0=True)
slogdet.guards(out0=True)


@op(grad_name="WhereBackward0")
def logdet(input: Array) -> Array:
    """The logarithm of the determinant; NaN where it is negative."""
    squares(input, "logdet")
    sign, log = jnp.linalg.slogdet(input)
    if jnp.issubdtype(input.dtype, jnp.complexfloating):
        return log + jnp.log(sign)
    return jnp.where(sign == -1, jnp.asarray(jnp.nan, log.dtype), log)


@op(where="", grad_name="LinalgInvExBackward0", strides=columns(0))
def inv_and_info(A: Array) -> tuple[Array, Array]:
    """The inverse, and 0 or the place of the first zero pivot."""
    squares(A, "linalg.inv")
    return small.inverse(A) if small.fits(A) else (jnp.linalg.inv(A), lu_info(A))


inv_and_info.guards(A=False, out0=True)
inv_and_info.vjp(A=lambda g, out0: inverse_grad(g[0], out0))


@op(where="")
def inverse_grad(g: Array, inverse: Array) -> Array:
    """The gradient of the matrix whose inverse is given."""
    turned = mh(inverse)
    return -product_of(product_of(turned, g), turned)


@composite(where="linalg torch.inverse Tensor.inverse", out="exact")
def inv(A: Array):
    """The inverse."""
    inverse, info = inv_and_info(A)
    demand("linalg.inv", SINGULAR, info)
    return inverse


@composite(where="linalg", out="exact")
def inv_ex(A: Array, *, check_errors: bool = False):
    """The inverse, and 0 or the place of the first zero pivot."""
    inverse, info = inv_and_info(A)
    if check_errors:
        demand("linalg.inv_ex", SINGULAR, info)
    return inverse, info


def tolerance(A, atol, rtol, largest):
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
    dAh = mh(dA)
    return P, -P @ dA @ P + P @ (mh(P) @ dAh @ left) + (right @ dAh @ mh(P)) @ P


def pseudo_inverse(A, atol, rtol, hermitian):
    fixed = lax.stop_gradient(A)
    if hermitian:
        w, v = jnp.linalg.eigh(from_triangle(fixed), symmetrize_input=False)
        size = jnp.abs(w)
        u, s, vh = v, w, mh(v)
    else:
        u, s, vh = jnp.linalg.svd(fixed, full_matrices=False)
        size = s
    if size.shape[-1] == 0:
        return jnp.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    cut = tolerance(A, atol, rtol, size.max(-1))[..., None]
    keep = size > cut
    inverse = jnp.where(keep, 1 / jnp.where(keep, s, 1), 0).astype(A.dtype)
    return _pinv(A, mh(vh) @ (inverse[..., None] * mh(u)))


@op(where="linalg", grad_name="LinalgPinvBackward0")
def pinv(
    A: Array,
    rcond: Scalar | None = None,
    hermitian: bool = False,
    *,
    atol: Scalar | None = None,
    rtol: Scalar | None = None,
) -> Array:
    """The Moore-Penrose pseudo-inverse; singular values up to max(atol, rtol * largest) count as zero."""
    matrices(A, "linalg.pinv")
    return pseudo_inverse(A, atol, rcond if rtol is None else rtol, hermitian)


pinv.guards(out=True)


def _real_tolerance(name, given):
    for which, x in given.items():
        if x is not None and kind(x) == "c":
            if is_number(x):
                raise errors.combination(f"linalg_{name}", (), "real tolerances")
            raise RuntimeError(
                f"torch.linalg.{name}: {which} tensor of complex type is not supported. Got {dtypes.scalar_name(x.dtype)}"
            )


@pinv.check
def _check_pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None):
    _real_tolerance("pinv", {"rcond": rcond, "atol": atol, "rtol": rtol})


@composite(where="torch Tensor")
def pinverse(input: Array, rcond=1e-15):
    """The Moore-Penrose pseudo-inverse."""
    return pinv(input, rtol=rcond)


@op(where="linalg", differentiable=False)
def matrix_rank(
    A: Array,
    tol: Scalar | None = None,
    hermitian: bool = False,
    *,
    atol: Scalar | None = None,
    rtol: Scalar | None = None,
) -> Array:
    """The number of singular values above max(atol, rtol * largest)."""
    matrices(A, "linalg.matrix_rank")
    if tol is not None:
        atol, rtol = tol, 0.0
    s = jnp.abs(jnp.linalg.eigvalsh(from_triangle(A))) if hermitian else singular_values(A)
    if s.shape[-1] == 0:
        return jnp.zeros(s.shape[:-1], jnp.int64)
    return (s > tolerance(A, atol, rtol, s.max(-1))[..., None]).sum(-1).astype(jnp.int64)


@matrix_rank.check
def _check_matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None):
    _real_tolerance("matrix_rank", {"atol": atol if tol is None else tol, "rtol": rtol})


# ---------------------------------------------------------------- functions of matrices, tensors as matrices


@composite(where="linalg torch Tensor", out="exact")
def matrix_power(input: Array, n: int):
    """A square matrix multiplied `n` times; negative: its inverse."""
    square(input, "linalg.matrix_power")
    return power_of(input, n) if n >= 0 else inv(input) if n == -1 else power_of(inv(input), -n)


@op(where="linalg torch Tensor", grad_name="LinalgMatrixExpBackward0")
def matrix_exp(A: Array) -> Array:
    """The exponential of a square matrix."""
    square(A, "linalg.matrix_exp")
    if A.dtype.itemsize < 4 and jnp.issubdtype(A.dtype, jnp.inexact):
        return _expm(A.astype(jnp.float32)).astype(A.dtype) if A.size else A
    inexact(A, "linalg.matrix_exp")
    return _expm(A) if A.size else A


# Pade numerators and the one-norms up to which they are exact to rounding (Higham, 2005)
_PADE_7 = (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)
_PADE_13 = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip


def _expm_by(A, squarings):
    """Scaling and squaring; `squarings(once, turns, x)` squares as often as the largest matrix of the batch needs."""
    kind = real_dtype(A.dtype)
    c, reach = (_PADE_7, 3.925724783138660) if kind == np.float32 else (_PADE_13, 5.371920351148152)
    size = jnp.abs(A).sum(-2).max(-1)
    turns = jnp.ceil(jnp.log2(jnp.where(size > reach, size / reach, jnp.ones((), kind))))
    turns = lax.stop_gradient(jnp.where(jnp.isfinite(turns), turns, 0).astype(jnp.int32))
    A = A * jnp.exp2(-turns.astype(kind))[..., None, None].astype(A.dtype)
    eye = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    square, power, even, odd = A @ A, eye, jnp.zeros_like(A), jnp.zeros_like(A)
    for i in range(0, len(c), 2):
        even, odd = even + c[i] * power, odd + c[i + 1] * power
        power = power @ square
    odd = A @ odd
    once = lambda i, x: jnp.where((i < turns)[..., None, None], x @ x, x)
    return squarings(once, turns.max(), jnp.linalg.solve(even - odd, even + odd))


@jax.custom_vjp
def _expm(A):
    return _expm_by(A, lambda once, turns, x: lax.fori_loop(0, turns, once, x))


SQUARINGS = 64  # at most, where a derivative follows: enough up to a norm of 1e19


def _expm_followed(A):
    """`_expm` with derivatives of both modes and all orders, which a loop of unknown length does not have."""

    def squarings(once, turns, x):
        step = lambda x, i: (lax.cond(i < turns, lambda x: once(i, x), lambda x: x, x), None)
        return lax.scan(step, x, jnp.arange(SQUARINGS))[0]

    return _expm_by(A, squarings)


def _expm_tangent(A, t):
    """The tangent at A in direction t: in the corner of the exponential of the block matrix [[A, t], [0, A]]."""
    n = A.shape[-1]
    top, bottom = jnp.concatenate([A, t], -1), jnp.concatenate([jnp.zeros_like(A), A], -1)
    return _expm_followed(jnp.concatenate([top, bottom], -2))[..., :n, n:]


_expm.defvjp(lambda A: (_expm_followed(A), A), lambda A, g: (_expm_tangent(jnp.swapaxes(A, -1, -2), g),))


def _matrix_exp_tangent(operands, tangents, numbers):
    A, t = operands[0], tangents[0]
    kind = jnp.float32 if A.dtype.itemsize < 4 else A.dtype
    return _expm_tangent(A.astype(kind), t.astype(kind)).astype(A.dtype)


matrix_exp.tangents = _matrix_exp_tangent


def _tensorinv_strides(outs, A, ind):
    shape = tuple(outs[0].shape)
    rows = len(A.shape) - ind
    whole = column_strides((math.prod(shape[:rows]), math.prod(shape[rows:])))
    inner, outer = (shapes.contiguous_strides(part) for part in (shape[:rows], shape[rows:]))
    return (tuple(n * whole[0] for n in inner) + tuple(n * whole[1] for n in outer), None)


@op(where="", grad_name="ViewBackward0", strides=_tensorinv_strides)
def tensorinv_and_info(A: Array, ind: int) -> tuple[Array, Array]:
    """The inverse of A as a map, and 0 or the place of the first zero pivot."""
    head, tail = A.shape[:ind], A.shape[ind:]
    square = A.reshape(math.prod(head), math.prod(tail))
    return jnp.linalg.inv(square).reshape(*tail, *head), lu_info(square)


tensorinv_and_info.guards(A=False, out0=True)


@composite(where="linalg", out=True, row_major=True)
def tensorinv(A: Array, ind: int = 2):
    """The inverse of A as a map from its last dimensions to its first `ind`."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    head, tail = math.prod(A.shape[:ind]), math.prod(A.shape[ind:])
    if head != tail:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but "
            f"got {tail} != {head}"
        )
    inverse, info = tensorinv_and_info(A, ind)
    demand("inv", SINGULAR, info)
    return inverse


@op(where="linalg.vander", grad_name="CatBackward0")
def linalg_vander(x: Array, *, N: int | None = None) -> Array:
    """The rising powers of each element of the last dimension, from 0 to N - 1."""
    n = (x.shape or (1,))[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    if x.dtype == np.bool_ or x.dtype.itemsize < 4 and jnp.issubdtype(x.dtype, jnp.floating):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {scalar_name(x)}"
        )
    x = x if x.ndim else x[None]
    x = x.astype(jnp.int64) if jnp.issubdtype(x.dtype, jnp.integer) else x
    powers = [jnp.ones_like(x)]
    for _ in range(1, n):
        powers.append(powers[-1] * x)
    return jnp.stack(powers, -1)


@composite(where="linalg.diagonal")
def linalg_diagonal(A: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """A view of the diagonals of the matrices in A."""
    return diagonal(A, offset, dim1, dim2)
