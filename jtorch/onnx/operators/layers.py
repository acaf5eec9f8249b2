"""Products, convolutions, pooling, normalisation, embeddings, resizing and losses."""

import numpy as np

from ...core import dtype as dtypes
from ..builder import Value
from ..errors import option
from .pointwise import number
from .record import op
from .reductions import log_softmax, reduced


def _tuple(x, n):
    return [x] * n if isinstance(x, int) else [*x] * (n if len(x) == 1 else 1)


# products


@op("matmul", "mm", "bmm", "mv", "dot", "chain_matmul", "vdot")
def matmul(g, input, other):
    return g("MatMul", input, other, shape=g.shape)


@op("linear")
def linear(g, input, weight, bias=None):
    if input.ndim == 2 and bias is not None:
        return g("Gemm", input, weight, bias, transB=1, shape=g.shape)
    found = g("MatMul", input, g.transpose(weight, *reversed(range(weight.ndim))), shape=g.shape)
    return found if bias is None else g("Add", found, bias)


@op("addmm")
def addmm(g, input, mat1, mat2, *, beta=1, alpha=1):
    return g("Gemm", mat1, mat2, input, alpha=float(alpha), beta=float(beta), shape=g.shape)


@op("baddbmm", "addbmm", "addmv")
def baddbmm(g, input, batch1, batch2, *, beta=1, alpha=1):
    found = g("MatMul", batch1, batch2, shape=g.shape)
    found = found if alpha == 1 else g("Mul", found, number(g, alpha))
    return g("Add", found, input if beta == 1 else g("Mul", input, number(g, beta)))


@op("outer", "ger")
def outer(g, input, vec2):
    return g("Mul", g.unsqueeze(input, 1), g.unsqueeze(vec2, 0), shape=g.shape)


@op("einsum")
def einsum(g, equation, *operands):
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return g("Einsum", *operands, equation=equation, shape=g.shape)


@op("bilinear")
def bilinear(g, input1, input2, weight, bias=None):
    found = g("Einsum", input1, weight, input2, equation="...i,oij,...j->...o", shape=g.shape)
    return found if bias is None else g("Add", found, bias)


# convolutions


def _batched(g, x, n):
    """One image without a batch is a batch of one; and what takes that away again."""
    if x.ndim == n + 2:
        return x, lambda y: Value(y.name, y.dtype, g.shape)
    return g.unsqueeze(x, 0), lambda y: g.squeeze(Value(y.name, y.dtype, (1, *g.shape)), 0)


