"""nn.functional: the ops that belong here, and the functions composed of them.

Which op belongs here is said by its own record (`where="nn.functional"`); this file only collects them.
"""

import enum
import importlib
import math
import warnings
from collections.abc import Callable as Callable
from typing import TYPE_CHECKING as TYPE_CHECKING
from typing import Optional as Optional

from jtorch import errors
from jtorch import functions as torch
from jtorch.core import dtype as dtypes
from jtorch.core.record import tls
from jtorch.dispatch import override
from jtorch.sampling import on_host

_ops = torch.namespace("nn.functional")
globals().update(_ops)


def _default(function):
    """Define `function` unless an op of that name exists."""
    globals().setdefault(function.__name__, function)
    return globals()[function.__name__]


@_default
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Deprecated: use interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)  # noqa: F821


@_default
def upsample_nearest(input, size=None, scale_factor=None):
    """Deprecated: use interpolate."""
    return interpolate(input, size, scale_factor, mode="nearest")  # noqa: F821


@_default
def upsample_bilinear(input, size=None, scale_factor=None):
    """Deprecated: use interpolate with align_corners=True."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)  # noqa: F821


def _check_linear_cross_entropy(input, linear_weight, linear_bias):
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features, wanted = input.shape[-1], linear_weight.shape[-1]
    if features != wanted:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {wanted}, respectively"
        )
    shape = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != shape:
        raise RuntimeError(f"expected linear_bias shape {shape}, got {tuple(linear_bias.shape)}")
    if len(shape) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires"
            f" batched input, (N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """cross_entropy of linear(input, linear_weight, linear_bias).

    `linear_weight` is (classes, *more, features); `options` (how PyTorch splits the work) change nothing here.
    """
    _check_linear_cross_entropy(input, linear_weight, linear_bias)
    shape = tuple(linear_weight.shape[:-1])
    logits_shape = (*input.shape[:-1], *shape)
    if tuple(target.shape) == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(shape) > 1:
        linear_weight = linear_weight.reshape(math.prod(shape), -1)
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight, linear_bias)  # noqa: F821
    if len(shape) > 1:
        logits = logits.reshape(logits_shape)
    return cross_entropy(  # noqa: F821
        logits,
        target,
        weight=weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


# attention


def _additive_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask as numbers to add: minus infinity where a boolean mask is True."""
    if mask is None:
        return None
    is_float = mask.dtype.is_floating_point
    if mask.dtype is not dtypes.bool_ and not is_float:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype is not other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if is_float:
        return mask
    zeros = torch.zeros(mask.shape, dtype=target_type, device=mask.device)
    return zeros.masked_fill_(mask, float("-inf"))


