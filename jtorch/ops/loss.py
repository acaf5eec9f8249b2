"""Losses: one fused kernel each, with PyTorch's reductions, subgradients and errors."""

import builtins
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import xlogy

from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core import shapes
from jtorch.core.dtype import BOOL, COMPLEX, INT, scalar_name
from jtorch.core.dtype import FLOAT as FLOATING
from jtorch.errors import warn

from . import formats
from .backend import accumulator, magnitude
from .reduction import (
    REDUCTIONS,
    by_reduction,
    check_plain,
    check_reduction,
    floats_only,
    into_input,
    loss_op,
    no_mean_of_integers,
    reduce_loss,
    reduction_of,
    refuse,
    warn_sizes,
)
from .registry import FLOAT, PROMOTE, Array, Scalar, op

# Class indices. A loss takes one element a row of the input, and its gradient puts one back. XLA's CPU gather and
# scatter are serial loops, while a comparison with the class numbers is vectorised and fuses with what surrounds it.
COMPARED_CLASSES = 128


def _class_axis(ndim: int) -> int:
    return 0 if ndim == 1 else 1


def _take_class(x, target, axis):
    """The element of `x` at `target` along `axis`, which is dropped; `target` is in range."""
    if x.shape[axis] <= COMPARED_CLASSES:
        return jnp.sum(jnp.where(_is_class(target, x.shape, axis), x, 0), axis)
    return jnp.take_along_axis(x, jnp.expand_dims(target, axis), axis).squeeze(axis)


def _is_class(target, shape, axis):
    return lax.broadcasted_iota(target.dtype, shape, axis) == jnp.expand_dims(target, axis)


def _prepare_target(target, ndim, ignore_index):
    """(targets in range, which of them count)."""
    target = target.astype(jnp.int32)
    target = target.reshape(()) if ndim == 1 else target  # one sample's class may come as a vector of one
    valid = target != ignore_index
    return jnp.where(valid, target, 0), valid


def _class_weight(weight, target, valid, dtype):
    """The weight of each target, zero where it is ignored."""
    if weight is None:
        return valid.astype(dtype)
    picked = jnp.take(weight.astype(dtype), target, mode="clip")
    return jnp.where(valid, picked, 0)


def _nll(input, target, weight, ignore_index, reduction):
    axis = _class_axis(input.ndim)
    dtype = accumulator(input.dtype)
    safe, valid = _prepare_target(target, input.ndim, ignore_index)
    w = _class_weight(weight, safe, valid, dtype)
    loss = -_take_class(input.astype(dtype), safe, axis) * w
    loss = jnp.where(valid, loss, 0)  # an ignored infinity counts nothing
    if reduction == "mean":
        return (jnp.sum(loss) / jnp.sum(w)).astype(input.dtype)
    return reduce_loss(loss, reduction, input.dtype)


def _nll_name(args):
    return "NllLossBackward0" if args["input"].ndim <= 2 else "NllLoss2DBackward0"


@loss_op(_nll_name, function="nll_loss_nd")
def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average=None,
    ignore_index: int = -100,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """The negative log likelihood of each target class, given log probabilities (N, C, ...) or (C)."""
    return _nll(input, target, weight, ignore_index, reduction_of(reduction, size_average, reduce))


def _check_class_dtype(target):
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target.dtype)}")


def _check_classes(input, target, weight):
    if input.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    given = target.shape[0] if target.ndim else 0
    if input.ndim > 1 and input.shape[0] != given:
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({given}).")
    if input.ndim < 3 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim < 3:
        _check_class_dtype(target)
    wanted = (*tuple(input.shape)[:1], *tuple(input.shape)[2:]) if input.ndim > 1 else ()
    if input.ndim == 1 and target.ndim == 1 and given != 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {given}")
    if input.ndim == 4 and target.ndim != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}"
        )
    if tuple(target.shape) != wanted and not (input.ndim == 1 and given == 1):
        if input.ndim == 4:
            raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")
        raise RuntimeError(f"Expected target size {list(wanted)}, got {list(target.shape)}")
    _check_class_dtype(target)
    if input.ndim > 2 and target.dtype.name != "int64":
        raise errors.scalar_type(dtypes.int64, target.dtype)
    classes = input.shape[_class_axis(input.ndim)]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor "
            f"of shape: {list(weight.shape)}"
        )
    _check_class_weight(input, weight)


