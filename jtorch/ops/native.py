"""Functions with the signatures of PyTorch's kernels: statistics returned, modes as numbers, results in place."""

import math

import jax.numpy as jnp

from .. import errors
from ..core import dtype as dtypes
from . import activation, batchnorm, formats, linear, norm, pool, registry
from .backend import need_floats
from .conversion import to_float
from .ctc import ctc_loss as functional_ctc_loss
from .image import grid_sampler
from .reduce import one_dim
from .registry import Array, composite, op
from .taps import resample, smooth_taps

# ---- normalisations that return their statistics ----


@op(where="torch", out=False, grad_name="NativeGroupNormBackward0")
def native_group_norm(
    input: Array, weight: Array | None, bias: Array | None, N: int, C: int, HxW: int, group: int, eps: float
) -> Array:
    """group_norm, its mean and its reciprocal standard deviation."""
    return norm.kept_as(input, weight, bias, *norm._group_norm(input, group, weight, bias, eps))


native_group_norm.guards(out1=True)


@native_group_norm.check
def _check_group_norm(input, *args, **kwargs):
    need_floats(input, "GroupNormKernelImpl")


@op(where="", out=False, differentiable=False)
def _reciprocal_deviation(variance: Array, eps: float) -> Array:
    return 1 / jnp.sqrt(variance + eps)


@op(where="", out=False, differentiable=False)
def _nothing(input: Array, dtype: dtypes.dtype | None = None) -> Array:
    """An empty vector."""
    return jnp.zeros(0, input.dtype if dtype is None else dtype.np)


def _update(running, batch, momentum, factor):
    if running is not None:
        running.copy_(batchnorm.batch_norm_update(running, batch, momentum, factor))


def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    if not training:
        out = batchnorm.batch_norm_eval(input, running_mean, running_var, weight, bias, eps)
        return out, _nothing(running_mean), _nothing(running_mean)
    out, mean, var = batchnorm.batch_norm_train(input, weight, bias, eps)
    mean, var = mean.detach(), var.detach()
    count = math.prod(input.shape) // max(input.shape[1], 1)
    _update(running_mean, mean, momentum, 1.0)
    _update(running_var, var, momentum, count / (count - 1) if count > 1 else 1.0)
    # statistics are kept in float32 where a parameter is float32, else in the dtype of the input
    given = [t.dtype for t in (weight, bias, running_mean, running_var) if t is not None]
    kept = dtypes.float32 if dtypes.float32 in given else input.dtype
    return out, mean.to(kept), _reciprocal_deviation(var, eps).to(kept)


@composite(where="torch", out="exact")
def native_batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum,
    eps,
):
    """batch_norm, the batch's mean and reciprocal standard deviation (empty when not training)."""
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite(where="torch", out="exact")
def _native_batch_norm_legit(input: Array, weight: Array | None, bias: Array | None, *rest):
    """`native_batch_norm`, or without running statistics: (input, weight, bias, training, momentum, eps)."""
    rest = rest if len(rest) == 5 else (None, None, *rest)
    return _batch_norm(input, weight, bias, *rest)


@composite(where="")
def _batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):
    """`native_batch_norm` in training, and the reserve of kernels that have one (empty)."""
    found = _batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *found, _nothing(input, dtypes.ALL["uint8"])


# ---- derivatives that are public in torch ----


@composite(where="torch", out="exact")
def _softmax_backward_data(grad_output: Array, output: Array, dim: int, input_dtype):
    """The cotangent of softmax's input."""
    return activation.softmax_grad(grad_output, output, dim).to(input_dtype)


@composite(where="torch", out="exact")
def _log_softmax_backward_data(grad_output: Array, output: Array, dim: int, input_dtype):
    """The cotangent of log_softmax's input."""
    return activation.log_softmax_grad(grad_output, output, dim).to(input_dtype)


@composite(where="torch", out="exact")
def _softmax(input: Array, dim: int, half_to_float: bool):
    """softmax; `half_to_float`: half precision goes in and single comes out."""
    return activation.softmax(input, dim, dtypes.float32 if half_to_float else None)


@composite(where="torch", out="exact")
def _log_softmax(input: Array, dim: int, half_to_float: bool):
    """log_softmax; `half_to_float`: half precision goes in and single comes out."""
    return activation.log_softmax(input, dim, dtypes.float32 if half_to_float else None)