def _check_attention_shapes(query, key, value, key_padding_mask, attn_mask, num_heads) -> bool:
    """Whether the query has a batch dimension; the shapes of everything else must fit that."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    word, n = ("batched", 3) if batched else ("unbatched", 2)
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {word} ({n}-D) `query`, expected `key` and `value` to be {n}-D"
            f" but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {word} ({n}-D) `query`, expected `key_padding_mask` to be `None` or {n - 1}-D"
            f" but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {word} ({n}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
                f" but found {attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _project(query, key, value, in_proj_weight, in_proj_bias, separate, embed_dim):
    """Queries, keys and values of attention; one matmul where the inputs are the same tensor."""
    lin = linear  # noqa: F821
    if separate is None:
        w, b = in_proj_weight, in_proj_bias
        if query is key and key is value:
            qkv = lin(query, w, b)
            return torch.split(qkv, embed_dim, dim=-1)
        if key is value:
            wq, wkv = torch.split(w, [embed_dim, 2 * embed_dim])
            bq, bkv = (None, None) if b is None else torch.split(b, [embed_dim, 2 * embed_dim])
            k, v = torch.split(lin(key, wkv, bkv), embed_dim, dim=-1)
            return lin(query, wq, bq), k, v
        weights = torch.chunk(w, 3)
    else:
        weights = separate
    biases = (None, None, None) if in_proj_bias is None else torch.chunk(in_proj_bias, 3)
    return tuple(lin(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _append_row(mask):
    return None if mask is None else pad(mask, (0, 1))  # noqa: F821


def _in_heads(x, count, width, static, name):
    """(L, N, E) as (N h, L, d), or what was given in its place."""
    if static is None:
        return x.reshape(x.shape[0], count, width).transpose(0, 1)
    for d, size in ((0, count), (2, width)):
        if static.size(d) != size:
            raise AssertionError(f"expecting {name}.size({d}) of {size}, but got {static.size(d)}")
    return static


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention in several heads, with its projections; see nn.MultiheadAttention.

    Shape:
        query (L, N, E), key and value (S, N, E), or all without N
        -> (L, N, E) and weights (N, L, S) or (N, heads, L, S), or None
    """
    batched = _check_attention_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same = key is query
        same_value = value is key
        query = query.unsqueeze(1)
        key = query if same else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed_dim = query.shape
    source = key.shape[0]
    mask_dtype = query.dtype
    key_padding_mask = _additive_mask(
        key_padding_mask, "key_padding_mask", None if attn_mask is None else attn_mask.dtype, "attn_mask", mask_dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. "
            "You may use the Transformer module method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the kernel masks by itself
    else:
        attn_mask = _additive_mask(attn_mask, "attn_mask", None, "", mask_dtype)
        if key_padding_mask is not None:
            is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        for name, weight in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        separate = None
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate, embed_dim)

    if attn_mask is not None:
        if attn_mask.dim() == 2:
            if tuple(attn_mask.shape) != (length, source):
                raise RuntimeError(
                    f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(length, source)}."
                )
            attn_mask = attn_mask.unsqueeze(0)
        elif tuple(attn_mask.shape) != (batch * num_heads, length, source):
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {attn_mask.shape}, "
                f"but should be {(batch * num_heads, length, source)}."
            )
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(f"bias cannot be added to static {'key' if static_k is not None else 'value'}.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _append_row(attn_mask), _append_row(key_padding_mask)

    q = q.reshape(length, batch * num_heads, head_dim).transpose(0, 1)  # (N h, L, d)
    k = _in_heads(k, batch * num_heads, head_dim, static_k, "static_k")
    v = _in_heads(v, batch * num_heads, head_dim, static_v, "static_v")
    if add_zero_attn:
        zeros = torch.zeros((batch * num_heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k = torch.cat([k, zeros], dim=1)
        v = torch.cat([v, zeros], dim=1)
        attn_mask, key_padding_mask = _append_row(attn_mask), _append_row(key_padding_mask)
    source = k.shape[1]

    if key_padding_mask is not None:
        for d, size in enumerate((batch, source)):
            if key_padding_mask.shape[d] != size:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{d}] to be {size}, but got {key_padding_mask.shape[d]}"
                )
        padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(batch * num_heads, 1, source)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        scores = q * math.sqrt(1.0 / head_dim)
        scores = torch.bmm(scores, k.transpose(-2, -1))  # (N h, L, S)
        if attn_mask is not None:
            if attn_mask.dtype is not mask_dtype and tls.me.special is None:
                kinds = errors.c_type(attn_mask.dtype), errors.c_type(scores.dtype)
                raise RuntimeError(
                    "Input dtypes must be the same, got: input {0}, batch1: {1}, batch2: {1}".format(*kinds)
                )
            scores = scores + attn_mask.to(scores.dtype)  # autocast may have made them half ones
        weights = torch.softmax(scores, dim=-1)
        if dropout_p > 0.0:
            weights = dropout(weights, p=dropout_p)  # noqa: F821
        out = torch.bmm(weights, v)
        out = out.transpose(0, 1).reshape(length * batch, embed_dim)
        weights = weights.view(batch, num_heads, length, source)
        if average_attn_weights:
            weights = weights.mean(dim=1)
    else:
        if attn_mask is not None:
            if attn_mask.shape[0] == 1 and attn_mask.dim() == 3:
                attn_mask = attn_mask.unsqueeze(0)
            else:
                attn_mask = attn_mask.reshape(batch, num_heads, attn_mask.shape[-2], source)
        out = scaled_dot_product_attention(  # noqa: F821
            q.reshape(batch, num_heads, length, head_dim),
            k.reshape(batch, num_heads, source, head_dim),
            v.reshape(batch, num_heads, source, head_dim),
            attn_mask,
            dropout_p,
            is_causal and attn_mask is None,
        )  # (N, h, L, d)
        out = out.permute(2, 0, 1, 3).reshape(length * batch, embed_dim)
        weights = None
    out = linear(out, out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.shape[0])  # noqa: F821
    if not batched:
        out = out.squeeze(1)
        weights = weights.squeeze(0) if weights is not None else None
    return out, weights


_ASKING = ("handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


def __getattr__(name):
    if name in _ASKING:
        return getattr(importlib.import_module("jtorch.overrides"), name)
    # in-place forms (relu_) are made when they are asked for
    found = None if name.startswith("__") else torch.lookup("nn.functional", name)
    if found is None:
        raise AttributeError(f"module 'jtorch.nn.functional' has no attribute {name!r}")
    globals()[name] = found
    return found


# in-place forms with options of their own


def celu_(input, alpha=1.0):
    """celu, in place."""
    return celu(input, alpha, inplace=True)  # noqa: F821


def elu_(input, alpha=1.0):
    """elu, in place."""
    return elu(input, alpha, inplace=True)  # noqa: F821


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """hardtanh, in place."""
    return hardtanh(input, min_val, max_val, inplace=True)  # noqa: F821


def leaky_relu_(input, negative_slope=0.01):
    """leaky_relu, in place."""
    return leaky_relu(input, negative_slope, inplace=True)  # noqa: F821


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu, in place."""
    return rrelu(input, lower, upper, training, inplace=True)  # noqa: F821


def selu_(input):
    """selu, in place."""
    return selu(input, inplace=True)  # noqa: F821


def threshold_(input, threshold, value):
    """threshold, in place."""
    return _ops["threshold"](input, threshold, value, inplace=True)


def sigmoid(input):
    """1 / (1 + exp(-input))."""
    return input.sigmoid()


def tanh(input):
    """Hyperbolic tangent."""
    return input.tanh()


# Names that PyTorch's module has beside its functions.

Tensor, DType = override.Tensor, int
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
ScalingType = enum.Enum(
    "ScalingType",
    [
        ("TensorWise", 0),
        ("RowWise", 1),
        ("BlockWise1x16", 2),
        ("BlockWise1x32", 3),
        ("BlockWise1x128", 4),
        ("BlockWise128x128", 5),
    ],
)
SwizzleType = enum.Enum("SwizzleType", [("NO_SWIZZLE", 0), ("SWIZZLE_32_4_4", 1)])
ScalingType.__doc__ = "Which elements of an 8-bit factor share a scale."
SwizzleType.__doc__ = "In which order the scales of an 8-bit factor lie in memory."
reproducibility_notes = dict.fromkeys(
    ("forward_reproducibility_note", "backward_reproducibility_note", "cudnn_reproducibility_note"),
    "The execution mode changes no result beyond the order of sums.",
)
tf32_notes = {"tf32_note": "The precision of matrix products: torch.set_float32_matmul_precision."}
sparse_support_notes = {"sparse_beta_warning": "Few functions take sparse tensors: docs/sparse.md."}


class BroadcastingListCls:
    """The marker of arguments that may be one number or a list of them: BroadcastingList2[int]."""

    def __getitem__(self, types):
        return None


BroadcastingList1, BroadcastingList2, BroadcastingList3 = (BroadcastingListCls() for _ in range(3))


def assert_int_or_pair(arg, arg_name, message) -> None:
    """AssertionError unless `arg` is a number or two of them."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that is `if_true` or `if_false`, by the value of one argument."""

    def choose(*args, **kwargs):
        chosen = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    choose.__name__ = func_name if func_name is not None else if_true.__name__
    choose.__doc__, choose.__module__ = if_true.__doc__ or if_false.__doc__, module_name or __name__
    return choose


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; with `hard`, one-hot with the soft one's gradient.

    The noise is PyTorch's for the same seed, except in a compiled region and inside jax's transformations.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    if not on_host(logits):
        return _ops["gumbel_softmax"](logits, tau, hard, eps, dim)
    noise = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    winner = soft.max(dim, keepdim=True)[1]
    return torch.zeros_like(logits).scatter_(dim, winner, 1.0) - soft.detach() + soft


# Functions written here ask `__torch_function__` where there is one.
override.publish([f for f in globals().values() if getattr(f, "__module__", None) == __name__])
