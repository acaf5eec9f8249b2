"""Linear layers, embeddings and dropout: the ops whose speed decides a transformer's. Knows arrays only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jtorch import config, errors_arguments
from jtorch import errors_nn as errors
from jtorch.core import dtype as dtypes
from jtorch.core.shapes import broadcast
from jtorch.errors import warn

from . import backend, formats, registry
from .arithmetic import mul
from .bags import MANY_NUMBERS, equal_bags, uneven_bags
from .places import outside, picked
from .registry import Key, composite, op

# linear: torch calls addmm or mm on a matrix and names the node after it; it views the result otherwise.


def _linear_name(args) -> str:
    flat, biased = args["input"].ndim <= 2, args.get("bias") is not None
    if args["weight"].ndim == 1:
        return "MvBackward0" if flat else "UnsafeViewBackward0"
    if flat and args["input"].ndim == 2:
        return "AddmmBackward0" if biased else "MmBackward0"
    if flat:
        return "ViewBackward0" if biased else "SqueezeBackward4"
    return "ViewBackward0" if biased else "UnsafeViewBackward0"


def _rows(x: Array) -> Array:
    """`x` as a matrix: XLA's CPU backend copies an operand of a matmul that contracts two dimensions."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _dot(a: Array, b: Array) -> Array:
    """A matrix product, summed in float32 for 16-bit floats and not rounded back yet."""
    return jnp.matmul(a, b, preferred_element_type=backend.accumulator(a.dtype))


@op(where="nn.functional", out="exact", grad_name=_linear_name)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """`input @ weight.T + bias`; `weight` is (out, in), and `input` has any number of leading dimensions."""
    matrix = weight if weight.ndim == 2 else weight[None]
    out = backend.matmul_nt(_rows(input), matrix)
    shape = (*input.shape[:-1], *weight.shape[:-1])
    if bias is None or not _by_rows(input, bias):
        out = out.reshape(shape)
    if bias is not None:
        out = out + bias.astype(out.dtype)
    return out.reshape(shape).astype(input.dtype)


def _by_rows(input, bias) -> bool:
    """Whether the bias is added to the rows of the product as one matrix, like PyTorch's addmm, and not to the result."""
    return input.ndim == 2 or bias.ndim == 1 or sum(n != 1 for n in bias.shape) == 1


linear.vjp(
    input=lambda g, weight: linear_input_grad(g, backend.conjugate(weight)),
    weight=lambda g, input, weight: linear_weight_grad(g, backend.conjugate(input), weight),
    bias=lambda g, bias: linear_bias_grad(g, bias),
)


@linear.backward_order
def _(input, weight, bias=None):
    # PyTorch's are addmm(bias, input, weight.t()), with steps of their own for the weight, and for an input that is no matrix.
    return ("bias", "input", "weight") if input.ndim == 2 or bias is None else ("bias", "weight", "input")


@linear.check
def _(input, weight, bias=None):
    if input.ndim == 0 or weight.ndim == 0:
        raise errors.linear_ranks(input.ndim, weight.ndim)
    if weight.ndim > 2:
        raise errors.t_rank(weight.ndim)
    if bias is not None and weight.ndim == 1:
        raise errors.matrix_operand("mat2", 1)
    if input.dtype is not weight.dtype:
        raise _dtype_error(input, weight, bias)
    if bias is not None and bias.dtype is not weight.dtype:
        raise errors.same_dtype("self", "mat2", bias.dtype, weight.dtype)
    if input.dtype is dtypes.bool_ and input.numel:
        raise errors.not_implemented("addmm_impl_cpu_", input.dtype)
    columns = input.shape[-1]
    rows = math.prod(input.shape[:-1])
    if columns != weight.shape[-1]:
        if weight.ndim == 2:
            raise errors.matmul_shapes((rows, columns), (weight.shape[1], weight.shape[0]))
        if input.ndim == 1:
            raise errors.dot_shapes(columns, weight.shape[0])
        raise errors.mv_shapes((rows, columns), weight.shape[0])
    if bias is not None:
        _check_bias(input, rows, weight.shape[0], bias)


def _check_bias(input, rows, columns, bias):
    if not _by_rows(input, bias):
        have = (*input.shape[:-1], columns)
        got = broadcast(have, tuple(bias.shape))
        if got != have:
            raise errors.inplace_shape("linear", have, got)
        return
    target = (rows, columns)
    if bias.ndim > 2:
        raise errors_arguments.expand_rank(bias.shape, target, bias.dtype)
    for d in range(2 - bias.ndim, 2):
        n = bias.shape[d - 2]
        if n not in (1, target[d]):
            raise errors.expand_size(target[d], n, d, target, bias.shape)


