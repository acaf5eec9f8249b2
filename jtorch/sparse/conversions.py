"""Between layouts: dense, coordinates, compressed, blocks; coalescing; casts and copies."""

import numpy as np

from .. import creation, errors, errors_sparse, random_tensors
from .. import functions as F
from ..core import dtype as dtypes
from ..tensor import Tensor
from .base import build, coo, dense, handles, host, is_coo, is_sparse, like, linear, sparse_shape, unravel
from .constructors import empty_like_of, empty_of
from .tape import block_of, coordinates, distinct, masked, scattered, step


@handles("to_dense")
def to_dense(x, dtype=None, *, masked_grad=None):
    """The same tensor with all its elements; duplicates are added."""
    if not is_sparse(x):
        return x if dtype is None else x.to(dtype)
    kept = x.detach()
    keep = masked_grad is None or masked_grad
    out = step(
        "ToDenseBackward0", (x,), lambda: scattered(x._of, x),
        lambda g: mask_by(g, kept) if keep else convert(g, kept), False,
    )  # fmt: skip
    return out if dtype is None else out.to(dtype)


def convert(g, pattern):
    return g.to_sparse(pattern.sparse_dim()) if pattern._kind == "coo" else g.to_sparse(layout=pattern.layout)


@handles("coalesce")
def coalesce(x):
    """Sorted indices, each once; the values of duplicates are added."""
    if not is_coo(x):
        raise errors_sparse.wrong_layout("coalesce", "sparse coordinate tensor", getattr(x, "_kind", None))
    if x._whole:
        return x
    return step("CoalesceBackward0", (x,), lambda: coalesced(x), lambda g: g, False)


def coalesced(x):
    """`coalesce` off the tape."""
    if x._whole:
        return x
    shape = sparse_shape(x)
    flat = linear(host(x._at[0]), shape)
    unique, inverse = np.unique(flat, return_inverse=True)
    return gathered(x, unravel(unique, shape), x._of, inverse.reshape(-1))


def gathered(x, indices, values, inverse):
    """Coordinates (numpy) and, for each of the values, at which of them it is added."""
    device, count = x._spec.device, indices.shape[1]
    kind = values._spec.dtype
    if kind is dtypes.bool_:
        values = values.to(dtypes.uint8)
    zeros = F.zeros((count, *values._spec.shape[1:]), dtype=values._spec.dtype, device=device)
    summed = F.index_add(zeros, 0, dense(inverse.astype(np.int64), device), values) if values._spec.numel else zeros
    return coo(x._spec.shape, dense(indices, device), summed.to(kind), True)


def mask_by(g, pattern):
    """A gradient where the pattern has values, as a sparse tensor with the pattern, coalesced."""
    kept = pattern.detach()
    if kept._kind == "coo" and not kept._whole:
        kept = distinct(kept)[0]
    values = masked(g, kept)
    return step(
        "SparseMaskBackward0", (g,), lambda: like(kept, kept._at, values.detach(), kept._whole), lambda h: h.to_dense()
    )


@handles("sparse_mask")
def sparse_mask(input, mask):
    """The values of `input` where `mask`, a sparse tensor, has some."""
    if not is_sparse(mask):
        raise errors_sparse.wrong_layout("sparse_mask", "a sparse mask, of another", None)
    if tuple(input._spec.shape) != tuple(mask._spec.shape):
        raise errors_sparse.argument_dim(
            "sparse_mask(): operands have incompatible sizes", tuple(mask.shape), tuple(input.shape)
        )
    if is_sparse(input) and input._kind != mask._kind:
        input = to_dense(input)
    kept = mask.detach()
    # As PyTorch, the values of a mask with duplicate indices come once for each.
    return step(
        "SparseMaskBackward0", (input,), lambda: like(kept, kept._at, masked(input.detach(), kept), kept._whole),
        lambda g: scattered(masked(g, kept), kept) if not is_sparse(input) else mask_by(g, kept),
    )  # fmt: skip


# --- from dense ---------------------------------------------------------------------------------------------------------