def _conv(n):
    def conv(g, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        x, back = _batched(g, input, n)
        dilation = _tuple(dilation, n)
        if padding == "same":
            whole = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
            pads = [*(p // 2 for p in whole), *(p - p // 2 for p in whole)]
        else:
            pads = _tuple(0 if padding == "valid" else padding, n) * 2
        found = g(
            "Conv", x, weight, bias, strides=_tuple(stride, n), pads=pads, dilations=dilation, group=groups, kernel_shape=list(weight.shape[2:]),
        )  # fmt: skip
        return back(found)

    return conv


def _conv_transpose(n):
    def conv(g, input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        x, back = _batched(g, input, n)
        found = g(
            "ConvTranspose", x, weight, bias, strides=_tuple(stride, n), pads=_tuple(padding, n) * 2, dilations=_tuple(dilation, n), group=groups,
            output_padding=_tuple(output_padding, n), kernel_shape=list(weight.shape[2:]),
        )  # fmt: skip
        return back(found)

    return conv


# pooling


def _max_pool(n, indices=False):
    def pool(g, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=indices):
        x, back = _batched(g, input, n)
        if return_indices:
            raise option("max_pool", "with return_indices")
        found = g(
            "MaxPool", x, kernel_shape=_tuple(kernel_size, n), strides=_tuple(stride or kernel_size, n), pads=_tuple(padding, n) * 2,
            dilations=_tuple(dilation, n), ceil_mode=int(ceil_mode),
        )  # fmt: skip
        return back(found)

    return pool


def _avg_pool(n):
    def pool(
        g, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        if divisor_override is not None:
            raise option("avg_pool", "with divisor_override")
        x, back = _batched(g, input, n)
        found = g(
            "AveragePool", x, kernel_shape=_tuple(kernel_size, n), strides=_tuple(stride or kernel_size, n), pads=_tuple(padding, n) * 2,
            ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        )  # fmt: skip
        return back(found)

    return pool


def _adaptive(n, kind):
    def pool(g, input, output_size, return_indices=False):
        if return_indices:
            raise option("adaptive_max_pool", "with return_indices")
        x, back = _batched(g, input, n)
        sizes = [x.shape[d + 2] if k is None else k for d, k in enumerate(_tuple(output_size, n))]
        if all(k == 1 for k in sizes):
            return back(g(f"Global{kind}Pool", x))
        if any(size % k for size, k in zip(x.shape[2:], sizes)):
            raise option(f"adaptive_{kind.lower()}_pool{n}d", "where the sizes are no multiples of those of the result")
        steps = [size // k for size, k in zip(x.shape[2:], sizes)]
        return back(g(f"{kind}Pool", x, kernel_shape=steps, strides=steps))

    return pool


for _n in (1, 2, 3):
    op(f"conv{_n}d")(_conv(_n))
    op(f"conv_transpose{_n}d")(_conv_transpose(_n))
    op(f"max_pool{_n}d", f"_max_pool{_n}d")(_max_pool(_n))
    op(f"max_pool{_n}d_with_indices")(_max_pool(_n, True))
    op(f"avg_pool{_n}d")(_avg_pool(_n))
    op(f"adaptive_avg_pool{_n}d")(_adaptive(_n, "Average"))
    op(f"adaptive_max_pool{_n}d")(_adaptive(_n, "Max"))


# normalisation


def _filled(g, like, value):
    return g.value(np.full(like.shape, value, np.float32), like.dtype)


@op("batch_norm")
def batch_norm(g, input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if training or running_mean is None:
        return _normalised(g, input, [0, *range(2, input.ndim)], weight, bias, eps)
    weight = _filled(g, running_mean, 1) if weight is None else weight
    bias = _filled(g, running_mean, 0) if bias is None else bias
    return g("BatchNormalization", input, weight, bias, running_mean, running_var, epsilon=float(eps))


def _per_channel(g, x, n):
    """A vector of numbers of the channels, against a tensor of n dimensions."""
    return g.reshape(x, [-1, *[1] * (n - 2)], (x.shape[0], *[1] * (n - 2)))


def _normalised(g, x, dims, weight, bias, eps):
    away = g("Sub", x, reduced(g, "ReduceMean", x, dims, True))
    spread = reduced(g, "ReduceMean", g("Mul", away, away), dims, True)
    found = g("Div", away, g("Sqrt", g("Add", spread, g.value(eps, x.dtype))))
    return _scaled(g, found, weight, bias)


def _scaled(g, x, weight, bias):
    if weight is not None:
        x = g("Mul", x, _per_channel(g, weight, x.ndim))
    return x if bias is None else g("Add", x, _per_channel(g, bias, x.ndim))


@op("instance_norm")
def instance_norm(
    g, input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    if not use_input_stats:
        return batch_norm(g, input, running_mean, running_var, weight, bias, False, momentum, eps)
    channels = g.value(np.zeros(input.shape[1], np.float32), input.dtype)
    weight = _filled(g, channels, 1) if weight is None else weight
    return g("InstanceNormalization", input, weight, channels if bias is None else bias, epsilon=float(eps))


@op("group_norm")
def group_norm(g, input, num_groups, weight=None, bias=None, eps=1e-5):
    apart = g(
        "Reshape",
        input,
        g.ints([0, num_groups, -1]),
        shape=(input.shape[0], num_groups, int(np.prod(input.shape[1:])) // num_groups),
    )
    ones, zeros = (g.value(np.full(num_groups, x, np.float32), input.dtype) for x in (1, 0))
    found = g("InstanceNormalization", apart, ones, zeros, epsilon=float(eps))
    return _scaled(g, g("Reshape", found, g.sizes(input), shape=input.shape), weight, bias)


@op("layer_norm")
def layer_norm(g, input, normalized_shape, weight=None, bias=None, eps=1e-5):
    n = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    if weight is None:
        weight = g.value(np.ones(input.shape[-n:], np.float32), input.dtype)
    return g("LayerNormalization", input, weight, bias, axis=-n, epsilon=float(eps))


@op("rms_norm")
def rms_norm(g, input, normalized_shape, weight=None, eps=None):
    dims = range(input.ndim - len(normalized_shape), input.ndim)
    eps = float(np.finfo(np.float32).eps) if eps is None else eps
    power = reduced(g, "ReduceMean", g("Mul", input, input), list(dims), True)
    found = g("Div", input, g("Sqrt", g("Add", power, number(g, eps))))
    return found if weight is None else g("Mul", found, weight)


@op("local_response_norm")
def local_response_norm(g, input, size, alpha=1e-4, beta=0.75, k=1.0):
    return g("LRN", input, size=size, alpha=float(alpha), beta=float(beta), bias=float(k))


# embeddings, resizing


@op("embedding")
def embedding(g, input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if max_norm is not None:
        raise option("embedding", "with max_norm")
    return g("Gather", weight, input, axis=0, shape=g.shape)


_MODES = {
    "nearest": "nearest",
    "nearest-exact": "nearest",
    "bilinear": "linear",
    "linear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


@op("interpolate", "upsample")
def interpolate(
    g,
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    if mode == "area":
        raise option("interpolate", "in mode area")
    coordinates = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
    if mode not in ("nearest", "nearest-exact") and not align_corners:
        coordinates = "pytorch_half_pixel" if mode != "bicubic" else "half_pixel"
    scales = sizes = None
    if size is not None or recompute_scale_factor:
        first = g.ints([g.size(input, d) for d in range(2)])
        rest = list(g.shape[2:]) if size is None or isinstance(size, int) else list(size)
        sizes = g("Concat", first, g.ints(rest), axis=0, dtype=dtypes.int64, shape=(input.ndim,))
    else:
        factors = [scale_factor] * (input.ndim - 2) if isinstance(scale_factor, (int, float)) else list(scale_factor)
        scales = np.array([1, 1, *factors], np.float32)
    return g(
        "Resize", input, None, scales, sizes, mode=_MODES[mode], coordinate_transformation_mode=coordinates, cubic_coeff_a=-0.75,
        nearest_mode="floor" if mode == "nearest" else "round_prefer_ceil" if mode == "nearest-exact" else None, antialias=int(antialias), shape=g.shape,
    )  # fmt: skip


@op("grid_sample")
def grid_sample(g, input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    kind = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}[mode]
    return g(
        "GridSample",
        input,
        grid,
        mode=kind,
        padding_mode=padding_mode,
        align_corners=int(bool(align_corners)),
        shape=g.shape,
    )


# losses


def _reduced(g, x, reduction):
    """A loss of each element, as asked for."""
    if reduction == "none":
        return x
    return reduced(g, "ReduceMean" if reduction == "mean" else "ReduceSum", x)


@op("mse_loss")
def mse_loss(g, input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    away = g("Sub", input, target, shape=input.shape)
    return _reduced(g, g("Mul", away, away), reduction)


@op("l1_loss")
def l1_loss(g, input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    return _reduced(g, g("Abs", g("Sub", input, target, shape=input.shape)), reduction)


@op("binary_cross_entropy_with_logits")
def bce_with_logits(g, input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    if pos_weight is not None:
        raise option("binary_cross_entropy_with_logits", "with pos_weight")
    found = g("Sub", g("Softplus", input), g("Mul", input, target))
    return _reduced(g, found if weight is None else g("Mul", found, weight), reduction)


@op("nll_loss")
def nll_loss(g, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return g(
        "NegativeLogLikelihoodLoss",
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        shape=g.shape,
    )


@op("cross_entropy")
def cross_entropy(
    g,
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    if label_smoothing or target.dtype.is_floating_point:
        raise option("cross_entropy", "with label_smoothing, or with probabilities as target")
    return nll_loss(
        g, log_softmax(g, input, 1 if input.ndim > 1 else 0), target, weight, None, ignore_index, None, reduction
    )
