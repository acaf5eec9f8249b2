"""Products of vectors, matrices and higher tensors: matmul and its relatives, einsum, tensordot, cdist."""

import builtins
import functools
import math

import jax.numpy as jnp
import numpy as np

from .. import errors, errors_arguments, errors_nn
from ..core import dtype as dt
from . import small
from .arithmetic import check_factor, mul
from .backend import NARROW, accumulator, magnitude, materialize, matmul_tn, on_cpu, one_of
from .conversion import common_dtype, is_number
from .indexing import axis, ints, scalar_name, size_of
from .registry import Array, Number, composite, op

_C_NAMES = {
    "Float": "float", "Double": "double", "Half": "c10::Half", "BFloat16": "c10::BFloat16", "Long": "long int",
    "Int": "int", "Short": "short int", "Char": "signed char", "Byte": "unsigned char", "Bool": "bool",
    "UInt16": "short unsigned int", "UInt32": "unsigned int", "UInt64": "long unsigned int", "ComplexFloat": "c10::complex<float>", "ComplexDouble": "c10::complex<double>",
}  # fmt: skip


# what torch says of an out= of another dtype
_TENSORDOT_OUT = (
    "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with dtype {have}"
)
_CHAIN_OUT = "multi_dot(): expected out tensor to have dtype {c_want} but got {c_have}"
_ADDBMM_OUT = "self and mat2 must have the same dtype, but got {have} and {want}"


def _c_name(x) -> str:
    name = scalar_name(x)
    return _C_NAMES.get(name, name)


_BOOL_KERNELS = {(1, 1): "dot", (1, 2): "addmv_impl_cpu", (2, 2): "addmm_impl_cpu_"}


def _product(a: Array, b: Array) -> Array:
    """`a @ b` of equal dtypes; the result has theirs."""
    if a.dtype == np.bool_:
        if a.size and b.size:
            ranks = sorted((a.ndim, b.ndim))
            kernel = "bmm" if ranks[0] > 2 else _BOOL_KERNELS[ranks[0], min(ranks[1], 2)]
            raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
        return jnp.matmul(a.astype(jnp.int8), b.astype(jnp.int8)).astype(bool)
    if a.ndim > 2 and b.ndim > 2:
        batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if small.multiplies(batch, *a.shape[-2:], b.shape[-1], a.dtype):
            return small.product(a, b)
    if a.dtype.kind in "iu" and a.dtype.itemsize != 4:
        return _whole_product(a, b)
    return jnp.matmul(a, b)


MANY_TERMS = 1 << 17  # of a product of integers, from which on floats compute it on the CPU


def _whole_product(a: Array, b: Array) -> Array:
    """`a @ b` of integers. For those of 32 bits XLA has vectorised products on the CPU, for others it adds up term by term."""
    inner, bits = a.shape[-1], 8 * a.dtype.itemsize
    if not on_cpu() or a.size * (b.shape[-1] if b.ndim > 1 else 1) < MANY_TERMS:
        return jnp.matmul(a, b)
    plain = lambda: jnp.matmul(a, b)
    by = lambda wide: jnp.matmul(a.astype(wide), b.astype(wide)).astype(jnp.int64).astype(a.dtype)
    if bits <= 16:  # every sum is exact
        short = inner << 2 * bits <= 1 << 24
        return by(jnp.float32 if short else jnp.float64) if inner << 2 * bits <= 1 << 53 else plain()
    if a.dtype != jnp.int64:
        return plain()
    size = lambda x: jnp.max(jnp.abs(x.astype(jnp.float64)))
    return one_of(size(a) * size(b) * inner < 2.0**53, lambda: by(jnp.float64), plain)


def _conj(x: Array) -> Array:
    return jnp.conj(x) if jnp.issubdtype(x.dtype, jnp.complexfloating) else x


def _mt(x: Array) -> Array:
    return jnp.swapaxes(x, -1, -2)


def _same_dtype(a, b):
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_c_name(a)} != {_c_name(b)}")


def _inner_sizes(a, b):
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )


# ---------------------------------------------------------------- matrix times matrix


@op(where="")
def mm_nh(a: Array, b: Array) -> Array:
    """`a @ b.mH` of two matrices."""
    return _product(a, _conj(b).T)


