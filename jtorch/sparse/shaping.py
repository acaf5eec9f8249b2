"""Sparse tensors in other shapes: transposed, indexed, joined, resized."""

import numpy as np

from .. import errors, errors_sparse
from .. import functions as F
from ..core import shapes
from ..reshaping import check_matrix, warn_reversed
from ..tensor import Tensor
from .base import build, coo, dense, handles, host, is_sparse, like, take
from .constructors import empty_coo, empty_of
from .conversions import to_dense, to_sparse
from .tape import step, values_of, with_values


def remade(x, shape, indices, values, label, whole=False):
    """Coordinates (numpy or a tensor) with values that have a history."""
    if not isinstance(indices, Tensor):
        indices = dense(np.ascontiguousarray(indices).astype(np.int64), x._spec.device)
    return with_values(coo(shape, indices, values.detach(), whole), values, label)


def picked(x, keep):
    """The values at these places (numpy)."""
    return F.index_select(values_of(x), 0, dense(keep.astype(np.int64), x._spec.device))


# --- transposing --------------------------------------------------------------------------------------------------------


@handles("permute")
def permute(input, *dims):
    """The dimensions in another order; indexed and dense ones do not mix."""
    dims = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else dims
    ndim, n = input._spec.ndim, input.sparse_dim()
    if len(dims) != ndim:
        raise errors.permute_length(ndim, len(dims))
    dims = [shapes.wrap_dim(d, ndim) for d in dims]
    if len(set(dims)) != ndim:
        raise errors_sparse.permute_duplicates()
    if dims == list(range(ndim)):
        return input.detach() if input._edge is None and not input._rg else input.clone()
    if input._kind != "coo":
        return _swap_compressed(input, dims, "PermuteBackward0")
    if any(d >= n for d in dims[:n]):
        raise errors_sparse.permute_mixed()
    return _permuted(input, dims, "PermuteBackward0")


def _permuted(x, dims, label):
    n = x.sparse_dim()
    back = [dims.index(d) for d in range(len(dims))]

    def forward():
        order = dense(np.array(dims[:n], np.int64), x._spec.device)
        indices = x._at[0] if dims[:n] == list(range(n)) else F.index_select(x._at[0], 0, order)
        values = x._of if len(dims) == n else x._of.permute([0, *[d - n + 1 for d in dims[n:]]]).contiguous()
        return coo([x._spec.shape[d] for d in dims], indices, values, x._whole and indices is x._at[0])

    return step(label, (x,), forward, lambda g: g.permute(back), False)


def _swap_compressed(x, dims, label):
    batch = x._batch
    swapped = [*range(batch), batch + 1, batch, *range(batch + 2, len(dims))]
    if dims != swapped:
        raise errors_sparse.no_kernel("transpose of other than the two compressed dimensions", False)
    kind = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}[x._kind]

    def forward():
        values = x._of.transpose(batch + 1, batch + 2).contiguous() if x._blocked else x._of
        return build(kind, [x._spec.shape[d] for d in dims], x._at, values)

    return step(label, (x,), forward, lambda g: g.transpose(batch, batch + 1), False)


@handles("transpose", "swapaxes", "swapdims")
def transpose(input, dim0, dim1, label="TransposeBackward0"):
    """Two dimensions exchanged."""
    ndim = input._spec.ndim
    a, b = shapes.wrap_dim(dim0, ndim), shapes.wrap_dim(dim1, ndim)
    if a == b:
        return input
    dims = list(range(ndim))
    dims[a], dims[b] = b, a
    if input._kind != "coo":
        return _swap_compressed(input, dims, label)
    n = input.sparse_dim()
    if max(a, b) >= n:
        raise errors_sparse.transpose_mixed(n, a, b)
    return _permuted(input, dims, label)


@handles("t")
def t(input):
    """The matrix transposed."""
    if input._spec.ndim > 2:
        raise errors_sparse.argument_dim(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions", 2, f"{input._spec.ndim}D"
        )
    return input if input._spec.ndim < 2 else transpose(input, 0, 1, "TBackward0")


@handles("transposed")
def transposed(input):
    """The dimensions in reverse order: `T`."""
    if input._spec.ndim != 2:
        warn_reversed(input._spec.ndim)
    return permute(input, range(input._spec.ndim - 1, -1, -1))


