"""Products of matrices of which one is sparse at least.

A product gathers the rows of the dense factor that the indices name, scales them by the values and adds them up where they belong:
shapes depend on the number of values alone, so that new indices compile nothing.
"""

import numpy as np

from .. import errors_nn, errors_sparse
from .. import functions as F
from ..core import dtype as dtypes
from .base import coo, dense, handles, host, into, is_coo, is_sparse, like, linear, unravel
from .conversions import coalesce, coalesced, to_compressed, to_sparse
from .kernels import WIDE, check_kernel
from .shaping import remade
from .tape import conjugate, distinct, masked, positions, step, sum_to, values_of, with_values

_HALF = (dtypes.float16, dtypes.bfloat16)


def _wide(x):
    return x.to(dtypes.float32) if x._spec.dtype in _HALF else x


def ends(t):
    """(rows, columns) of each value as flat tensors; those of batches are counted through."""
    n, m = t._spec.shape[-2:]
    flat = positions(t).reshape(-1)
    columns = flat % m
    rows = F.div(flat, m, rounding_mode="floor")
    if t._spec.ndim > 2:
        columns = columns + F.div(rows, n, rounding_mode="floor") * m
    return rows, columns


def _column(values):
    """The values as a column, one for each place."""
    return _wide(values).reshape((-1, 1))


def _times_dense(t, values, other, adjoint=False):
    """t @ other, or t^H @ other with the values' conjugates, for matrices or batches of them; `values` are those of `t`."""
    into, summed = (-1, -2) if adjoint else (-2, -1)
    n, m = t._spec.shape[into], t._spec.shape[summed]
    k = other._spec.shape[-1]
    batches = tuple(t._spec.shape[:-2])
    count = int(np.prod(batches, dtype=np.int64))
    out = F.zeros((count * n, k), dtype=_wide(other)._spec.dtype, device=t._spec.device)
    if values._spec.numel and k:
        target, source = reversed(ends(t)) if adjoint else ends(t)
        factors = _column(values)
        taken = F.index_select(_wide(other).reshape((count * m, k)), 0, source)
        out = F.index_add(out, 0, target, (factors.conj() if adjoint else factors) * taken)
    return out.reshape((*batches, n, k)).to(other._spec.dtype)


def _sampled(t, a, b):
    """The elements of a @ b^H at the places of t's values, in the shape of the values."""
    k = a._spec.shape[-1]
    shape = tuple(t._of._spec.shape)
    if not t._of._spec.numel or not k:
        return F.zeros(shape, dtype=a._spec.dtype, device=t._spec.device)
    rows, columns = ends(t)
    left = F.index_select(_wide(a).reshape((-1, k)), 0, rows)
    right = F.index_select(_wide(b).reshape((-1, k)), 0, columns)
    return (left * right.conj()).sum(-1).to(a._spec.dtype).reshape(shape)


def _sparse_dense(t, other, masked):
    """(forward, backward) of sparse @ dense. `masked`: the gradient of the sparse matrix is sparse too, otherwise it is dense."""
    kept = t.detach()
    needs = t.requires_grad, other.requires_grad

    def backward(g):
        by_t = None
        if needs[0]:
            by_t = _masked_product(kept, g, other) if masked else g @ other.conj().transpose(-2, -1)
        return by_t, _times_dense(kept, values_of(t), g, adjoint=True) if needs[1] else None

    return lambda: _times_dense(t, t._of, other.detach()), backward


def _dense_sparse(a, t, masked):
    """(forward, backward) of dense @ sparse."""
    kept = t.detach()
    swap = lambda x: x.transpose(-2, -1)
    needs = a.requires_grad, t.requires_grad

    def backward(g):
        by_a = swap(_times_dense(kept, values_of(t).conj(), swap(g))) if needs[0] else None
        if not needs[1]:
            return by_a, None
        return by_a, _masked_product(kept, swap(a).conj(), swap(g).conj()) if masked else swap(a).conj() @ g

    return lambda: swap(_times_dense(t, t._of.conj(), swap(a.detach()), adjoint=True)).contiguous(), backward