@op(where="")
def mm_hn(a: Array, b: Array) -> Array:
    """`a.mH @ b` of two matrices, in the orientation that runs fastest."""
    return matmul_tn(_conj(a), b)


@op(out="exact")
def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices."""
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    _same_dtype(input, mat2)
    _inner_sizes(input, mat2)
    return _product(input, mat2)


# The three products are closed under derivation: no transposes are recorded at any order.
mm.vjp(input=lambda g, mat2: mm_nh(g, mat2), mat2=lambda g, input: mm_hn(input, g))
mm_nh.vjp(a=lambda g, b: mm(g, b), b=lambda g, a: mm_hn(g, a))
mm_hn.vjp(a=lambda g, b: mm_nh(b, g), b=lambda g, a: mm(a, g))


def _batches(a, b, names=("batch1", "batch2")):
    for name, x in zip(names, (a, b)):
        if x.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )


def _expected_dtype(a, b):
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(a)} but found {scalar_name(b)}")


@op(out="exact")
def bmm(input: Array, mat2: Array) -> Array:
    """The products of two batches of matrices."""
    _batches(input, mat2)
    _expected_dtype(input, mat2)
    return _product(input, mat2)


@op(where="")
def bmm_nh(a: Array, b: Array) -> Array:
    """`a @ b.mH` of batches."""
    return _product(materialize(a), _mt(_conj(b)))


@op(where="")
def bmm_hn(a: Array, b: Array) -> Array:
    """`a.mH @ b` of batches."""
    return _product(_mt(_conj(a)), materialize(b))


bmm.vjp(input=lambda g, mat2: bmm_nh(g, mat2), mat2=lambda g, input: bmm_hn(input, g))
bmm_nh.vjp(a=lambda g, b: bmm(g, b), b=lambda g, a: bmm_hn(g, a))
bmm_hn.vjp(a=lambda g, b: bmm_nh(b, g), b=lambda g, a: bmm(a, g))


def _mv_sizes(mat, vec):
    if mat.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({mat.shape[0]}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )


def _vec_dtype(mat, vec):
    if mat.dtype != vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {scalar_name(vec)}, {scalar_name(mat)}, "
            f"and {scalar_name(vec)}"
        )


@op(out="addmv input tensors must have the same dtype, but got {have}, {want}, and {want}")
def mv(input: Array, vec: Array) -> Array:
    """The product of a matrix and a vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    _vec_dtype(input, vec)
    _mv_sizes(input, vec)
    return _product(input, vec)


def _two_vectors(a, b, name="dot"):
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found {scalar_name(a)} and {scalar_name(b)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {size_of(a.shape)} and src {size_of(b.shape)} "
            f"to have the same number of elements, but got {a.size} and {b.size} elements respectively"
        )


@op(out="result dtype {have} does not match input dtype {want}")
def dot(input: Array, tensor: Array) -> Array:
    """The sum of the products of two vectors' elements."""
    _two_vectors(input, tensor)
    return _product(input, tensor)


@op(out="result dtype {have} does not match input dtype {want}")
def vdot(input: Array, other: Array) -> Array:
    """`dot` with the first vector conjugated."""
    _two_vectors(input, other, "vdot")
    return _product(_conj(input), other)


# ---------------------------------------------------------------- matmul


def _matmul_name(args) -> str:
    ranks = args["input"].ndim, args["other"].ndim
    names = {(1, 1): "DotBackward0", (2, 2): "MmBackward0", (2, 1): "MvBackward0", (1, 2): "SqueezeBackward4"}
    if ranks in names:
        return names[ranks]
    return "CloneBackward0" if ranks[0] == 2 and ranks[1] >= 3 else "UnsafeViewBackward0"


def _check_matmul(a, b):
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == b.ndim == 1:
        return _two_vectors(a, b)
    if b.ndim == 1:
        rows = a.reshape(-1, a.shape[-1]) if a.size else a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        _vec_dtype(rows, b)
        return _mv_sizes(rows, b)
    if a.ndim <= 2 or b.ndim <= 2:
        folded = b.ndim == 2 or (a.ndim == 1 and b.ndim == 2)
        _same_dtype(a, b)
        k = a.shape[-1]
        if k != b.shape[-2]:
            rows = math.prod(a.shape[:-1]) if folded else a.shape[-2] if a.ndim > 1 else 1
            if folded:
                raise RuntimeError(
                    f"mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {b.shape[-2]}x{b.shape[-1]})"
                )
            other = f"{math.prod(b.shape[:-2]) * b.shape[-1]}x{b.shape[-2]} and {k}x{rows}"
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({other})")
        return None
    _expected_dtype(a, b)
    lead = _batch_shape(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] != b.shape[-2]:
        n = math.prod(lead)
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{n}, {a.shape[-1]}] but got: [{n}, {b.shape[-2]}]."
        )


