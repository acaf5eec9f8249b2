"""Losses of margins and rankings: what is right by enough costs nothing."""

import math

import jax.numpy as jnp
import numpy as np

from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core import shapes
from jtorch.core.dtype import BOOL, COMPLEX, INT

from . import formats
from .activation import log1p_exp
from .backend import extreme_over, magnitude
from .reduction import (
    REDUCTIONS,
    by_reduction,
    floats_only,
    into_input,
    loss_op,
    no_mean_of_integers,
    reduce_loss,
    reduction_of,
    refuse,
)
from .registry import FLOAT, PROMOTE, Array, composite
from .rounding import clamp_min, minimum


def _fit(a, b):
    shapes.broadcast(tuple(a.shape), tuple(b.shape))


def _positive_part(x):
    """max(x, 0) with the gradient of PyTorch's clamp_min: one at zero."""
    return jnp.where(x < 0, 0, x)


@loss_op(by_reduction("AddBackward0"), strides=formats.other_first)
def hinge_embedding_loss(
    input: Array,
    target: Array,
    margin: float = 1.0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """input where the target is 1, max(0, margin - input) where it is -1."""
    if jnp.issubdtype(input.dtype, jnp.integer):
        margin = jnp.asarray(int(margin), input.dtype)
    loss = jnp.where(target != 1, _positive_part(margin - input), 0) + jnp.where(target != -1, input, 0)
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


hinge_embedding_loss.guards(input=False)
hinge_embedding_loss.check(lambda input, target, *args: _fit(target, input))


refuse(hinge_embedding_loss, lambda dtype: errors.complex_clamp(), COMPLEX)
refuse(hinge_embedding_loss, lambda dtype: errors.bool_minus(two=True), BOOL)
no_mean_of_integers(hinge_embedding_loss)


@loss_op(by_reduction("ClampMinBackward0"), promote=FLOAT, elementwise=False)
def margin_ranking_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """max(0, margin - target * (input1 - input2))."""
    loss = _positive_part(margin - target * (input1 - input2))
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


margin_ranking_loss.guards(input1=False, input2=False, target=False)


@margin_ranking_loss.check
def _(input1, input2, target, *args):
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    shapes.broadcast(tuple(target.shape), shapes.broadcast(tuple(input1.shape), tuple(input2.shape)))


refuse(margin_ranking_loss, lambda dtype: errors.complex_clamp(), COMPLEX)
refuse(margin_ranking_loss, lambda dtype: errors.bool_minus(two=True), BOOL)


@loss_op(by_reduction("AddBackward0"), promote=FLOAT, elementwise=False)
def cosine_embedding_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1."""
    tiny = 1e-12
    along = jnp.sum(input1 * input2, -1)
    sizes = (jnp.sum(input1 * input1, -1) + tiny) * (jnp.sum(input2 * input2, -1) + tiny)
    cos = along / jnp.sqrt(sizes)
    loss = jnp.where(target == 1, 1 - cos, 0) + jnp.where(target == -1, _positive_part(cos - margin), 0)
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


@cosine_embedding_loss.check
def _(input1, input2, target, *args):
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    wanted = target.ndim + 1
    if input1.ndim != wanted or input2.ndim != wanted:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {wanted}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    both = shapes.broadcast(tuple(input1.shape), tuple(input2.shape))
    shapes.broadcast(tuple(target.shape), both[:-1])


refuse(cosine_embedding_loss, lambda dtype: errors.complex_clamp(), COMPLEX)


def _distance(a, b, p, eps):
    d = magnitude(a - b + eps)
    if p == 2:
        return jnp.sqrt(jnp.sum(d * d, -1))
    if p == 1:
        return jnp.sum(d, -1)
    if p == math.inf:
        return extreme_over(d, -1, False, True)
    return jnp.sum(d**p, -1) ** (1 / p)


@loss_op(by_reduction("ClampMinBackward0"), promote=FLOAT, elementwise=False)
def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """max(0, margin + |anchor - positive| - |anchor - negative|), distances in the p-norm of the last dimension."""
    near, far = _distance(anchor, positive, p, eps), _distance(anchor, negative, p, eps)
    if swap:
        far = jnp.minimum(far, _distance(positive, negative, p, eps))
    return reduce_loss(_positive_part(margin + near - far), reduction_of(reduction, size_average, reduce))


triplet_margin_loss.guards(anchor=False, positive=False, negative=False)


@triplet_margin_loss.check
def _(anchor, positive, negative, margin=1.0, *args):
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


@triplet_margin_loss.check
def _(anchor, positive, negative, *args):
    if anchor.dtype.category == BOOL:
        raise errors.bool_minus(two=True)
    shapes.broadcast(tuple(anchor.shape), tuple(positive.shape))
    shapes.broadcast(tuple(anchor.shape), tuple(negative.shape))


@composite(where="nn.functional")
def triplet_margin_with_distance_loss(
    anchor: Array, positive: Array, negative: Array, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """Triplet loss with distances by `distance_function`, a function of two tensors."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    if distance_function is None:
        return triplet_margin_loss(anchor, positive, negative, margin, 2, 1e-6, bool(swap), reduction=reduction)
    near, far = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        far = minimum(far, distance_function(positive, negative))
    loss = clamp_min(margin + near - far, 0)
    return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]()