@handles("to_sparse", "to_sparse_coo")
def to_sparse(input, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor in a sparse layout, of coordinates by default.

    Args:
        sparse_dim: how many dimensions are indexed. Default: all
        layout: torch.sparse_coo or one of the compressed layouts
        blocksize: the size of blocks of sparse_bsr and sparse_bsc
        dense_dim: how many dimensions the values have
    """
    if sparse_dim is not None and not isinstance(sparse_dim, int):
        layout, sparse_dim = sparse_dim, None
    kind = "coo" if layout is None else layout.name.removeprefix("sparse_")
    if kind == "strided":
        return to_dense(input)
    if blocksize is not None and kind in ("coo", "csr", "csc") and not is_sparse(input):
        raise errors_sparse.needless_blocks(kind)
    if kind != "coo":
        return to_compressed(input, kind, blocksize, dense_dim)
    if not is_sparse(input):
        return _dense_to_coo(input, sparse_dim, dense_dim)
    if input._kind == "coo":
        if sparse_dim is not None and sparse_dim != input.sparse_dim():
            raise errors_sparse.same_layout("sparse_dim argument !=self.sparse_dim()")
        if dense_dim is not None:
            raise errors_sparse.same_layout("dense_dim argument given")
        return input
    kept = input.detach()
    return step(
        "ToSparseBackward1", (input,), lambda: _compressed_to_coo(input.detach()), lambda g: back(g, kept), False
    )


def back(g, pattern):
    """A gradient in the layout of what it belongs to."""
    values = masked(g, pattern)
    return step(
        "ToDenseBackward0",
        (g,),
        lambda: like(pattern, pattern._at, values.detach(), pattern._whole),
        lambda h: h.to_dense(),
    )


def _dense_to_coo(x, sparse_dim, dense_dim):
    ndim = x._spec.ndim
    label = "ToSparseBackward1" if sparse_dim is None else "ToSparseBackward0"
    if sparse_dim is None:
        sparse_dim = ndim - (dense_dim or 0)
    if not 0 <= sparse_dim <= ndim:
        raise errors_sparse.sparse_dim_range(ndim, sparse_dim)
    if sparse_dim == 0 and ndim:
        raise errors_sparse.sparse_dim_zero()

    def forward():
        shape = tuple(x._spec.shape)
        array = host(x)
        there = array != 0
        if there.ndim > sparse_dim:
            there = there.reshape(*shape[:sparse_dim], -1).any(-1)
        indices = np.stack(there.nonzero()) if sparse_dim else np.zeros((0, int(there)), np.int64)
        flat = linear(indices, shape[:sparse_dim])
        rows = F.reshape(x.detach(), (-1 if x._spec.numel else _count(shape[:sparse_dim]), *shape[sparse_dim:]))
        values = F.index_select(rows, 0, dense(flat, x._spec.device))
        return coo(shape, dense(indices.astype(np.int64), x._spec.device), values, True)

    return step(label, (x,), forward, to_dense, False)


def _count(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def _compressed_to_coo(x):
    """Coordinates in the order of the compressed values: coalesced where those go by rows."""
    dims, leading = x._batch + 2, tuple(x._spec.shape[: x._batch])
    batch, rows, columns = coordinates(x)
    height, width = block_of(x)
    if x._blocked:
        inside = np.arange(height)[:, None], np.arange(width)[None]
        rows, columns = (
            a[..., None, None] * n + i for a, n, i in ((rows, height, inside[0]), (columns, width, inside[1]))
        )
        batch, rows, columns = np.broadcast_arrays(batch[..., None, None], rows, columns)
    batch, rows, columns = (a.reshape(-1) for a in (batch, rows, columns))
    indices = np.concatenate([unravel(batch, leading), rows[None], columns[None]]).astype(np.int64)
    values = F.reshape(x._of, (indices.shape[1], *x._spec.shape[dims:]))
    return coo(x._spec.shape, dense(np.ascontiguousarray(indices), x._spec.device), values, x._kind == "csr")


# --- compressed ---------------------------------------------------------------------------------------------------------


def _compressing(kind):
    blocked = kind in ("bsr", "bsc")

    def to(input, blocksize=None, dense_dim=None):
        if not blocked:
            blocksize, dense_dim = None, blocksize if dense_dim is None else dense_dim
        elif isinstance(blocksize, int):
            blocksize = blocksize, blocksize
        elif blocksize is not None and not isinstance(blocksize, (tuple, list)):
            raise errors.argument(f"to_sparse_{kind}", "blocksize", "tuple of ints", blocksize, 1)
        elif blocksize is not None and len(blocksize) != 2:
            raise errors_sparse.block_lengths(kind, len(blocksize))
        return to_compressed(input, kind, blocksize, dense_dim)

    to.__name__ = to.__qualname__ = f"to_sparse_{kind}"
    to.__doc__ = f"The tensor in the layout sparse_{kind}."
    return to


for _kind in ("csr", "csc", "bsr", "bsc"):
    globals()[f"to_sparse_{_kind}"] = handles(f"to_sparse_{_kind}")(_compressing(_kind))
_LABELS = {
    "csr": "ToSparseCsrBackward0",
    "csc": "ToSparseCscBackward0",
    "bsr": "ToSparseBsrBackward0",
    "bsc": "ToSparseBscBackward0",
}


def to_compressed(x, kind, blocksize=None, dense_dim=None):
    """The tensor in a compressed layout."""
    if blocksize is not None:
        blocksize = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)
    if is_sparse(x) and x._kind == kind and (blocksize is None or blocksize == block_of(x)):
        return x
    kept = x.detach()
    back_to = (lambda g: back(g, kept)) if is_sparse(x) else to_dense
    return step(_LABELS[kind], (x,), lambda: _compress(x.detach(), kind, blocksize, dense_dim), back_to, False)


def _compress(x, kind, blocksize, dense_dim):
    if kind in ("bsr", "bsc"):
        if blocksize is None:
            if not (is_sparse(x) and x._blocked):
                raise errors_sparse.needs_blocksize()
            blocksize = block_of(x)
        return _to_blocks(to_dense(x), kind, blocksize, dense_dim or 0)
    if not is_sparse(x):
        n = x._spec.ndim - (dense_dim or 0)
        if n < 2:
            raise IndexError(
                f"select(): index 1 out of range for tensor of size {list(x._spec.shape) + [1]} at dimension 1"
            )
        x = _dense_to_coo(x, n, None) if n == 2 else _batched(x, n)
    elif x._kind != "coo":
        x = _compressed_to_coo(x)
    x = coalesced(x)
    if x.sparse_dim() < 2:
        raise errors_sparse.argument_dim("to_sparse_" + kind, "at least two sparse dimensions", x.sparse_dim())
    return _coo_to_compressed(x, kind)


def _batched(x, n):
    """Coordinates with the batches' patterns made one: as PyTorch, all batches must have the same number of values."""
    return _dense_to_coo(x, n, None)


def _coo_to_compressed(x, kind):
    shape, dims = tuple(x._spec.shape), x.sparse_dim()
    leading, (rows, columns) = shape[: dims - 2], shape[dims - 2 : dims]
    indices = host(x._at[0])
    batch, row, column = linear(indices[: dims - 2], leading), indices[-2], indices[-1]
    major, minor, count = (row, column, rows) if kind == "csr" else (column, row, columns)
    values, device = x._of, x._spec.device
    if kind == "csc":
        order = np.lexsort((minor, major, batch))
        batch, major, minor = batch[order], major[order], minor[order]
        values = F.index_select(values, 0, dense(order, device))
    batches = _count(leading)
    each = np.bincount(batch, minlength=batches) if dims > 2 else np.array([len(batch)])
    if len(set(each.tolist())) > 1:
        raise errors_sparse.uneven_batches()
    nnz = int(each[0]) if len(each) else 0
    counts = np.bincount(batch * count + major, minlength=batches * count).reshape(*leading, count)
    starts = np.zeros((*leading, count + 1), np.int64)
    np.cumsum(counts, -1, out=starts[..., 1:])
    plain = np.ascontiguousarray(minor.reshape(*leading, nnz)).astype(np.int64)
    values = F.reshape(values, (*leading, nnz, *shape[dims:]))
    return build(kind, shape, (dense(starts, device), dense(plain, device)), values)


def _to_blocks(x, kind, blocksize, dense_dim):
    shape = tuple(x._spec.shape)
    n = len(shape) - dense_dim
    height, width = blocksize
    *leading, rows, columns = shape[:n]
    if min(blocksize) <= 0 or rows % height or columns % width:
        raise errors_sparse.block_size(kind, (rows, columns), blocksize)
    batches, rest = _count(leading), shape[n:]
    blocks = F.reshape(x, (batches, rows // height, height, columns // width, width, *rest))
    blocks = blocks.movedim(3, 2)  # (batches, block rows, block columns, height, width, *rest)
    there = host(blocks) != 0
    there = there.reshape(*there.shape[:3], -1).any(-1)
    order = there if kind == "bsr" else there.transpose(0, 2, 1)
    batch, major, minor = order.nonzero()
    row, column = (major, minor) if kind == "bsr" else (minor, major)
    flat = (batch * there.shape[1] + row) * there.shape[2] + column
    values = F.index_select(
        F.reshape(blocks, (-1, height, width, *rest)), 0, dense(flat.astype(np.int64), x._spec.device)
    )
    each = order.sum((1, 2))
    if len(set(each.tolist())) > 1:
        raise errors_sparse.uneven_batches()
    nnz = int(each[0]) if len(each) else 0
    starts = np.zeros((batches, order.shape[1] + 1), np.int64)
    np.cumsum(order.sum(2), -1, out=starts[:, 1:])
    device = x._spec.device
    at = dense(starts.reshape(*leading, -1), device), dense(minor.reshape(*leading, nnz).astype(np.int64), device)
    return build(kind, shape, at, F.reshape(values, (*leading, nnz, height, width, *rest)))


# --- casts and copies ---------------------------------------------------------------------------------------------------


@handles("clone")
def clone(input, *, memory_format=None):
    """A copy."""
    at = tuple(a.clone() for a in input._at)
    return step(
        "CloneBackward0", (input,), lambda: like(input, at, input._of.clone(), input._whole), lambda g: g, False
    )


@handles("to", "_to_copy")
def to(input, *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None, layout=None):
    """The tensor in another dtype or on another device."""
    if not is_sparse(input):  # dense.to(sparse): its dtype and device
        first = args[0]
        return input.to(first._spec.device, first._spec.dtype, *args[1:])
    args = [a for a in args if a is not None]
    if args and isinstance(args[0], Tensor):
        args = [args[0]._spec.device, args[0]._spec.dtype, *args[1:]]
    copy = copy or any(a is True for a in args[2:])
    of = input._of.to(*[a for a in args if not isinstance(a, bool)], device=device, dtype=dtype)
    if of._spec.device.type == "meta":
        raise errors_sparse.on_meta()
    same = of._spec.dtype is input._spec.dtype and of._spec.device is input._spec.device
    if same and not copy:
        return input
    before = input._spec.dtype, input._spec.device
    at = tuple(a.to(of._spec.device) for a in input._at)
    return step(
        "ToCopyBackward0", (input,), lambda: like(input, at, of.clone() if same else of, input._whole),
        lambda g: g.to(before[1], before[0]), False,
    )  # fmt: skip


for _name, _dtype in {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}.items():  # fmt: skip
    handles(_name)(lambda input, memory_format=None, dtype=dtypes.ALL[_dtype]: to(input, dtype=dtype))
handles("cpu")(lambda input, memory_format=None: to(input, device="cpu"))
handles("cuda")(lambda input, device=None, non_blocking=False, memory_format=None: to(input, device=device or "cuda"))
handles("type_as")(lambda input, other: to(input, dtype=other._spec.dtype, device=other._spec.device))


@handles("copy_")
def copy_(self, src, non_blocking=False):
    """Take the indices and values of another sparse tensor."""
    if not is_sparse(self):
        raise errors_sparse.copy_dense(self.type(), src.type())
    if not is_sparse(src):
        raise errors_sparse.copy_dense(self.type(), src.type())
    same = src._spec.dtype is self._spec.dtype
    if src._kind != self._kind:
        raise errors_sparse.copy_layouts(self._kind, src._kind)
    if self._kind != "coo" and src._nnz() != self._nnz():
        raise errors_sparse.copy_counts()
    if tuple(src._spec.shape) != tuple(self._spec.shape):
        raise errors.inplace_shape("copy_", self._spec.shape, src._spec.shape)
    from_ = src.clone() if same else to(src, dtype=self._spec.dtype)
    self._kind, self._at, self._of, self._whole = from_._kind, from_._at, from_._of, from_._whole
    self._edge = from_._edge
    self._storage.version += 1
    return self


# --- fresh ones ---------------------------------------------------------------------------------------------------------


_BLOCKS = ("bsr", "bsc")


@handles("zeros_like")
def zeros_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
):
    """A tensor without values, of the shape, the blocks and the layout of `input`, or of a layout that holds as much."""
    options = dict(dtype=dtype or input._spec.dtype, device=device or input._spec.device, requires_grad=requires_grad)
    kind, own = _kind_of(layout, input), getattr(input, "_kind", "strided")
    if kind == "strided" and own in ("coo", "strided"):
        return creation.zeros(tuple(input._spec.shape), **options)
    if own == "strided":
        return empty_of(kind, input._spec.shape, **options)
    if kind == "strided":
        raise errors_sparse.like_other_layout(own, kind)
    if kind != "coo" and (kind in _BLOCKS) != (own in _BLOCKS):
        raise errors_sparse.like_blocks(kind)
    return empty_like_of(kind, input, **options)


@handles("empty_like")
def empty_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False
):
    """Of a compressed tensor one with the same indices, of others what zeros_like gives."""
    kind, own = _kind_of(layout, input), getattr(input, "_kind", "strided")
    if own == "coo" and kind not in ("coo", "strided"):
        return empty_of(
            kind, input._spec.shape, dtype or input._spec.dtype, device or input._spec.device, requires_grad
        )
    if own in ("coo", "strided"):
        named = dict(dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
        return zeros_like(input, **named)
    if kind != own:
        raise errors_sparse.like_other_layout(own, kind)
    values = F.zeros_like(input._of, dtype=dtype or input._spec.dtype, device=device or input._spec.device)
    made = like(input, tuple(a.to(values._spec.device) for a in input._at), values)
    return made.requires_grad_() if requires_grad else made


def _kind_of(layout, input) -> str:
    return getattr(input, "_kind", "strided") if layout is None else layout.name.removeprefix("sparse_")


def _new(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return empty_of(self._kind, size, dtype or self._spec.dtype, device or self._spec.device, requires_grad)


handles("new_zeros", "new_empty")(_new)


def _like_values(name, dense_like):
    """ones_like and its like: of a compressed tensor with the same indices, of coordinates as a dense one."""

    def handler(input, *args, requires_grad=False, layout=None, memory_format=None, pin_memory=False, **kwargs):
        own, kind = input._kind, _kind_of(layout, input)
        if own == "coo":
            if kind != "strided":
                raise errors_sparse.no_kernel(name)
            made = dense_like(
                F.zeros(input._spec.shape, dtype=input._spec.dtype, device=input._spec.device), *args, **kwargs
            )
        elif kind != own:
            raise errors_sparse.like_other_layout(own, kind)
        else:
            made = like(input, input._at, dense_like(input._of, *args, **kwargs))
        return made.requires_grad_() if requires_grad else made

    handler.__name__ = name
    return handler


handles("ones_like")(_like_values("ones_like", creation.ones_like))
handles("full_like")(_like_values("full_like", creation.full_like))
handles("randn_like")(_like_values("randn_like", random_tensors.randn_like))