def _batch_shape(a, b) -> tuple:
    ndim = builtins.max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)
    for d, (n, m) in enumerate(zip(a, b)):
        if n != m and 1 not in (n, m):
            raise errors.broadcast(n, m, d)
    return tuple(m if n == 1 else n for n, m in zip(a, b))


@op(where="torch Tensor linalg", grad_name=_matmul_name, out="exact")
def matmul(input: Array, other: Array) -> Array:
    """The product of two tensors: of their last two dimensions as matrices, the others broadcast.

    A vector on the left is a row, on the right a column, and its dimension is dropped from the result.
    """
    _check_matmul(input, other)
    if input.ndim > 2 and other.ndim <= 2:
        # one matrix of rows: XLA then has one dimension to contract in the weight's gradient
        out = _product(_rows(input), other)
        return out.reshape(*input.shape[:-1], *other.shape[1:])
    return _product(input, other)


def _rows(x: Array) -> Array:
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@op(where="")
def matmul_left_grad(g: Array, other: Array) -> Array:
    """The derivative of `matmul` in its first argument, its batch dimensions not yet summed."""
    h = _conj(other)
    if other.ndim == 1:
        return g[..., None] * h
    if other.ndim == 2:
        return _product(_rows(g), h.T).reshape(*g.shape[:-1], other.shape[0]) if g.ndim > 1 else _product(h, g)
    if g.ndim == other.ndim - 1:
        return _product(h, g[..., None])[..., 0]
    return _product(materialize(g), _mt(h))


@op(where="")
def matmul_right_grad(g: Array, input: Array, ndim: int) -> Array:
    """The derivative of `matmul` in its second argument, of `ndim` dimensions; batches not yet summed."""
    h = _conj(input)
    if input.ndim == 1:
        return h[:, None] * g[..., None, :] if ndim > 1 else h * g
    if ndim == 1:
        return _product(_rows(h).T, g.reshape(-1))
    if ndim == 2:
        return matmul_tn(_rows(h), _rows(g))
    return _product(_mt(h), materialize(g))


matmul.vjp(
    input=lambda g, other: matmul_left_grad(g, other),
    other=lambda g, input, other: matmul_right_grad(g, input, other.ndim),
)


@composite()
def inner(input: Array, other: Array, *, out=None):
    """The sums of products over the last dimension of both; a number multiplies."""
    into = {} if out is None else {"out": out}
    if not input.ndim or not other.ndim:
        return mul(input, other, **into)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{size_of(input.shape)} and {size_of(other.shape)}"
        )
    return tensordot(input, other, ((-1,), (-1,)), **into)


@op(aliases=("ger",), grad_name="MulBackward0")
def outer(input: Array, vec2: Array) -> Array:
    """The products of each element of one vector with each of another."""
    for name, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.ndim}-D")
    kind = dt.promote(dt.of(input.dtype), dt.of(vec2.dtype)).np
    return input.astype(kind)[:, None] * vec2.astype(kind)[None, :]


# ---------------------------------------------------------------- products added to something


def _unrounded(a: Array, b: Array) -> Array:
    """`a @ b`; of 16-bit floats in float32, for what is added to it."""
    return jnp.matmul(a, b, preferred_element_type=accumulator(a.dtype)) if a.dtype in NARROW else _product(a, b)


