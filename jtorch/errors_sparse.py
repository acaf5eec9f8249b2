"""Errors of sparse layouts."""

from . import errors

_LAYOUTS = {"coo": "Sparse", "csr": "SparseCsr", "csc": "SparseCsc", "bsr": "SparseBsr", "bsc": "SparseBsc"}


def layout_name(kind) -> str:
    """A layout as PyTorch's messages name it."""
    return _LAYOUTS.get(kind, "Strided")


def no_kernel(name, coo=True) -> NotImplementedError:
    backend = "SparseCPU" if coo else "SparseCsrCPU"
    name = name if name.startswith("__") else name.rstrip("_") or name
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend.\n  {name} has no meaning for sparse tensors here: use "
        "to_dense(), or compute with values()"
    )


def no_storage(kind="coo") -> NotImplementedError:
    name = "SparseTensorImpl" if kind == "coo" else "SparseCsrTensorImpl"
    return NotImplementedError(f"Cannot access storage of {name}\n  use to_dense(), or values() and the indices")


def no_data_ptr() -> RuntimeError:
    return RuntimeError("Cannot access data pointer of Tensor that doesn't have storage\n  use to_dense() first")


def no_strides(kind="coo") -> RuntimeError:
    if kind != "coo":
        return RuntimeError(f"Sparse {kind.upper()} tensors do not have strides")
    return RuntimeError("Sparse tensors do not have strides.")


def no_offset(kind) -> RuntimeError:
    return RuntimeError(f"Sparse {kind.upper()} tensors do not have storage_offset.")


def no_contiguity(kind) -> RuntimeError:
    return RuntimeError(f"Sparse {kind.upper()} tensors do not have is_contiguous")


def no_numpy(kind) -> TypeError:
    return TypeError(f"can't convert {layout_name(kind)} layout tensor to numpy. Use Tensor.to_dense() first.")


def no_type() -> RuntimeError:
    return RuntimeError("Unimplemented backend SparseCsrCPU")


def wrong_layout(name, wanted, got) -> RuntimeError:
    return RuntimeError(f"{name} expected {wanted} layout but got {layout_name(got)}")


def like_other_layout(own, wanted) -> RuntimeError:
    return RuntimeError(
        f"empty_like with different sparse layout is not supported (self is {layout_name(own)} but you requested "
        f"{layout_name(wanted)})"
    )


def like_blocks(wanted) -> RuntimeError:
    words = (
        "blocksize needs to be a tuple of size 2, but got 0"
        if wanted in ("bsr", "bsc")
        else f"blocksize cannot be specified for non-block layout {layout_name(wanted)}"
    )
    return RuntimeError(f"sparse_compressed_tensor_with_dims: {words}")


def uncoalesced(name) -> RuntimeError:
    return RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


def no_dense_result(name) -> RuntimeError:
    return RuntimeError(f"{name}: the result is dense and cannot be written into a sparse tensor")


def dense_out() -> RuntimeError:
    return RuntimeError("Expected a sparse tensor for out=, since the result is sparse, but got a strided one")


# sparse_coo_tensor


def indices_rank(shape) -> RuntimeError:
    return RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(shape)}")


def nnz_differs(indices, values) -> RuntimeError:
    return RuntimeError(
        f"indices and values must have same nnz, but got nnz from indices: {indices}, nnz from values: {values}"
    )


def values_size(wanted, got) -> RuntimeError:
    return RuntimeError(f"values has incorrect size, expected {list(wanted)}, got {list(got)}")


def negative_index(index, dim) -> RuntimeError:
    return RuntimeError(f"found negative index {index} for dim {dim}")


def index_too_large(dim, size, index) -> RuntimeError:
    return RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {size} but found index {index}")


def not_coalesced() -> RuntimeError:
    return RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def float_indices(dtype) -> TypeError:
    return TypeError(f"indices must be an int64 tensor type, but got {dtype}")


def negative_size(size) -> RuntimeError:
    return RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")


# compressed layouts


def unsatisfied(invariant) -> RuntimeError:
    return RuntimeError(f"`{invariant}` is not satisfied.")


def no_layout(layout=None) -> RuntimeError:
    got = "none" if layout is None else layout_name(layout.name.removeprefix("sparse_"))
    return RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}")


def index_types(first, second, one, two) -> RuntimeError:
    return RuntimeError(f"{first} and {second} must have the same dtype, bot got {one} and {two}, respectively")


def index_type(first, second, got) -> RuntimeError:
    return RuntimeError(f"{first} and {second} must be an int32 or int64 type, but got {got}")


def starts_length(name, axis, wanted, got) -> RuntimeError:
    return RuntimeError(f"{name}.shape[-1] must be equal to the number of {axis}s + 1 (={wanted}), but got {got}")


def plain_length(name, wanted, at, got) -> RuntimeError:
    return RuntimeError(
        f"{name}.shape[-1] must be equal to nnz (={wanted}) as defined by values.shape[{at}], but got {got}"
    )


