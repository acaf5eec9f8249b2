"""Operators of the op table as PyTorch's dispatcher has them: there `linear` is `t` and `addmm`, and every convolution is `convolution`.

For dispatch modes, which count or rewrite these. A function here gets `call(name, *args)`, which hands an operator (its name, or name and
overload) to the mode, and the arguments of the op table's operator; it gives None for what the mode sees as one.
"""

import math

__all__ = ["PARTS"]


def _linear(call, input, weight, bias=None):
    if weight.ndim != 2:
        return None
    if bias is None:
        return _matmul(call, input, call("t", weight))
    if input.ndim == 2:
        return call("addmm", bias, input, call("t", weight))
    if not input.is_contiguous():
        return call("add_.Tensor", _matmul(call, input, call("t", weight)), bias)
    rows = call("view", input, [math.prod(input.shape[:-1]), input.shape[-1]])
    return call("view", call("addmm", bias, rows, call("t", weight)), [*input.shape[:-1], weight.shape[0]])


def _matmul(call, input, other):
    dims = input.ndim, other.ndim
    if dims in _VECTORS:
        return call(_VECTORS[dims], input, other)
    if dims == (1, 2):
        return call("squeeze_.dim", call("mm", call("unsqueeze", input, 0), other), 0)
    if other.ndim <= 2 and (other.requires_grad or input.is_contiguous()):
        return _folded(call, input, other)
    if input.ndim <= 2 and input.requires_grad:
        turned = call("transpose.int", other, -2, -1) if other.ndim > 1 else other
        product = _folded(call, turned, call("t", input) if input.ndim == 2 else input)
        return call("transpose.int", product, -2, -1) if input.ndim == 2 else product
    return _batched(call, input, other)


def _folded(call, batch, small):
    """The product of a batch by one matrix or vector: its rows in one matrix. PyTorch does so where the gradient of `small` is wanted."""
    rows = call("view" if batch.is_contiguous() else "reshape", batch, [math.prod(batch.shape[:-1]), batch.shape[-1]])
    product = call("mv" if small.ndim == 1 else "mm", rows, small)
    return call("_unsafe_view", product, [*batch.shape[:-1], *small.shape[1:]])


_VECTORS = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}


def _batched(call, input, other):
    """Products of the matrices of two batches that are expanded to each other."""
    left = input if input.ndim > 1 else call("unsqueeze", input, 0)
    right = other if other.ndim > 1 else call("unsqueeze", other, 1)
    batch = _together(left.shape[:-2], right.shape[:-2])
    flat = [_flat(call, x, batch) for x in (left, right)]
    shape = [*batch, *left.shape[-2 : left.ndim - (input.ndim == 1) - 1], *right.shape[right.ndim - (other.ndim > 1) :]]
    return call("_unsafe_view", call("bmm", *flat), shape)


def _together(first, second):
    """The shape that two shapes are broadcast to; the operator before has checked that they can be."""
    n = max(len(first), len(second))
    pairs = zip((1,) * (n - len(first)) + tuple(first), (1,) * (n - len(second)) + tuple(second))
    return [b if a == 1 else a for a, b in pairs]


def _flat(call, x, batch):
    x = call("expand", x, [*batch, *x.shape[-2:]])
    return call("reshape" if not x.is_contiguous() and x.ndim > 3 else "view", x, [math.prod(batch), *x.shape[-2:]])


def _spread(value, n):
    """A setting of each dimension of space."""
    given = list(value) if isinstance(value, (tuple, list)) else [value]
    return given * n if len(given) == 1 else given


def _padded(padding, weight, dilation, stride):
    """How far a convolution reaches past both edges; None where that differs from one edge to the other."""
    if padding == "valid":
        return [0] * len(dilation)
    if padding != "same":
        return _spread(padding, len(dilation))
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    return None if any(r % 2 for r in reach) or set(stride) != {1} else [r // 2 for r in reach]


def _convolve(call, input, weight, bias, *settings):
    single = input.ndim == weight.ndim - 1
    out = call("convolution", call("unsqueeze", input, 0) if single else input, weight, bias, *settings)
    return call("squeeze.dim", out, 0) if single else out


def _conv(call, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = weight.ndim - 2
    stride, dilation = _spread(stride, n), _spread(dilation, n)
    reach = _padded(padding, weight, dilation, stride)
    if reach is None:
        return None
    return _convolve(call, input, weight, bias, stride, reach, dilation, False, [0] * n, groups)


def _conv_transposed(call, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    stride, padding, output_padding, dilation = (
        _spread(s, weight.ndim - 2) for s in (stride, padding, output_padding, dilation)
    )
    return _convolve(call, input, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _softmax(name):
    return lambda call, input, dim, dtype=None: call(name, input, dim, False) if dtype is None else None


def _layer_norm(call, input, normalized_shape, weight=None, bias=None, eps=1e-5, *unused):
    return call("native_layer_norm", input, list(normalized_shape), weight, bias, eps)[0]


def _chunk(call, input, chunks, dim=0):
    if chunks < 1 or not input.shape[dim]:
        return None
    return call("split.Tensor", input, -(-input.shape[dim] // chunks), *(dim,)[: dim != 0])


def _embedding(call, weight, indices, padding_idx=None, scale_grad_by_freq=False):
    if scale_grad_by_freq:
        return call("embedding", weight, indices, -1 if padding_idx is None else padding_idx, True)
    return call("embedding", weight, indices, *(() if padding_idx is None else (padding_idx,)))


def _norm(call, input, p="fro", dim=None, keepdim=False, dtype=None):
    if dtype is not None or p != "fro" and isinstance(p, str):
        return None
    along = [] if dim is None else [[dim] if isinstance(dim, int) else list(dim), *[True] * keepdim]
    order = 2 if p in ("fro", None) else p
    return call("linalg_vector_norm", input, *([order, *along] if along or order != 2 else ()))


# name of the op table -> function of `call` and its arguments
PARTS = {
    "linear": _linear,
    "matmul": _matmul,
    **{f"conv{n}d": _conv for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _conv_transposed for n in (1, 2, 3)},
    "softmax": _softmax("_softmax"),
    "log_softmax": _softmax("_log_softmax"),
    "layer_norm": _layer_norm,
    "chunk": _chunk,
    "embedding_rows": _embedding,
    "norm": _norm,
}
