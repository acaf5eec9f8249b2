"""Helpers that PyTorch keeps in torch.nn.functional: copies of its attention and its losses in packages import them from there."""

import warnings

import numpy as np

from ... import errors_nn
from ... import functions as _VF
from ...autograd.mode import no_grad
from ...nn import functional as F
from ...nn import grad
from ...nn.modules.utils import _list_with_default, _pair, _single, _triple
from . import reduction as _Reduction

__all__ = []
_ = (np, grad, _VF, _Reduction, _list_with_default, _pair, _single, _triple)

_mha_shape_check, _canonical_mask, _threshold = F._check_attention_shapes, F._additive_mask, F.threshold


def _none_or_dtype(input):
    """The dtype of a tensor, or None of None."""
    return None if input is None else input.dtype


def _in_projection_packed(q, k, v, w, b=None):
    """Queries, keys and values of weights stacked in this order."""
    return [x.contiguous() for x in F._project(q, k, v, w, b, None, q.shape[-1])]


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Queries, keys and values, each of a weight of its own (out, in)."""
    inputs, wide = {"query": q, "key": k, "value": v}, q.shape[-1]
    for (name, x), weight in zip(inputs.items(), (w_q, w_k, w_v)):
        if weight.shape != (wide, x.shape[-1]):
            raise AssertionError(f"expecting {name} weights shape of {(wide, x.shape[-1])}, but got {weight.shape}")
    for name, bias in zip(inputs, (b_q, b_k, b_v)):
        if bias is not None and bias.shape != (wide,):
            raise AssertionError(f"expecting {name} bias shape of {(wide,)}, but got {bias.shape}")
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def _check_key_padding_mask(key_padding_mask, src_len, bsz):
    for i, size in enumerate((bsz, src_len)):
        if key_padding_mask.shape[i] != size:
            found = key_padding_mask.shape[i]
            raise AssertionError(f"Expected key_padded_mask.shape[{i}] to be {size}, but got {found}")


def _get_softmax_dim(name, ndim, stacklevel):
    """The dimension that softmax took when none was given."""
    warnings.warn(errors_nn.implicit_dim_warning(name), stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def _verify_batch_size(size):
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size):
    count = 1
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def _no_grad_embedding_renorm_(weight, input, max_norm, norm_type):
    with no_grad():
        _VF.embedding_renorm_(weight.detach(), input, max_norm, norm_type)


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    """The spatial size of an unpooled tensor: what is asked for, if it can be pooled to the input's."""
    n = len(kernel_size)
    sizes = [(s - 1) * j + k - 2 * p for s, k, j, p in zip(input.shape[-n:], kernel_size, stride, padding)]
    if output_size is None:
        return sizes
    output_size = output_size[2:] if len(output_size) == n + 2 else output_size
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, "
            f"but it has a length of '{len(output_size)}'"
        )
    for i, (size, default, step) in enumerate(zip(output_size, sizes, stride)):
        if not default - step < size < default + step:
            between = f"must be between {default - step} and {default + step}"
            raise ValueError(f'invalid output_size "{output_size}" (dim {i} {between})')
    return output_size