def _dtype_error(input, weight, bias):
    if weight.ndim == 1:
        error = errors.dot_dtype if input.ndim == 1 else errors.mv_dtype
        return error(input.dtype, weight.dtype)
    if bias is None:
        return errors.mm_dtype(input.dtype, weight.dtype)
    return errors.same_dtype("mat1", "mat2", input.dtype, weight.dtype)


def _cotangent(g: Array, weight_ndim: int) -> Array:
    # Stored first, so that its producers are not computed again inside each matmul that reads it.
    return backend.materialize(_rows(g) if weight_ndim == 2 else g.reshape(g.size, 1))


@op(where="")
def linear_input_grad(grad: Array, weight: Array) -> Array:
    """The cotangent of linear's input."""
    out = _dot(_cotangent(grad, weight.ndim), weight if weight.ndim == 2 else weight[None])
    lead = grad.shape[:-1] if weight.ndim == 2 else grad.shape
    return out.reshape(*lead, weight.shape[-1]).astype(weight.dtype)


@op(where="")
def linear_weight_grad(grad: Array, input: Array, weight: Array) -> Array:
    """The cotangent of linear's weight."""
    out = backend.matmul_tn(_cotangent(grad, weight.ndim), backend.materialize(_rows(input)))
    return out.reshape(weight.shape).astype(weight.dtype)


@op(where="")
def linear_bias_grad(grad: Array, bias: Array) -> Array:
    """The cotangent of linear's bias: a sum over everything but the last dimension."""
    if bias.ndim != 1 or bias.shape[0] != grad.shape[-1]:
        return grad
    return backend.column_sum(_cotangent(grad, 2))


@op(where="torch nn.functional", grad_name=lambda a: f"{'View' if a['bias'] is None else 'Add'}Backward0")
def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """`input1 @ weight[k] @ input2 + bias[k]` for each k."""
    a, b = _rows(input1), _rows(input2)
    # (n, i) (k, i, j) -> (n, k j), then one more product over j
    out = _dot(a, weight.transpose(1, 0, 2).reshape(weight.shape[1], -1))
    out = jnp.einsum("nkj,nj->nk", out.reshape(-1, weight.shape[0], weight.shape[2]), b.astype(out.dtype))
    out = out.reshape(*input1.shape[:-1], weight.shape[0])
    if bias is not None:
        out = out + bias.astype(out.dtype)
    return out.astype(input1.dtype)


@bilinear.check
def _(input1, input2, weight, bias=None):
    if input1.ndim != input2.ndim:
        raise errors.bilinear_ranks(input1.ndim, input2.ndim)
    for i, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1])):
        if a != b:
            raise errors.bilinear_lead(i, a, b)
    for i, x in enumerate((input1, input2), 1):
        if x.shape[-1] != weight.shape[i]:
            raise errors.bilinear_features(i, x.shape[-1], weight.shape[i])
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise errors.bilinear_bias(bias.shape[0], weight.shape[0])
    if not input1.dtype is input2.dtype is weight.dtype or bias is not None and bias.dtype is not weight.dtype:
        raise errors.bilinear_dtypes(input1.dtype, input2.dtype, weight.dtype, None if bias is None else bias.dtype)
    if input1.dtype is dtypes.bool_ and input1.numel:
        raise errors.not_implemented("bmm", input1.dtype)


# embedding


@op(where="", grad_name="EmbeddingBackward0")
def embedding_rows(
    weight: Array, indices: Array, padding_idx: int | None = None, scale_grad_by_freq: bool = False
) -> Array:
    """The rows of `weight` that `indices` names."""
    return picked(weight, (indices,), wrap=False)


embedding_rows.vjp(
    weight=lambda g, weight, indices, padding_idx, scale_grad_by_freq: embedding_weight_grad(
        g, weight, indices, padding_idx, scale_grad_by_freq
    )
)


embedding_rows.shown = "embedding"


@embedding_rows.check
def _(weight, indices, padding_idx=None, scale_grad_by_freq=False):
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise errors.index_dtype("indices", indices.dtype, "embedding")
    if weight.ndim != 2:
        raise errors.embedding_rank()


@embedding_rows.check_values
def _(weight, indices, padding_idx=None, scale_grad_by_freq=False):
    if isinstance(indices, np.ndarray) and weight is not None:
        if outside(indices, 0, weight.shape[0]) is not None:
            raise errors.index_out_of_range()