def _check_class_weight(input, weight):
    if weight is not None and weight.dtype is not input.dtype:
        raise errors.scalar_type(input.dtype, weight.dtype)


def _largest(x: np.ndarray) -> int:
    """The largest element; its place is found in a sixth of the time that `max` takes."""
    return x.item(x.argmax())


def _check_class_range(input, target, ignore_index):
    """Integer targets come as arrays where they are on the host; anything else is not looked at."""
    if not isinstance(target, np.ndarray) or not input.ndim:
        return
    classes = input.shape[_class_axis(input.ndim)]
    if target.dtype == np.int64 and target.size and _largest(target.view(np.uint64)) < classes:
        return  # as unsigned numbers negative ones are large: one look for both ends
    bad = (target != ignore_index) & ((target < 0) | (target >= classes))
    if bad.any():
        raise IndexError(f"Target {int(target[bad].flat[0])} is out of bounds.")


@nll_loss.check
def _(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    _check_classes(input, target, weight)


floats_only(nll_loss, "nll_loss_out_frame")


def _nll_forward(call):
    if call["target"].dtype.is_floating_point:
        return None  # probabilities: no loss of classes is asked
    return "nll_loss_forward" if call["input"].ndim <= 2 else "nll_loss2d_forward"


nll_loss.bars(weight=_nll_forward)


@op(where="")
def nll_loss_grad(
    grad: Array, input: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str
) -> Array:
    """The gradient of `nll_loss`: minus the target's weight at the target's class."""
    axis = _class_axis(input.ndim)
    dtype = accumulator(input.dtype)
    safe, valid = _prepare_target(target, input.ndim, ignore_index)
    w = _class_weight(weight, safe, valid, dtype)
    row = -w * grad.astype(dtype)
    if reduction == "mean":
        row = row / jnp.sum(w)
    row = jnp.where(valid, row, 0)
    full = jnp.where(_is_class(safe, input.shape, axis), jnp.expand_dims(row, axis), 0)
    return full.astype(input.dtype)


nll_loss.vjp(
    input=lambda g, input, target, weight, size_average, ignore_index, reduce, reduction: nll_loss_grad(
        g, input, target, weight, ignore_index, reduction_of(reduction, size_average, reduce)
    )
)


def _log_softmax(x, axis):
    if not x.shape[axis]:
        return x
    shifted = x - lax.stop_gradient(jnp.max(x, axis, keepdims=True))
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis, keepdims=True))


def _logarithms(input, made, axis):
    """Logarithms of softmax for a loss of dtype `made`: PyTorch has them in the input's dtype first."""
    dtype = accumulator(made)
    logp = _log_softmax(input.astype(dtype), axis)
    return logp if made == input.dtype else logp.astype(input.dtype).astype(dtype)


def _soft_dtype(input, target, weight):
    """The dtype of the loss of probabilities, which PyTorch makes of products."""
    kinds = [x.dtype for x in (input, target, weight) if x is not None]
    return functools.reduce(jnp.promote_types, kinds)


def _cross_entropy(input, target, weight, ignore_index, reduction, smoothing):
    axis = _class_axis(input.ndim)
    classes = input.shape[axis]
    soft_target = jnp.issubdtype(target.dtype, jnp.floating)
    made = _soft_dtype(input, target, weight) if soft_target else input.dtype
    dtype = accumulator(made)
    smoothing = builtins.max(smoothing, 0)  # a negative one is none
    logp = _logarithms(input, made, axis)
    shape = [1] * input.ndim
    shape[axis] = classes
    if soft_target:
        soft = target.astype(dtype)
        if smoothing:
            soft = soft * (1 - smoothing) + smoothing / classes
        terms = logp * soft if weight is None else logp * soft * weight.astype(dtype).reshape(shape)
        loss = -jnp.sum(terms, axis)
        if reduction == "mean":
            return (jnp.sum(loss) / (loss.size if input.size else 0)).astype(made)
        return reduce_loss(loss, reduction, made)
    safe, valid = _prepare_target(target, input.ndim, ignore_index)
    w = _class_weight(weight, safe, valid, dtype)
    loss = jnp.where(valid, -_take_class(logp, safe, axis) * w, 0)
    if smoothing:
        spread = logp if weight is None else logp * weight.astype(dtype).reshape(shape)
        loss = loss * (1 - smoothing) - jnp.where(valid, jnp.sum(spread, axis), 0) * (smoothing / classes)
    if reduction == "mean":
        return (jnp.sum(loss) / jnp.sum(w)).astype(input.dtype)
    return reduce_loss(loss, reduction, input.dtype)