def compressed_rank(name, wanted, got) -> RuntimeError:
    return RuntimeError(f"{name} must have dimensionality {wanted}, but got {got}")


def block_size(kind, sizes, blocks) -> RuntimeError:
    one, two = (f"({a},{b})" for a, b in (sizes, blocks))
    return RuntimeError(f"dense_to_sparse_{kind}: tensor sparse size {one} must be divisible by given blocksize {two}")


def block_lengths(kind, n) -> RuntimeError:
    return RuntimeError(f"dense_to_sparse_{kind}: blocksize needs to be a tuple of size 2, but got {n}")


def needs_blocksize() -> RuntimeError:
    return RuntimeError("dense_to_sparse: blocksize needs to be specified for SparseBsr and SparseBsc layouts")


# conversions


def sparse_dim_range(most, got) -> RuntimeError:
    return RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{most}] range, but {got} is given")


def sparse_dim_zero() -> RuntimeError:
    return RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")


def same_layout(what) -> RuntimeError:
    return RuntimeError(f"to_sparse: conversion from Sparse to Sparse with {what} is not supported")


# ops


def add_order() -> RuntimeError:
    return RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")


def sizes_differ(one, two) -> RuntimeError:
    return RuntimeError(
        f"add: expected 'self' and 'other' to have same size, but self has size {list(one)} while other has size {list(two)} "
        "(FYI: dense-sparse addition does not currently support broadcasting)"
    )


def divisor(shape) -> RuntimeError:
    return RuntimeError(
        f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(shape)} for divisor)\n  multiply by the "
        "reciprocal, or use to_dense()"
    )


def argument_dim(name, wanted, got) -> RuntimeError:
    return RuntimeError(f"{name}: expected {wanted}, got {got}")


def both_sparse_dims(name) -> RuntimeError:
    return RuntimeError(f"{name}: tensors must have the same sparse and dense dimensions and the same layout")


def uneven_batches() -> RuntimeError:
    return RuntimeError("Expect the same number of specified elements per batch.")


def copy_dense(kind, source) -> RuntimeError:
    return RuntimeError(
        f"copy_() between dense and sparse Tensors is not implemented! Found self type = {kind} and src type = {source}\n  use to_dense() or "
        "to_sparse() first"
    )


def copy_layouts(kind, source) -> RuntimeError:
    if kind == "coo":
        return RuntimeError(
            f"copy_sparse_compressed_ expected sparse compressed tensor layout but got {_LAYOUTS[kind]}"
        )
    return RuntimeError(
        "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. "
        f"self layout is {_LAYOUTS[kind]} and src layout is {_LAYOUTS[source]}"
    )


def copy_counts() -> RuntimeError:
    return RuntimeError(
        "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported."
    )


def transposed_in_place(kind) -> RuntimeError:
    return RuntimeError(f"torch.transpose_: in-place transposition is not supported for {_LAYOUTS[kind]} layout")


def inplace_uncoalesced(name) -> RuntimeError:
    return RuntimeError(f"{name} requires coalesced input")


def power(exponent) -> NotImplementedError:
    return NotImplementedError(
        f"pow of a sparse tensor takes a positive number as its exponent (got {exponent!s:.40}): zeros would not stay zeros\n  use "
        "to_dense() first"
    )


def deepcopy_of_result() -> RuntimeError:
    return RuntimeError(
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.\n  use detach() first"
    )


def sum_sizes(one, two) -> RuntimeError:
    return RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(one)} != {list(two)}")


def densities(one, two) -> RuntimeError:
    return RuntimeError(
        f"add: expected 'self' and 'other' to have same density, but 'self' has {one} sparse dimensions while 'other' has {two} sparse "
        "dimensions"
    )


def intersection() -> RuntimeError:
    return RuntimeError(
        "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse dimensions, and shape of "
        "sparse dimensions"
    )


# shapes


def permute_duplicates() -> RuntimeError:
    return RuntimeError("permute(sparse_coo): duplicate dims are not allowed.")


def permute_mixed() -> RuntimeError:
    return RuntimeError(
        "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed.Only transpositions within sparse and "
        "dense dimensions are supported."
    )