@op(where="torch", out=False, grad_name="MaskedSoftmaxBackward0")
def _masked_softmax(input: Array, mask: Array, dim: int | None = None, mask_type: int | None = None) -> Array:
    """softmax of what the mask does not hide; nan where it hides everything.

    mask_type: 0, a mask (L, L) of attention scores (B, H, L, L); 1, a mask (B, L) of keys; 2, a mask of `input`'s shape.
    """
    if mask.shape != input.shape:
        mask = mask[:, None, None, :] if mask_type else mask
    hidden = jnp.broadcast_to(mask, input.shape)
    dim = (input.ndim - 1 if dim is None else dim) % max(input.ndim, 1)
    shown = jnp.where(hidden, jnp.asarray(-jnp.inf, input.dtype), input)
    out = jnp.where(hidden, jnp.zeros((), input.dtype), activation._softmax(shown, dim, None))
    empty = jnp.all(hidden, axis=dim, keepdims=True) if input.ndim else hidden
    return jnp.where(empty, jnp.asarray(jnp.nan, input.dtype), out)


_masked_softmax.vjp(
    input=lambda g, mask, dim, out: activation.softmax_grad(
        g, jnp.where(jnp.isnan(out), jnp.zeros((), out.dtype), out), -1 if dim is None else dim
    )
)


@_masked_softmax.check
def _check_masked_softmax(input, mask, dim=None, mask_type=None):
    if mask.dtype.category != dtypes.BOOL:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape != input.shape:
        if mask_type is None:
            raise RuntimeError("Mask Type should be defined")
        planes = input.ndim == 4 and mask_type < 2
        if not planes or mask.shape != ((input.shape[0], input.shape[3]) if mask_type else input.shape[2:]):
            shape = ("be (L, L)", "be (B, L)", "match input shape")[mask_type if planes else 2]
            raise RuntimeError(f"For mask_type == {mask_type if planes else 2} mask shape should {shape}")
    if dim is not None:
        one_dim(dim, input.ndim)


_masked_softmax.lack(masked_softmax="int bool complex")


@op(where="", out=False)
def native_dropout_backward(grad_output: Array, mask: Array, scale: float) -> Array:
    """The cotangent of dropout's input."""
    g = to_float(grad_output)
    return g * mask.astype(g.dtype) * jnp.asarray(scale, g.dtype)


@op(where="", out=False, strides=lambda outs, grad_output, input, *rest: formats.follow(outs, input))
def max_pool2d_with_indices_backward(
    grad_output: Array,
    input: Array,
    kernel_size,
    stride,
    padding,
    dilation,
    ceil_mode: bool,
    indices: Array,
) -> Array:
    """The cotangent of max_pool2d's input, to the positions `indices`."""
    return pool.scattered(grad_output, indices, input.shape, 2)


@max_pool2d_with_indices_backward.check
def _check_pool_backward(grad_output, *args):
    need_floats(grad_output, "max_pool2d_backward")


@op(where="", out=False, name="_safe_softmax")
def _safe_softmax(input: Array, dim: int, dtype: dtypes.dtype | None = None) -> Array:
    """softmax, 0 where everything along `dim` is minus infinity."""
    none = input == -jnp.inf
    none = jnp.all(none, axis=dim, keepdims=True) if input.ndim else none
    out = activation._softmax(jnp.where(none, jnp.zeros((), input.dtype), input), dim, dtype)
    return jnp.where(none, jnp.zeros((), out.dtype), out)


_safe_softmax.lack(softmax_kernel_impl="complex")


@composite(where="torch")
def native_dropout(input: Array, p, train):
    """dropout, and where elements were kept."""
    if train is False or p == 0:
        keep = input.detach().clone().fill_(1).to(dtypes.bool_)
        return input.clone(), keep
    out = linear.dropout_mask(input.detach() * 0 + 1, float(p), None).detach()
    return input * out, out != 0


# ---- resampling ----


@composite(where="torch")
def grid_sampler_2d(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool):
    """`nn.functional.grid_sample` of images, its modes as numbers."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@composite(where="torch")
def grid_sampler_3d(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool):
    """`nn.functional.grid_sample` of volumes, its modes as numbers."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@op(where="", out=False, strides=formats.follow)
def _upsample_bilinear2d_aa(
    input: Array,
    output_size: object,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    *,
    scale_factors: object = None,
) -> Array:
    """`nn.functional.interpolate` with antialias; the scales, where given, are those of the coordinates."""
    scales = (scales_h, scales_w) if scale_factors is None else scale_factors
    size = output_size or [math.floor(n * f) for n, f in zip(input.shape[2:], scales, strict=True)]
    taps = [
        smooth_taps(old, n, factor, align_corners, "bilinear")
        for old, n, factor in zip(input.shape[2:], size, scales, strict=True)
    ]
    return resample(input, dict(enumerate(taps, 2)))


@_upsample_bilinear2d_aa.check
def _check_antialias(input, *args, **kwargs):
    if input.dtype is not dtypes.uint8:
        need_floats(input, "compute_index_ranges_weights", halves=False)


# ---- losses with the reduction as a number ----

# the defaults are "none": PyTorch's own, whatever its schemas say
_REDUCTIONS = ("none", "mean", "sum")