def _blend(input, product, beta, alpha, shape):
    """`beta * input + alpha * product`; a beta of 0 drops `input`, NaNs and all."""
    if len(input.shape) > len(shape) or builtins.any(n not in (1, m) for n, m in zip(input.shape[::-1], shape[::-1])):
        lead = len(shape) - input.ndim
        d = next((d for d in range(len(shape)) if d >= lead and input.shape[d - lead] not in (1, shape[d])), 0)
        n = input.shape[d - lead] if input.ndim else 1
        raise RuntimeError(
            f"The expanded size of the tensor ({shape[d]}) must match the existing size ({n}) at "
            f"non-singleton dimension {d}.  Target sizes: {size_of(shape)}.  "
            f"Tensor sizes: {size_of(input.shape)}"
        )
    dtype, wide = input.dtype, product.dtype
    input = input.astype(wide)
    scaled = product if is_number(alpha) and alpha == 1 else product * jnp.asarray(alpha).astype(wide)
    if is_number(beta):
        if beta == 0:
            return jnp.broadcast_to(scaled, shape).astype(dtype)
        return (scaled + (input if beta == 1 else input * jnp.asarray(beta).astype(wide))).astype(dtype)
    beta = jnp.asarray(beta).astype(wide)
    return (scaled + jnp.where(beta == 0, jnp.zeros((), wide), input * beta)).astype(dtype)


@op(where="")
def scale_by(input: Array, factor: Number) -> Array:
    """`input` times the conjugate of a number, in the dtype of `input`."""
    wide = accumulator(input.dtype)
    return (input.astype(wide) * jnp.conj(jnp.asarray(factor).astype(wide))).astype(input.dtype)