@handles("matrix_transposed")
def matrix_transposed(input, name="mT"):
    """The last two dimensions swapped."""
    if input._spec.ndim < 2:
        check_matrix(input._spec.ndim, name)
        return input
    return transpose(input, -2, -1)


@handles("hermitian")
def hermitian(input):
    """The conjugate transpose of a matrix: `H`."""
    if input._spec.ndim not in (0, 2):
        raise errors.matrix_rank(input._spec.ndim, "H")
    return batch_hermitian(input)


@handles("batch_hermitian")
def batch_hermitian(input):
    """The conjugate transpose of the last two dimensions: `mH`."""
    swapped = matrix_transposed(input, "mH")
    return swapped.conj() if input.is_complex() else swapped


@handles("adjoint")
def adjoint(input):
    """The matrix transposed, conjugate."""
    return transpose(input, -2, -1).conj()


@handles("unsqueeze")
def unsqueeze(input, dim):
    """A dimension of length 1, indexed where it stands before a dense one."""
    if input._kind != "coo":
        raise errors_sparse.no_strides(input._kind)
    n = input.sparse_dim()
    dim = shapes.wrap_dim(dim, input._spec.ndim + 1)
    shape = list(input._spec.shape)
    shape.insert(dim, 1)
    if dim > n:
        values = values_of(input).unsqueeze(dim - n + 1)
        return remade(input, shape, input._at[0], values, "UnsqueezeBackward0", input._whole)
    zero = F.zeros_like(input._at[0][:1]) if n else F.zeros((1, input._nnz()), dtype=F.int64, device=input._spec.device)
    indices = F.cat([input._at[0][:dim], zero, input._at[0][dim:]])
    return remade(input, shape, indices, values_of(input), "UnsqueezeBackward0", input._whole)


# --- indexing -----------------------------------------------------------------------------------------------------------