def _named(reduction):
    return _REDUCTIONS[reduction] if 0 <= reduction < 3 else "none"  # as PyTorch, which asks for the mean and the sum


def _of(name):
    return registry.OPS[name] if name in registry.OPS else registry.COMPOSITES[name]


@composite(where="torch.binary_cross_entropy_with_logits")
def torch_binary_cross_entropy_with_logits(
    input: Array, target: Array, weight: Array | None = None, pos_weight: Array | None = None, reduction: int = 0
):
    """`nn.functional.binary_cross_entropy_with_logits`, the reduction as a number."""
    fn = _of("binary_cross_entropy_with_logits")
    return fn(input, target, weight, reduction=_named(reduction), pos_weight=pos_weight)


@composite(where="torch.cosine_embedding_loss")
def torch_cosine_embedding_loss(input1: Array, input2: Array, target: Array, margin=0.0, reduction: int = 0):
    """`nn.functional.cosine_embedding_loss`, the reduction as a number."""
    return _of("cosine_embedding_loss")(input1, input2, target, margin, reduction=_named(reduction))


@composite(where="torch.hinge_embedding_loss")
def torch_hinge_embedding_loss(input: Array, target: Array, margin=1.0, reduction: int = 0):
    """`nn.functional.hinge_embedding_loss`, the reduction as a number."""
    return _of("hinge_embedding_loss")(input, target, margin, reduction=_named(reduction))


@composite(where="torch.kl_div")
def torch_kl_div(input: Array, target: Array, reduction: int = 0, *, log_target: bool = False):
    """`nn.functional.kl_div`, the reduction as a number."""
    return _of("kl_div")(input, target, reduction=_named(reduction), log_target=log_target)


@composite(where="torch.margin_ranking_loss")
def torch_margin_ranking_loss(input1: Array, input2: Array, target: Array, margin=0.0, reduction: int = 0):
    """`nn.functional.margin_ranking_loss`, the reduction as a number."""
    return _of("margin_ranking_loss")(input1, input2, target, margin, reduction=_named(reduction))


@composite(where="torch.poisson_nll_loss")
def torch_poisson_nll_loss(input: Array, target: Array, log_input: bool, full: bool, eps, reduction: int):
    """`nn.functional.poisson_nll_loss`, the reduction as a number."""
    fn = _of("poisson_nll_loss")
    return fn(input, target, log_input, full, eps=eps, reduction=_named(reduction))


@composite(where="torch.triplet_margin_loss")
def torch_triplet_margin_loss(
    anchor: Array, positive: Array, negative: Array, margin=1.0, p=2.0, eps=1e-6, swap: bool = False, reduction: int = 0
):
    """`nn.functional.triplet_margin_loss`, the reduction as a number."""
    fn = _of("triplet_margin_loss")
    return fn(anchor, positive, negative, margin, p, eps, swap, reduction=_named(reduction))


@composite(where="torch.ctc_loss")
def torch_ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths,
    target_lengths,
    blank=0,
    reduction: int = 0,
    zero_infinity: bool = False,
):
    """`nn.functional.ctc_loss`, the reduction as a number."""
    return functional_ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _named(reduction), zero_infinity
    )


# ---- in place ----


def _written(name, space="torch"):
    """The in-place form of a function of its own name, as torch has it."""

    def decorate(fn):
        return composite(fn, name=name, where=f"{space}.{name}")

    return decorate


@_written("celu_")
def torch_celu_(input: Array, alpha=1.0):
    """celu, in place."""
    return activation.celu(input, alpha, inplace=True)


@_written("selu_")
def torch_selu_(input: Array):
    """selu, in place."""
    return activation.selu(input, inplace=True)


@_written("rrelu_")
def torch_rrelu_(input: Array, lower=1 / 8, upper=1 / 3, training: bool = False):
    """rrelu, in place."""
    return activation.functional_rrelu(input, lower, upper, training, True)


@_written("threshold_")
def torch_threshold_(input: Array, threshold, value):
    """threshold, in place."""
    return activation.threshold(input, threshold, value, inplace=True)


@_written("alpha_dropout_")
def torch_alpha_dropout_(input: Array, p, train: bool):
    """alpha_dropout, in place."""
    return linear._dropped(linear.alpha_dropout_mask, input, p, train, True, error=RuntimeError)


@_written("feature_dropout_")
def torch_feature_dropout_(input: Array, p, train: bool):
    """feature_dropout, in place."""
    return linear._dropped(linear.dropout_mask, input, p, train, True, 2, RuntimeError)


@composite(where="torch.feature_alpha_dropout")
def torch_feature_alpha_dropout(input: Array, p, train: bool):
    """Alpha dropout of whole channels, if `train`."""
    return linear._dropped(linear.alpha_dropout_mask, input, p, train, False, 2, RuntimeError)