@op(inplace=True, out="exact")
def addmm(input: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    if mat1.ndim != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {mat1.ndim}-D tensor")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    _inner_sizes(mat1, mat2)
    for other in (mat2, mat1):
        if input.dtype != other.dtype:
            raise RuntimeError(
                f"self and mat2 must have the same dtype, but got {scalar_name(input)} and {scalar_name(other)}"
            )
    return _blend(input, _unrounded(mat1, mat2), beta, alpha, (mat1.shape[0], mat2.shape[1]))


addmm.vjp(
    input=lambda g, beta: scale_by(g, beta),
    mat1=lambda g, mat2, alpha: scale_by(mm_nh(g, mat2), alpha),
    mat2=lambda g, mat1, alpha: scale_by(mm_hn(mat1, g), alpha),
)


@op(inplace=True, out="exact")
def addmv(input: Array, mat: Array, vec: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * (mat @ vec)`."""
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or (input.size != 1 and input.shape != mat.shape[:1]):
        raise RuntimeError(
            f"size mismatch, got input ({input.size}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    if not input.dtype == mat.dtype == vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {scalar_name(input)}, "
            f"{scalar_name(mat)}, and {scalar_name(vec)}"
        )
    return _blend(input, _unrounded(mat, vec), beta, alpha, (mat.shape[0],))


def _three_dtypes(input, batch1, batch2):
    if not input.dtype == batch1.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {_c_name(input)}, batch1: {_c_name(batch1)}, "
            f"batch2: {_c_name(batch2)}"
        )
    _expected_dtype(batch1, batch2)


@op(
    inplace=True,
    out=_ADDBMM_OUT,
    lacks={"addmm_impl_cpu_": "bool"},
)
def addbmm(input: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * (the sum of the products of the batches)`."""
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if x.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            "Incompatible matrix sizes for bmm "
            f"({batch1.shape[1]}x{batch1.shape[2]} and {batch2.shape[1]}x{batch2.shape[2]})"
        )
    _three_dtypes(input, batch1, batch2)
    product = jnp.einsum("bij,bjk->ik", batch1, batch2, preferred_element_type=accumulator(batch1.dtype))
    return _blend(input, product, beta, alpha, (batch1.shape[1], batch2.shape[2]))


@composite(name="addbmm_", where="Tensor")
def addbmm_(input: Array, batch1: Array, batch2: Array, *, beta=1, alpha=1):
    """`addbmm` in place. Alone of its family it makes a smaller input as large as the result."""
    found = addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
    if input.shape != found.shape:
        input.resize_(found.shape)
        input._storage.version -= 1  # one write, not two
    return input.copy_(found)


@op(inplace=True, out="exact")
def baddbmm(input: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * (batch1 @ batch2)`, batch by batch."""
    _batches(batch1, batch2)
    _three_dtypes(input, batch1, batch2)
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    return _blend(input, _unrounded(batch1, batch2), beta, alpha, shape)


baddbmm.vjp(
    input=lambda g, beta: scale_by(g, beta),
    batch1=lambda g, batch2, alpha: scale_by(bmm_nh(g, batch2), alpha),
    batch2=lambda g, batch1, alpha: scale_by(bmm_hn(batch1, g), alpha),
)


@op(inplace=True)
def addr(input: Array, vec1: Array, vec2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    for name, x in (("vec1", vec1), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {x.ndim}-D")
    kind = dt.promote(dt.promote(dt.of(input.dtype), dt.of(vec1.dtype)), dt.of(vec2.dtype)).np
    input, vec1, vec2 = input.astype(kind), vec1.astype(kind), vec2.astype(kind)
    if kind == np.bool_:
        # beta and alpha are booleans then; they arrive as numbers
        product = (vec1[:, None] & vec2[None, :]) & jnp.asarray(alpha).astype(bool)
        return product | (input & jnp.asarray(beta).astype(bool))
    wide = accumulator(kind)
    return _blend(
        input, vec1.astype(wide)[:, None] * vec2.astype(wide)[None, :], beta, alpha, (vec1.shape[0], vec2.shape[0])
    )


@addr.check
def _check_factors(input, vec1, vec2, *, beta, alpha):
    kind = common_dtype(input, vec1, vec2)
    check_factor(kind, beta, "beta")
    check_factor(kind, alpha, "alpha")


# ---------------------------------------------------------------- chains and powers


def _chain_order(sizes) -> dict:
    """Where to split each sub-chain so that the fewest multiplications are made."""
    n = len(sizes) - 1
    cost, split = [[0] * n for _ in range(n)], {}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            choices = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i, j] = builtins.min(choices)
    return split


def _multiply_chain(tensors):
    split = _chain_order([t.shape[0] for t in tensors] + [tensors[-1].shape[1]])

    def run(i, j):
        if i == j:
            return tensors[i]
        k = split[i, j]
        return mm(run(i, k), run(k + 1, j))

    return run(0, len(tensors) - 1)


@op(
    where="linalg",
    name="multi_dot",
    grad_name="ViewBackward0",
    out=_CHAIN_OUT,
)
def multi_dot(tensors: list[Array]) -> Array:
    """The product of a chain of matrices, in the cheapest order; the ends may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    chain = list(tensors)
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    if row:
        chain[0] = chain[0][None, :]
    if column:
        chain[-1] = chain[-1][:, None]
    for i, t in enumerate(chain):
        if t.ndim != 2:
            end = {0: "the first tensor must be 1D or 2D", len(chain) - 1: "the last tensor must be 1D or 2D"}
            raise RuntimeError(f"multi_dot(): {end.get(i, f'tensor {i} must be 2D')} but got {t.ndim}D")
    for i, (a, b) in enumerate(zip(chain, chain[1:])):
        if a.dtype != b.dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{scalar_name(chain[0])} and tensor {i + 1} {scalar_name(b)}"
            )
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {size_of(a.shape)} and {size_of(b.shape)} "
                "cannot be multiplied"
            )
    out = _multiply_chain(chain)
    return out[0, 0] if row and column else out[0] if row else out[:, 0] if column else out


@composite(where="torch")
def chain_matmul(*matrices: Array, out=None):
    """The product of a chain of matrices, in the cheapest order."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = matrices[0]
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(list(matrices), **({} if out is None else {"out": out}))


def _square(A, name):
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


@op(where="", grad_name="MmBackward0")
def power_of(input: Array, n: int) -> Array:
    """A square matrix multiplied `n` times."""
    if n == 0:
        return jnp.broadcast_to(jnp.eye(input.shape[-1], dtype=input.dtype), input.shape)
    result, power = None, input
    while n:
        if n & 1:
            result = power if result is None else _product(result, power)
        n >>= 1
        if n:
            power = _product(power, power)
    return result


# ---------------------------------------------------------------- einsum and tensordot


def _terms(equation: str, count: int) -> tuple[list, list | None]:
    """The labels of each operand and of the result; "..." is the label Ellipsis."""
    left, arrow, right = equation.partition("->")
    parts, start, operands = left.split(","), 0, []
    for k, part in enumerate(parts):
        operands.append(_labels(part, start, f"operand {k}"))
        start += len(part) + 1
    if len(operands) > count:
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(operands) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return operands, _labels(right, len(left) + 2, "output") if arrow else None


def _labels(term: str, start: int, place: str) -> list:
    """The labels of one operand or of the output, which begins at `start` in the equation."""
    out, i = [], 0
    while i < len(term):
        if term[i] == " ":
            i += 1
        elif term[i] == ".":
            if ... in out:
                raise errors_arguments.einsum_second_ellipsis(place)
            if term[i : i + 3] != "...":
                raise errors_arguments.einsum_dot(place)
            out.append(...)
            i += 3
        elif term[i].isascii() and term[i].isalpha():
            out.append(term[i])
            i += 1
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + i} in the equation "
                "string, subscripts must be in [a-zA-Z]"
            )
    return out


def _without_dots(operands, result, tensors):
    """Name the dimensions behind each ellipsis, from the right, so that they broadcast."""
    widest = 0
    for i, (labels, t) in enumerate(zip(operands, tensors)):
        dots = ... in labels
        count = len(labels) - dots
        if count > t.ndim and dots:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) is more than the number of "
                f"dimensions ({t.ndim}) for operand {i}"
            )
        if count != t.ndim and not dots:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({count}) does not match the number of "
                f"dimensions ({t.ndim}) for operand {i} and no ellipsis was given"
            )
        if dots:
            widest = builtins.max(widest, t.ndim - len(labels) + 1)
    names = [("dots", d) for d in range(widest)]

    def spell(labels, count):
        if ... not in labels:
            return list(labels)
        at = labels.index(...)
        return [*labels[:at], *names[widest - count :], *labels[at + 1 :]]

    named = [spell(x, t.ndim - len(x) + 1) for x, t in zip(operands, tensors)]
    if result is None:
        every = [x for labels in named for x in labels if x not in names]
        result = names + sorted(x for x in set(every) if every.count(x) == 1)
    else:
        result = spell(result, widest)
    return named, result


