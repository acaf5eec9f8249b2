"""Sums, norms and softmax of sparse tensors."""

import numpy as np

from .. import errors_sparse
from .. import functions as F
from ..core import dtype as dtypes
from ..core import shapes
from .base import dense, handles, host, into, is_sparse, linear, sparse_shape, unravel
from .conversions import coalesce, to_sparse
from .kernels import check_kernel
from .shaping import remade
from .tape import step, values_of, with_values


def _accumulating(dtype):
    """The dtype that sums of this one have."""
    return dtypes.int64 if dtype.category < dtypes.FLOAT else dtype


@handles("sum")
def sum_(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None, out=None):
    """The sum of all elements (dense), or along dimensions."""
    dim, keepdim = axis if dim is None else dim, keepdim if keepdims is None else keepdims
    dtype = dtype or _accumulating(input._spec.dtype)
    if dim == () or dim == []:
        return into(out, input.to(dtype))
    if dim is None:
        shape, kind = tuple(input._spec.shape), input._spec.dtype
        found = step(
            "SumBackward0", (input,), lambda: input._of.sum(dtype=dtype), lambda g: g.expand(shape).to(kind), False
        )
        return into(out, found)
    if input._kind != "coo":
        return into(out, _sum_compressed(input, dim, keepdim, dtype))
    return into(out, _sum_dims(input, dim, keepdim, dtype, "SumBackward1"))


def _sum_dims(input, dim, keepdim, dtype, label):
    dims = sorted(shapes.wrap_dims(dim, input._spec.ndim))
    input, n = coalesce(input), input.sparse_dim()
    inner = [d - n + 1 for d in dims if d >= n]
    gone = [d for d in dims if d < n]
    values = values_of(input)
    values = values.sum(inner, keepdim, dtype=dtype) if inner else values.to(dtype)
    kept = [d for d in range(n) if d not in gone]
    shape = [1 if d in dims else s for d, s in enumerate(input._spec.shape) if keepdim or d not in dims]
    if not gone:
        return remade(input, shape, input._at[0], values, label, input._whole)
    if not kept:
        return values.sum(0).reshape(shape)
    indices = host(input._at[0])
    left = [input._spec.shape[d] for d in kept]
    unique, inverse = np.unique(linear(indices[kept], left), return_inverse=True)
    zeros = F.zeros((len(unique), *values._spec.shape[1:]), dtype=values._spec.dtype, device=input._spec.device)
    if values._spec.numel:
        values = F.index_add(zeros, 0, dense(inverse.reshape(-1).astype(np.int64), input._spec.device), values)
    else:
        values = zeros
    found = unravel(unique, left)
    if keepdim:
        whole = np.zeros((n, len(unique)), np.int64)
        whole[kept] = found
        found = whole
    return remade(input, shape, found, values, label, not keepdim)


def _sum_compressed(x, dim, keepdim, dtype):
    if x._kind != "csr":
        raise errors_sparse.sum_layout(x.layout)
    if not keepdim:
        raise errors_sparse.sum_keepdim()
    made = _sum_dims(to_sparse(x), dim, True, dtype, "SumBackward1")
    if not is_sparse(made) or x._batch or x._blocked:
        raise errors_sparse.no_kernel("sum", False)
    return made.to_sparse(layout=x.layout)


def sparse_sum(input, dim=None, dtype=None):
    """The sum of the elements of a sparse tensor, all or along `dim`: sparse where an indexed dimension is left.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.sum.html
    """
    if not is_sparse(input):
        raise errors_sparse.wrong_layout("torch.sparse.sum", "sparse", None)
    if dim is None:
        values = values_of(coalesce(input) if input._kind == "coo" else input)
        return values.sum() if dtype is None else values.sum(dtype=dtype)
    if input._kind != "coo":
        raise errors_sparse.no_kernel("_indices", False)
    return _sum_dims(input, dim, False, dtype or input._spec.dtype, "SparseSumBackward0")


sparse_sum.__name__ = sparse_sum.__qualname__ = "sum"  # as torch.sparse has it


@handles("_sparse_sum")
def _sparse_sum(input, dim=None, *, dtype=None):
    return sparse_sum(input, dim, dtype)


@handles("norm", "_norm")
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The norm of all elements."""
    if dim is not None and len(shapes.wrap_dims(dim, input._spec.ndim)) != input._spec.ndim:
        raise errors_sparse.no_kernel("norm along some dimensions")
    values = values_of(coalesce(input) if input._kind == "coo" else input)
    return into(out, F.norm(values.reshape(-1), 2 if p in ("fro", None) else p, dtype=dtype))


@handles("linalg.vector_norm")
def vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """The norm of all elements."""
    return norm(input, ord, dim, keepdim, out, dtype)


@handles("any")
def any_(input, dim=None, keepdim=False, *, out=None):
    """Whether one of all elements is not zero."""
    if dim is not None:
        raise errors_sparse.no_kernel("any along a dimension")
    return into(out, (coalesce(input) if input._kind == "coo" else input)._of.any())


# --- softmax ------------------------------------------------------------------------------------------------------------


@handles("_sparse_softmax")
def softmax(input, dim, *, dtype=None):
    """Softmax along `dim`; elements that are not stored count as minus infinity.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.softmax.html
    """
    return _softmax(input, dim, dtype, False)


@handles("_sparse_log_softmax")
def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`.

    https://docs.pytorch.org/docs/stable/generated/torch.sparse.log_softmax.html
    """
    return _softmax(input, dim, dtype, True)


def _softmax(input, dim, dtype, log):
    if not is_sparse(input) or input._kind != "coo":
        raise errors_sparse.no_kernel("_sparse_softmax", False)
    if dtype is not None:
        input = input.to(dtype)
    check_kernel("softmax", input._spec.dtype)
    input = coalesce(input)
    label = "SparseLogSoftmaxBackward0" if log else "SparseSoftmaxBackward0"
    dim, n = shapes.wrap_dim(dim, input._spec.ndim), input.sparse_dim()
    values = values_of(input)
    if dim >= n:
        values = (F.log_softmax if log else F.softmax)(values, dim - n + 1)
        return with_values(input.detach(), values, label)
    indices, shape = host(input._at[0]), sparse_shape(input)
    others = [d for d in range(n) if d != dim]
    unique, group = np.unique(linear(indices[others], [shape[d] for d in others]), return_inverse=True)
    if not values._spec.numel:
        return with_values(input.detach(), values, label)
    device = input._spec.device
    group = dense(group.reshape(-1).astype(np.int64), device)
    zeros = F.zeros((len(unique), *values._spec.shape[1:]), dtype=values._spec.dtype, device=device)
    most = F.index_reduce(zeros, 0, group, values.detach(), "amax", include_self=False)
    shifted = values - F.index_select(most, 0, group)
    powers = shifted.exp()
    total = F.index_select(F.index_add(zeros, 0, group, powers), 0, group)
    return with_values(input.detach(), shifted - total.log() if log else powers / total, label)