def transpose_mixed(n, a, b) -> RuntimeError:
    return RuntimeError(f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {n}, d0: {a}, d1: {b}")


def index_out_of_range(index, size) -> IndexError:
    return IndexError(f"index_select(): index contains {index} that is out of range for tensor of size {size}")


def cat_layouts(layouts) -> RuntimeError:
    return RuntimeError(
        f"cat: all tensors must be sparse tensors of coordinates, but got {', '.join(map(str, layouts))}"
    )


def cat_dims(k, sparse, dense, got_sparse, got_dense) -> RuntimeError:
    return RuntimeError(
        f"All tensors must have the same number of sparse and dense dimensions as the first, {sparse} and {dense}, but tensor at position {k} has "
        f"{got_sparse} and {got_dense}"
    )


def cat_sizes(first, k, got, dim) -> RuntimeError:
    return RuntimeError(
        f"All tensors must have the same shape: {list(first)} (except in the concatenating dimension), but found shape: {list(got)} at "
        f"position {k} (dimension {dim})"
    )


def size_length(sparse_dim, dense_dim, got) -> RuntimeError:
    return RuntimeError(
        f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {got}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
    )


def resize_dims(kind, before, after) -> RuntimeError:
    return RuntimeError(
        f"changing the number of {kind} dimensions (from {before} to {after}) on a non-empty sparse tensor is not supported.\n  use "
        "sparse_resize_and_clear_, or make a new tensor from its indices and values"
    )


def resize_shrinks(kind, before, after) -> RuntimeError:
    return RuntimeError(
        f"shrinking the size of {kind} dimensions (from {list(before)} to {list(after)}) on a non-empty sparse tensor is not supported.\n"
        "  use sparse_resize_and_clear_, or make a new tensor from its indices and values"
    )


def no_reshape() -> RuntimeError:
    return RuntimeError("reshape is not implemented for sparse tensors\n  use to_dense() first")


def no_expand() -> RuntimeError:
    return RuntimeError("expand is unsupported for Sparse tensors\n  use to_dense() first")


# products of matrices


def inner_size(wanted, got) -> RuntimeError:
    return RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {wanted}, got {got}")


def matrices(sparse_dim) -> RuntimeError:
    return RuntimeError(f"addmm: matrices expected, got {sparse_dim}D tensor")


def mv_size(columns, length) -> RuntimeError:
    return RuntimeError(f"mv: expected self.size(-1) == vec.size(-1), but got {columns} and {length}")


def reduce_layouts(layout) -> RuntimeError:
    return RuntimeError(f"torch.sparse.mm with reduce expects a sparse_csr matrix and a dense one, but got {layout}")


def needless_blocks(kind: str) -> RuntimeError:
    name = "Sparse" if kind == "coo" else f"Sparse{kind.capitalize()}"
    return RuntimeError(
        f"dense_to_sparse: conversion from Strided to {name} with blocksize argument given is not supported"
    )


def reduce_name(reduce) -> RuntimeError:
    if reduce == "prod":
        return RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    return RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")


def sampled_layout(layout) -> RuntimeError:
    return RuntimeError(f"sampled_addmm: Expected self to have sparse csr layout, but got {layout}")


def sampled_dense(layout) -> RuntimeError:
    return RuntimeError(f"sampled_addmm: Expected mat1 and mat2 to have strided layout, but got {layout}")


def sampled_dtype(wanted, got) -> RuntimeError:
    return RuntimeError(
        f"sampled_addmm: Expected self, mat1 and mat2 to have the same dtype, but got {errors.scalar_name(wanted)} and "
        f"{errors.scalar_name(got)}"
    )


def sampled_shape(wanted, got) -> RuntimeError:
    return RuntimeError(f"sampled_addmm: self.shape {list(wanted)} must be that of the product, {list(got)}")


def diagonals_rank(got) -> RuntimeError:
    return RuntimeError(f"Diagonals must be vector or matrix, got {got}D")


def diagonals_shape(shape) -> RuntimeError:
    return RuntimeError(f"Output shape must be 2d, got {list(shape)}")


def diagonals_count(diagonals, offsets) -> RuntimeError:
    return RuntimeError(f"Number of diagonals ({diagonals}) does not match the number of offsets ({offsets})")


def diagonals_unique() -> RuntimeError:
    return RuntimeError("Offset tensor contains duplicate values")


def sum_keepdim() -> RuntimeError:
    return RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")


# embeddings and optimizers


def scaled_by_frequency() -> RuntimeError:
    return RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")


def no_sparse_gradients(optimizer) -> RuntimeError:
    more = {
        "Adam": ", please consider SparseAdam instead", "AdamW": ", please consider SparseAdam instead"
    }.get(optimizer, "")  # fmt: skip
    name = "Adam" if optimizer == "AdamW" else optimizer
    return RuntimeError(f"{name} does not support sparse gradients{more}")


def decay_of_sparse() -> RuntimeError:
    return RuntimeError("weight_decay option is not compatible with sparse gradients")


def sum_layout(layout) -> RuntimeError:
    return RuntimeError(
        f"Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got layout {layout}"
    )


def sampled_kind(dtype) -> RuntimeError:
    return RuntimeError(
        f"sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got {errors.scalar_name(dtype)}"
    )


def transformed() -> NotImplementedError:
    return errors.unsupported(
        "sparse tensors in torch.func's derivatives and in forward mode", "torch.autograd.grad, or to_dense()"
    )


def on_meta() -> NotImplementedError:
    return errors.unsupported("sparse tensors on the meta device", "a dense tensor there")


def no_derivative(name) -> RuntimeError:
    return RuntimeError(f"derivative for aten::{name} is not implemented")