def _check_einsum(named, result, tensors):
    sizes = {}
    for i, (labels, t) in enumerate(zip(named, tensors)):
        for label, n in zip(labels, t.shape):
            seen = sizes.setdefault(label, n)
            if seen == 1:
                sizes[label] = n
            elif n not in (1, seen):
                word = label if isinstance(label, str) else "..."
                raise RuntimeError(
                    f"einsum(): subscript {word} has size {n} for operand {i} which "
                    f"does not broadcast with previously seen size {seen}"
                )
    for label in result:
        if result.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        if label not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
    return sizes


def _einsum_dtype(named, result, operands):
    """The dtype of the product: promoted where dimensions are only multiplied, one and the same where they are summed.

    Of more than two operands PyTorch takes pairs in an order of its choice; here all are promoted.
    """
    if len(operands) == 2:
        (a, b), (first, second) = operands, (dict(zip(labels, t.shape)) for labels, t in zip(named, operands))
        if any(n != 1 and second.get(x, 1) != 1 and x not in result for x, n in first.items()):
            _expected_dtype(a, b)
            if a.dtype == np.bool_:
                raise NotImplementedError("\"bmm\" not implemented for 'Bool'")
    return functools.reduce(dt.promote, (dt.of(t.dtype) for t in operands)).np


@op(where="", grad_name="ViewBackward0")
def einsum_of(equation: str, operands: list[Array]) -> Array:
    """`einsum` of an equation in letters."""
    terms, result = _terms(equation, len(operands))
    named, result = _without_dots(terms, result, operands)
    sizes = _check_einsum(named, result, operands)
    kind = _einsum_dtype(named, result, operands)
    operands = [t.astype(kind) for t in operands]
    number = {label: i for i, label in enumerate(sizes)}
    args = []
    for labels, t in zip(named, operands):
        # a size of 1 against a larger one broadcasts: leave it out of the product
        dull = tuple(d for d, label in enumerate(labels) if t.shape[d] == 1 and sizes[label] != 1)
        args.append(jnp.squeeze(t, dull) if dull else t)
        args.append([number[label] for d, label in enumerate(labels) if d not in dull])
    present = {n for labels in args[1::2] for n in labels}
    kept = [number[label] for label in result if number[label] in present]
    if len(operands) == 1 and len(kept) < len(sizes) and not jnp.issubdtype(kind, jnp.inexact):
        kind = np.dtype(np.int64)  # a sum of one operand, which torch widens
        args[0] = args[0].astype(kind)
    path = "optimal" if len(operands) < 6 else "greedy"
    out = _product_of_two(args, kept) if len(operands) == 2 else None
    return (jnp.einsum(*args, kept, optimize=path) if out is None else out).astype(kind)