@loss_op("MultiMarginLossBackward0")
def multi_margin_loss(
    input: Array,
    target: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """The mean over the other classes of max(0, margin - input[target] + input[other])^p."""
    x = input.reshape(-1, input.shape[-1]) if input.ndim else input.reshape(1, 1)
    t = target.reshape(-1, 1)
    hit = jnp.arange(x.shape[1]) == t
    gap = margin - jnp.sum(jnp.where(hit, x, 0), 1, keepdims=True) + x
    part = jnp.where((gap > 0) & ~hit, gap, 0)
    part = part * part if p == 2 else part
    if weight is not None:
        part = part * jnp.take(weight, t, mode="clip")
    loss = jnp.sum(part, 1) / x.shape[1]
    return reduce_loss(loss.reshape(target.shape), reduction_of(reduction, size_average, reduce))


@multi_margin_loss.check
def _(input, target, p=1, margin=1.0, weight=None, *args):
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")


@multi_margin_loss.check
def _(input, target, p=1, margin=1.0, weight=None, *args):
    _check_labelled(input)
    samples, classes = (input.shape[0], input.shape[1]) if input.ndim == 2 else (1, input.numel)
    if target.ndim > 1 or target.numel != samples:
        raise errors.multi_margin_target(samples, target.shape, input.shape)
    if weight is not None and weight.numel != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")


multi_margin_loss.check(lambda input, target, p=1, margin=1.0, weight=None, *args: _needs_dtype(weight, input.dtype))
floats_only(multi_margin_loss, "multi_margin_loss_cpu_kernel", halves=False)
multi_margin_loss.bars(weight="multi_margin_loss")


def _check_labelled(input):
    """A vector or a matrix of scores; only a batch may be empty."""
    if input.ndim > 2 or (input.ndim and input.shape[-1] == 0):
        raise errors.labelled_shape(input.shape)


def _needs_dtype(x, dtype):
    if x is not None and x.dtype is not dtype:
        raise errors.scalar_type(dtype, x.dtype)


def _needs_long(target):
    _needs_dtype(target, dtypes.int64)


multi_margin_loss.check(lambda input, target, *args: _needs_long(target))


@multi_margin_loss.check_values
def _(input, target, *args):
    classes = input.shape[-1] if input.ndim else 1
    if isinstance(target, np.ndarray) and ((target < 0) | (target >= classes)).any():
        raise RuntimeError("target out of range")


@loss_op("MultilabelMarginLossBackward0")
def multilabel_margin_loss(
    input: Array, target: Array, size_average=None, reduce=None, reduction: str = "mean"
) -> Array:
    """max(0, 1 - input[label] + input[other]) over labels and others; labels end at the first negative one."""
    x = input.reshape(-1, input.shape[-1]) if input.ndim else input.reshape(1, 1)
    t = target.reshape(x.shape)
    classes = x.shape[1]
    listed = jnp.cumsum(t < 0, 1) == 0
    label = jnp.where(listed, t, 0)
    is_label = jnp.any((label[..., None] == jnp.arange(classes)) & listed[..., None], 1)
    gap = 1 - jnp.take_along_axis(x, label, 1)[..., None] + x[:, None]
    counted = listed[..., None] & ~is_label[:, None] & (gap > 0)
    loss = jnp.sum(jnp.where(counted, gap, 0), (1, 2)) / classes
    loss = loss if input.ndim > 1 else loss[0]
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


@multilabel_margin_loss.check
def _(input, target, *args):
    _check_labelled(input)
    fits = target.numel == input.numel if input.ndim == 0 else tuple(target.shape) == tuple(input.shape)
    if not fits and not (input.ndim == 1 and target.ndim <= 1 and input.numel == target.numel):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")


floats_only(multilabel_margin_loss, "multilabel_margin_loss_forward_out_frame", halves=False)
multilabel_margin_loss.check(lambda input, target, *args: _needs_long(target))


@multilabel_margin_loss.check_values
def _(input, target, *args):
    classes = input.shape[-1] if input.ndim else 1
    if isinstance(target, np.ndarray) and ((target < -1) | (target >= classes)).any():
        raise RuntimeError("argument #2 'target' is out of range")


@loss_op(by_reduction("DivBackward0"), words=" is not valid", promote=PROMOTE, elementwise=False)
def multilabel_soft_margin_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """The mean over the last dimension of the binary cross entropy of each label's logit."""
    loss = target * log1p_exp(-input) + (1 - target) * log1p_exp(input)
    if weight is not None:
        loss = loss * weight
    loss = jnp.sum(loss, -1) / input.shape[-1]
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


floats_only(multilabel_soft_margin_loss, "log_sigmoid_cpu")


@multilabel_soft_margin_loss.check
def _(input, target, weight=None, *args):
    if target.dtype.category == BOOL:
        raise errors.bool_minus(two=False)
    both = shapes.broadcast(tuple(target.shape), tuple(input.shape))
    if not both:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if weight is not None:
        shapes.broadcast(both, tuple(weight.shape))


@loss_op("SoftMarginLossBackward0", elementwise=True)
def soft_margin_loss(input: Array, target: Array, size_average=None, reduce=None, reduction: str = "mean") -> Array:
    """log(1 + exp(-target * input)), in the dtype of `input`."""
    loss = log1p_exp(-input * target).astype(input.dtype)
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


@soft_margin_loss.check
def _(input, target, *args):
    shape, whole = tuple(input.shape), shapes.broadcast(tuple(input.shape), tuple(target.shape))
    if shape != whole:
        raise errors.inplace_shape("soft_margin_loss", shape, whole)
    if input.dtype.category == BOOL:
        raise errors.bool_neg()
    if input.dtype.category == INT:
        raise errors.result_cast(dtypes.default.dtype, input.dtype)
    into_input(input, target)


soft_margin_loss.bars(target="soft_margin_loss")