@op(where="")
def embedding_weight_grad(
    grad: Array, weight: Array, indices: Array, padding_idx: int | None, scale_grad_by_freq: bool
) -> Array:
    """The cotangent of the embedding table: each row sums the cotangents of its uses."""
    rows, flat = weight.shape[0], indices.reshape(-1)
    grad = _rows(backend.materialize(grad))
    use = jnp.ones(flat.shape, bool) if padding_idx is None else flat != padding_idx
    if scale_grad_by_freq:
        count = jnp.zeros(rows, jnp.int32).at[flat].add(1, mode="promise_in_bounds")
        scale = (use / count.at[flat].get(mode="promise_in_bounds")).astype(grad.dtype)
        grad = grad * scale[:, None]
    elif padding_idx is not None:
        grad = jnp.where(use[:, None], grad, 0)
    # A scatter even on the CPU: 8 to 50 times faster there than a one-hot matmul, 2 to 10 times than sorting first.
    wide = backend.accumulator(grad.dtype)
    out = jnp.zeros((rows, grad.shape[-1]), wide).at[flat].add(grad.astype(wide), mode="promise_in_bounds")
    return out.astype(weight.dtype)


def _with_sparse_gradient(sparse, weight):
    """What looks up with a sparse gradient where there is to be one: `sparse` says how the gradient is kept, without one nothing."""
    if not sparse or not getattr(weight, "requires_grad", False):
        return None
    found = registry.sparse_tables()
    return found if found.needed(weight) else None


@composite(where="nn.functional.embedding")
def functional_embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
):
    """The rows of `weight` that `input` names; row `padding_idx` gets no gradient."""
    if padding_idx is not None:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise errors.padding_index()
        padding_idx %= rows
    if max_norm is not None:
        renormed = embedding_renorm(weight, input, float(max_norm), float(norm_type))
        weight = _write(weight, renormed)
    special = _with_sparse_gradient(sparse, weight)
    if special is not None:
        return special.lookup(weight, input, padding_idx, bool(scale_grad_by_freq))
    return embedding_rows(weight, input, padding_idx, bool(scale_grad_by_freq))


@composite(where="torch.embedding")
def torch_embedding(
    weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
):
    """The rows of `weight` that `indices` names."""
    padding_idx = padding_idx if padding_idx >= 0 else None
    special = _with_sparse_gradient(sparse, weight)
    if special is not None:
        return special.lookup(weight, indices, padding_idx, bool(scale_grad_by_freq))
    return embedding_rows(weight, indices, padding_idx, bool(scale_grad_by_freq))


def _write(weight, value):
    """Replace the rows of the table for good, as PyTorch does; an array has no writes, so only here."""
    if isinstance(weight, Array):
        return value
    weight.detach().copy_(value)
    return weight