def _cross_entropy_name(args):
    reduction = reduction_of(args["reduction"], args["size_average"], args["reduce"])
    if args["target"].dtype.is_floating_point:
        return "DivBackward1" if reduction == "mean" else "NegBackward0"
    return "AddBackward0" if args["label_smoothing"] > 0 else _nll_name(args)


@loss_op(_cross_entropy_name, function="cross_entropy_loss")
def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average=None,
    ignore_index: int = -100,
    reduce=None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """Cross entropy of logits (N, C, ...) or (C) with class indices, or with probabilities of the same shape."""
    reduction = reduction_of(reduction, size_average, reduce)
    return _cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


cross_entropy.guards(input=False)
cross_entropy.bars(weight=_nll_forward)


@cross_entropy.check
def _(input, *args):
    if input.dtype.category != FLOATING:
        last = "lastdim_" if input.ndim <= 2 else ""
        raise errors.not_implemented(f"log_softmax_{last}kernel_impl", input.dtype)


@cross_entropy.check
def _(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if tuple(input.shape) == tuple(target.shape):
        if not target.dtype.is_floating_point:
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {scalar_name(target.dtype)}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        if not input.ndim:
            raise IndexError("Dimension specified as 1 but tensor has no dimensions")
        classes = input.shape[_class_axis(input.ndim)]
        if weight is not None and tuple(weight.shape) != (classes,):
            raise RuntimeError(
                "cross_entropy: weight tensor should be defined either for all "
                f"{classes} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
            )
        return
    shapes.wrap_dim(1 if input.ndim != 1 else 0, input.ndim)
    _check_classes(input, target, weight)


@op(where="")
def cross_entropy_grad(
    grad: Array,
    input: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Array:
    """The gradient of `cross_entropy` with class indices: (softmax - one hot), scaled."""
    axis = _class_axis(input.ndim)
    classes = input.shape[axis]
    dtype = accumulator(input.dtype)
    label_smoothing = builtins.max(label_smoothing, 0)
    safe, valid = _prepare_target(target, input.ndim, ignore_index)
    w = _class_weight(weight, safe, valid, dtype)
    scale = grad.astype(dtype)
    if reduction == "mean":
        scale = scale / jnp.sum(w)
    soft = jnp.exp(_log_softmax(input.astype(dtype), axis))
    hit = _is_class(safe, input.shape, axis)
    over = lambda v: jnp.expand_dims(jnp.broadcast_to(v, safe.shape), axis)
    row = over(jnp.where(valid, w * scale * (1 - label_smoothing), 0))
    out = soft * row - jnp.where(hit, row, 0)
    if label_smoothing:
        each = over(jnp.where(valid, scale * (label_smoothing / classes), 0))
        if weight is None:
            out = out + (soft * classes - 1) * each
        else:
            shape = [1] * input.ndim
            shape[axis] = classes
            v = weight.astype(dtype).reshape(shape)
            out = out + (soft * jnp.sum(weight.astype(dtype)) - v) * each
    return out.astype(input.dtype)


@op(where="")
def cross_entropy_soft_grad(
    grad: Array,
    input: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    label_smoothing: float,
    to_target: bool,
) -> Array:
    """The gradient of `cross_entropy` with probabilities, in the input or in the target."""
    axis = _class_axis(input.ndim)
    classes = input.shape[axis]
    made = _soft_dtype(input, target, weight)
    dtype = accumulator(made)
    label_smoothing = builtins.max(label_smoothing, 0)
    logp = _logarithms(input, made, axis)
    soft = target.astype(dtype) * (1 - label_smoothing) + label_smoothing / classes
    scale = grad.astype(dtype)
    if reduction == "mean":
        scale = scale / builtins.max(input.size // classes, 1)
    rows = tuple(s for i, s in enumerate(input.shape) if i != axis)
    scale = jnp.expand_dims(jnp.broadcast_to(scale, rows), axis)
    v = 1
    if weight is not None:
        v = weight.astype(dtype).reshape([classes if i == axis else 1 for i in range(input.ndim)])
    if to_target:
        return (-logp * v * scale * (1 - label_smoothing)).astype(target.dtype)
    soft = soft * v
    return ((jnp.exp(logp) * jnp.sum(soft, axis, keepdims=True) - soft) * scale).astype(input.dtype)


def _cross_entropy_input(g, input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing):
    reduction = reduction_of(reduction, size_average, reduce)
    if tuple(input.shape) == tuple(target.shape) and input.ndim:
        return cross_entropy_soft_grad(g, input, target, weight, reduction, label_smoothing, False)
    return cross_entropy_grad(g, input, target, weight, ignore_index, reduction, label_smoothing)


cross_entropy.vjp(
    input=_cross_entropy_input,
    target=lambda g, input, target, weight, size_average, reduce, reduction, label_smoothing: cross_entropy_soft_grad(
        g, input, target, weight, reduction_of(reduction, size_average, reduce), label_smoothing, True
    ),
)


@nll_loss.check_values
def _(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    _check_class_range(input, target, ignore_index)


@cross_entropy.check_values
def _(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    _check_class_range(input, target, ignore_index)


# Elementwise losses.


@loss_op("MseLossBackward0", promote=PROMOTE, asked="size")
def mse_loss(
    input: Array,
    target: Array,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """The mean, the sum or each of (input - target)^2."""
    d = input - target
    loss = d * d if weight is None else d * d * weight
    reduction = reduction_of(reduction, size_average, reduce)
    if weight is not None and reduction == "mean":
        return jnp.sum(loss) / jnp.sum(jnp.broadcast_to(weight, loss.shape))
    return reduce_loss(loss, reduction)


@loss_op(by_reduction("AbsBackward0"), promote=PROMOTE, asked="size")
def l1_loss(
    input: Array,
    target: Array,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """The mean, the sum or each of |input - target|."""
    loss = magnitude(input - target)
    reduction = reduction_of(reduction, size_average, reduce)
    if weight is not None:
        loss = loss * weight
        if reduction == "mean":
            return jnp.sum(loss) / jnp.sum(jnp.broadcast_to(weight, loss.shape))
    return reduce_loss(loss, reduction)


l1_loss.guards(input=False, target=False)


def _smooth_name(args):
    return by_reduction("AbsBackward0")(args) if args["beta"] == 0 else "SmoothL1LossBackward0"


@loss_op(_smooth_name, promote=PROMOTE, asked="size")
def smooth_l1_loss(
    input: Array,
    target: Array,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Array:
    """|input - target| less beta / 2, and quadratic where it is below `beta`."""
    difference = input - target
    d = magnitude(difference)
    # the square of what is far has no end, and nor has its slope; a magnitude is flat at 0, and the slope's slope is not
    near = jnp.where(d < beta, difference, 0)
    loss = d if beta == 0 else jnp.where(d < beta, 0.5 * near * near / beta, d - 0.5 * beta)
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


@smooth_l1_loss.check
def _(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")


@op(where="nn.functional", elementwise=True, inplace=False, out=False)
def huber_loss(
    input: Array, target: Array, reduction: str = "mean", delta: float = 1.0, weight: Array | None = None
) -> Array:
    """Half the squared difference, and linear where the difference is above `delta`; in the dtype of `input`."""
    difference = input - target
    d = magnitude(difference)
    near = jnp.where(d < delta, difference, 0)
    loss = jnp.where(d < delta, 0.5 * near * near, delta * (d - 0.5 * delta)).astype(input.dtype)
    if weight is not None:
        loss = loss * weight  # the mean is over all elements, unlike those of mse_loss and l1_loss
    return reduce_loss(loss, reduction)


huber_loss.asked = "size"


@huber_loss.check
def _(input, target, reduction="mean", delta=1.0, weight=None):
    check_plain(huber_loss, dict(zip(huber_loss.signature.parameters, (input, target, reduction, delta, weight))))
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    check_reduction(None, None, reduction)
    into_input(input, target)
    warn_sizes(input, target)


for _record in (mse_loss, l1_loss, smooth_l1_loss):

    @_record.check
    def _(input, target, *args):
        warn_sizes(input, target)
        shapes.broadcast(tuple(input.shape), tuple(target.shape))


for _record in (mse_loss, l1_loss, huber_loss):
    _weight_at = [p.name for p in _record.params].index("weight")

    @_record.check
    def _(*args, weight_at=_weight_at):
        weight = args[weight_at]
        if weight is not None and tuple(weight.shape) != shapes.broadcast(tuple(args[0].shape), tuple(args[1].shape)):
            raise ValueError("Weights and input must have the same size.")


for _record, _kernel in ((mse_loss, "mse_cpu"), (smooth_l1_loss, "smooth_l1_cpu"), (huber_loss, "huber_cpu")):

    @_record.check
    def _(input, target, *args, kernel=_kernel):
        common = dtypes.promote(input.dtype, target.dtype)
        if common.category != FLOATING:
            raise errors.not_implemented(kernel, common)


@l1_loss.check
def _(input, target, *args):
    if BOOL in (input.dtype.category, target.dtype.category):
        raise errors.bool_minus(two=input.dtype is target.dtype)


no_mean_of_integers(l1_loss)


@loss_op("BinaryCrossEntropyBackward0", elementwise=True, asked="size")
def binary_cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """Cross entropy of probabilities with targets in [0, 1]; logarithms are cut off at -100."""
    hit, miss = jnp.maximum(jnp.log(input), -100), jnp.maximum(jnp.log1p(-input), -100)
    loss = (target - 1) * miss - target * hit
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce), input.dtype)


@binary_cross_entropy.check
def _(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is "
            "deprecated. Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target.dtype)} but expected {scalar_name(input.dtype)}")


floats_only(binary_cross_entropy, "binary_cross_entropy")
binary_cross_entropy.bars(weight="binary_cross_entropy")


@jax.custom_jvp
def _entropy_slope(x, target):
    return (x - target) / jnp.maximum((1 - x) * x, 1e-12)


@_entropy_slope.defjvp
def _(primals, tangents):
    (x, target), (dx, dt) = primals, tangents
    below = jnp.maximum((1 - x) * x, 1e-12)
    # not that of a denominator that does not move: it has a finite slope where x is 0 or 1, and the target too
    return _entropy_slope(x, target), dx * (x * x - 2 * x * target + target) / (below * below) - dt / below


@op(where="")
def binary_cross_entropy_grad(
    grad: Array, input: Array, target: Array, weight: Array | None, reduction: str, to_target: bool
) -> Array:
    """The gradient of `binary_cross_entropy`, its denominator kept from zero."""
    if to_target:
        out = grad * (jnp.log1p(-input) - jnp.log(input))  # not cut off, as in PyTorch
    else:
        out = grad * _entropy_slope(input, target)
    if weight is not None:
        out = out * weight
    return out / builtins.max(input.size, 1) if reduction == "mean" else out


binary_cross_entropy.vjp(
    input=lambda g, input, target, weight, size_average, reduce, reduction: binary_cross_entropy_grad(
        g, input, target, weight, reduction_of(reduction, size_average, reduce), False
    ),
    target=lambda g, input, target, weight, size_average, reduce, reduction: binary_cross_entropy_grad(
        g, input, target, weight, reduction_of(reduction, size_average, reduce), True
    ),
)
binary_cross_entropy.transposed = True  # jax.jvp has nan where a logarithm is cut off


@loss_op(
    "BinaryCrossEntropyWithLogitsBackward0", elementwise=True, strides=formats.other_first, asked="size of input target"
)
def binary_cross_entropy_with_logits(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    pos_weight: Array | None = None,
) -> Array:
    """Cross entropy of the sigmoid of logits with targets in [0, 1]; `pos_weight` scales the positive part. In the targets' dtype."""
    tail = jnp.logaddexp(-input, jnp.zeros((), input.dtype))  # -log(sigmoid(input)), smooth at 0 too
    factor = tail if pos_weight is None else tail * (1 + (pos_weight - 1) * target)
    loss = (1 - target) * input + factor
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss.astype(target.dtype), reduction_of(reduction, size_average, reduce))


@binary_cross_entropy_with_logits.check
def _(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if target.dtype.category < FLOATING and input.dtype.category == FLOATING:
        if target.dtype.category == BOOL:
            raise errors.bool_minus(two=True)
        raise errors.result_cast(input.dtype, target.dtype)
    shape = tuple(input.shape)
    for factor in (pos_weight, weight):  # each is multiplied in place
        if factor is not None and (whole := shapes.broadcast(shape, tuple(factor.shape))) != shape:
            raise errors.inplace_shape("binary_cross_entropy_with_logits", shape, whole)


floats_only(binary_cross_entropy_with_logits, "log_sigmoid_cpu")
binary_cross_entropy_with_logits.bars(
    weight="binary_cross_entropy_with_logits", pos_weight="binary_cross_entropy_with_logits"
)


@loss_op(
    by_reduction(lambda args: "MulBackward0" if args["log_target"] else "SubBackward0"),
    (*REDUCTIONS, "batchmean"),
    named=("log_target",),
    promote=PROMOTE,
    strides=formats.other_first,
)
def kl_div(
    input: Array,
    target: Array,
    size_average=None,
    reduce=None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Array:
    """target * (log(target) - input), or with `log_target` exp(target) * (target - input)."""
    loss = jnp.exp(target) * (target - input) if log_target else xlogy(target, target) - target * input
    reduction = reduction_of(reduction, size_average, reduce)
    if reduction == "batchmean":
        total = jnp.sum(loss)
        return total / input.shape[0] if input.ndim else total
    return reduce_loss(loss, reduction)


@kl_div.check
def _(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    for kind, categories in (("Integral", (BOOL, INT)), ("Complex", (COMPLEX,))):
        if input.dtype.category in categories or target.dtype.category in categories:
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    shapes.broadcast(tuple(target.shape), tuple(input.shape))
    if reduction == "mean" and size_average is None and reduce is None:
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release."
        )


@loss_op(
    by_reduction(lambda args: "AddBackward0" if args["full"] else "SubBackward0"),
    words=" is not a valid value for reduction",
    promote=FLOAT,
)
def poisson_nll_loss(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    size_average=None,
    eps: float = 1e-8,
    reduce=None,
    reduction: str = "mean",
) -> Array:
    """The negative log likelihood of counts under a Poisson distribution; `full` adds Stirling's term."""
    loss = jnp.exp(input) - target * input if log_input else input - target * jnp.log(input + eps)
    if full:
        some = jnp.where(target > 1, target, 2)
        stirling = some * jnp.log(some) - some + 0.5 * jnp.log(2 * math.pi * some)
        loss = loss + jnp.where(target > 1, stirling, 0)
    return reduce_loss(loss, reduction_of(reduction, size_average, reduce))


# PyTorch keeps what follows from it: its exponential, or its sum with eps.
poisson_nll_loss.guards(input=lambda call: call["log_input"] and "target" in call["needs"])
refuse(poisson_nll_loss, lambda dtype: errors.bool_minus(two=False), BOOL)


@poisson_nll_loss.check
def _(input, target, *args):
    shapes.broadcast(tuple(target.shape), tuple(input.shape))


def _fit_var(input_shape, var_shape):
    """The shape in which a variance broadcasts to the input: itself, with one size of 1, with a last 1, or None."""
    if input_shape and input_shape[:-1] == var_shape:
        return (*var_shape, 1)
    apart = [v for n, v in zip(input_shape, var_shape) if n != v]
    return var_shape if len(input_shape) == len(var_shape) and apart in ([], [1]) else None


def _gaussian_name(args):
    if args["reduction"] == "none":
        return "AddBackward0" if args["full"] else "MulBackward0"
    return "SumBackward0" if args["reduction"] == "sum" else "MeanBackward0"


@op(where="nn.functional", promote=FLOAT, elementwise=False, out=False, grad_name=_gaussian_name)
def gaussian_nll_loss(
    input: Array, target: Array, var: Scalar, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    """The negative log likelihood under a Gaussian of mean `input` and variance `var`, at least `eps`."""
    shape = _fit_var(input.shape, var.shape)
    v = var.reshape(shape) if shape is not None else var
    # PyTorch's derivative does not see the lower bound
    v = v + lax.stop_gradient(jnp.where(v < eps, eps - v, 0))
    loss = 0.5 * (jnp.log(v) + (input - target) ** 2 / v)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)


gaussian_nll_loss.guards(input=False, target=False, var=False)


@gaussian_nll_loss.check
def _(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if hasattr(var, "shape") and _fit_var(tuple(input.shape), tuple(var.shape)) is None:
        raise ValueError("var is of incorrect size")
    if reduction not in REDUCTIONS:
        raise ValueError(reduction + " is not valid")
    shapes.broadcast(tuple(input.shape), tuple(target.shape))
    dtype = var.dtype if hasattr(var, "shape") else input.dtype
    if dtype.category == COMPLEX:
        raise errors.not_implemented("lt_cpu", dtype)
    if dtype.category != FLOATING:
        raise errors.clamp_cast(dtype)


@gaussian_nll_loss.check_values
def _(input, target, var, *args):
    if isinstance(var, (int, float)) and var < 0:
        raise ValueError("var has negative entry/entries")