def _masked_product(pattern, a, b):
    """a @ b^H where the pattern has values."""
    if pattern._kind == "coo" and not pattern._whole:
        pattern = distinct(pattern)[0]
    return with_values(pattern, _sampled(pattern, a, b), "SparseMaskBackward0")


def _sparse_sparse(a, b):
    """sparse @ sparse: each value of a meets the row of b that its column names."""
    kind = a._kind
    a, b = (coalesce(to_sparse(x)) for x in (a, b))  # rows in order: those of columns or blocks are not
    (n, _), (_, k) = a._spec.shape, b._spec.shape
    mine, theirs = host(a._at[0]), host(b._at[0])
    first, last = np.searchsorted(theirs[0], mine[1], "left"), np.searchsorted(theirs[0], mine[1], "right")
    counts = last - first
    left = np.repeat(np.arange(mine.shape[1]), counts)
    right = np.repeat(first, counts) + np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    flat = linear(np.stack([mine[0][left], theirs[1][right]]), (n, k))
    unique, inverse = np.unique(flat, return_inverse=True)
    device = a._spec.device
    values = F.zeros((len(unique),), dtype=F.promote_types(a._spec.dtype, b._spec.dtype), device=device)
    if len(flat):
        taken = [
            F.index_select(values_of(x), 0, dense(at.astype(np.int64), device)) for x, at in ((a, left), (b, right))
        ]
        values = F.index_add(values, 0, dense(inverse.reshape(-1).astype(np.int64), device), taken[0] * taken[1])
    made = remade(a, (n, k), unravel(unique, (n, k)), values, "SparseSparseMatmulBackward0", True)
    return made if kind == "coo" else to_compressed(made, "csr")


def _check(a, b, coo_first, kernel=True):
    if a._spec.ndim != 2 or b._spec.ndim != 2:
        raise errors_sparse.argument_dim("mm", "matrices", f"{a._spec.ndim}D and {b._spec.ndim}D tensors")
    for x in (a, b):
        if is_sparse(x) and x.dense_dim():
            raise errors_sparse.matrices(x.sparse_dim())
    if a._spec.shape[1] != b._spec.shape[0]:
        if coo_first:
            raise errors_sparse.inner_size(a._spec.shape[1], b._spec.shape[0])
        raise errors_nn.matmul_shapes(a._spec.shape, b._spec.shape)
    if a._spec.dtype is not b._spec.dtype:
        raise errors_nn.scalar_type(a._spec.dtype, b._spec.dtype)
    if not kernel:
        return
    both = is_sparse(a) and is_sparse(b)
    kernel = (
        "sparse_matmul"
        if both
        else "addmm_sparse_dense"
        if (a if is_sparse(a) else b)._kind == "coo"
        else "addmm_out_sparse_csr_impl_mkl"
    )
    check_kernel(kernel, a._spec.dtype)


def product(a, b, label="MmBackward0"):
    """a @ b for matrices, one of them sparse: sparse where both are."""
    _check(a, b, is_sparse(a) and a._kind == "coo")
    if is_sparse(a) and is_sparse(b):
        return _sparse_sparse(a, b)
    return step(label, (a, b), *_steps(a, b, label))


def _steps(a, b, label):
    return (_sparse_dense if is_sparse(a) else _dense_sparse)(a, b, label.startswith("Sparse"))


@handles("mm")
def mm(input, mat2, *, out_dtype=None, out=None):
    """The product of two matrices."""
    return into(out, product(input, mat2))