@op(where="", differentiable=False)
def embedding_renorm(input: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    """`input` with each row named by `indices` scaled down to a norm of at most `max_norm`."""
    used = jnp.zeros(input.shape[0], bool).at[indices.reshape(-1)].set(True, mode="promise_in_bounds")
    norm = jnp.linalg.norm(input, ord=norm_type, axis=1)
    scale = jnp.where(used & (norm > max_norm), max_norm / (norm + 1e-7), 1).astype(input.dtype)
    return input * scale[:, None]


# embedding_bag

MODES = ("sum", "mean", "max")


@op(where="", grad_name="EmbeddingBagBackward0")
def embedding_bags(
    weight: Array,
    indices: Array,
    offsets: Array,
    per_sample_weights: Array | None,
    mode: str,
    padding_idx: int | None,
    scale_grad_by_freq: bool,
    include_last_offset: bool,
    length: int | None = None,
) -> Array:
    """The sum, mean or maximum of the table rows in each bag; `offsets` are where the bags start, `length` that of all of them if known."""
    settings = mode, padding_idx, scale_grad_by_freq, include_last_offset
    few = indices.shape[0] * weight.shape[1] < MANY_NUMBERS or indices.shape[0] >= 1 << 31
    if not backend.on_cpu() or mode == "max" or few or offsets.shape[0] == include_last_offset:
        return _bags(weight, indices, offsets, per_sample_weights, *settings)
    starts = offsets[: offsets.shape[0] - include_last_offset]
    plain = lambda w, s: _bags(w, indices, offsets, s, *settings)
    if length:
        fast = lambda w, s: equal_bags(w, indices.reshape(-1, length), s, mode, padding_idx)
    else:
        fast = lambda w, s: uneven_bags(w, indices, starts, s, mode, padding_idx)
    return backend.differentiated_as(fast, plain)(weight, per_sample_weights)


def _bags(weight, indices, offsets, per_sample_weights, mode, padding_idx, scale_grad_by_freq, include_last_offset):
    count = indices.shape[0]
    bags = offsets.shape[0] - include_last_offset
    if not bags:
        return jnp.zeros((0, weight.shape[1]), weight.dtype)
    starts = offsets[:bags]  # the last offset, where included, is where the last bag would end
    # A bag that starts where the next one starts is empty: the last start at or before a position owns it.
    bag = lax.cumsum(jnp.zeros(count, jnp.int32).at[starts].add(1, mode="drop")) - 1
    valid = jnp.ones(count, bool) if padding_idx is None else indices != padding_idx
    wide = backend.accumulator(weight.dtype)
    rows = (_rows_by_use(weight, indices) if scale_grad_by_freq else weight[indices]).astype(wide)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None].astype(wide)
    size = jnp.zeros(bags, jnp.int32).at[bag].add(valid.astype(jnp.int32))
    if mode == "max":
        # the gradient is the first largest row's alone, where jax's shares it among equals
        known = jnp.where(valid[:, None], lax.stop_gradient(rows), -jnp.inf)
        most = jax.ops.segment_max(known, bag, bags)[bag]
        is_most = valid[:, None] & ((known == most) | (jnp.isnan(known) & jnp.isnan(most)))
        place = lax.broadcasted_iota(jnp.int32, rows.shape, 0)
        first = jax.ops.segment_min(jnp.where(is_most, place, count), bag, bags)
        out = jnp.zeros(first.shape, wide)
        if count:
            picked = jnp.take_along_axis(rows, jnp.clip(first, 0, count - 1), 0)
            out = jnp.where(size[:, None] > 0, picked, 0)
    else:
        out = jnp.zeros((bags, weight.shape[1]), wide).at[bag].add(jnp.where(valid[:, None], rows, 0))
        if mode == "mean":
            out = out / jnp.maximum(size, 1)[:, None].astype(wide)
    return out.astype(weight.dtype)


@jax.custom_vjp
def _rows_by_use(weight, indices):
    return weight[indices]


def _rows_by_use_bwd(saved, g):
    weight, indices = saved
    return embedding_weight_grad.fn(g, weight, indices, None, True), None


_rows_by_use.defvjp(lambda weight, indices: (weight[indices], (weight, indices)), _rows_by_use_bwd)


embedding_bags.passes = 4


@embedding_bags.check
def _(weight, indices, offsets, per_sample_weights, mode, *rest):
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise errors.index_dtype("indices", indices.dtype, "embedding_bag")
    if offsets.dtype not in (dtypes.int64, dtypes.int32):
        raise errors.index_dtype("offsets", offsets.dtype, "embedding_bag")
    if not weight.dtype.is_floating_point:
        raise errors.bag_dtype(weight.dtype)
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise errors.bag_weights_dtype(weight.dtype, per_sample_weights.dtype)


@embedding_bags.check_values
def _(weight, indices, offsets, per_sample_weights, mode, padding_idx, *rest):
    if isinstance(offsets, np.ndarray) and offsets.size:
        if offsets[0] != 0:
            raise errors.bag_first_offset(int(offsets[0]))
        if indices is not None and offsets[-1] > indices.shape[0]:
            raise errors.bag_last_offset(int(offsets[-1]), indices.shape[0])
    if isinstance(indices, np.ndarray) and weight is not None:
        wrong = np.flatnonzero((indices < 0) | (indices >= weight.shape[0]))
        if wrong.size:
            # PyTorch has a quicker kernel for these, with words of its own.
            quick = mode != "max" and padding_idx is None and weight.dtype is not dtypes.float64
            raise errors.bag_index(int(wrong[0]), int(indices[wrong[0]]), weight.shape[0], quick)