@handles("index_select")
def index_select(input, dim, index):
    """The slices that `index` names, in its order."""
    if input._kind != "coo":
        raise errors_sparse.no_kernel("index_select", False)
    dim, n = shapes.wrap_dim(dim, input._spec.ndim), input.sparse_dim()
    shape = list(input._spec.shape)
    wanted = host(index).reshape(-1).astype(np.int64)
    size, shape[dim] = shape[dim], len(wanted)
    if wanted.size and (wanted.min() < -size or wanted.max() >= size):
        raise errors_sparse.index_out_of_range(int(wanted[(wanted < -size) | (wanted >= size)][0]), size)
    if dim >= n:
        values = F.index_select(values_of(input), dim - n + 1, index)
        return remade(input, shape, input._at[0], values, "IndexSelectBackward0", input._whole)
    indices = host(input._at[0])
    wanted = np.where(wanted < 0, wanted + size, wanted)
    # For each wanted slice the values that lie in it: positions in the sorted row, expanded.
    order = np.argsort(indices[dim], kind="stable")
    row = indices[dim][order]
    first, last = np.searchsorted(row, wanted, "left"), np.searchsorted(row, wanted, "right")
    counts = last - first
    where = np.repeat(np.arange(len(wanted)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    keep = order[np.repeat(first, counts) + within]
    found = indices[:, keep]
    found[dim] = where
    return remade(input, shape, found, picked(input, keep), "IndexSelectBackward0")


@handles("select")
def select(input, dim, index):
    """One slice: sparse, or dense where no indexed dimension is left."""
    dim, n = shapes.wrap_dim(dim, input._spec.ndim), input.sparse_dim()
    size = input._spec.shape[dim]
    index = int(index)
    if not -size <= index < size:
        raise errors.select_range(index, input._spec.shape, dim)
    index %= size
    shape = [s for d, s in enumerate(input._spec.shape) if d != dim]
    if input._kind != "coo":
        return _select_compressed(input, dim, index)
    if dim >= n:
        values = values_of(input).select(dim - n + 1, index)
        return remade(input, shape, input._at[0], values, "SelectBackward0", input._whole)
    indices = host(input._at[0])
    keep = np.flatnonzero(indices[dim] == index)
    values = picked(input, keep)
    if n == 1:
        return values.sum(0)
    return remade(input, shape, np.delete(indices[:, keep], dim, 0), values, "SelectBackward0", input._whole)


def _select_compressed(x, dim, index):
    if dim < x._batch:
        at = tuple(a.select(dim, index) for a in x._at)
        values = values_of(x).select(dim, index)
        shape = [s for d, s in enumerate(x._spec.shape) if d != dim]
        return with_values(build(x._kind, shape, at, values.detach()), values, "SelectBackward0")
    return select(to_sparse(x), dim, index) if x._batch == 0 else to_dense(x).select(dim, index)


@handles("unbind", "__iter__")
def unbind(input, dim=0):
    """All slices along a dimension."""
    return tuple(select(input, dim, i) for i in range(input._spec.shape[shapes.wrap_dim(dim, input._spec.ndim)]))


@handles("narrow_copy")
def narrow_copy(input, dim, start, length):
    """The slices from `start` on."""
    dim, n = shapes.wrap_dim(dim, input._spec.ndim), input.sparse_dim()
    size = input._spec.shape[dim]
    if length < 0 or start < -size or start + length > size:
        raise errors.narrow_range(start, length, size)
    start %= max(size, 1)
    shape = list(input._spec.shape)
    shape[dim] = length
    if dim >= n:
        values = values_of(input).narrow(dim - n + 1, start, length).clone()
        return remade(input, shape, input._at[0], values, "NarrowCopyBackward0", input._whole)
    indices = host(input._at[0])
    keep = np.flatnonzero((indices[dim] >= start) & (indices[dim] < start + length))
    found = indices[:, keep]
    found[dim] -= start
    return remade(input, shape, found, picked(input, keep), "NarrowCopyBackward0", input._whole)


@handles("__getitem__", "getitem")
def getitem(self, key):
    """Slices by numbers, `None` and whole slices, as PyTorch has them for sparse tensors."""
    key = key if isinstance(key, tuple) else (key,)
    count = sum(1 for k in key if k is not None and k is not Ellipsis)
    if Ellipsis in [k for k in key if not isinstance(k, Tensor)]:
        at = key.index(Ellipsis)
        key = (*key[:at], *[slice(None)] * (self._spec.ndim - count), *key[at + 1 :])
    result, dim = self, 0
    for k in key:
        if k is None:
            result = result.unsqueeze(dim)
            dim += 1
        elif isinstance(k, slice):
            if k != slice(None) and k.indices(result._spec.shape[dim]) != (0, result._spec.shape[dim], 1):
                raise errors_sparse.no_kernel("as_strided")
            dim += 1
        elif isinstance(k, bool) or isinstance(k, (list, Tensor)) and not _is_number(k):
            raise errors_sparse.no_kernel("index")
        else:
            result = result.select(dim, int(k))
    return result.detach() if result is self and not self.requires_grad else result


def _is_number(k):
    return isinstance(k, Tensor) and k._spec.ndim == 0 and k._spec.dtype.category == 1


# --- joining ------------------------------------------------------------------------------------------------------------


@handles("cat", "concat", "concatenate")
def cat(tensors, dim=0, *, out=None):
    """Sparse tensors one after the other."""
    tensors = list(tensors)
    if not all(is_sparse(x) and x._kind == "coo" for x in tensors):
        raise errors_sparse.cat_layouts([getattr(x, "layout", type(x).__name__) for x in tensors])
    first = tensors[0]
    dim, n = shapes.wrap_dim(dim, first._spec.ndim), first.sparse_dim()
    rest = [[s for d, s in enumerate(x._spec.shape) if d != dim] for x in tensors]
    for k, x in enumerate(tensors):
        if x.sparse_dim() != n or x._spec.ndim != first._spec.ndim:
            raise errors_sparse.cat_dims(k, n, first.dense_dim(), x.sparse_dim(), x.dense_dim())
        if rest[k] != rest[0]:
            raise errors_sparse.cat_sizes(first._spec.shape, k, x._spec.shape, dim)
    kind = first._spec.dtype
    for x in tensors[1:]:
        kind = F.promote_types(kind, x._spec.dtype)
    starts = np.cumsum([0, *[x._spec.shape[dim] for x in tensors]]).tolist()
    shape = list(first._spec.shape)
    shape[dim] = starts[-1]
    values, indices = [values_of(x).to(kind) for x in tensors], [x._at[0] for x in tensors]
    if dim < n:
        onehot = F.zeros((n, 1), dtype=F.int64, device=first._spec.device)
        onehot[dim] = 1
        indices = [i if s == 0 else i + onehot * s for i, s in zip(indices, starts)]
    else:
        d, padded = dim - n + 1, []
        for v, start, end in zip(values, starts, starts[1:]):
            zeros = [list(v._spec.shape), list(v._spec.shape)]
            zeros[0][d], zeros[1][d] = start, starts[-1] - end
            sides = [F.zeros(z, dtype=kind, device=first._spec.device) for z in zeros]
            padded.append(F.cat([sides[0], v, sides[1]], d))
        values = padded
    return remade(first, shape, F.cat(indices, 1), F.cat(values), "CatBackward0")


@handles("stack")
def stack(tensors, dim=0, *, out=None):
    """Sparse tensors along a new dimension."""
    dim = shapes.wrap_dim(dim, tensors[0]._spec.ndim + 1)
    return cat([x.unsqueeze(dim) for x in tensors], dim)


# --- resizing -----------------------------------------------------------------------------------------------------------


@handles("zero_")
def zero_(input):
    """Let go of all values; a compressed tensor keeps its indices."""
    if input._rg and F.is_grad_enabled():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if input._kind == "coo":
        take(
            input,
            empty_coo(tuple(input._spec.shape), input._spec.dtype, input._spec.device, sparse_dim=input.sparse_dim()),
        )
    else:
        kind = "csr" if input._kind in ("csr", "bsr") else "csc"
        empty = empty_of(kind, input._spec.shape[: input._batch + 2], input._spec.dtype, input._spec.device)
        if input._kind != kind or input.dense_dim():
            raise errors_sparse.no_kernel("zero_ of blocks and hybrid tensors", False)
        take(input, empty)
    input._edge = None
    input._storage.version += 1
    return input


@handles("sparse_resize_")
def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Another size, in place; with values, dimensions only grow and stay of their kind."""
    if self._kind != "coo":
        raise errors_sparse.no_kernel("sparse_resize", False)
    size = tuple(size)
    if len(size) != sparse_dim + dense_dim:
        raise errors_sparse.size_length(sparse_dim, dense_dim, len(size))
    if self._nnz():
        if sparse_dim != self.sparse_dim():
            raise errors_sparse.resize_dims("sparse", self.sparse_dim(), sparse_dim)
        if dense_dim != self.dense_dim():
            raise errors_sparse.resize_dims("dense", self.dense_dim(), dense_dim)
        for kind, part in (("sparse", slice(0, sparse_dim)), ("dense", slice(sparse_dim, None))):
            if any(a < b for a, b in zip(size[part], self._spec.shape[part])):
                raise errors_sparse.resize_shrinks(kind, self._spec.shape[part], size[part])
        values = self._of
        for d, (old, new) in enumerate(zip(self._spec.shape[sparse_dim:], size[sparse_dim:]), 1):
            if old != new:
                more = list(values._spec.shape)
                more[d] = new - old
                values = F.cat([values, F.zeros(more, dtype=values._spec.dtype, device=values._spec.device)], d)
        take(self, coo(size, self._at[0], values, self._whole))
    else:
        take(self, empty_coo(size, self._spec.dtype, self._spec.device, sparse_dim=sparse_dim))
    self._storage.version += 1
    return self


@handles("sparse_resize_and_clear_")
def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Another size, in place, and no values."""
    if len(tuple(size)) != sparse_dim + dense_dim:
        raise errors_sparse.size_length(sparse_dim, dense_dim, len(tuple(size)))
    take(self, empty_coo(tuple(size), self._spec.dtype, self._spec.device, sparse_dim=sparse_dim))
    self._storage.version += 1
    return self


@handles("resize_as_sparse_")
def resize_as_sparse_(input, template):
    """The size of another sparse tensor, in place."""
    if not (is_sparse(input) and is_sparse(template)):
        raise errors_sparse.wrong_layout("resize_as_sparse_", "sparse tensors of the same", None)
    same = tuple(input._spec.shape) == tuple(template._spec.shape)
    if input._kind != "coo":
        take(input, like(template, template._at, F.zeros_like(template._of, dtype=input._spec.dtype)))
        return input
    if same and input.sparse_dim() == template.sparse_dim():
        return input
    return sparse_resize_(input, tuple(template._spec.shape), template.sparse_dim(), template.dense_dim())


@handles("reshape", "flatten", "ravel")
def reshape(input, *args, **kwargs):
    """RuntimeError: indices would have to be worked out anew."""
    raise errors_sparse.no_reshape()


@handles("expand", "expand_as", "repeat", "broadcast_to")
def expand(input, *args, **kwargs):
    """RuntimeError: PyTorch has none for sparse tensors."""
    raise errors_sparse.no_expand()