@handles("mv")
def mv(input, vec, *, out=None):
    """The product of a matrix and a vector."""
    if vec._spec.ndim != 1 or input._spec.ndim != 2:
        raise errors_sparse.argument_dim(
            "mv", "a matrix and a vector", f"{input._spec.ndim}D and {vec._spec.ndim}D tensors"
        )
    if input._spec.shape[1] != vec._spec.shape[0]:
        raise errors_sparse.mv_size(input._spec.shape[1], vec._spec.shape[0])
    if is_sparse(vec):
        raise errors_sparse.no_kernel("mv")
    _check(input, vec.detach().unsqueeze(1), is_coo(input))
    forward, backward = _sparse_dense(input, vec.unsqueeze(1), False)

    def gradients(g):
        by_matrix, by_vector = backward(g.unsqueeze(1))
        return by_matrix, None if by_vector is None else by_vector.squeeze(1)

    return into(out, step("MvBackward0", (input, vec), lambda: forward().squeeze(1).clone(), gradients))


@handles("bmm")
def bmm(input, mat2, *, out=None):
    """The products of two batches of matrices."""
    a, b = input._spec.shape, mat2._spec.shape
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise errors_sparse.argument_dim("bmm", "batches of matrices that fit", f"{list(a)} and {list(b)}")
    if is_sparse(input) and is_sparse(mat2):
        raise errors_sparse.no_kernel("bmm of two sparse tensors")
    return into(out, step("BmmBackward0", (input, mat2), *_steps(input, mat2, "BmmBackward0")))


@handles("matmul", "linalg.matmul", "__matmul__")
def matmul(input, other, *, out=None):
    """input @ other."""
    dims = input._spec.ndim, other._spec.ndim
    if dims == (2, 1):
        return mv(input, other, out=out)
    if dims == (2, 2):
        return mm(input, other, out=out)
    if dims == (3, 3):
        return bmm(input, other, out=out)
    if dims == (1, 2) and is_sparse(other):
        return into(out, product(input.unsqueeze(0), other).squeeze(0))
    if dims[0] > 2 and dims[1] == 2 and not is_sparse(input):
        shape = tuple(input._spec.shape)
        return into(out, product(input.reshape((-1, shape[-1])), other).reshape((*shape[:-1], other._spec.shape[1])))
    raise errors_sparse.no_kernel(f"matmul of {dims[0]}D and {dims[1]}D tensors")


handles("__rmatmul__")(lambda self, other: matmul(other, self))


@handles("linear")
def linear_(input, weight, bias=None):
    """input @ weight^T + bias with a sparse weight, or a sparse input."""
    out = matmul(input, weight.t())
    return out if bias is None else out + bias


@handles("addmm")
def addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None, label="AddmmBackward0"):
    """beta * input + alpha * mat1 @ mat2."""
    if not is_sparse(mat1) and not is_sparse(mat2):
        raise errors_sparse.no_kernel("addmm of dense matrices onto a sparse one")
    if is_sparse(mat1) and is_sparse(mat2):
        found = product(mat1, mat2, label) * alpha
        if is_sparse(input):
            return into(out, input * beta + found)
        return into(out, input * beta + found.to_dense())
    if is_sparse(input):
        raise errors_sparse.no_kernel("addmm onto a sparse matrix with a dense product")
    _check(mat1, mat2, is_sparse(mat1) and mat1._kind == "coo")
    shape = tuple(input._spec.shape)
    forward, backward = _steps(mat1, mat2, label)

    def whole():
        found = forward()
        return found * alpha if beta == 0 else input.detach() * beta + found * alpha

    def gradients(g):
        return (sum_to(g * conjugate(beta), shape), *backward(g * conjugate(alpha)))

    return into(out, step(label, (input, mat1, mat2), whole, gradients))


