"""Products of vectors and matrices: matmul and its relatives, sums of products, chains and powers."""

import builtins
import math

import jax.numpy as jnp
import numpy as np

from .. import deprecations
from ..core import dtype as dt
from ..core import shapes
from .arguments import scalar_name, size_of
from .arithmetic import check_factor
from .backend import NARROW, accumulator, conjugate, materialize, matmul_tn
from .conversion import common_dtype, is_number
from .products import batch_shape, c_name, expected_dtype, inner_sizes, mt, product_of, same_dtype
from .registry import Array, Number, composite, op

# what torch says of an out= of another dtype
_CHAIN_OUT = "multi_dot(): expected out tensor to have dtype {c_want} but got {c_have}"
_ADDBMM_OUT = "self and mat2 must have the same dtype, but got {have} and {want}"


# ---------------------------------------------------------------- matrix times matrix


@op(where="")
def mm_nh(a: Array, b: Array) -> Array:
    """`a @ b.mH` of two matrices."""
    return product_of(a, conjugate(b).T)


@op(where="")
def mm_hn(a: Array, b: Array) -> Array:
    """`a.mH @ b` of two matrices, in the orientation that runs fastest."""
    return matmul_tn(conjugate(a), b)


@op(out="exact")
def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices."""
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    same_dtype(input, mat2)
    inner_sizes(input, mat2)
    return product_of(input, mat2)


# The three products are closed under derivation: no transposes are recorded at any order.
mm.vjp(input=lambda g, mat2: mm_nh(g, mat2), mat2=lambda g, input: mm_hn(input, g))
mm_nh.vjp(a=lambda g, b: mm(g, b), b=lambda g, a: mm_hn(g, a))
mm_hn.vjp(a=lambda g, b: mm_nh(b, g), b=lambda g, a: mm(a, g))


def _batches(a, b):
    for name, x in (("batch1", a), ("batch2", b)):
        if x.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )


@op(out="exact")
def bmm(input: Array, mat2: Array) -> Array:
    """The products of two batches of matrices."""
    _batches(input, mat2)
    expected_dtype(input, mat2)
    return product_of(input, mat2)


@op(where="")
def bmm_nh(a: Array, b: Array) -> Array:
    """`a @ b.mH` of batches."""
    return product_of(materialize(a), mt(conjugate(b)))


@op(where="")
def bmm_hn(a: Array, b: Array) -> Array:
    """`a.mH @ b` of batches."""
    return product_of(mt(conjugate(a)), materialize(b))


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
    return product_of(input, vec)


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
    return product_of(input, tensor)


@op(out="result dtype {have} does not match input dtype {want}")
def vdot(input: Array, other: Array) -> Array:
    """`dot` with the first vector conjugated."""
    _two_vectors(input, other, "vdot")
    return product_of(conjugate(input), other)


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
        same_dtype(a, b)
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
    expected_dtype(a, b)
    lead = batch_shape(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] != b.shape[-2]:
        n = math.prod(lead)
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{n}, {a.shape[-1]}] but got: [{n}, {b.shape[-2]}]."
        )


@op(where="torch Tensor linalg", grad_name=_matmul_name, out="exact")
def matmul(input: Array, other: Array) -> Array:
    """The product of two tensors: of their last two dimensions as matrices, the others broadcast.

    A vector on the left is a row, on the right a column, and its dimension is dropped from the result.
    """
    _check_matmul(input, other)
    if input.ndim > 2 and other.ndim <= 2:
        # one matrix of rows: XLA then has one dimension to contract in the weight's gradient
        out = product_of(_rows(input), other)
        return out.reshape(*input.shape[:-1], *other.shape[1:])
    return product_of(input, other)


def _rows(x: Array) -> Array:
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


@op(where="")
def matmul_left_grad(g: Array, other: Array) -> Array:
    """The derivative of `matmul` in its first argument, its batch dimensions not yet summed."""
    h = conjugate(other)
    if other.ndim == 1:
        return g[..., None] * h
    if other.ndim == 2:
        return product_of(_rows(g), h.T).reshape(*g.shape[:-1], other.shape[0]) if g.ndim > 1 else product_of(h, g)
    if g.ndim == other.ndim - 1:
        return product_of(h, g[..., None])[..., 0]
    return product_of(materialize(g), mt(h))


@op(where="")
def matmul_right_grad(g: Array, input: Array, ndim: int) -> Array:
    """The derivative of `matmul` in its second argument, of `ndim` dimensions; batches not yet summed."""
    h = conjugate(input)
    if input.ndim == 1:
        return h[:, None] * g[..., None, :] if ndim > 1 else h * g
    if ndim == 1:
        return product_of(_rows(h).T, g.reshape(-1))
    if ndim == 2:
        return matmul_tn(_rows(h), _rows(g))
    return product_of(mt(h), materialize(g))


matmul.vjp(
    input=lambda g, other: matmul_left_grad(g, other),
    other=lambda g, input, other: matmul_right_grad(g, input, other.ndim),
)


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
    return jnp.matmul(a, b, preferred_element_type=accumulator(a.dtype)) if a.dtype in NARROW else product_of(a, b)


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
    inner_sizes(mat1, mat2)
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
            f"Input dtypes must be the same, got: input {c_name(input)}, batch1: {c_name(batch1)}, "
            f"batch2: {c_name(batch2)}"
        )
    expected_dtype(batch1, batch2)


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
    shape = batch1.shape[1], batch2.shape[2]
    if batch1.dtype.kind in "iu":  # one product of matrices, of which `product_of` knows how to be quick
        inner = batch1.shape[0] * batch1.shape[2]
        product = product_of(jnp.swapaxes(batch1, 0, 1).reshape(shape[0], inner), batch2.reshape(inner, shape[1]))
    else:
        product = jnp.einsum("bij,bjk->ik", batch1, batch2, preferred_element_type=accumulator(batch1.dtype))
    return _blend(input, product, beta, alpha, shape)


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


def _addr_strides(outs, input, vec1, vec2, **options):
    """As of the elementwise sum of the input and a column times a row."""
    shape = tuple(outs[0].shape)
    rows = (shape[0], 1), (vec1.strides[0], 0)
    line = (1, shape[1]), (0, vec2.strides[0])
    return (shapes.elementwise_strides(shape, [(tuple(input.shape), tuple(input.strides)), rows, line]),)


@op(inplace=True, strides=_addr_strides)
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
                f"{c_name(chain[0])} and tensor {i + 1} {c_name(b)}"
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
    deprecations.say("chain_matmul")
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = matrices[0]
    for matrix in matrices:
        if matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(list(matrices), **({} if out is None else {"out": out}))


@op(where="", grad_name="MmBackward0")
def power_of(input: Array, n: int) -> Array:
    """A square matrix multiplied `n` times."""
    if n == 0:
        return jnp.broadcast_to(jnp.eye(input.shape[-1], dtype=input.dtype), input.shape)
    result, power = None, input
    while n:
        if n & 1:
            result = power if result is None else product_of(result, power)
        n >>= 1
        if n:
            power = product_of(power, power)
    return result
