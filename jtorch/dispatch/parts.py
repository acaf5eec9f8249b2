"""Operators of the op table as PyTorch's dispatcher has them: there `linear` is `t` and `addmm`, and every convolution is `convolution`.

For dispatch modes, which count or rewrite these. A function here gets `call(name, *args)`, which hands an operator (its name, or name and
overload) to the mode, and the arguments of the op table's operator; it gives None for what the mode sees as one.
"""

import math

from ..ops import registry
from ..ops.pool_shapes import unpooled
from ..ops.reduction import reduction_of

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


_REDUCTIONS = ("none", "mean", "sum")  # the numbers that PyTorch's dispatcher has for them


def _reduced(call, loss, reduction):
    return loss if reduction == "none" else call(reduction, loss)


def _loss(name, order, defaults):
    """A loss with the arguments that PyTorch's dispatcher has: `order`, those behind the tensors with these defaults."""
    order = order.split()

    def part(call, *values):
        given = dict(zip((p.name for p in registry.OPS[name].params), values))
        number = _REDUCTIONS.index(reduction_of(given["reduction"], given.get("size_average"), given.get("reduce")))
        if "weight" not in order and given.get("weight") is not None:
            return _weighted(call, name, given, number)
        return call(name, *_given([number if n == "reduction" else given[n] for n in order], defaults))

    return part


def _given(values, defaults):
    """Arguments without those at the end that equal their defaults."""
    first = len(values) - len(defaults)
    while len(values) > first and values[-1] is defaults[len(values) - first - 1]:
        values.pop()
    return values


def _weighted(call, name, given, number):
    """A loss whose elements are weighed, and divided by the sum of the weights for a mean."""
    each = call("mul.Tensor", call(name, given["input"], given["target"], 0), given["weight"])
    if number != 1:
        return call("sum", each) if number else each
    return call("div.Tensor", call("sum", each), call("sum", call("expand", given["weight"], list(each.shape))))


def _nll(call, input, target, weight, reduction, ignore_index):
    return call("nll_loss_forward", input, target, weight, _REDUCTIONS.index(reduction), ignore_index)[0]


def _nll_loss(call, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    reduction = reduction_of(reduction, size_average, reduce)
    if input.ndim > 2:
        given = [input, target, weight, _REDUCTIONS.index(reduction), ignore_index]
        return call("nll_loss_nd", *_given(given, [None, 1, -100]))
    return _nll(call, input, target, weight, reduction, ignore_index)


def _cross_entropy(
    call, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):  # fmt: skip
    reduction = reduction_of(reduction, size_average, reduce)
    if input.ndim > 2 or label_smoothing or target.is_floating_point():
        given = [input, target, weight, _REDUCTIONS.index(reduction), ignore_index, label_smoothing]
        return call("cross_entropy_loss", *_given(given, [None, 1, -100, 0.0]))
    return _nll(call, call("_log_softmax", input, input.ndim - 1, False), target, weight, reduction, ignore_index)


def _l1_loss(call, *values):
    given = dict(zip((p.name for p in registry.OPS["l1_loss"].params), values))
    if given.get("weight") is not None:
        return _loss("l1_loss", "input target reduction", ())(call, *values)
    loss = call("abs", call("sub.Tensor", given["input"], given["target"]))
    return _reduced(call, loss, reduction_of(given["reduction"], given["size_average"], given["reduce"]))


def _kl_div(call, input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    if log_target:
        loss = call("mul.Tensor", call("exp", target), call("sub.Tensor", target, input))
    else:
        loss = call("sub.Tensor", call("xlogy.Tensor", target, target), call("mul.Tensor", target, input))
    if reduction == "batchmean":
        return call("div.Scalar", call("sum", loss), input.shape[0])
    return _reduced(call, loss, reduction_of(reduction, size_average, reduce))


def _dropout(call, input, p, features=None, key=None):
    if p == 1:
        return call("mul.Tensor", input, call("zeros_like", input))
    if features is None:
        noise = call("empty_like", input)
    else:
        noise = call("new_empty", input, [*input.shape[:features], *[1] * (input.ndim - features)])
    noise = call("div_.Scalar", call("bernoulli_.float", noise, 1 - p), 1 - p)
    return call("mul.Tensor", input, noise)


def _pad(call, input, pad, mode="constant", value=None):
    if mode != "constant":
        return None
    return call("constant_pad_nd", input, list(pad), *(() if value is None else (value,)))


def _outer(call, input, vec2):
    return call("mul.Tensor", call("view", input, [input.shape[0], 1]), vec2)


def _adaptive_max(n):
    def parts(call, input, output_size, return_indices=False):
        size = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * n
        size = [own if s is None else s for s, own in zip(size, input.shape[-n:])]
        if n == 1:
            both = call("adaptive_max_pool2d", call("unsqueeze", input, -2), [1, *size])
            both = [call("squeeze.dim", each, -2) for each in both]
        else:
            both = call(f"adaptive_max_pool{n}d", input, size)
        return tuple(both) if return_indices else both[0]

    return parts


def _max_unpool(n):
    def parts(call, input, indices, kernel_size, stride=None, padding=0, output_size=None):
        size = list(unpooled(n, tuple(input.shape[-n:]), kernel_size, stride, padding, output_size))
        each = lambda x: list(x) if isinstance(x, (tuple, list)) else [x] * n
        rest = [each(kernel_size if stride is None else stride), each(padding)] if n == 3 else []
        return call(f"max_unpool{n}d", input, indices, size, *rest)

    return parts


def _part_of_complex(k):
    return lambda call, input: call("select.int", call("view_as_real", input), input.ndim, k)


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
    "nll_loss": _nll_loss,
    "cross_entropy": _cross_entropy,
    "l1_loss": _l1_loss,
    "kl_div": _kl_div,
    "dropout_mask": _dropout,
    "pad": _pad,
    "outer": _outer,
    "polygamma": lambda call, input, n: call("polygamma", n, input),
    "view_as_real": lambda call, input: call("view_as_real", input),
    "view_as_complex": lambda call, input: call("view_as_complex", input),
    **{name: _part_of_complex(k) for k, name in enumerate(("real", "imag"))},
    **{f"adaptive_max_pool{n}d": _adaptive_max(n) for n in (1, 2, 3)},
    **{f"max_unpool{n}d": _max_unpool(n) for n in (2, 3)},
    **{
        name: _loss(name, f"input target {rest}", defaults)
        for name, rest, defaults in (
            ("mse_loss", "reduction", [1]),
            ("soft_margin_loss", "reduction", [1]),
            ("multilabel_margin_loss", "reduction", [1]),
            ("smooth_l1_loss", "reduction beta", [1, 1.0]),
            ("huber_loss", "reduction delta", [1, 1.0]),
            ("binary_cross_entropy", "weight reduction", [None, 1]),
            ("binary_cross_entropy_with_logits", "weight pos_weight reduction", [None, None, 1]),
            ("hinge_embedding_loss", "margin reduction", [1.0, 1]),
            ("multi_margin_loss", "p margin weight reduction", [1, 1.0, None, 1]),
            ("poisson_nll_loss", "log_input full eps reduction", []),
        )
    },
    "cosine_embedding_loss": _loss("cosine_embedding_loss", "input1 input2 target margin reduction", [0.0, 1]),
    "margin_ranking_loss": _loss("margin_ranking_loss", "input1 input2 target margin reduction", [0.0, 1]),
    "triplet_margin_loss": _loss(
        "triplet_margin_loss", "anchor positive negative margin p eps swap reduction", [1.0, 2.0, 1e-6, False, 1]
    ),
}