@handles("addmv")
def addmv(input, mat, vec, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * mat @ vec."""
    return into(out, input * beta + mv(mat, vec) * alpha)


@handles("baddbmm")
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * batch1 @ batch2."""
    return into(out, input * beta + bmm(batch1, batch2) * alpha)


# --- sparse results -----------------------------------------------------------------------------------------------------


def _row_products(sparse, dense_):
    """(the rows of sparse @ dense that are not all zero, their values)."""
    sparse = coalesced(sparse.detach())
    rows = np.unique(host(sparse._at[0])[0]) if sparse._nnz() else np.zeros(0, np.int64)
    whole = _times_dense(sparse, sparse._of, dense_.detach())
    return rows, F.index_select(whole, 0, dense(rows.astype(np.int64), sparse._spec.device))


def _without_derivative(name, inputs, forward):
    """The result of a product that PyTorch has no derivative of: differentiating it raises."""

    def refuse(g):
        raise errors_sparse.no_derivative(name)

    return step("torch::autograd::NotImplemented", inputs, forward, refuse, False)


@handles("hspmm", "hsmm")
def hspmm(mat1, mat2, *, out=None):
    """sparse @ dense as a hybrid tensor: rows are indexed, their elements are dense. It has no derivative."""
    _check(mat1, mat2, True)

    def forward():
        rows, values = _row_products(mat1, mat2)
        indices = dense(rows[None].astype(np.int64), mat1._spec.device)
        return into(out, coo((mat1._spec.shape[0], mat2._spec.shape[1]), indices, values))

    return _without_derivative("hspmm", (mat1, mat2), forward)


@handles("sspaddmm", "saddmm")
def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * mat1 @ mat2 with sparse input, mat1 and result. It has no derivative."""
    _check(mat1, mat2, True)
    if not is_sparse(input):
        raise errors_sparse.wrong_layout("sspaddmm", "sparse coordinate tensor", None)

    def forward():
        rows, values = _row_products(mat1, mat2)
        k = mat2._spec.shape[1]
        indices = np.stack([np.repeat(rows, k), np.tile(np.arange(k), len(rows))]).astype(np.int64)
        indices = F.cat([input._at[0], dense(indices, input._spec.device)], 1)
        return into(out, coo(input._spec.shape, indices, F.cat([input._of * beta, values.reshape(-1) * alpha])))

    return _without_derivative("sspaddmm", (input, mat1, mat2), forward)


@handles("smm")
def smm(input, mat):
    """sparse @ dense as a sparse tensor."""
    shape = (input._spec.shape[0], mat._spec.shape[1])
    indices = F.zeros((2, 0), dtype=dtypes.int64, device=input._spec.device)
    return sspaddmm(coo(shape, indices, input._of[:0], True), input, mat)


# --- torch.sparse -------------------------------------------------------------------------------------------------------


@handles("_sparse_mm")
def sparse_mm(mat1, mat2, reduce=None):
    """mat1 @ mat2 with a sparse matrix and gradients for both; `reduce` (sum, mean, amax, amin) joins the terms of a csr matrix.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.mm.html
    """
    if reduce is None:
        return product(mat1, mat2, "SparseAddmmBackward0")
    return _reduced(mat1, mat2, reduce)


def _reduced(t, other, reduce):
    if not is_sparse(t) or t._kind != "csr" or is_sparse(other):
        raise errors_sparse.reduce_layouts(getattr(t, "layout", None))
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise errors_sparse.reduce_name(reduce)
    check_kernel("spmm_reduce_kernel", other._spec.dtype)
    _check(t, other, False, False)
    n, k = t._spec.shape[0], other._spec.shape[1]
    kind = other._spec.dtype
    zeros = F.zeros((n, k), dtype=_wide(other)._spec.dtype, device=t._spec.device)
    rows, columns = ends(t)
    terms = _column(values_of(t)) * F.index_select(_wide(other), 0, columns)
    if reduce in ("sum", "mean") or not t._nnz() or not k:
        out = F.index_add(zeros, 0, rows, terms)
        if reduce == "mean":
            count = F.diff(t._at[0]).clamp(min=1)
            out = out / count.unsqueeze(1).to(out._spec.dtype)
    else:
        out = _first_of(terms, rows, F.index_reduce(zeros, 0, rows, terms.detach(), reduce, include_self=False))
    return out.to(kind)


def _first_of(terms, rows, extremes):
    """The extremes of the terms of each row, with gradients for the first term that is one. Of no terms they stay zero."""
    count = terms._spec.shape[0]
    hit = terms.eq(F.index_select(extremes, 0, rows)) | terms.isnan()
    place = F.where(hit, F.arange(count, device=terms._spec.device).unsqueeze(1), count)
    none = F.full(tuple(extremes._spec.shape), count, dtype=place._spec.dtype, device=terms._spec.device)
    first = F.index_reduce(none, 0, rows, place, "amin", include_self=True)
    return F.where(first < count, terms.gather(0, first.clamp(max=count - 1)), extremes)


def sparse_addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * mat + alpha * mat1 @ mat2 with a sparse mat1 and gradients for all.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.addmm.html
    """
    return addmm(mat, mat1, mat2, beta=beta, alpha=alpha, label="SparseAddmmBackward0")


handles("_sparse_addmm")(sparse_addmm)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta * input + alpha * mat1 @ mat2 at the places of the values of `input`, a csr tensor; batches may come first.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.sampled_addmm.html
    """
    if not is_sparse(input) or input._kind not in ("csr", "csc"):
        raise errors_sparse.sampled_layout(getattr(input, "layout", type(input).__name__))
    if is_sparse(mat1) or is_sparse(mat2):
        raise errors_sparse.sampled_dense((mat1 if is_sparse(mat1) else mat2).layout)
    if input._spec.dtype.name not in WIDE:
        raise errors_sparse.sampled_kind(input._spec.dtype)
    for x in (mat1, mat2):
        if x._spec.dtype is not input._spec.dtype:
            raise errors_sparse.sampled_dtype(input._spec.dtype, x._spec.dtype)
    if mat1._spec.shape[-1] != mat2._spec.shape[-2]:
        raise errors_nn.matmul_shapes(mat1._spec.shape[-2:], mat2._spec.shape[-2:])
    shape = (*mat1._spec.shape[:-1], mat2._spec.shape[-1])
    if tuple(input._spec.shape) != tuple(shape):
        raise errors_sparse.sampled_shape(input._spec.shape, shape)
    kept, adjoint = input.detach(), lambda x: x.transpose(-2, -1).conj()
    needs = mat1.requires_grad, mat2.requires_grad

    def forward():
        found = _sampled(kept, mat1.detach(), adjoint(mat2.detach())) * alpha
        return like(kept, kept._at, found if beta == 0 else kept._of * beta + found)

    def backward(g):
        there = masked(g, kept) * conjugate(alpha)
        first = _times_dense(kept, there, adjoint(mat2)) if needs[0] else None
        return g * conjugate(beta), first, adjoint(_times_dense(kept, there, mat1, adjoint=True)) if needs[1] else None

    return into(out, step("SparseSampledAddmmBackward0", (input, mat1, mat2), forward, backward))


def spdiags(diagonals, offsets, shape, layout=None):
    """A sparse matrix with the rows of `diagonals` on its diagonals at `offsets`.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.spdiags.html
    """
    if diagonals._spec.ndim == 1:
        diagonals = diagonals.unsqueeze(0)
    if offsets._spec.ndim == 0:
        offsets = offsets.unsqueeze(0)
    at = host(offsets).reshape(-1).astype(np.int64)
    if diagonals._spec.ndim != 2:
        raise errors_sparse.diagonals_rank(diagonals._spec.ndim)
    if len(shape) != 2:
        raise errors_sparse.diagonals_shape(shape)
    if len(at) != diagonals._spec.shape[0]:
        raise errors_sparse.diagonals_count(diagonals._spec.shape[0], len(at))
    if len(set(at.tolist())) != len(at):
        raise errors_sparse.diagonals_unique()
    n, m = shape
    which, columns = np.divmod(np.arange(len(at) * diagonals._spec.shape[1]), max(diagonals._spec.shape[1], 1))
    rows = columns - at[which]
    keep = (rows >= 0) & (rows < n) & (columns < m)
    flat = dense(np.flatnonzero(keep).astype(np.int64), diagonals._spec.device)
    values = F.index_select(diagonals.reshape(-1), 0, flat)
    made = remade(diagonals, (n, m), np.stack([rows[keep], columns[keep]]), values, "SpdiagsBackward0")
    return made if layout is None or layout.name == "sparse_coo" else made.to_sparse(layout=layout)