def _product_of_two(args, kept):
    """An einsum of two operands as one product of many small matrices; None where it is none."""
    a, left, b, right = args
    if len({*left}) != len(left) or len({*right}) != len(right):
        return None
    batch = [n for n in left if n in right and n in kept]
    inner = [n for n in left if n in right and n not in kept]
    free, free_right = ([n for n in x if n not in batch and n not in inner] for x in (left, right))
    if not inner or not kept or any(n not in kept for n in (*free, *free_right)):
        return None
    where = [tuple(tuple(map(x.index, dims)) for x in (left, right)) for dims in (inner, batch)]
    out = small.dot_general(a, b, tuple(where))
    made = [*batch, *free, *free_right]
    return None if out is None else jnp.transpose(out, [made.index(n) for n in kept])


@composite(where="torch")
def einsum(*args):
    """The sums of products that an equation names: einsum("ij,jk->ik", a, b), or with lists of numbers."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
    else:
        equation, operands = _from_sublists(args)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return einsum_of(equation, list(operands))


def _from_sublists(args):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    def word(labels):
        return "".join("..." if n is ... else letters[n] for n in labels)

    pairs = len(args) // 2
    equation = ",".join(word(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + word(args[-1])
    return equation, list(args[: 2 * pairs : 2])


@op(where="torch", grad_name="ViewBackward0", out=_TENSORDOT_OUT)
def tensordot(a: Array, b: Array, dims: int | tuple = 2) -> Array:
    """The product of two tensors summed over pairs of dimensions, or over the last and first `dims`."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > builtins.min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = range(-dims, 0), range(dims)
    else:
        left, right = ints(dims[0]), ints(dims[1])
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype != b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for i, j in zip(left, right):
        n, m = a.shape[axis(i, a.ndim)], b.shape[axis(j, b.ndim)]
        if n != m and 1 not in (n, m):
            raise RuntimeError(
                "contracted dimensions need to match, but first has size "
                f"{n} in dim {i} and second has size {m} in dim {j}"
            )
        if n == 1 and m != 1:
            b = b.sum(axis(j, b.ndim), keepdims=True, dtype=accumulator(b.dtype)).astype(b.dtype)
        elif m == 1 and n != 1:
            a = a.sum(axis(i, a.ndim), keepdims=True, dtype=accumulator(a.dtype)).astype(a.dtype)
    first, second = [axis(d, a.ndim) for d in left], [axis(d, b.ndim) for d in right]
    if a.dtype == np.bool_ and a.size and b.size:
        return _bool_tensordot(a, b, first, second)
    return jnp.tensordot(a, b, (first, second))


def _bool_tensordot(a, b, first, second):
    """PyTorch has it for single results only, and there only where a transposed operand keeps it from calling dot."""
    out = jnp.tensordot(a.astype(jnp.int32), b.astype(jnp.int32), (first, second)) > 0
    if out.size > 1:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    orders = [[d for d in dims if x.shape[d] > 1] for x, dims in ((a, first), (b, second))]
    if all(order == sorted(order) for order in orders):
        raise NotImplementedError("\"dot\" not implemented for 'Bool'")
    return out


@op(grad_name="UnsafeViewBackward0")
def kron(input: Array, other: Array) -> Array:
    """The Kronecker product: `other` in the place of each element of `input`, times it."""
    kind = dt.promote(dt.of(input.dtype), dt.of(other.dtype)).np
    ndim = builtins.max(input.ndim, other.ndim)
    a = input.astype(kind).reshape((1,) * (ndim - input.ndim) + input.shape)
    b = other.astype(kind).reshape((1,) * (ndim - other.ndim) + other.shape)
    wide = jnp.expand_dims(a, tuple(range(1, 2 * ndim, 2))) * jnp.expand_dims(b, tuple(range(0, 2 * ndim, 2)))
    return wide.reshape(tuple(n * m for n, m in zip(a.shape, b.shape)))


kron.guards(input=False, other=False)