@composite(where="nn.functional.embedding_bag")
def functional_embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The sum, mean or maximum of bags of table rows, without the rows themselves."""
    if mode not in MODES:
        raise errors.bag_mode()
    if per_sample_weights is not None and tuple(per_sample_weights.shape) != tuple(input.shape):
        raise errors.bag_weights_shape(per_sample_weights.shape, input.shape)
    if per_sample_weights is not None and mode != "sum":
        raise errors.bag_weights_mode(mode)
    if mode == "max" and scale_grad_by_freq:
        raise errors.bag_max_scaled()
    length = None
    if input.ndim == 2:
        if offsets is not None:
            raise errors.bag_offsets_given(offsets)
        length, offsets, include_last_offset = input.shape[1], bag_starts(input), False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.ndim == 1:
        if offsets is None:
            raise errors.bag_offsets_missing()
        if offsets.ndim != 1:
            raise errors.bag_offsets_rank()
        if include_last_offset and not offsets.shape[0]:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
    else:
        raise errors.bag_input_rank(input.ndim)
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise errors.bag_padding_index(padding_idx, rows)
        padding_idx %= rows
    if max_norm is not None:
        weight = _write(weight, embedding_renorm(weight, input, float(max_norm), float(norm_type)))
    if mode == "max" and sparse:
        raise errors.bag_max_sparse()
    given = (
        weight,
        input,
        offsets,
        per_sample_weights,
        mode,
        padding_idx,
        bool(scale_grad_by_freq),
        bool(include_last_offset),
    )
    special = _with_sparse_gradient(sparse, weight)
    return embedding_bags(*given, length) if special is None else special.bags(*given)


@op(where="", differentiable=False)
def bag_starts(input: Array) -> Array:
    """Where each row of a matrix of indices starts once it is flattened."""
    return jnp.arange(input.shape[0], dtype=input.dtype) * input.shape[1]


@bag_starts.check
def _(input):
    if input.dtype.is_complex or input.dtype is dtypes.bool_:
        raise errors.not_implemented("arange_cpu", input.dtype)


# dropout

_SELU_SATURATION = -1.7580993408473766  # -scale * alpha of selu: what alpha dropout sets dropped elements to


@op(where="", hidden=1, grad_name="MulBackward0", strides=formats.keep_order)
def dropout_mask(input: Array, p: float, features: int | None = None, *, key: Key) -> tuple[Array, Array]:
    """`input` with elements zeroed at probability `p` and the rest scaled by 1 / (1 - p).

    With `features`, whole slices are: the mask spans that many leading dimensions."""
    keep = backend.keep_mask(key, 1.0 - p, _mask_shape(input.shape, features))
    return _drop(input, keep, p), keep


def _mask_shape(shape, features: int | None):
    return shape if features is None else (*shape[:features], *(1 for _ in shape[features:]))


def _drop(x: Array, keep: Array, p: float) -> Array:
    scale = 0.0 if p == 1 else 1 / (1 - p)
    # A product, not a selection, where nothing is kept: torch makes nan of infinity times zero.
    return jnp.where(keep, x * jnp.asarray(scale, x.dtype), x * jnp.zeros((), x.dtype))


dropout_mask.vjp(input=lambda g, p, out1: dropout_grad(g, out1, p))


@op(where="")
def dropout_grad(grad: Array, keep: Array, p: float) -> Array:
    """The cotangent of dropout's input."""
    return _drop(grad, keep, p)


@dropout_mask.check
def _(input, p, features=None, *, key=None):
    _check_dropout_dtype(input.dtype, p)


def _check_dropout_dtype(dtype, p: float) -> None:
    if p == 1:
        return
    if dtype.is_complex:
        raise errors.not_implemented("bernoulli_scalar_cpu_", dtype)
    if not dtype.is_floating_point:
        raise errors.result_cast(dtypes.default.dtype, dtype)


@op(where="", hidden=1, grad_name="AddBackward0", strides=formats.keep_order)
def alpha_dropout_mask(input: Array, p: float, features: int | None = None, *, key: Key) -> tuple[Array, Array]:
    """Dropout to selu's saturation value, then an affine map: mean and variance stay what they were."""
    keep = backend.keep_mask(key, 1.0 - p, _mask_shape(input.shape, features))
    scale = _alpha_scale(p)
    x = input.astype(backend.accumulator(input.dtype))
    dropped = jnp.asarray(_SELU_SATURATION * scale, x.dtype)
    shift = jnp.asarray(-_SELU_SATURATION * scale * p, x.dtype)
    return (jnp.where(keep, x * jnp.asarray(scale, x.dtype), dropped) + shift).astype(input.dtype), keep


def _alpha_scale(p: float) -> float:
    return 0.0 if p == 1 else ((_SELU_SATURATION**2 * p + 1) * (1 - p)) ** -0.5


alpha_dropout_mask.vjp(input=lambda g, p, out1: alpha_dropout_grad(g, out1, p))