@_written("feature_alpha_dropout_")
def torch_feature_alpha_dropout_(input: Array, p, train: bool):
    """feature_alpha_dropout, in place."""
    return linear._dropped(linear.alpha_dropout_mask, input, p, train, True, 2, RuntimeError)


@_written("embedding_renorm_")
def torch_embedding_renorm_(input: Array, indices: Array, max_norm, norm_type):
    """The rows that `indices` names scaled down to a norm of at most `max_norm`, in place."""
    return input.copy_(linear.embedding_renorm(input, indices, float(max_norm), float(norm_type)))


@_written("as_strided_")
def torch_as_strided_(input: Array, size, stride, storage_offset=None):
    """`Tensor.as_strided_`."""
    return input.as_strided_(size, stride, storage_offset)


@_written("fill_diagonal_", "Tensor")
def fill_diagonal_(input: Array, fill_value, wrap: bool = False):
    """Write a number to the diagonal; with `wrap`, of a tall matrix to its further diagonals too."""
    if input.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    shape, strides = input.shape, input.stride()
    if len(shape) == 2:
        count, step = min(shape), sum(strides)
    else:
        if len(set(shape)) > 1:
            raise RuntimeError("all dimensions of input must be of equal length")
        count, step = shape[0], sum(strides)
    input.as_strided((count,), (step,), input.storage_offset()).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        # every (columns + 1)-th row starts the diagonal anew
        for row in range(shape[1] + 1, shape[0], shape[1] + 1):
            rest = min(shape[1], shape[0] - row)
            input.as_strided((rest,), (step,), input.storage_offset() + row * strides[0]).fill_(fill_value)
    return input


# ---- norms ----


@composite(where="torch", out=True)
def frobenius_norm(input: Array, dim, keepdim: bool = False):
    """The square root of the sum of squared absolute values."""
    return _of("norm")(input, "fro", dim, keepdim)


@composite(where="torch", out=True)
def nuclear_norm(input: Array, dim=(-2, -1), keepdim: bool = False):
    """The sum of the singular values."""
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    return _of("norm")(input, "nuc", dim, keepdim)


@composite(where="torch")
def norm_except_dim(v: Array, pow: int = 2, dim: int = 0):
    """The norm over all dimensions but one, which keep a size of 1."""
    if dim == -1:
        return _of("norm")(v, pow)
    dim = one_dim(dim, v.dim())
    return _of("norm")(v, pow, tuple(d for d in range(v.dim()) if d != dim), True)


# ---- products of scaled 8-bit floats ----


@op(where="torch", out="exact", differentiable=False)
def _scaled_mm(
    input: Array,
    mat2: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None = None,
    scale_result: Array | None = None,
    out_dtype: dtypes.dtype | None = None,
    use_fast_accum: bool = False,
) -> Array:
    """`(input * scale_a) @ (mat2 * scale_b) + bias` of 8-bit floats, summed in float32; rounded to `out_dtype`."""
    out = jnp.matmul(input.astype(jnp.float32), mat2.astype(jnp.float32)) * (scale_a * scale_b)
    if bias is not None:
        out = out + bias.astype(jnp.float32)
    kind = input.dtype if out_dtype is None else out_dtype.np
    return (out if scale_result is None else out * scale_result).astype(kind)


@_scaled_mm.check
def _check_scaled(input, mat2, scale_a, scale_b, *args):
    rows, columns = input.shape[0], mat2.shape[-1]
    whole = math.prod(scale_a.shape) == math.prod(scale_b.shape) == 1
    narrow = input.dtype.itemsize == mat2.dtype.itemsize == 1
    single = scale_a.dtype is scale_b.dtype is dtypes.float32
    if not (narrow and single and (whole or (tuple(scale_a.shape), tuple(scale_b.shape)) == ((rows, 1), (1, columns)))):
        raise ValueError(
            "Invalid scaling configuration.\n  two 8-bit float matrices, and float32 scales: one for each matrix, or one "
            f"for each row of the first ({rows}, 1) and each column of the second (1, {columns})"
        )
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat_a and mat_b shapes cannot be multiplied ({rows}x{input.shape[1]} and {mat2.shape[0]}x{columns})"
        )


@composite(where="torch")
def _scaled_mm_v2(
    input, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim=(),
    use_fast_accum=False,
):  # fmt: skip
    """`_scaled_mm` with lists of scales: one for each matrix, or one for each row and column."""
    if len(scale_a) != 1 or len(scale_b) != 1:
        raise errors.unsupported("scales of blocks", "one scale for each matrix, row or column")
    return _scaled_mm(input, mat2, scale_a[0], scale_b[0], bias, None, out_dtype, use_fast_accum)