# ---------------------------------------------------------------- products of vectors in a tensor


@op(where="linalg.cross", out="exact")
def linalg_cross(input: Array, other: Array, *, dim: int = -1) -> Array:
    """The cross products of vectors of length 3 along `dim`."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.dtype != other.dtype:
        raise RuntimeError(f"expected scalar type {scalar_name(input)} but found {scalar_name(other)}")
    kind = dt.promote(dt.of(input.dtype), dt.of(other.dtype)).np
    d = axis(dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[d]} and {other.shape[d]}"
        )
    _batch_shape(input.shape, other.shape)
    if kind == np.bool_ and input.size and other.size:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    a, b = (jnp.moveaxis(x.astype(kind), d, 0) for x in (input, other))
    out = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return jnp.stack(out, d)


@composite(out="exact")
def cross(input: Array, other: Array, dim: int | None = None):
    """The cross products along `dim`, or along the first dimension of size 3."""
    if dim is None:
        shape = _batch_shape(input.shape, other.shape)
        dim = next((d for d, n in enumerate(shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim)


@op(where="linalg", grad_name="SumBackward1", out="linalg.vecdot: Expected out of dtype{want} but found {have}")
def vecdot(x: Array, y: Array, *, dim: int = -1) -> Array:
    """The sums of `conj(x) * y` along `dim`."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {scalar_name(x)}")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {scalar_name(x)} and y of type "
            f"{scalar_name(y)} instead"
        )
    _batch_shape(x.shape, y.shape)
    product = _conj(x) * y
    return product.sum(axis(dim, product.ndim), dtype=accumulator(x.dtype)).astype(x.dtype)


def _cdist_name(args) -> str:
    by_matmul = args["p"] == 2 and builtins.max(args["x1"].shape[-2], args["x2"].shape[-2]) > 25
    return "ViewBackward0" if by_matmul else "CdistBackward0"


def _mixed_points(x1, x2, by_matmul):
    if by_matmul:
        return errors_nn.mm_dtype(dt.of(x1.dtype), dt.of(x2.dtype))
    return RuntimeError(f"expected scalar type {scalar_name(x1)} but found {scalar_name(x2)}")


@op(where="torch", grad_name=_cdist_name)
def cdist(
    x1: Array,
    x2: Array,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Array:
    """The p-norm distances between each row of one batch and each of another."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    for name, x in (("X1", x1), ("X2", x2)):
        if not jnp.issubdtype(x.dtype, jnp.floating):
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {scalar_name(x)}")
        if x.dtype.itemsize < 4:
            raise errors.not_implemented("cdist", dt.of(x.dtype))
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    kind = x1.dtype
    large = x1.shape[-2] > 25 or x2.shape[-2] > 25
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode is not None and compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    by_matmul = p == 2 and (compute_mode == modes[1] or (compute_mode in (None, modes[0]) and large))
    if x1.dtype != x2.dtype:
        if x1.size and x2.size:
            raise _mixed_points(x1, x2, by_matmul)
        x2 = x2.astype(kind)
    if by_matmul:
        squares = (x1 * x1).sum(-1)[..., :, None] + (x2 * x2).sum(-1)[..., None, :]
        return _root(jnp.maximum(squares - 2 * jnp.matmul(x1, _mt(x2)), 0))
    diff = magnitude(x1[..., :, None, :] - x2[..., None, :, :])
    if diff.shape[-1] == 0:
        return jnp.zeros(diff.shape[:-1], kind)
    if p == 0:
        return jnp.where(jnp.isnan(diff), diff, diff != 0).sum(-1)
    if p == 1:
        return diff.sum(-1)
    if p == 2:
        return _root((diff * diff).sum(-1))
    if math.isinf(p):
        return diff.max(-1)
    powers = jnp.where(diff == 0, 0, jnp.where(diff == 0, 1, diff) ** p).sum(-1)
    return _root(powers, 1 / p)


cdist.guards(x1=True, x2=True, out=True)


def _root(x, power=0.5):
    """A root whose derivative at 0 is 0."""
    safe = jnp.where(x == 0, jnp.ones((), x.dtype), x)
    rooted = jnp.sqrt(safe) if power == 0.5 else safe**power
    return jnp.where(x == 0, jnp.zeros((), x.dtype), rooted)