@op(where="")
def alpha_dropout_grad(grad: Array, keep: Array, p: float) -> Array:
    """The cotangent of alpha dropout's input."""
    return jnp.where(keep, grad * jnp.asarray(_alpha_scale(p), grad.dtype), jnp.zeros((), grad.dtype))


@alpha_dropout_mask.check
def _(input, p, features=None, *, key=None):
    _check_dropout_dtype(input.dtype, p)


def _dropped(mask_op, input, p, training, inplace, features=None, error=ValueError):
    if not 0 <= p <= 1:
        raise errors.dropout_probability(p, error)
    if features is not None and training and 0 < p < 1 and input.ndim < features:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    if not training or p == 0 or 0 in input.shape:
        return input
    if config.host_dropout:
        out = _dropped_by_host(input, float(p), features, mask_op is alpha_dropout_mask)
    else:
        out = mask_op(input, float(p), features)
    return input.copy_(out) if inplace else out


def _dropped_by_host(input, p, features, alpha=False):
    """Dropout by PyTorch's own numbers: its noise is one number of the generator an element, drawn in the order of memory."""
    if p == 1:
        return mul(input, 0)
    noise = mul(input.detach(), 0) if features is None else input.new_empty(_mask_shape(tuple(input.shape), features))
    noise = noise.bernoulli_(1 - p)
    if not alpha:
        return mul(input, noise.div_(1 - p))
    scale = 1 / math.sqrt((_SELU_SATURATION**2 * p + 1) * (1 - p))
    shift = noise.add(-1).mul_(-_SELU_SATURATION * scale).add_(-_SELU_SATURATION * scale * p)
    return mul(input, noise.mul_(scale)) + shift


@composite(where="nn.functional.dropout")
def functional_dropout(input: Array, p=0.5, training=True, inplace=False):
    """Zero elements at probability `p` and scale the rest by 1 / (1 - p), in training."""
    return _dropped(dropout_mask, input, p, training, inplace)


@composite(where="nn.functional.alpha_dropout")
def functional_alpha_dropout(input: Array, p=0.5, training=False, inplace=False):
    """Dropout that keeps the mean and variance of inputs from selu."""
    return _dropped(alpha_dropout_mask, input, p, training, inplace)


@composite(where="nn.functional")
def feature_alpha_dropout(input: Array, p=0.5, training=False, inplace=False):
    """Alpha dropout of whole channels."""
    return _dropped(alpha_dropout_mask, input, p, training, inplace, features=2)


@composite(where="torch.dropout")
def torch_dropout(input: Array, p, train: bool):
    """Zero elements at probability `p` and scale the rest, if `train`."""
    return _dropped(dropout_mask, input, p, train, False, error=RuntimeError)


@composite(where="torch.dropout_")
def torch_dropout_in_place(input: Array, p, train: bool):
    """`torch.dropout`, written to `input`."""
    return _dropped(dropout_mask, input, p, train, True, error=RuntimeError)


@composite(where="torch.alpha_dropout")
def torch_alpha_dropout(input: Array, p, train: bool):
    """Alpha dropout, if `train`."""
    return _dropped(alpha_dropout_mask, input, p, train, False, error=RuntimeError)


@composite(where="torch.feature_dropout")
def feature_dropout(input: Array, p, train: bool):
    """Dropout of whole channels, if `train`."""
    return _dropped(dropout_mask, input, p, train, False, features=2, error=RuntimeError)


def _dropped_channels(name, ranks, input, p, training, inplace):
    if not 0 <= p <= 1:
        raise errors.dropout_probability(p)
    ndim, spatial = input.ndim, ranks[0] - 1
    if ndim not in ranks:
        if spatial == 1:
            raise errors.dropout_rank(ndim)
        warn(errors.dropout_rank_warning(name, ndim, spatial))
    elif ndim == 3 and spatial == 2:
        warn(errors.dropout2d_three_warning())
    # dropout2d reads three dimensions as (N, C, L), its siblings read any number but their own as unbatched
    unbatched = ndim != ranks[1] and spatial != 2
    return _dropped(dropout_mask, input, p, training, inplace, features=1 if unbatched else 2)


@composite(where="nn.functional")
def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, L) or (C, L) at probability `p`."""
    return _dropped_channels("dropout1d", (2, 3), input, p, training, inplace)


@composite(where="nn.functional")
def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, H, W) at probability `p`."""
    return _dropped_channels("dropout2d", (3, 4), input, p, training, inplace)


@composite(where="nn.functional")
def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W) at probability `p`."""
    return _dropped_channels("dropout3d", (4, 5), input, p, training, inplace)
